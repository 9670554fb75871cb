"""Base class of all structures: everything that follows from the log-partition and the best structure.

A structure contains exactly one candidate of every group of a sentence, and scores the sum of its candidates'
scores. Code that requires nothing else works on tensors (B, G, C): B sentences, G groups, C candidates. Each
subclass maps its own scores to this view and defines the index of a candidate, which never depends on
padding.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, Self

import torch
from torch import Tensor
from typing_extensions import TypeVar

from hf_xst.numerics import NEGATIVE_INFINITY, on_one_thread, require, with_gradient, working_dtype
from hf_xst.structures.search import k_best, sample_by_group

Best = TypeVar("Best", default=Any)
"""Type of `best()`: one integer tensor (B, N) or a tuple of them, -1 in padding."""


class Structure(ABC, Generic[Best]):
    """A distribution over the structures of each sentence of a batch, p(y) = exp(score(y)) / Z.

    Sums are computed in float64 and returned in the dtype of the scores. A score of -inf makes a candidate
    impossible. Scores beyond a sentence's end never matter, NaN included; where a score matters, computations
    raise ValueError if it is NaN or +inf. A sentence without any possible structure has log Z = -inf,
    marginals 0, gradients 0 and best -1, and does not affect the other sentences.

    A subclass implements the abstract methods below and has no state except what `__init__` sets.

    Args:
        scores: floating tensor, batch first.
        lengths: (B,) integers, words (positions) of each sentence, at least 1; defaults to the full length.

    Raises:
        ValueError: scores or lengths have the wrong shape, type or range.
    """

    LABEL_AXES: ClassVar[tuple[int, ...]]
    """Axes of the scores that run over the labels, counted from the end."""

    scores: Tensor
    lengths: Tensor

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Run the searches of a subclass on one thread, as its sums."""
        super().__init_subclass__(**kwargs)
        for name in ("best", "sample", "topk"):
            if name in vars(cls):
                setattr(cls, name, on_one_thread()(vars(cls)[name]))

    def __init__(self, scores: Tensor, lengths: Tensor | None = None) -> None:
        if not scores.is_floating_point():
            raise ValueError(f"scores must be floating point, got {scores.dtype}")
        self.scores = scores
        self.lengths = _checked_lengths(lengths, scores, self._positions(scores))

    # -- implemented by subclasses --------------------------------------------------------------------

    @staticmethod
    @abstractmethod
    def _positions(scores: Tensor) -> int:
        """Return N, the longest length that the scores allow; raise ValueError if their shape is wrong."""

    @abstractmethod
    def _log_partition(self) -> Tensor:
        """Return (B,) log Z in the working precision, differentiable with respect to the scores."""

    @abstractmethod
    def best(self) -> Best:
        """Return the best structures, with ties broken deterministically; -1 in padding and empty spaces."""

    @property
    @abstractmethod
    def valid_parts(self) -> Tensor:
        """Bool, shape of the scores: parts that some structure of the given length contains."""

    @property
    @abstractmethod
    def group_lengths(self) -> Tensor:
        """(B,) number of groups of each sentence; padding follows them on the group axis."""

    @abstractmethod
    def group_view(self, x: Tensor) -> Tensor:
        """Rearrange a tensor of the scores' shape to (B, G, C)."""

    @abstractmethod
    def part_view(self, x: Tensor) -> Tensor:
        """Rearrange (B, G, C) to the scores' shape; entries that belong to no group are 0 or false."""

    @abstractmethod
    def candidates(self, best: Best) -> Tensor:
        """Return the (B, G) candidates of a structure in the form of `best()`, -1 where it has none."""

    @abstractmethod
    def best_from_candidates(self, candidates: Tensor) -> Best:
        """Invert `candidates`: (..., B, G) to the form of `best()` with the same leading axes."""

    @abstractmethod
    def contains(self, best: Best) -> Tensor:
        """Return (bool, (B,)) whether each structure belongs to its space, whatever its score."""

    # -- derived --------------------------------------------------------------------------------------

    @property
    def valid(self) -> Tensor:
        """Bool (B, G, C): candidates that some structure of the given length contains."""
        return self.group_view(self.valid_parts)

    @property
    def possible(self) -> Tensor:
        """Bool (B, G, C): the valid candidates with a score above -inf."""
        return self.group_view(self._possible_parts())

    def decodable(self) -> Self:
        """Return the distribution over the structures that `best`, `topk` and `sample` may return."""
        return self

    def with_scores(self, scores: Tensor) -> Self:
        """Return the same space with other scores (same B and N; the label axes may differ)."""
        size = (scores.shape[0], self._positions(scores))
        expected = (self.scores.shape[0], self._positions(self.scores))
        if size != expected:
            raise ValueError(f"scores must be for (sentences, words) = {expected}, got {size}")
        return self._with(scores, self.lengths)

    def select(self, sentences: Tensor) -> Self:
        """Return the distributions of the sentences with these (K,) indices, which may repeat."""
        return self._with(self.scores[sentences], self.lengths[sentences])

    def log_partition(self) -> Tensor:
        """Return (B,) log Z, -inf where no structure is possible; once differentiable."""
        return self.total().to(self.scores.dtype)

    def total(self) -> Tensor:
        """Return (B,) log Z as `log_partition`, but in the working precision."""
        if torch.is_grad_enabled() and self.scores.requires_grad:
            # The gradient is computed now: in a backward pass PyTorch would not be on one thread.
            marginals, total = self.marginals_and_total()
            return with_gradient(self.scores, total, marginals)
        with on_one_thread():
            return _checked(self._log_partition())

    def marginals(self) -> Tensor:
        """Return the probability of every part, shape of the scores; exactly 0 if impossible or padding.

        No gradient flows through the result.
        """
        return self.marginals_and_total()[0]

    def marginals_and_total(self) -> tuple[Tensor, Tensor]:
        """Return the marginals and the total, from one forward pass, detached."""
        # p(part) = d log Z / d score(part): shape of the scores
        with on_one_thread(), torch.inference_mode(False), torch.enable_grad():
            leaf = self.scores.clone().detach().requires_grad_()
            total = _checked(self._with(leaf, self.lengths.clone())._log_partition())
            (marginals,) = torch.autograd.grad(total.sum(), leaf)
        return marginals, total.detach()

    def log_prob(self, gold: Best) -> Tensor:
        """Return (B,) the log-probability of a structure in the form of `best()`: score - log Z.

        It is -inf, with gradient 0, if `gold` is not in this space (see `contains`) or contains an impossible
        candidate, or if the space is empty.
        """
        score, log_partition = self.score_of(self.candidates(gold)), self.total()
        possible = self.contains(gold) & (score > NEGATIVE_INFINITY) & (log_partition > NEGATIVE_INFINITY)
        return _log_ratio(score, log_partition, possible).to(self.scores.dtype)

    def log_mass(self, keep: Tensor, total: Tensor | None = None) -> Tensor:
        """Return (B,) the log-probability that all parts of the structure are in `keep`, at most 0.

        This is log Z(keep) - log Z, subtracted before rounding to the dtype of the scores, so it stays
        accurate if both are huge. It is -inf, with gradient 0, if no structure is left.

        Args:
            keep: bool, shape of the scores.
            total: the result of `total`, if it is known.
        """
        kept, log_partition = self.restricted_to(keep).total(), self.total() if total is None else total
        return _log_ratio(kept, log_partition, kept > NEGATIVE_INFINITY).to(self.scores.dtype)

    def restricted_to(self, keep: Tensor) -> Self:
        """Return the distribution without the parts outside `keep` (bool, shape of the scores)."""
        if keep.dtype != torch.bool or keep.shape != self.scores.shape:
            expected = f"bool of shape {tuple(self.scores.shape)}"
            raise ValueError(f"keep must be {expected}, got {keep.dtype} of shape {tuple(keep.shape)}")
        return self._with(self.scores.masked_fill(~keep, NEGATIVE_INFINITY), self.lengths)

    def log_count(self) -> Tensor:
        """Return (B,) the logarithm of the number of possible structures."""
        blank = self.with_scores(torch.zeros_like(self.scores))
        return blank.restricted_to(self._possible_parts()).log_partition()

    def entropy(self) -> Tensor:
        """Return (B,) the entropy in nats; 0 for an empty space. No gradient flows through it."""
        with torch.no_grad():
            wide = self._wide()
            marginals, log_partition = wide.marginals_and_total()
            entropy = wide.cross_entropy(self.group_view(marginals), log_partition).clamp(min=0)
            return entropy.masked_fill(log_partition == NEGATIVE_INFINITY, 0).to(self.scores.dtype)

    def cross_entropy(self, marginals: Tensor, total: Tensor | None = None) -> Tensor:
        """Return (B,) the cross-entropy of this distribution under given marginals, in nats.

        This is log Z - sum of marginal * score, which is the same for all distributions with these marginals.
        Its gradient with respect to the scores is the difference of the two marginals. It is infinite if a
        part with a positive marginal is impossible here.

        Args:
            marginals: (B, G, C), summing to one in each group.
            total: the result of `total`, if it is known.
        """
        scores = self.group_view(self.scores)
        wide = scores.to(working_dtype(scores.device)).masked_fill(marginals == 0, 0)
        expected = (wide * marginals).flatten(1).sum(1)
        return ((self.total() if total is None else total) - expected).to(self.scores.dtype)

    def best_candidates(self) -> Tensor:
        """Return (B, G) the candidates of the best structures, -1 in padding and empty spaces."""
        return self.candidates(self.best())

    @on_one_thread()
    def sample(self, k: int, *, generator: torch.Generator | None = None) -> Best:
        """Draw k independent structures of each sentence, exactly from the distribution.

        Args:
            k: number of structures, at least 1.
            generator: random generator on the device of the scores; defaults to PyTorch's global one.

        Returns:
            As `best()`, with a first axis of length k; -1 for an empty space.
        """
        check_at_least_one(k)
        return self.best_from_candidates(sample_by_group(self._wide(), k, generator))

    @on_one_thread()
    def topk(self, k: int) -> Best:
        """Return the k best structures of each sentence, at least 1, best first, in the form of `sample`.

        They are -1 beyond the number of possible structures.
        """
        check_at_least_one(k)
        self._possible_parts()  # regions of sentences are searched below, where numbers of sentences differ
        return self.best_from_candidates(k_best(self._wide(), k))

    def vote(self, ballots: Sequence[Best]) -> Best:
        """Return the structure of this space with the most votes, counted per candidate, whatever the scores.

        If several structures have the most votes, the first source whose structure is among them wins;
        without such a source, candidates of earlier sources are preferred.

        Args:
            ballots: structures of several sources in the form of `best()`; -1 is an abstention.
        """
        candidates = torch.stack([self.candidates(ballot) for ballot in ballots])  # (S, B, G)
        votes, preferences = _count_votes(candidates, self.valid)
        # Integers, which float64 adds exactly: all preferences of a structure together weigh less than one.
        one_vote = candidates.shape[0] * candidates.shape[2] + 1
        possible = self.with_scores(torch.zeros_like(self.scores)).decodable().scores > NEGATIVE_INFINITY
        # score(y) = sum_g votes[g, y_g], and one_vote * that + sum_g preferences[g, y_g]
        poll = self.with_scores(self.part_view(votes)).restricted_to(possible)
        weighed = self.with_scores(self.part_view(votes * one_vote + preferences)).restricted_to(possible)
        winner = weighed.best_candidates()
        most = poll.score_of(winner)
        for ballot, chosen in reversed(list(zip(ballots, candidates, strict=True))):
            wins = self.contains(ballot) & (poll.score_of(chosen) == most)
            winner = torch.where(wins.unsqueeze(1), chosen, winner)
        return self.best_from_candidates(winner)

    def _inside(self) -> Tensor:
        """Bool (B, N): the positions of each sentence."""
        positions = torch.arange(self._positions(self.scores), device=self.scores.device)
        return positions < self.lengths.unsqueeze(1)

    def _possible_parts(self) -> Tensor:
        """Return the valid parts with a score above -inf: bool, shape of the scores."""
        valid = self.valid_parts
        scores = self.scores.detach().masked_fill(~valid, NEGATIVE_INFINITY)
        return checked_below_infinity(scores) > NEGATIVE_INFINITY

    def _wide(self) -> Self:
        """Return the same distribution, detached, in the working precision."""
        return self._with(self.scores.detach().to(working_dtype(self.scores.device)), self.lengths)

    def _with(self, scores: Tensor, lengths: Tensor) -> Self:
        twin = copy.copy(self)
        twin.scores, twin.lengths = scores, lengths
        return twin

    def score_of(self, candidates: Tensor) -> Tensor:
        """Return (B,) the sum of the scores of (B, G) candidates, in the working precision; -1 adds 0."""
        chosen = self.group_view(self.scores).gather(2, candidates.clamp(min=0).unsqueeze(2)).squeeze(2)
        wide = chosen.to(working_dtype(chosen.device))
        return wide.masked_fill(candidates < 0, 0).sum(1)


