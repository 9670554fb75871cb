"""An interrupted and resumed run ends with exactly the parameters of an uninterrupted one."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from transformers import EarlyStoppingCallback, TrainerCallback

from helpers.small_models import arguments, assert_same, charts, gold, model_of
from hf_xst import ChartTrainer, SupervisedTrainer
from hf_xst.commands.runs import RunFolder
from hf_xst.commands.training import train_and_save

LENGTHS = (1, 4, 2, 12, 3, 5, 11, 2, 4)


class Interrupt(TrainerCallback):
    """Interrupt training at the end of an update, as Ctrl-C would."""

    def __init__(self, update: int) -> None:
        self.update = update

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step == self.update:
            raise KeyboardInterrupt


def with_dropout(kind: str) -> Any:
    return model_of(kind, context_dropout=0.2, word_dropout=0.2, output_dropout=0.2)


def chart_trainer(output: Any, *callbacks: TrainerCallback) -> ChartTrainer:
    settings = arguments(
        output,
        2,
        2,
        num_train_epochs=2,
        optim="adamw_torch",
        save_strategy="steps",
        save_steps=1,
        learning_rate=0.01,
    )
    rows = charts("parser", gold(LENGTHS))
    return ChartTrainer(with_dropout("parser"), settings, rows, l2=0.05, callbacks=list(callbacks))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    torch.manual_seed(0)
    trainer = chart_trainer(tmp_path_factory.mktemp("whole"))
    trainer.train()
    assert trainer.state.global_step == 6
    return trainer


@pytest.mark.parametrize("update", [2, 4, 5])  # within the first epoch, between two, and within the second
def test_training_on_charts_resumes_exactly(tmp_path, whole, update):
    with pytest.raises(KeyboardInterrupt):
        chart_trainer(tmp_path / "parts", Interrupt(update)).train()
    rest = chart_trainer(tmp_path / "parts")
    rest.train(resume_from_checkpoint=str(tmp_path / "parts" / f"checkpoint-{update - 1}"))
    assert_same(rest.model, whole.model, exactly=True)
    losses = [entry["loss"] for entry in whole.state.log_history if "loss" in entry]
    assert [entry["loss"] for entry in rest.state.log_history if "loss" in entry] == losses


def source_trainer(output: Any, *callbacks: TrainerCallback) -> SupervisedTrainer:
    settings = arguments(
        output,
        2,
        num_train_epochs=9,
        optim="adamw_torch",
        learning_rate=0.03,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=1,
        load_best_model_at_end=True,
        metric_for_best_model="accuracy",
        greater_is_better=True,
        lr_scheduler_type="reduce_lr_on_plateau",
        lr_scheduler_kwargs={"mode": "max", "factor": 0.5, "patience": 1, "threshold": 0.0},
        restore_callback_states_from_checkpoint=True,
    )
    stop = EarlyStoppingCallback(2)
    rows = gold(LENGTHS)
    return SupervisedTrainer(
        with_dropout("tagger"), settings, rows, gold((3, 4, 2), seed=9), callbacks=[stop, *callbacks]
    )


def test_early_stopping_and_plateau_resume_exactly(tmp_path):
    whole = source_trainer(tmp_path / "whole")
    whole.train()
    assert whole.state.global_step < 45  # it stopped early
    with pytest.raises(KeyboardInterrupt):
        source_trainer(tmp_path / "parts", Interrupt(whole.state.global_step - 2)).train()
    (last, *_) = sorted(
        (tmp_path / "parts").glob("checkpoint-*"), key=lambda path: -int(path.name.split("-")[1])
    )
    rest = source_trainer(tmp_path / "parts")
    rest.train(resume_from_checkpoint=str(last))
    assert_same(rest.model, whole.model, exactly=True)
    assert rest.state.global_step == whole.state.global_step
    assert rest.state.best_metric == whole.state.best_metric


@dataclasses.dataclass
class Options:
    """Options of a run."""

    output: str


@pytest.mark.parametrize("updates", [4, 6])  # within an epoch of three updates, and at its end
def test_run_interrupted_after_its_last_update_makes_no_more(tmp_path, updates):
    rows = charts("parser", gold(LENGTHS))

    def trained(name: str) -> ChartTrainer:
        settings = arguments(
            tmp_path / name / "run",
            4,
            max_steps=updates,
            save_strategy="steps",
            save_steps=2,
            learning_rate=0.01,
        )
        trainer = ChartTrainer(with_dropout("parser"), settings, rows, l2=0.05)
        folder = RunFolder(str(tmp_path / name), Options(name))
        folder.begin()
        train_and_save(trainer, folder)
        return trainer

    whole = trained("once")
    assert whole.state.global_step == updates
    again = trained("once")  # its results were not written
    assert again.state.global_step == updates
    assert_same(again.model, whole.model, exactly=True)
    assert again.state.log_history == whole.state.log_history[: len(again.state.log_history)]


def test_resumed_run_rejects_other_charts(tmp_path):
    def trainer(lengths: tuple[int, ...], *callbacks: TrainerCallback) -> ChartTrainer:
        settings = arguments(tmp_path / "run", 2, num_train_epochs=2, save_strategy="steps", save_steps=1)
        return ChartTrainer(
            with_dropout("parser"), settings, charts("parser", gold(lengths)), callbacks=[*callbacks]
        )

    folder = RunFolder(str(tmp_path), Options("here"))
    folder.begin()
    with pytest.raises(KeyboardInterrupt):
        train_and_save(trainer(LENGTHS, Interrupt(2)), folder)
    with pytest.raises(ValueError, match="with other sentences"):
        train_and_save(trainer(LENGTHS[1:]), folder)
    train_and_save(trainer(LENGTHS), folder)
