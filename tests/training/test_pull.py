"""The pull to the start: its gradient and value, what it leaves alone, and where theta0 is kept."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from accelerate import Accelerator
from accelerate.optimizer import AcceleratedOptimizer
from safetensors.torch import load_file
from torch import nn
from transformers import TrainerCallback

from helpers.small_models import arguments, charts, gold, losses_of, model_of, on_charts, parameters
from hf_xst.training.pull import START_FILE, StartPull


def linear(weight: list[float], frozen: list[float]) -> nn.Module:
    model = nn.ParameterDict({"moved": torch.tensor(weight), "frozen": torch.tensor(frozen)})
    model["frozen"].requires_grad_(False)
    return model


def test_gradient_and_value_by_hand():
    pull = StartPull(0.5)
    model = linear([1.0, -2.0], [7.0])
    pull.on_train_begin(SimpleNamespace(), None, None, model=model)
    with torch.no_grad():
        model["moved"].add_(torch.tensor([3.0, 0.5]))
        model["frozen"].add_(1.0)
    model["moved"].grad = torch.tensor([10.0, 20.0])
    pull.on_pre_optimizer_step(SimpleNamespace(), None, None, model=model)
    assert model["moved"].grad.tolist() == [10 + 2 * 0.5 * 3, 20 + 2 * 0.5 * 0.5]
    assert model["frozen"].grad is None
    model["moved"].grad = None
    pull.on_pre_optimizer_step(SimpleNamespace(), None, None, model=model)
    assert model["moved"].grad.tolist() == [3.0, 0.5]
    assert pull.take_mean() == pytest.approx(0.5 * (9 + 0.25))
    assert pull.take_mean() == 0


def test_scaled_gradients_are_unscaled_first():
    pull = StartPull(1.0)
    model = linear([1.0, 1.0], [0.0])
    pull.on_train_begin(SimpleNamespace(), None, None, model=model)
    Accelerator(cpu=True)  # what the wrapped optimizer asks for
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    optimizer = AcceleratedOptimizer(torch.optim.SGD([model["moved"]], lr=1.0), scaler=scaler)
    with torch.no_grad():
        model["moved"].add_(2.0)
    scaler.scale(model["moved"].sum()).backward()
    assert model["moved"].grad.tolist() == [1024.0, 1024.0]
    pull.on_pre_optimizer_step(SimpleNamespace(), None, None, model=model, optimizer=optimizer)
    assert model["moved"].grad.tolist() == [1 + 4, 1 + 4]

    # Taking the gradient's norm, as the Trainer does for its log, unscales already.
    optimizer.step()
    optimizer.zero_grad()
    scaler.scale(model["moved"].sum()).backward()
    scaler.unscale_(optimizer.optimizer)
    away = model["moved"].detach() - pull.start["moved"]
    pull.on_pre_optimizer_step(SimpleNamespace(), None, None, model=model, optimizer=optimizer)
    assert model["moved"].grad.tolist() == (1 + 2 * away).tolist()


def test_an_update_with_the_pull_by_hand(tmp_path):
    rows = charts("groups", gold())
    first = on_charts("groups", arguments(tmp_path, max_steps=1), rows)
    first.train()
    second = on_charts("groups", arguments(tmp_path, max_steps=2), rows)
    second.train()
    pulled = on_charts("groups", arguments(tmp_path, max_steps=2), rows, l2=0.3)
    pulled.train()
    start, middle, end = parameters(model_of("groups")), parameters(first.model), parameters(second.model)
    value = 0.0
    for name, found in parameters(pulled.model).items():
        away = middle[name] - start[name]
        value += 0.3 * away.square().sum().item()
        torch.testing.assert_close(found, end[name] - 0.1 * 2 * 0.3 * away, rtol=1e-5, atol=1e-6)
    assert value > 1e-3
    plain = losses_of(second)
    assert losses_of(pulled, "chart_loss") == pytest.approx(plain, rel=1e-5)
    assert losses_of(pulled, "pull") == pytest.approx([0.0, value], rel=1e-4)
    assert losses_of(pulled) == pytest.approx([plain[0], plain[1] + value], rel=1e-5)


def test_the_pull_counts_once_an_update_and_escapes_clipping(tmp_path):
    class Elsewhere(TrainerCallback):
        def on_train_begin(self, args, state, control, **kwargs):
            trainer.pull.start = {name: value + 1 for name, value in trainer.pull.start.items()}

    rows, start = charts("groups", gold()), parameters(model_of("groups"))
    for batch, accumulation in ((4, 1), (1, 4)):
        settings = arguments(tmp_path, batch, accumulation, max_steps=3, max_grad_norm=1e-12)
        trainer = on_charts("groups", settings, rows, l2=0.3)
        trainer.add_callback(Elsewhere())
        trainer.train()
        for name, value in parameters(trainer.model).items():
            torch.testing.assert_close(
                value, start[name] + 1 - (1 - 0.1 * 2 * 0.3) ** 3, rtol=1e-5, atol=1e-6
            )


def test_no_strength_adds_nothing(tmp_path):
    rows = charts("groups", gold())
    trainer = on_charts(
        "groups", arguments(tmp_path, max_steps=1, save_strategy="steps", save_steps=1), rows, l2=0.0
    )
    trainer.train()
    assert trainer.pull is None
    assert not any(isinstance(callback, StartPull) for callback in trainer.callback_handler.callbacks)
    assert not list(Path(tmp_path).rglob(START_FILE))
    assert all("pull" not in entry for entry in trainer.state.log_history)


def test_negative_strength_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"l2.*-0.1.*at least 0"):
        on_charts("groups", arguments(tmp_path), charts("groups", gold()), l2=-0.1)


def test_theta0_lies_in_every_checkpoint(tmp_path):
    settings = arguments(tmp_path, max_steps=2, save_strategy="steps", save_steps=1)
    trainer = on_charts("groups", settings, charts("groups", gold()), l2=0.3)
    trainer.train()
    start = parameters(model_of("groups"))
    for step in (1, 2):
        kept = load_file(tmp_path / f"checkpoint-{step}" / START_FILE)
        assert kept.keys() == start.keys()
        for name, value in kept.items():
            assert torch.equal(value, start[name])


def test_a_checkpoint_without_theta0_is_refused(tmp_path):
    settings = arguments(tmp_path, max_steps=1, save_strategy="steps", save_steps=1)
    rows = charts("groups", gold())
    on_charts("groups", settings, rows).train()
    with pytest.raises(ValueError, match=r"has no theta0.safetensors: it was made without a pull"):
        on_charts("groups", settings, rows, l2=0.1).train(
            resume_from_checkpoint=str(tmp_path / "checkpoint-1")
        )


def test_training_again_pulls_to_where_it_begins_again(tmp_path):
    trainer = on_charts("groups", arguments(tmp_path, max_steps=2), charts("groups", gold()), l2=0.3)
    trainer.train()
    between = parameters(trainer.model)
    trainer.train()
    for name, value in trainer.pull.start.items():
        assert torch.equal(value, between[name])
