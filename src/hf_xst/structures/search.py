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


from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hf_xst.structures.base import Structure


# Candidates of all parts that are searched in one batch; a score takes 8 bytes, and there are some copies.
_ENTRIES = 2**23


class _Part(NamedTuple):
    """A part of a sentence's space with its best structure. Parts compare by cost, then by age."""

    cost: float  # minus the score of the best
    age: int
    best: Tensor  # (G,) candidates
    decided: int  # in the groups before this one the part allows the candidates of its best only
    banned: tuple[int, ...]  # candidates that this group does not allow


class _Space(NamedTuple):
    """A part of a sentence's space whose best structure is not known yet; see `_Part`."""

    owner: int
    prefix: Tensor  # (G,) of which the groups before `decided` count
    decided: int
    banned: tuple[int, ...]


class _Partition:
    """The parts of every sentence's space that are still to be searched."""

    def __init__(self, structure: Structure[Any]) -> None:
        self.structure, self.valid = structure, structure.valid
        self.group_lengths: list[int] = structure.group_lengths.tolist()
        self.queues: list[list[_Part]] = [[] for _ in self.group_lengths]
        self.ages = count()
        _, groups, candidates = self.valid.shape
        self.at_once = max(1, _ENTRIES // max(1, groups * candidates))
        nothing = torch.zeros(groups, dtype=torch.long, device=self.valid.device)
        self._push([_Space(owner, nothing, 0, ()) for owner in range(len(self.queues))])

    def pop(self) -> dict[int, _Part]:
        """Take the best part of every sentence that has any left."""
        return {sentence: heapq.heappop(queue) for sentence, queue in enumerate(self.queues) if queue}

    def push_rest(self, taken: dict[int, _Part]) -> None:
        """Split each taken part, without its best structure, and push what is left of it."""
        spaces = []
        for owner, part in taken.items():
            chosen = part.best.tolist()
            for group in range(part.decided, self.group_lengths[owner]):
                banned = part.banned if group == part.decided else ()
                spaces.append(_Space(owner, part.best, group, (*banned, chosen[group])))
        self._push(spaces)

    def _push(self, spaces: list[_Space]) -> None:
        """Find the best of each part, some in a batch so that memory stays bounded; forget empty parts."""
        for start in range(0, len(spaces), self.at_once):
            batch = spaces[start : start + self.at_once]
            owners = torch.tensor([space.owner for space in batch], device=self.valid.device)
            allowed = self.structure.select(owners)
            allowed = allowed.restricted_to(allowed.part_view(self._keep(batch, owners)))
            best = allowed.best_candidates()
            complete = (best >= 0).sum(1) == allowed.group_lengths
            scores = allowed.score_of(best).masked_fill(~complete, NEGATIVE_INFINITY).tolist()
            for space, own, score in zip(batch, best, scores, strict=True):
                if score > NEGATIVE_INFINITY:
                    part = _Part(-score, next(self.ages), own, space.decided, space.banned)
                    heapq.heappush(self.queues[space.owner], part)

    def _keep(self, batch: list[_Space], owners: Tensor) -> Tensor:
        """Return bool (K, G, C): the candidates that each of K parts allows."""
        _, groups, candidates = self.valid.shape
        prefix = torch.stack([space.prefix for space in batch])
        decided = torch.tensor([space.decided for space in batch], device=self.valid.device)
        before = torch.arange(groups, device=self.valid.device) < decided.unsqueeze(1)
        same = torch.arange(candidates, device=self.valid.device) == prefix.unsqueeze(2)
        keep = torch.where(before.unsqueeze(2), same, self.valid[owners])
        banned = [
            (place, space.decided, candidate)
            for place, space in enumerate(batch)
            for candidate in space.banned
        ]
        if banned:
            keep[tuple(torch.tensor(banned, device=keep.device).T)] = False
        return keep


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


def draw(log_weights: Tensor, generator: torch.Generator | None) -> Tensor:
    """Draw an index of the last axis in proportion to exp(log_weights), never one of weight 0 if it can."""
    waits = torch.empty_like(log_weights).exponential_(generator=generator)
    return (log_weights - waits.log()).argmax(-1)


def sample_by_group(structure: Structure[Any], k: int, generator: torch.Generator | None) -> Tensor:
    """Return (k, B, G) candidates of k structures of each sentence, -1 where there is none.

    Each group is drawn from its marginals in the space that is left once the groups before it are fixed.
    """
    batch = len(structure.lengths)
    space = structure.select(torch.arange(batch, device=structure.lengths.device).repeat(k))
    keep = space.valid.clone()
    chosen = torch.full(keep.shape[:2], -1, device=keep.device)
    for group in range(keep.shape[1]):
        marginals = space.group_view(space.marginals())[:, group]
        possible = marginals.sum(1) > 0
        drawn = draw(marginals.log(), generator)
        chosen[:, group] = drawn.masked_fill(~possible, -1)
        keep[:, group] = torch.nn.functional.one_hot(drawn, keep.shape[2]).bool()
        space = space.restricted_to(space.part_view(keep))
    return chosen.reshape(k, batch, -1)
