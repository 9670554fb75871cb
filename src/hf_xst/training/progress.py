"""Callbacks that log training in readable lines, and stop it when it diverges."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from transformers import ProgressCallback, TrainerCallback, TrainerState

from hf_xst.console import say

TRAINER_STATE = "trainer_state.json"  # as in transformers.trainer, whose import takes seconds
# Suffixes of the Trainer's metrics that do not measure quality.
_NOT_SCORES = ("runtime", "per_second", "epoch", "preparation_time", "total_flos")


class CheckedLog(TrainerCallback):
    """Stop training when the loss becomes NaN, and log means that do not depend on interruptions."""

    def on_step_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Log before each checkpoint, from which a resumed run begins its next mean."""
        control.should_log |= control.should_save

    on_epoch_end = on_step_end

    def on_log(self, args: Any, state: TrainerState, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Raise ValueError if a loss is NaN."""
        for name in ("loss", "train_loss", "eval_loss"):
            value = (logs or {}).get(name)
            if isinstance(value, float) and math.isnan(value):
                raise ValueError(
                    f"the loss is NaN at update {state.global_step}: training has diverged; a smaller "
                    "--learning-rate may help"
                )


def score_texts(scores: Mapping[str, Any], spec: str) -> list[str]:
    """Format losses and scores, without the Trainer's timings."""
    return [
        f"{name.removeprefix('eval_')} {value:{spec}}"
        for name, value in scores.items()
        if isinstance(value, float) and not name.endswith(_NOT_SCORES)
    ]


def _format(state: TrainerState, logs: Mapping[str, Any] | None) -> str | None:
    """Format a log entry's losses and scores; return None if it has neither, or on later processes."""
    scores = score_texts(logs or {}, ".4g")
    if not scores or not state.is_world_process_zero:
        return None
    return f"update {state.global_step} of {state.max_steps}: {', '.join(scores)}"


class LogLines(TrainerCallback):
    """Print each log entry as a line, instead of the Trainer's dictionaries."""

    def on_log(self, args: Any, state: TrainerState, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Print the entry."""
        line = _format(state, logs)
        if line is not None:
            say(line)


class ProgressWithLines(ProgressCallback):
    """Show the Trainer's progress bar, with each log entry as a line above it."""

    def on_log(self, args: Any, state: TrainerState, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Print the entry above the bar."""
        line = _format(state, logs)
        if line is not None and self.training_bar is not None:
            self.training_bar.write(line)
