"""The course of training in lines for people, where there is no terminal to show a progress bar in."""

from __future__ import annotations

import math
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from hf_xst.training.runs import NOT_SCORES, say


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
        """Write losses and scores, without times."""
        shown = [
            f"{name.removeprefix('eval_')} {value:.4g}"
            for name, value in (logs or {}).items()
            if isinstance(value, float) and not name.endswith(NOT_SCORES)
        ]
        if shown and state.is_world_process_zero:
            say(f"update {state.global_step} of {state.max_steps}: {', '.join(shown)}")
