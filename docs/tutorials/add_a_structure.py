"""A structure of your own: `python THIS_FILE`.

Pooling, charts and loss know nothing of trees or tags. Whatever gives a log-partition, a best structure and
a view of its parts as groups of candidates, of which every structure uses one each, can be pooled and trained
on. The smallest such thing is a free choice in each group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from hf_xst.charts import chart_loss, pooled_chart, union_chart
from hf_xst.console import console
from hf_xst.numerics import working_dtype
from hf_xst.structures.base import Structure


class FreeChoices(Structure[Tensor]):
    """One of C candidates for each of N words, independently; scores (B, N, C)."""

    LABEL_AXES: ClassVar[tuple[int, ...]] = (-1,)

    @staticmethod
    def _positions(scores: Tensor) -> int:
        if scores.dim() != 3:
            raise ValueError(f"scores must be (B, N, C), got {tuple(scores.shape)}")
        return scores.shape[1]

    def _log_partition(self) -> Tensor:
        # The only sum that must be given: all else (marginals, counts, samples, k best) follows from it.
        wide = self.scores.to(working_dtype(self.scores.device))
        by_word = torch.logsumexp(wide, -1)
        return torch.where(self._inside, by_word, 0.0).sum(1)

    @property
    def _inside(self) -> Tensor:
        return torch.arange(self.scores.shape[1], device=self.scores.device) < self.lengths[:, None]

    def best(self) -> Tensor:
        """Return (B, N) the best candidates, -1 in padding."""
        possible = self._inside & (self.scores > -torch.inf).any(-1)
        return torch.where(possible, self.scores.argmax(-1), -1)

    @property
    def valid_parts(self) -> Tensor:
        """Bool (B, N, C): what lies within the sentence."""
        return self._inside[..., None].expand_as(self.scores)

    @property
    def group_lengths(self) -> Tensor:
        """(B,): a group a word."""
        return self.lengths

    def group_view(self, x: Tensor) -> Tensor:
        """Groups are words as they stand."""
        return x

    def part_view(self, x: Tensor) -> Tensor:
        """Groups are words as they stand."""
        return x

    def candidates(self, best: Tensor) -> Tensor:
        """A structure is its candidates."""
        return best

    def best_from_candidates(self, candidates: Tensor) -> Tensor:
        """A structure is its candidates."""
        return candidates

    def contains(self, best: Tensor) -> Tensor:
        """Every choice within the sentence is a structure."""
        return ((best >= 0) == self._inside).all(1)

    @classmethod
    def majority_of(cls, best: Sequence[Tensor], lengths: Tensor | None = None, **options: bool) -> Tensor:
        """Take what most sources choose, of equal ones the first source's."""
        return torch.stack(list(best)).mode(0).values


def main() -> float:
    """Pool two opinions, make charts, and train a third distribution on them; return its last loss."""
    torch.manual_seed(1)
    sources = [FreeChoices(3 * torch.randn(4, 5, 6, dtype=torch.float64)) for _ in range(2)]
    union, pooled = union_chart(sources, 0.95), pooled_chart(sources, 0.95)
    console.print(f"candidates kept: union {int(union.sum())}, pool {int(pooled.sum())}")
    scores = torch.zeros(4, 5, 6, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([scores], lr=0.1)
    for _ in range(50):
        optimizer.zero_grad()
        loss = chart_loss(FreeChoices(scores), pooled).mean()
        loss.backward()
        optimizer.step()
    console.print(f"chart loss {float(loss.detach()):.4f} nats after 50 steps")
    return float(loss.detach())


if __name__ == "__main__":
    main()
