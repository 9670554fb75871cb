"""Map distributions and candidates from one list of label names to another, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hf_xst.structures.base import Structure


@dataclass(frozen=True)
class Relabelling:
    """A mapping of candidates over the names `old` to candidates over `new`; other old names are dropped.

    `label_axes` is the number of label axes of a candidate (`len(Structure.LABEL_AXES)`).
    """

    old: tuple[str, ...]
    new: tuple[str, ...]
    label_axes: int

    @classmethod
    def between(cls, old: Sequence[str], new: Sequence[str], structure: type[Structure]) -> Relabelling:
        """Return the mapping for a kind of structure."""
        return cls(tuple(old), tuple(new), len(structure.LABEL_AXES))

    @property
    def is_identity(self) -> bool:
        """Whether both lists are equal."""
        return self.old == self.new

    @property
    def dropped(self) -> list[str]:
        """Old names that are not among the new ones."""
        return [name for name in self.old if name not in self.new]

    def candidates(self, indices: Tensor) -> Tensor:
        """Map candidate indices of any shape; -1 stays -1, and dropped names become -1."""
        if self.is_identity:
            return indices
        place = {name: index for index, name in enumerate(self.new)}
        lookup = torch.tensor([place.get(name, -1) for name in self.old], device=indices.device)
        moved, lost = torch.zeros_like(indices), indices < 0
        rest, scale = indices.clamp(min=0), 1
        for _ in range(self.label_axes):
            digit = lookup[rest % len(self.old)]
            lost = lost | (digit < 0)
            moved = moved + digit.clamp(min=0) * scale
            rest, scale = rest // len(self.old), scale * len(self.new)
        return torch.where(lost, -1, moved + rest * scale)

    def scores(self, scores: Tensor, missing: float) -> Tensor:
        """Map the label axes of scores; entries with a name that is new become `missing`."""
        if self.is_identity:
            return scores
        place = {name: index for index, name in enumerate(self.old)}
        source = torch.tensor([place.get(name, -1) for name in self.new]).to(scores.device, non_blocking=True)
        for axis in range(scores.dim() - self.label_axes, scores.dim()):
            shape = [1] * scores.dim()
            shape[axis] = len(self.new)
            taken = scores.index_select(axis, source.clamp(min=0))
            scores = torch.where((source < 0).view(shape), missing, taken)
        return scores
