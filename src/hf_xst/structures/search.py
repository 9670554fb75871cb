"""The k best for every structure, from nothing but the best one of a restricted space (Lawler 1972).

The best structure is taken out of its space, and what is left is split into parts that do not overlap: part g
holds the structures that agree with it in the groups before g and differ in g. The next best of the whole is
the best of the best ones of all parts.
"""

from __future__ import annotations

import heapq
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from hf_xst.numerics import NEGATIVE_INFINITY

if TYPE_CHECKING:
    from hf_xst.structures.base import Structure


class _Part(NamedTuple):
    """A part of a sentence's space with its best structure. Parts compare by cost, then by age."""

    cost: float  # minus the score of the best
    age: int
    best: Tensor  # (G,) candidates
    keep: Tensor  # bool (G, C) what the part allows
    decided: int  # the groups before this one allow one candidate


class _Partition:
    """The parts of every sentence's space that are still to be searched."""

    def __init__(self, structure: Structure[Any]) -> None:
        self.structure = structure
        self.group_lengths: list[int] = structure.group_lengths.tolist()
        self.queues: list[list[_Part]] = [[] for _ in self.group_lengths]
        self.ages = count()
        sentences = list(range(len(self.queues)))
        self._push(sentences, structure.valid, [0] * len(sentences))

    def pop(self) -> dict[int, _Part]:
        """Take the best part of every sentence that has any left."""
        return {sentence: heapq.heappop(queue) for sentence, queue in enumerate(self.queues) if queue}

    def push_rest(self, taken: dict[int, _Part]) -> None:
        """Split each taken part, without its best structure, and push what is left of it."""
        owners, keeps, decided = [], [], []
        for sentence, part in taken.items():
            keep = part.keep.clone()
            for group in range(part.decided, self.group_lengths[sentence]):
                choice = part.best[group]
                keep[group, choice] = False
                if keep[group].any():
                    owners.append(sentence)
                    keeps.append(keep.clone())
                    decided.append(group)
                keep[group] = False
                keep[group, choice] = True
        if owners:
            self._push(owners, torch.stack(keeps), decided)

    def _push(self, owners: list[int], keeps: Tensor, decided: list[int]) -> None:
        """Find the best of each of K parts in one batch, keeps (K, G, C); forget parts that are empty."""
        spaces = self.structure.select(torch.tensor(owners, dtype=torch.long, device=keeps.device))
        spaces = spaces.restricted_to(spaces.part_view(keeps))
        best = spaces.best_candidates()
        complete = (best >= 0).sum(1) == spaces.group_lengths
        scores = spaces.score_of(best).masked_fill(~complete, NEGATIVE_INFINITY).tolist()
        for i, (owner, score) in enumerate(zip(owners, scores, strict=True)):
            if score > NEGATIVE_INFINITY:
                part = _Part(-score, next(self.ages), best[i], keeps[i], decided[i])
                heapq.heappush(self.queues[owner], part)


def k_best(structure: Structure[Any], k: int) -> Tensor:
    """Return (k, B, G) candidates of the k best structures, best first; -1 where there are fewer."""
    batch, groups, _ = structure.valid.shape
    found = torch.full((k, batch, groups), -1, device=structure.scores.device)
    partition = _Partition(structure)
    for rank in range(k):
        taken = partition.pop()
        for sentence, part in taken.items():
            found[rank, sentence] = part.best
        if rank + 1 < k:
            partition.push_rest(taken)
    return found
