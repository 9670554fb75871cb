"""Exact sampling for every structure: one group after the other, each given what the ones before it drew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from hf_xst.structures.base import Structure


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
