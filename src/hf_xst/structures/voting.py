"""Majority vote within a space: the structure that collects most of its sources' votes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from hf_xst.numerics import NEGATIVE_INFINITY
from hf_xst.structures.base import Best, Structure


def vote(space: Structure[Best], sources: Sequence[Best]) -> Best:
    """Return, for each sentence, a structure whose candidates got the most votes in all.

    Where several structures get the most votes, the first source's own structure that is among them wins. If
    there is none, earlier sources' candidates are preferred. The answer is always the same.

    Args:
        space: any object of the wanted space; only its impossible candidates matter of its scores.
        sources: each as `best()`; -1 casts no vote, nor does a candidate that is impossible.
    """
    ballots = torch.stack([space.candidates(source) for source in sources])  # (S, B, G)
    votes, preferences = _count(ballots, space.valid)
    # Whole numbers, which float64 adds exactly: all preferences together weigh less than one vote.
    one_vote = ballots.shape[0] * ballots.shape[2] + 1
    possible = space.scores > NEGATIVE_INFINITY
    poll = space.with_scores(space.part_view(votes)).restricted_to(possible)
    weighed = space.with_scores(space.part_view(votes * one_vote + preferences)).restricted_to(possible)
    winner = weighed.best_candidates()
    most = poll.score_of(winner)
    for source, ballot in reversed(list(zip(sources, ballots, strict=True))):
        wins = space.contains(source) & (poll.score_of(ballot) == most)
        winner = torch.where(wins.unsqueeze(1), ballot, winner)
    return space.best_from_candidates(winner)


def _count(ballots: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
    """Return (B, G, C) votes of each candidate, and S - s where the first source to vote for it is s."""
    sources = len(ballots)
    none = valid.shape[2]  # an extra candidate takes the votes that are none
    votes = torch.zeros(*valid.shape[:2], none + 1, dtype=torch.float64, device=valid.device)
    preferences = torch.zeros_like(votes)
    for s, ballot in reversed(list(enumerate(ballots))):
        index = ballot.masked_fill(ballot < 0, none).unsqueeze(2)
        votes.scatter_add_(2, index, torch.ones_like(index, dtype=votes.dtype))
        preferences.scatter_(2, index, float(sources - s))
    return votes[:, :, :none], preferences[:, :, :none]


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
