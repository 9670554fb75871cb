"""Which groups count."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hf_xst.structures.base import Structure

SCOPES = ("with_boundaries", "without_boundaries")
"""Whether the groups that a model adds at a sentence's ends count (see `StructuredModel.added_groups`)."""


def counted_groups(distribution: Structure, added: tuple[int, int]) -> dict[str, Tensor]:
    """Say which groups count in each scope: bool (B, G) by name; one scope only if no group is added.

    Args:
        distribution: any distribution over the sentences' structures.
        added: how many groups a model adds at the start and the end of a sentence.
    """
    inside = distribution.valid.any(-1)
    scopes = {SCOPES[0]: inside}
    if any(added):
        group = torch.arange(inside.shape[1], device=inside.device)
        end = (distribution.group_lengths.to(inside.device) - added[1])[:, None]
        scopes[SCOPES[1]] = inside & (group >= added[0]) & (group < end)
    return scopes


def by_scope(found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Give both scopes; where no group is added they are one and the same."""
    return {scope: found.get(scope, found[SCOPES[0]]) for scope in SCOPES}
