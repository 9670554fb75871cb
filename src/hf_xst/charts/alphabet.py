"""One alphabet for all: distributions and candidates moved from one list of names to another, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hf_xst.structures.base import Structure


@dataclass(frozen=True)
class Relabelling:
    """How candidates over the names `old` become candidates over `new`.

    Args:
        old: names along the label axes of the present candidates.
        new: names wanted; an old name that is not among them is dropped.
        label_axes: how many label axes a candidate has (`len(Structure.LABEL_AXES)`).
    """

    old: tuple[str, ...]
    new: tuple[str, ...]
    label_axes: int

    @classmethod
    def between(cls, old: Sequence[str], new: Sequence[str], structure: type[Structure]) -> Relabelling:
        """Relabel candidates of a kind of structure."""
        return cls(tuple(old), tuple(new), len(structure.LABEL_AXES))

    @property
    def is_identity(self) -> bool:
        """Whether nothing changes."""
        return self.old == self.new

    @property
    def dropped(self) -> list[str]:
        """Old names that the new alphabet lacks."""
        return [name for name in self.old if name not in set(self.new)]

    def _index(self) -> list[int]:
        place = {name: index for index, name in enumerate(self.new)}
        return [place.get(name, -1) for name in self.old]

    def candidates(self, indices: Tensor) -> Tensor:
        """Move candidate indices of any shape; -1 stays, and stands for those with a dropped name."""
        if self.is_identity:
            return indices
        lookup = torch.tensor(self._index(), device=indices.device)
        moved, lost = torch.zeros_like(indices), indices < 0
        rest, scale = indices.clamp(min=0), 1
        for _ in range(self.label_axes):
            digit = lookup[rest % len(self.old)]
            lost = lost | (digit < 0)
            moved = moved + digit.clamp(min=0) * scale
            rest, scale = rest // len(self.old), scale * len(self.new)
        return torch.where(lost, -1, moved + rest * scale)

    def scores(self, scores: Tensor, missing: float) -> Tensor:
        """Move the label axes of scores; entries with a name that `old` lacks become `missing`."""
        if self.is_identity:
            return scores
        place = {name: index for index, name in enumerate(self.old)}
        source = torch.tensor([place.get(name, -1) for name in self.new], device=scores.device)
        for axis in range(scores.dim() - self.label_axes, scores.dim()):
            shape = [1] * scores.dim()
            shape[axis] = len(self.new)
            taken = scores.index_select(axis, source.clamp(min=0))
            scores = torch.where((source < 0).view(shape), missing, taken)
        return scores
