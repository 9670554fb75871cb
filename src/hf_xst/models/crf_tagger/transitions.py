"""Which tags may follow which where they mark spans."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from hf_xst.data.bio import span_kind


def bio_pairs(names: Sequence[str]) -> Tensor:
    """Say which pairs of tags BIO has: what goes on with a span follows a tag of the same type.

    Args:
        names: the T tags; `O` and the boundaries are of no type.

    Returns:
        Bool (T, T): previous tag, next tag.
    """
    kinds = [span_kind(name) for name in names]
    kind = torch.tensor([kinds.index(each) for each in kinds])
    goes_on = torch.tensor([name.startswith("I-") for name in names])
    return ~goes_on | (kind[:, None] == kind)
