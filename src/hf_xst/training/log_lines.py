"""The course of training in lines for people, where there is no terminal to show a progress bar in."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from hf_xst.training.runs import NOT_SCORES, say


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
