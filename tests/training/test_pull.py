"""The pull to the initial parameters: gradient, value, logs, and theta0 in checkpoints."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from accelerate import Accelerator
from accelerate.optimizer import AcceleratedOptimizer
from safetensors.torch import load_file
from torch import nn
from transformers import TrainerCallback

from helpers.small_models import arguments, charts, gold, losses_of, model_of, on_charts, parameters
from hf_xst.training.transfer import INITIAL_PARAMETERS, InitialPull


def linear(weight: list[float], frozen: list[float]) -> nn.Module:
    model = nn.ParameterDict({"moved": torch.tensor(weight), "frozen": torch.tensor(frozen)})
    model["frozen"].requires_grad_(False)
    return model


def test_gradient_and_value_match_hand_computation():
    pull = InitialPull(0.5)
    model = linear([1.0, -2.0], [7.0])
    pull.on_train_begin(None, None, None, model=model)
    with torch.no_grad():
        model["moved"].add_(torch.tensor([3.0, 0.5]))
        model["frozen"].add_(1.0)
    model["moved"].grad = torch.tensor([10.0, 20.0])
    pull.on_pre_optimizer_step(None, None, None, model=model)
    assert model["moved"].grad.tolist() == [10 + 2 * 0.5 * 3, 20 + 2 * 0.5 * 0.5]
    assert model["frozen"].grad is None
    model["moved"].grad = None
    pull.on_pre_optimizer_step(None, None, None, model=model)
    assert model["moved"].grad.tolist() == [3.0, 0.5]
    assert pull.take_mean() == pytest.approx(0.5 * (9 + 0.25))
    assert pull.take_mean() == 0


def test_scaled_gradients_are_unscaled_first():
    pull = InitialPull(1.0)
    model = linear([1.0, 1.0], [0.0])
    pull.on_train_begin(None, None, None, model=model)
    Accelerator(cpu=True)  # required by the wrapped optimizer
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    optimizer = AcceleratedOptimizer(torch.optim.SGD([model["moved"]], lr=1.0), scaler=scaler)
    with torch.no_grad():
        model["moved"].add_(2.0)
    scaler.scale(model["moved"].sum()).backward()
    assert model["moved"].grad.tolist() == [1024.0, 1024.0]
    pull.on_pre_optimizer_step(None, None, None, model=model, optimizer=optimizer)
    assert model["moved"].grad.tolist() == [1 + 4, 1 + 4]

    # The Trainer unscales the gradient before it logs the norm.
    optimizer.step()
    optimizer.zero_grad()
    scaler.scale(model["moved"].sum()).backward()
    scaler.unscale_(optimizer.optimizer)
    difference = model["moved"].detach() - pull.initial["moved"]
    pull.on_pre_optimizer_step(None, None, None, model=model, optimizer=optimizer)
    assert model["moved"].grad.tolist() == (1 + 2 * difference).tolist()


def trained(rows, settings, **changes):
    trainer = on_charts("groups", settings, rows, **changes)
    trainer.train()
    return trainer


def test_update_with_pull_matches_hand_computation(tmp_path):
    rows = charts("groups", gold())
    first = trained(rows, arguments(tmp_path, max_steps=1))
    second = trained(rows, arguments(tmp_path, max_steps=2))
    pulled = trained(rows, arguments(tmp_path, max_steps=2), l2=0.3)
    initial, middle, end = parameters(model_of("groups")), parameters(first.model), parameters(second.model)
    value = 0.0
    for name, actual in parameters(pulled.model).items():
        difference = middle[name] - initial[name]
        value += 0.3 * difference.square().sum().item()
        torch.testing.assert_close(actual, end[name] - 0.1 * 2 * 0.3 * difference, rtol=1e-5, atol=1e-6)
    assert value > 1e-3
    plain = losses_of(second)
    assert losses_of(pulled, "chart_loss") == pytest.approx(plain, rel=1e-5)
    assert losses_of(pulled, "pull") == pytest.approx([0.0, value], rel=1e-4)
    assert losses_of(pulled) == pytest.approx([plain[0], plain[1] + value], rel=1e-5)


@pytest.mark.parametrize("division", [(4, 1), (1, 4)])
def test_pull_acts_once_per_update_and_is_not_clipped(tmp_path, division):
    class MoveInitial(TrainerCallback):
        def on_train_begin(self, args, state, control, **kwargs):
            trainer.pull.initial = {name: value + 1 for name, value in trainer.pull.initial.items()}

    settings = arguments(tmp_path, *division, max_steps=3, max_grad_norm=1e-12)
    trainer = on_charts("groups", settings, charts("groups", gold()), l2=0.3)
    trainer.add_callback(MoveInitial())
    trainer.train()
    for name, value in parameters(model_of("groups")).items():
        expected = value + 1 - (1 - 0.1 * 2 * 0.3) ** 3
        torch.testing.assert_close(parameters(trainer.model)[name], expected, rtol=1e-5, atol=1e-6)


def test_strength_0_adds_nothing(tmp_path):
    settings = arguments(tmp_path, max_steps=1, save_strategy="steps", save_steps=1)
    trainer = trained(charts("groups", gold()), settings, l2=0.0)
    assert not any(isinstance(callback, InitialPull) for callback in trainer.callback_handler.callbacks)
    assert not list(Path(tmp_path).rglob(INITIAL_PARAMETERS))
    assert all("pull" not in entry for entry in trainer.state.log_history)


def test_negative_strength_is_rejected(tmp_path):
    with pytest.raises(ValueError, match=r"l2.*-0.1.*at least 0"):
        on_charts("groups", arguments(tmp_path), charts("groups", gold()), l2=-0.1)
    with pytest.raises(ValueError, match="is nan; expected a number"):
        InitialPull(math.nan)


def test_every_checkpoint_contains_theta0(tmp_path):
    settings = arguments(tmp_path, max_steps=2, save_strategy="steps", save_steps=1)
    trained(charts("groups", gold()), settings, l2=0.3)
    for step in (1, 2):
        saved = load_file(tmp_path / f"checkpoint-{step}" / INITIAL_PARAMETERS)
        torch.testing.assert_close(saved, parameters(model_of("groups")), rtol=0, atol=0)


def test_checkpoint_without_theta0_is_rejected(tmp_path):
    settings = arguments(tmp_path, max_steps=1, save_strategy="steps", save_steps=1)
    rows = charts("groups", gold())
    trained(rows, settings)
    trainer = on_charts("groups", settings, rows, l2=0.1)
    with pytest.raises(ValueError, match=r"has no theta0.safetensors: saved without a pull"):
        trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-1"))


def test_second_training_pulls_to_its_own_initial_parameters(tmp_path):
    trainer = trained(charts("groups", gold()), arguments(tmp_path, max_steps=2), l2=0.3)
    between = parameters(trainer.model)
    trainer.train()
    torch.testing.assert_close(trainer.pull.initial, between, rtol=0, atol=0)