def _checked(log_partition: Tensor) -> Tensor:
    """Return log Z with gradient 0 where it is -inf; raise ValueError if it is NaN or +inf."""
    return checked_below_infinity(log_partition).masked_fill(
        log_partition == NEGATIVE_INFINITY, NEGATIVE_INFINITY
    )


def _log_ratio(part: Tensor, whole: Tensor, possible: Tensor) -> Tensor:
    """Return part - whole, at most 0 despite rounding; -inf with gradient 0 where not possible."""
    return (part - whole).clamp(max=0).masked_fill(~possible, NEGATIVE_INFINITY)


def checked_below_infinity(values: Tensor) -> Tensor:
    """Return values (B, ...) computed from scores; raise ValueError if a sentence has NaN or +inf.

    On a GPU, RuntimeError at a later operation, as in `require`.
    """
    is_below = values.detach() < math.inf  # false for NaN
    if values.is_cuda:
        require(is_below, "scores contain NaN or +inf; in training, it has diverged")
    elif not bool(is_below.all()):
        sentence = int((~is_below).nonzero()[0, 0])
        raise ValueError(
            f"the scores of sentence {sentence} of the batch (counted from 0) contain NaN or +inf: the "
            "weights or the input of the model are not finite; in training, it has diverged, and a smaller "
            "learning rate may help"
        )
    return values


