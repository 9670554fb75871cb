"""What a structured model's forward returns."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from transformers.utils.generic import ModelOutput


@dataclass
class StructuredOutput(ModelOutput):
    """What a structured model returns.

    Args:
        loss: scalar, `losses.sum() / units.sum()`; only with labels.
        scores: the structure's scores in the shape of the contract (see the structure's class), at least in
            float32.
        lengths: (B,) words of each sentence.
        losses: (B,) supervised loss of each sentence in nats, summed over its units.
        units: (B,) how many units (words or sentences) each loss counts.
    """

    loss: Tensor | None = None
    scores: Tensor | None = None
    lengths: Tensor | None = None
    losses: Tensor | None = None
    units: Tensor | None = None
