"""The simplest structure, which is neither a tree nor a sequence: independent groups."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from hf_xst.numerics import wide_logsumexp
from hf_xst.structures import Structure
from hf_xst.structures.base import checked_below_infinity


class IndependentGroups(Structure[Tensor]):
    """One candidate in each group, independently; `best()` returns the candidates themselves.

    Args:
        scores: (B, G, C).
        lengths: (B,) groups of each sentence.
    """

    LABEL_AXES: ClassVar[tuple[int, ...]] = (-1,)

    @staticmethod
    def _positions(scores: Tensor) -> int:
        if scores.ndim != 3:
            raise ValueError(f"scores must have shape (B, G, C), got {tuple(scores.shape)}")
        return scores.shape[1]

    def _log_partition(self) -> Tensor:
        logs, best = wide_logsumexp(self.scores, self._inside(), 1)
        return (logs + best).masked_fill(~self._inside(), 0).sum(1)

    def best(self) -> Tensor:
        scores = checked_below_infinity(self.scores.detach().masked_fill(~self.valid, float("-inf")))
        empty = ((scores.amax(2) == float("-inf")) & self._inside()).any(1, keepdim=True)
        return scores.argmax(2).masked_fill(empty | ~self._inside(), -1)

    @property
    def valid_parts(self) -> Tensor:
        return self._inside().unsqueeze(2).expand(self.scores.shape)

    @property
    def group_lengths(self) -> Tensor:
        return self.lengths

    def group_view(self, x: Tensor) -> Tensor:
        return x

    def part_view(self, x: Tensor) -> Tensor:
        return x

    def candidates(self, best: Tensor) -> Tensor:
        return best.masked_fill((best < 0) | ~self._inside(), -1)

    def best_from_candidates(self, candidates: Tensor) -> Tensor:
        return candidates

    def contains(self, best: Tensor) -> Tensor:
        return (((best >= 0) & (best < self.scores.shape[2])) | ~self._inside()).all(1)

    def _inside(self) -> Tensor:
        return torch.arange(self.scores.shape[1]) < self.lengths.unsqueeze(1)
