"""Count votes for candidates, and check whether heads form a tree."""

from __future__ import annotations

import torch
from torch import Tensor


def count_votes(ballots: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
    """Return each candidate's votes, (B, G, C), and its preference, S - s if source s voted first for it.

    Args:
        ballots: (S, B, G) candidates, -1 for an abstention.
        valid: bool (B, G, C).
    """
    sources = len(ballots)
    abstention = valid.shape[2]  # an extra candidate collects the abstentions
    votes = torch.zeros(*valid.shape[:2], abstention + 1, dtype=torch.float64, device=valid.device)
    preferences = torch.zeros_like(votes)
    for s, ballot in reversed(list(enumerate(ballots))):
        index = ballot.masked_fill(ballot < 0, abstention).unsqueeze(2)
        votes.scatter_add_(2, index, torch.ones_like(index, dtype=votes.dtype))
        preferences.scatter_(2, index, float(sources - s))
    return votes[:, :, :abstention], preferences[:, :, :abstention]


def is_tree(heads: Tensor, lengths: Tensor, *, single_root: bool, projective: bool) -> Tensor:
    """Return which head vectors are trees over all words of their sentences.

    Args:
        heads: (B, N) head of each word, 0 the root; entries beyond a sentence's end do not matter.
        lengths: (B,) words of each sentence.
        single_root: whether exactly one word must be attached to the root.
        projective: whether arcs must not cross.

    Returns:
        bool (B,).
    """
    words = torch.arange(1, heads.shape[1] + 1, device=heads.device)
    inside = words <= lengths.unsqueeze(1)
    in_range = ~inside | ((heads >= 0) & (heads <= lengths.unsqueeze(1)))
    heads = heads.long().masked_fill(~inside | ~in_range, 0)
    valid = in_range.all(1) & _reaches_root(heads)
    if single_root:
        valid &= ((heads == 0) & inside).sum(1) == 1
    if projective:
        valid &= ~_crosses(heads, words, inside)
    return valid


def _reaches_root(heads: Tensor) -> Tensor:
    """Return (B,) whether every word reaches the root in at most N steps, so that there is no cycle."""
    # Pointer doubling: after i rounds, ahead[w] is 2^i steps from w; the root points to itself.
    ahead = torch.nn.functional.pad(heads, (1, 0))
    for _ in range(ahead.shape[1].bit_length()):
        ahead = ahead.gather(1, ahead)
    return (ahead == 0).all(1)


def _crosses(heads: Tensor, words: Tensor, inside: Tensor) -> Tensor:
    """Return (B,) whether any two arcs cross; with the root left of all words, this excludes projectivity."""
    left, right = torch.minimum(heads, words), torch.maximum(heads, words)
    starts_within = (left[:, :, None] < left[:, None, :]) & (left[:, None, :] < right[:, :, None])
    ends_beyond = right[:, None, :] > right[:, :, None]
    both = inside[:, :, None] & inside[:, None, :]
    return (starts_within & ends_beyond & both).flatten(1).any(1)
