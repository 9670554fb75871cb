"""What all structures share: what follows from the log-partition and the best structure, derived once.

A structure picks exactly one candidate in every group of a sentence; its score is the sum of its candidates'
scores. Code that needs no more than that works on tensors (B, G, C): B sentences, G groups, C candidates.
Each subclass says how these lie in its own scores, and how a candidate's index is made up; the index never
depends on padding.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, Self

import torch
from torch import Tensor
from typing_extensions import TypeVar

from hf_xst.numerics import NEGATIVE_INFINITY, working_dtype
from hf_xst.structures.search import k_best, sample_by_group

Best = TypeVar("Best", default=Any)
"""What `best()` returns: one integer tensor (B, N) or a tuple of them, -1 in padding."""


class Structure(ABC, Generic[Best]):
    """A distribution over the structures of every sentence of a batch, in proportion to exp(score).

    Sums are made in float64 and given back in the dtype of the scores. -inf is a legal score: the candidate
    is impossible. Scores beyond a sentence's end never matter, NaN included. A sentence without any possible
    structure has log Z = -inf, marginals 0, gradients 0 and best -1, and does its batch mates no harm.

    A subclass supplies the abstract methods below and keeps no state but what `__init__` sets.

    Args:
        scores: floating tensor, batch first.
        lengths: (B,) integers, words (positions) of each sentence, at least 1; all full if None.

    Raises:
        ValueError: scores or lengths are not of the stated shape, type or range.
    """

    LABEL_AXES: ClassVar[tuple[int, ...]]
    """Axes of the scores that run over the label alphabet, counted from the end."""

    scores: Tensor
    lengths: Tensor

    def __init__(self, scores: Tensor, lengths: Tensor | None = None) -> None:
        if not scores.is_floating_point():
            raise ValueError(f"scores must be floating point, got {scores.dtype}")
        self.scores = scores
        self.lengths = _checked_lengths(lengths, scores, self._positions(scores))

    # What a subclass supplies.

    @staticmethod
    @abstractmethod
    def _positions(scores: Tensor) -> int:
        """Return N, the number of words that the scores have room for; ValueError if their shape is wrong."""

    @abstractmethod
    def _log_partition(self) -> Tensor:
        """Return (B,) log Z in the working precision, differentiable by the scores."""

    @abstractmethod
    def best(self) -> Best:
        """Return the best structures, of equal ones always the same; -1 in padding and if there is none."""

    @property
    @abstractmethod
    def valid_parts(self) -> Tensor:
        """Bool, shape of the scores: entries that some structure could use, as far as the lengths tell."""

    @property
    @abstractmethod
    def group_lengths(self) -> Tensor:
        """(B,) number of groups of each sentence; they come first on the group axis."""

    @abstractmethod
    def group_view(self, x: Tensor) -> Tensor:
        """Bring any tensor of the scores' shape to (B, G, C)."""

    @abstractmethod
    def part_view(self, x: Tensor) -> Tensor:
        """Bring a (B, G, C) tensor back to the scores' shape; entries that no group holds are 0 or false."""

    @abstractmethod
    def candidates(self, best: Best) -> Tensor:
        """Return the (B, G) candidates of a structure given as by `best()`, -1 where there is none."""

    @abstractmethod
    def best_from_candidates(self, candidates: Tensor) -> Best:
        """Undo `candidates`; (..., B, G), where leading axes stay."""

    @abstractmethod
    def contains(self, best: Best) -> Tensor:
        """Say (bool, (B,)) which sentences' given structures are of this space, whatever they score."""

    @classmethod
    @abstractmethod
    def majority_of(cls, best: Sequence[Best], lengths: Tensor | None = None, **options: bool) -> Best:
        """Let several sources' `best()` vote; `options` are those of the class, see `options`."""

    # What follows.

    @property
    def options(self) -> Mapping[str, bool]:
        """The keyword options that this object was made with."""
        return {}

    @property
    def valid(self) -> Tensor:
        """Bool (B, G, C): candidates that some structure could use, as far as the lengths tell."""
        return self.group_view(self.valid_parts)

    @property
    def possible(self) -> Tensor:
        """Bool (B, G, C), the valid candidates that the scores do not exclude."""
        return self.group_view(self.valid_parts & (self.scores > NEGATIVE_INFINITY))

    def with_scores(self, scores: Tensor) -> Self:
        """Return the same space with other scores (B, N as before; the label axes may differ)."""
        found = (scores.shape[0], self._positions(scores))
        expected = (self.scores.shape[0], self._positions(self.scores))
        if found != expected:
            raise ValueError(f"scores must be for (sentences, words) = {expected}, got {found}")
        return self._with(scores, self.lengths)

    def select(self, sentences: Tensor) -> Self:
        """Return the structures of some sentences, (K,) indices, which may repeat."""
        return self._with(self.scores[sentences], self.lengths[sentences])

    def log_partition(self) -> Tensor:
        """Return (B,) log Z, -inf where no structure is possible; it can be differentiated once."""
        return self._wide_log_partition().to(self.scores.dtype)

    def marginals(self) -> Tensor:
        """Return the probability of every part, shape of the scores; exactly 0 if impossible or padded.

        They are constants: no gradient flows through them.
        """
        return self.marginals_and_total()[0]

    def marginals_and_total(self) -> tuple[Tensor, Tensor]:
        """Return the marginals and (B,) log Z in the working precision, both out of one sum; constants."""
        with torch.inference_mode(False), torch.enable_grad():
            leaf = self.scores.clone().detach().requires_grad_()
            total = self._with(leaf, self.lengths.clone())._wide_log_partition()
            (marginals,) = torch.autograd.grad(total.sum(), leaf)
        return marginals, total.detach()

    def log_prob(self, gold: Best) -> Tensor:
        """Return (B,) the log-probability of a structure given as by `best()`.

        It is -inf, with a gradient of 0, where gold is no structure of this space (see `contains`), uses an
        impossible candidate, or the space is empty.
        """
        score, log_partition = self.score_of(self.candidates(gold)), self._wide_log_partition()
        possible = self.contains(gold) & (score > NEGATIVE_INFINITY) & (log_partition > NEGATIVE_INFINITY)
        return _log_ratio(score, log_partition, possible).to(self.scores.dtype)

    def log_mass(self, keep: Tensor) -> Tensor:
        """Return (B,) the log-probability that all parts of the structure are in `keep`, at most 0.

        This is log Z(keep) - log Z, subtracted before rounding to the dtype of the scores: it stays good
        where both are huge. -inf with a gradient of 0 where nothing is left.

        Args:
            keep: bool, shape of the scores.
        """
        kept, log_partition = self.restricted_to(keep)._wide_log_partition(), self._wide_log_partition()
        return _log_ratio(kept, log_partition, kept > NEGATIVE_INFINITY).to(self.scores.dtype)

    def restricted_to(self, keep: Tensor) -> Self:
        """Return the same space without the parts outside `keep` (bool, shape of the scores)."""
        if keep.dtype != torch.bool or keep.shape != self.scores.shape:
            expected = f"bool of shape {tuple(self.scores.shape)}"
            raise ValueError(f"keep must be {expected}, got {keep.dtype} of shape {tuple(keep.shape)}")
        return self._with(self.scores.masked_fill(~keep, NEGATIVE_INFINITY), self.lengths)

    def log_count(self) -> Tensor:
        """Return (B,) the log of the number of structures that are possible at all."""
        possible = self.valid_parts & (self.scores > NEGATIVE_INFINITY)
        return self.with_scores(torch.zeros_like(self.scores)).restricted_to(possible).log_partition()

    def entropy(self) -> Tensor:
        """Return (B,) the entropy in nats, log Z minus the expected score; 0 for an empty space.

        It is a constant: no gradient flows through it.
        """
        with torch.no_grad():
            wide = self._wide()
            marginals = wide.marginals()
            expected = (marginals * wide.scores).masked_fill(marginals == 0, 0).flatten(1).sum(1)
            log_partition = wide._wide_log_partition()
            entropy = (log_partition - expected).clamp(min=0)
            return entropy.masked_fill(log_partition == NEGATIVE_INFINITY, 0).to(self.scores.dtype)

    def cross_entropy(self, marginals: Tensor) -> Tensor:
        """Return (B,) minus the log-probability that is expected under given marginals, in nats.

        This is log Z - sum of marginal times score: for any distribution over structures with these
        marginals its cross-entropy against this one. Its gradient by the scores is the difference of the two
        marginals. Infinite where a part of positive marginal is impossible here.

        Args:
            marginals: (B, G, C), summing to one in each group.
        """
        scores = self.group_view(self.scores)
        wide = scores.to(working_dtype(scores.device)).masked_fill(marginals == 0, 0)
        expected = (wide * marginals).flatten(1).sum(1)
        return (self._wide_log_partition() - expected).to(self.scores.dtype)

    def best_candidates(self) -> Tensor:
        """Return (B, G) the candidates of the best structures, -1 where there is none."""
        return self.candidates(self.best())

    def sample(self, k: int, *, generator: torch.Generator | None = None) -> Best:
        """Draw k structures of each sentence, independently, in exact proportion to their probability.

        Args:
            k: how many, at least 1.
            generator: source of randomness on the device of the scores; PyTorch's own if None.

        Returns:
            As `best()`, with a first axis of length k; -1 throughout for an empty space.
        """
        check_at_least_one(k)
        return self.best_from_candidates(sample_by_group(self._wide(), k, generator))

    def topk(self, k: int) -> Best:
        """Return the k best structures of each sentence, best first.

        Args:
            k: how many, at least 1.

        Returns:
            As `best()`, with a first axis of length k; -1 throughout where there are fewer structures.
        """
        check_at_least_one(k)
        return self.best_from_candidates(k_best(self._wide(), k))

    def _wide_log_partition(self) -> Tensor:
        """Return (B,) log Z in the working precision, with a gradient of 0 where it is -inf."""
        log_partition = self._log_partition()
        return log_partition.masked_fill(log_partition == NEGATIVE_INFINITY, NEGATIVE_INFINITY)

    def _wide(self) -> Self:
        """Return the same distribution as a constant in the working precision."""
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


def _log_ratio(part: Tensor, whole: Tensor, possible: Tensor) -> Tensor:
    """Return part - whole, at most 0 in spite of rounding; -inf with a gradient of 0 where not possible."""
    return (part - whole).clamp(max=0).masked_fill(~possible, NEGATIVE_INFINITY)


def check_at_least_one(k: int) -> None:
    """Raise ValueError unless k structures can be asked for."""
    if k < 1:
        raise ValueError(f"the number of structures must be at least 1, got {k}")


def check_below(values: Tensor, limit: int, what: str) -> None:
    """Raise ValueError unless all values are integers below a limit; negative ones mean none."""
    if values.is_floating_point() or values.dtype == torch.bool:
        raise ValueError(f"{what} must be integers, got {values.dtype}")
    if values.numel() and int(values.max()) >= limit:
        raise ValueError(f"{what} must be below {limit}, got {int(values.max())}")


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
    if batch and not (1 <= int(checked.min()) and int(checked.max()) <= longest):
        raise ValueError(f"lengths must lie between 1 and {longest}, got {checked.tolist()}")
    return checked.long()
