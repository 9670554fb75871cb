"""The pull back to the starting parameters: lambda * |theta - theta0|^2, as a gradient."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from accelerate.optimizer import AcceleratedOptimizer
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from hf_xst.files import atomic_path

START_FILE = "theta0.safetensors"


class StartPull(TrainerCallback):
    """Add 2 * lambda * (theta - theta0) to the gradient once an update, after accumulation and clipping.

    Only trainable parameters are pulled. `ChartTrainer` saves theta0 with every checkpoint and loads it
    when a run is resumed.

    Args:
        strength: lambda.

    Raises:
        ValueError: lambda is negative.
    """

    def __init__(self, strength: float) -> None:
        if strength < 0:
            raise ValueError(f"the pull's strength (l2) is {strength}; expected at least 0")
        self.strength = strength
        self.start: dict[str, Tensor] = {}
        self._loaded: dict[str, Tensor] | None = None
        self._summed, self._updates = torch.zeros(()), 0

    def save(self, checkpoint: Path) -> None:
        """Write theta0 into a checkpoint."""
        with atomic_path(checkpoint / START_FILE) as aside:
            save_file({name: value.contiguous() for name, value in self.start.items()}, aside)

    def load(self, checkpoint: Path) -> None:
        """Take theta0 from a checkpoint, instead of from the model as it stands, when training begins.

        Raises:
            ValueError: the checkpoint was made by a run without the pull.
        """
        path = checkpoint / START_FILE
        if not path.exists():
            raise ValueError(f"{checkpoint} has no {START_FILE}: it was made without a pull (l2 = 0)")
        self._loaded = load_file(path)

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Remember where training starts."""
        parameters = _trainable(kwargs["model"])
        start = parameters if self._loaded is None else self._loaded
        self.start = {
            name: start[name].detach().to(parameter.device, copy=True)
            for name, parameter in parameters.items()
        }
        self._loaded = None

    @torch.no_grad()
    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Add the pull to the gradient."""
        optimizer = kwargs.get("optimizer")
        if isinstance(optimizer, AcceleratedOptimizer) and optimizer.scaler is not None:
            _unscale(optimizer)
        for name, parameter in _trainable(kwargs["model"]).items():
            away = parameter - self.start[name]
            # No float() here: it would make a GPU wait for every parameter.
            self._summed = self._summed.to(away.device) + self.strength * away.square().sum()
            gradient = 2 * self.strength * away
            parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
        self._updates += 1

    def take_mean(self) -> float:
        """Return the mean of lambda * |theta - theta0|^2 over the updates since the last call."""
        mean = float(self._summed) / max(1, self._updates)
        self._summed, self._updates = torch.zeros(()), 0
        return mean


def _unscale(optimizer: AcceleratedOptimizer) -> None:
    """Undo the scaling of fp16 gradients, unless clipping, or taking the norm that is logged, has done so."""
    try:
        optimizer.scaler.unscale_(optimizer.optimizer)
    except RuntimeError as error:
        if "already been called" not in str(error):
            raise


def _trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
