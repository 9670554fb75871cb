"""The pull to the initial parameters, lambda * |theta - theta0|^2, as a gradient."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from accelerate.optimizer import AcceleratedOptimizer
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import TrainerCallback

from hf_xst.files import atomic_path

INITIAL_PARAMETERS = "theta0.safetensors"


class InitialPull(TrainerCallback):
    """Add 2 * lambda * (theta - theta0) to the gradient of each update, after accumulation and clipping.

    Only trainable parameters are pulled. `ChartTrainer` saves theta0 with every checkpoint, and loads it when
    it resumes.

    Args:
        strength: lambda, at least 0.
    """

    def __init__(self, strength: float) -> None:
        if not 0 <= strength < math.inf:
            raise ValueError(f"the strength of the pull (l2) is {strength}; expected a number of at least 0")
        self.strength = strength
        self.initial: dict[str, Tensor] = {}
        self._loaded: dict[str, Tensor] | None = None
        self._sum, self._updates = torch.zeros(()), 0

    def save(self, checkpoint: Path) -> None:
        """Write theta0 into a checkpoint."""
        with atomic_path(checkpoint / INITIAL_PARAMETERS) as path:
            save_file({name: value.contiguous() for name, value in self.initial.items()}, path)

    def load(self, checkpoint: Path) -> None:
        """Read theta0 from a checkpoint, for the next training to use instead of the model's parameters.

        Raises:
            ValueError: the checkpoint was saved without a pull.
        """
        path = checkpoint / INITIAL_PARAMETERS
        if not path.exists():
            raise ValueError(f"{checkpoint} has no {INITIAL_PARAMETERS}: saved without a pull (l2 = 0)")
        self._loaded = load_file(path)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Copy the initial parameters."""
        parameters = _trainable(kwargs["model"])
        initial = parameters if self._loaded is None else self._loaded
        self.initial = {
            name: initial[name].detach().to(parameter.device, copy=True)
            for name, parameter in parameters.items()
        }
        self._loaded = None

    @torch.no_grad()
    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Add the pull to the gradient."""
        optimizer = kwargs.get("optimizer")
        if isinstance(optimizer, AcceleratedOptimizer) and optimizer.scaler is not None:
            _unscale(optimizer)
        for name, parameter in _trainable(kwargs["model"]).items():
            difference = parameter - self.initial[name]
            # float() here would make a GPU wait for every parameter.
            self._sum = self._sum.to(difference.device) + self.strength * difference.square().sum()
            gradient = 2 * self.strength * difference
            parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
        self._updates += 1

    def take_mean(self) -> float:
        """Return the mean of lambda * |theta - theta0|^2 over the updates since the last call."""
        mean = float(self._sum) / max(1, self._updates)
        self._sum, self._updates = torch.zeros(()), 0
        return mean


def _unscale(optimizer: AcceleratedOptimizer) -> None:
    """Undo the scaling of fp16 gradients, unless clipping or the logged norm has done so."""
    try:
        optimizer.scaler.unscale_(optimizer.optimizer)
    except RuntimeError as error:
        if "already been called" not in str(error):
            raise


def _trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
