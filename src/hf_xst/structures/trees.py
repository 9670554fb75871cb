"""What makes head vectors a tree of a given space."""

from __future__ import annotations

import torch
from torch import Tensor


def is_tree(heads: Tensor, lengths: Tensor, *, single_root: bool, projective: bool) -> Tensor:
    """Say which head vectors are trees over all words of their sentences.

    Args:
        heads: (B, N) head of each word, 0 the root; what stands beyond a sentence's end does not matter.
        lengths: (B,) words of each sentence.
        single_root: whether exactly one word must hang from the root.
        projective: whether arcs must not cross.

    Returns:
        bool (B,).
    """
    words = torch.arange(1, heads.shape[1] + 1, device=heads.device)
    inside = words <= lengths.unsqueeze(1)
    usable = ~inside | ((heads >= 0) & (heads <= lengths.unsqueeze(1)))
    heads = heads.long().masked_fill(~inside | ~usable, 0)
    fine = usable.all(1) & _reaches_root(heads)
    if single_root:
        fine &= ((heads == 0) & inside).sum(1) == 1
    if projective:
        fine &= ~_crosses(heads, words, inside)
    return fine


def _reaches_root(heads: Tensor) -> Tensor:
    """Say where every word gets to the root in at most N steps: no cycle."""
    ahead = torch.nn.functional.pad(heads, (1, 0))
    for _ in range(ahead.shape[1].bit_length()):
        ahead = ahead.gather(1, ahead)
    return (ahead == 0).all(1)


def _crosses(heads: Tensor, words: Tensor, inside: Tensor) -> Tensor:
    """Say where two arcs cross: with the root left of all words, that is what projectivity forbids."""
    left, right = torch.minimum(heads, words), torch.maximum(heads, words)
    starts_within = (left[:, :, None] < left[:, None, :]) & (left[:, None, :] < right[:, :, None])
    ends_beyond = right[:, None, :] > right[:, :, None]
    both = inside[:, :, None] & inside[:, None, :]
    return (starts_within & ends_beyond & both).flatten(1).any(1)
