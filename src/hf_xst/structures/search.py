"""K-best search and sampling for every structure, using only `best` and `marginals` of restricted spaces.

K best (Lawler 1972): remove the best structure from its space and split the remaining space into disjoint
regions, where region g holds the structures that agree with it in the groups before g and differ in group g.
The next best structure is the best among the best structures of all regions.

Sampling: draw the groups one after the other, each from its marginals in the space restricted to the
candidates drawn so far.
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

# Candidates of all regions that are searched in one batch, to bound memory: 8 bytes each, in several copies.
_ENTRIES = 2**23


class _Region(NamedTuple):
    """A region of a sentence's space with its best structure; regions compare by cost, then by age."""

    cost: float  # minus the score of the best structure
    age: int
    best: Tensor  # (G,) candidates
    decided: int  # groups before this one allow only the candidates of `best`
    banned: tuple[int, ...]  # candidates that group `decided` excludes


class _Unsearched(NamedTuple):
    """A region whose best structure is still unknown; see `_Region`."""

    sentence: int
    prefix: Tensor  # (G,) candidates, of which only those of the groups before `decided` matter
    decided: int
    banned: tuple[int, ...]


class _Partition:
    """The disjoint regions of every sentence's remaining space."""

    def __init__(self, structure: Structure[Any]) -> None:
        self.structure, self.valid = structure, structure.valid
        self.group_lengths: list[int] = structure.group_lengths.tolist()
        self.queues: list[list[_Region]] = [[] for _ in self.group_lengths]
        self.ages = count()
        _, groups, candidates = self.valid.shape
        self.at_once = max(1, _ENTRIES // max(1, groups * candidates))
        empty = torch.zeros(groups, dtype=torch.long, device=self.valid.device)
        self.push([_Unsearched(sentence, empty, 0, ()) for sentence in range(len(self.queues))])

    def pop(self, sentence: int) -> tuple[Tensor, list[_Unsearched]]:
        """Remove the best region of a sentence; return its best structure, and the rest of it in regions."""
        region = heapq.heappop(self.queues[sentence])
        chosen = region.best.tolist()
        rest = []
        for group in range(region.decided, self.group_lengths[sentence]):
            banned = region.banned if group == region.decided else ()
            rest.append(_Unsearched(sentence, region.best, group, (*banned, chosen[group])))
        return region.best, rest

    def push(self, regions: list[_Unsearched]) -> None:
        """Find the best structure of each region, in batches; drop empty regions."""
        for start in range(0, len(regions), self.at_once):
            batch = regions[start : start + self.at_once]
            sentences = torch.tensor([region.sentence for region in batch], device=self.valid.device)
            allowed = self.structure.select(sentences)
            allowed = allowed.restricted_to(allowed.part_view(self._keep(batch, sentences)))
            best = allowed.best_candidates()
            complete = (best >= 0).sum(1) == allowed.group_lengths
            scores = allowed.score_of(best).masked_fill(~complete, NEGATIVE_INFINITY).tolist()
            for region, candidates, score in zip(batch, best, scores, strict=True):
                if score > NEGATIVE_INFINITY:
                    searched = _Region(-score, next(self.ages), candidates, region.decided, region.banned)
                    heapq.heappush(self.queues[region.sentence], searched)

    def _keep(self, batch: list[_Unsearched], sentences: Tensor) -> Tensor:
        """Return the candidates that each of K regions allows: bool (K, G, C)."""
        _, groups, candidates = self.valid.shape
        prefix = torch.stack([region.prefix for region in batch])
        decided = torch.tensor([region.decided for region in batch], device=self.valid.device)
        before = torch.arange(groups, device=self.valid.device) < decided.unsqueeze(1)
        same = torch.arange(candidates, device=self.valid.device) == prefix.unsqueeze(2)
        keep = torch.where(before.unsqueeze(2), same, self.valid[sentences])
        banned = [(row, each.decided, c) for row, each in enumerate(batch) for c in each.banned]
        if banned:
            keep[tuple(torch.tensor(banned, device=keep.device).T)] = False
        return keep


def k_best(structure: Structure[Any], k: int) -> Tensor:
    """Return (k, B, G) candidates of the k best structures, best first; -1 beyond their number."""
    batch, groups, _ = structure.valid.shape
    best = torch.full((k, batch, groups), -1, device=structure.scores.device)
    partition = _Partition(structure)
    for rank in range(k):
        rest = []
        for sentence, queue in enumerate(partition.queues):
            if queue:
                best[rank, sentence], regions = partition.pop(sentence)
                rest += regions
        if rank + 1 < k:
            partition.push(rest)
    return best


def draw(log_weights: Tensor, generator: torch.Generator | None) -> Tensor:
    """Draw an index of the last axis in proportion to exp(log_weights): (...) from (..., C).

    The Gumbel-max trick, in the form log_weights - log(exponential noise). An index of weight 0 is drawn only
    if all weights are 0.
    """
    noise = torch.empty_like(log_weights).exponential_(generator=generator)
    return (log_weights - noise.log()).argmax(-1)


def sample_by_group(structure: Structure[Any], k: int, generator: torch.Generator | None) -> Tensor:
    """Return (k, B, G) candidates of k structures of each sentence, -1 in padding and empty spaces."""
    batch = len(structure.lengths)
    space = structure.select(torch.arange(batch, device=structure.lengths.device).repeat(k))
    keep = space.valid.clone()
    chosen = torch.full(keep.shape[:2], -1, device=keep.device)
    for group in range(keep.shape[1]):
        # p(y_g | y_1 .. y_{g-1}): (k * B, C)
        marginals = space.group_view(space.marginals())[:, group]
        possible = marginals.sum(1) > 0
        drawn = draw(marginals.log(), generator)
        chosen[:, group] = drawn.masked_fill(~possible, -1)
        keep[:, group] = torch.nn.functional.one_hot(drawn, keep.shape[2]).bool()
        space = space.restricted_to(space.part_view(keep))
    return chosen.view(k, batch, keep.shape[1])
