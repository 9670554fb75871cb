"""The course of training in lines for people, above a progress bar where there is a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from transformers import (
    ProgressCallback,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from hf_xst.console import say

TRAINER_STATE = "trainer_state.json"  # as in transformers.trainer, whose import takes seconds
# Parts of the Trainer's metrics that say nothing about quality.
NOT_SCORES = ("runtime", "per_second", "epoch", "preparation_time", "total_flos")


class StopsWhereItDiverges(TrainerCallback):
    """End training at a loss that is no number: what follows would train nothing, and the model be none."""

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Look at the losses.

        Raises:
            ValueError: one is NaN.
        """
        for name in ("loss", "train_loss", "eval_loss"):
            value = (logs or {}).get(name)
            if isinstance(value, float) and math.isnan(value):
                raise ValueError(
                    f"the loss is no number any more at update {state.global_step}: training has diverged; "
                    "a smaller --learning-rate may help"
                )


def line_of(state: TrainerState, logs: Mapping[str, Any] | None) -> str | None:
    """Write an entry of the log for people, losses and scores without times; None where there are neither."""
    shown = [
        f"{name.removeprefix('eval_')} {value:.4g}"
        for name, value in (logs or {}).items()
        if isinstance(value, float) and not name.endswith(NOT_SCORES)
    ]
    return f"update {state.global_step} of {state.max_steps}: {', '.join(shown)}" if shown else None


class LogLines(TrainerCallback):
    """Tell each entry of the log in a line, in place of the Trainer's dictionaries."""

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Write the line."""
        line = line_of(state, logs)
        if line is not None and state.is_world_process_zero:
            say(line)


class ProgressWithLines(ProgressCallback):
    """The Trainer's progress bar, with the same lines above it."""

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Write the line above the bar."""
        line = line_of(state, logs)
        if line is not None and state.is_world_process_zero and self.training_bar is not None:
            self.training_bar.write(line)


def without_lines(trainer: Trainer) -> None:
    """Let a trainer say nothing: somebody else tells how far the whole is."""
    for kind in (LogLines, ProgressWithLines):
        trainer.pop_callback(kind)