def check_at_least_one(k: int) -> None:
    """Raise ValueError unless k is at least 1."""
    if k < 1:
        raise ValueError(f"the number of structures must be at least 1, got {k}")


def check_below(values: Tensor, limit: int, name: str) -> None:
    """Raise ValueError unless all values are integers below a limit; negative integers are allowed."""
    if values.is_floating_point() or values.dtype == torch.bool:
        raise ValueError(f"{name} must be integers, got {values.dtype}")
    require(values < limit, f"{name} must be below {limit}", values)


def _checked_lengths(lengths: Tensor | None, scores: Tensor, longest: int) -> Tensor:
    batch = scores.shape[0]
    if longest < 1:
        raise ValueError(f"scores must have room for at least one word, got shape {tuple(scores.shape)}")
    if lengths is None:
        return torch.full((batch,), longest, device=scores.device)
    checked = torch.as_tensor(lengths, device=scores.device)
    if checked.shape != (batch,) or checked.is_floating_point() or checked.dtype == torch.bool:
        raise ValueError(
            f"lengths must be integers of shape {(batch,)}, got {checked.dtype} of {tuple(checked.shape)}"
        )
    in_range = (checked >= 1) & (checked <= longest)
    require(in_range, f"lengths must lie between 1 and {longest}", checked)
    return checked.long()


def _count_votes(ballots: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
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
