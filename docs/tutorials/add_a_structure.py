"""A structure of your own, pooled and made into charts: `python add_a_structure.py`.

Pooling, charts and loss know nothing of trees or tags. What they need is a distribution over structures
that take one candidate of each group: a tree takes one head for each word, a chain one pair of tags for each
two neighbours. Here is the smallest such thing, a free choice for each word.
`train_a_structure.py` continues: a model, trainers and commands.
"""

# ruff: noqa: D102 - `Structure` documents its methods
from __future__ import annotations

from typing import ClassVar

import torch
from shell import say
from torch import Tensor

from hf_xst.charts import chart_loss, chart_quality, pooled_chart, union_chart
from hf_xst.numerics import wide_logsumexp
from hf_xst.structures import Structure


class FreeChoices(Structure[Tensor]):
    """One of C candidates for each of N words, whatever the other words choose; scores (B, N, C)."""

    LABEL_AXES: ClassVar[tuple[int, ...]] = (-1,)

    @property
    def _inside(self) -> Tensor:
        return torch.arange(self.scores.shape[1], device=self.scores.device) < self.lengths[:, None]

    # How many words the scores have room for, and which entries of them are within the sentences.
    @staticmethod
    def _positions(scores: Tensor) -> int:
        if scores.dim() != 3:
            raise ValueError(f"scores must be (B, N, C), got {tuple(scores.shape)}")
        return scores.shape[1]

    @property
    def valid_parts(self) -> Tensor:
        return self._inside[..., None].expand_as(self.scores)

    # The sum over all structures, and the best one. Marginals, counts, samples, entropy, k best, votes and
    # what is left inside a chart follow from these two. Sums are masked: scores in padding may be anything.
    def _log_partition(self) -> Tensor:
        logs, best = wide_logsumexp(self.scores, self._inside, 1)
        return (logs + best).masked_fill(~self._inside, 0).sum(1)

    def best(self) -> Tensor:
        scores = self.scores.detach().masked_fill(~self.valid_parts, -torch.inf)
        empty = (self._inside & (scores.amax(-1) == -torch.inf)).any(1, keepdim=True)
        return scores.argmax(-1).masked_fill(empty | ~self._inside, -1)

    # How scores lie in groups of candidates: here they do as they are, and a structure is its candidates.
    @property
    def group_lengths(self) -> Tensor:
        return self.lengths

    def group_view(self, x: Tensor) -> Tensor:
        return x

    def part_view(self, x: Tensor) -> Tensor:
        return x

    def candidates(self, best: Tensor) -> Tensor:
        return best.masked_fill((best < 0) | ~self._inside, -1)

    def best_from_candidates(self, candidates: Tensor) -> Tensor:
        return candidates

    def contains(self, best: Tensor) -> Tensor:
        return (((best >= 0) & (best < self.scores.shape[2])) | ~self._inside).all(1)


def main() -> float:
    """Pool two opinions, make charts, and train a third distribution on them; return its last loss."""
    torch.manual_seed(1)
    sources = [FreeChoices(3 * torch.randn(4, 5, 6, dtype=torch.float64)) for _ in range(2)]
    union, pooled = union_chart(sources, sigma=0.95), pooled_chart(sources, sigma=0.95)
    say(f"of {union.numel()} candidates charts keep: union {int(union.sum())}, pool {int(pooled.sum())}")
    found = chart_quality(sources[0], pooled, gold=sources[0].best_candidates())
    say(f"structures in each chart of the pool: {found['log_size'].exp().round().int().tolist()}")

    scores = torch.zeros(4, 5, 6, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([scores], lr=0.1)
    for _ in range(50):
        optimizer.zero_grad()
        loss = chart_loss(FreeChoices(scores), pooled).mean()
        loss.backward()
        optimizer.step()
    say(f"chart loss {float(loss.detach()):.4f} nats after 50 steps")
    return float(loss.detach())


if __name__ == "__main__":
    main()
