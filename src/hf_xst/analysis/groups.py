"""Gold in the pool's alphabet, and which groups count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from hf_xst.models.base import Row
from hf_xst.structures.base import Structure
from hf_xst.training.sources import SourcePool

SCOPES = ("with_boundaries", "without_boundaries")
"""Whether the groups that a model adds at a sentence's ends count (see `StructuredModel.added_groups`)."""


def gold_candidates(pool: SourcePool, rows: Sequence[Row], like: Structure) -> Tensor:
    """Return the gold candidates of a batch in the pool's alphabet: (B, G), -1 where it lacks a label.

    Args:
        pool: the sources.
        rows: B rows with gold.
        like: a distribution over the batch's structures.

    Raises:
        ValueError: the rows hold no gold.
    """
    model = pool.sources[0].model
    missing = [column for column in model.columns if column not in rows[0]]
    if missing:
        raise ValueError(
            f"sentence {rows[0].get('sent_id', '?')} has no column {' and '.join(missing)}; expected rows "
            "with gold, as prepared from a treebank"
        )
    lengths = torch.tensor([len(row["words"]) for row in rows])
    labels = model.encode_gold(rows, pool.names).to(like.scores.device)
    return like.candidates(model.gold_best(labels, lengths.to(like.scores.device), pool.names))


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
