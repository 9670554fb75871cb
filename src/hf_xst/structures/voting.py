"""Majority vote within a space of structures, and the check whether heads form a tree."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from hf_xst.numerics import NEGATIVE_INFINITY
from hf_xst.structures.base import Best, Structure


def vote(space: Structure[Best], sources: Sequence[Best]) -> Best:
    """Return, for each sentence, the structure whose candidates have the most votes in total.

    If several structures have the most votes, the first source whose structure is among them wins; without
    such a source, candidates of earlier sources are preferred. The result is deterministic.

    Args:
        space: a distribution over the space; its scores only matter where they are -inf (impossible).
        sources: structures in the form of `best()`; -1 and impossible candidates are abstentions.
    """
    ballots = torch.stack([space.candidates(source) for source in sources])  # (S, B, G)
    votes, preferences = _count(ballots, space.valid)
    # Integers, which float64 adds exactly: all preferences of a structure together weigh less than one vote.
    one_vote = ballots.shape[0] * ballots.shape[2] + 1
    possible = space.decodable().scores > NEGATIVE_INFINITY
    # score(y) = sum_g votes[g, y_g], and one_vote * that + sum_g preferences[g, y_g]
    poll = space.with_scores(space.part_view(votes)).restricted_to(possible)
    weighed = space.with_scores(space.part_view(votes * one_vote + preferences)).restricted_to(possible)
    winner = weighed.best_candidates()
    most = poll.score_of(winner)
    for source, ballot in reversed(list(zip(sources, ballots, strict=True))):
        wins = space.contains(source) & (poll.score_of(ballot) == most)
        winner = torch.where(wins.unsqueeze(1), ballot, winner)
    return space.best_from_candidates(winner)


def _count(ballots: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
    """Return each candidate's votes, (B, G, C), and its preference, S - s if source s voted first for it."""
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
