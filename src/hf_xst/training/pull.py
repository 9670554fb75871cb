"""The pull back to the starting parameters: lambda * |theta - theta0|^2, as a gradient."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from hf_xst.files import written_aside

START_FILE = "theta0.safetensors"


class StartPull(TrainerCallback):  # type: ignore[misc]
    """Add 2 * lambda * (theta - theta0) to the gradient once an update, after accumulation and clipping.

    Only trainable parameters are pulled. theta0 is saved with every checkpoint and comes back when a run
    is resumed.

    Args:
        strength: lambda.
    """

    def __init__(self, strength: float) -> None:
        self.strength = strength
        self.start: dict[str, Tensor] = {}
        self._summed, self._updates = 0.0, 0

    def load(self, checkpoint: Path) -> None:
        """Take theta0 from a checkpoint instead of from the model as it stands when training begins.

        Raises:
            FileNotFoundError: the checkpoint was made by a run without the pull.
        """
        self.start = load_file(checkpoint / START_FILE)

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Remember where training starts."""
        parameters = _trainable(kwargs["model"])
        if not self.start:
            self.start = {name: parameter.detach().clone() for name, parameter in parameters.items()}
        self.start = {name: value.to(parameters[name].device) for name, value in self.start.items()}

    @torch.no_grad()
    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Add the pull to the gradient."""
        for name, parameter in _trainable(kwargs["model"]).items():
            away = parameter - self.start[name]
            self._summed += self.strength * float(away.square().sum())
            gradient = 2 * self.strength * away
            parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
        self._updates += 1

    def take_mean(self) -> float:
        """Return the mean of lambda * |theta - theta0|^2 over the updates since the last call."""
        mean = self._summed / max(1, self._updates)
        self._summed, self._updates = 0.0, 0
        return mean

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Save theta0 beside the checkpoint that has just been written."""
        if state.is_world_process_zero:
            checkpoint = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
            with written_aside(checkpoint / START_FILE) as aside:
                save_file({name: value.contiguous() for name, value in self.start.items()}, aside)


def _trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    return {
        name.removeprefix("module."): parameter
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }
