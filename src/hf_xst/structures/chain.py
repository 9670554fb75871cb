"""A linear-chain CRF: distributions over tag sequences with scores of adjacent pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from hf_xst.numerics import NEGATIVE_INFINITY, logsumexp, working_dtype, zero_if_infinite
from hf_xst.structures.base import Structure, check_at_least_one, check_below, checked_below_infinity
from hf_xst.structures.search import draw


class LinearChainCRF(Structure[Tensor]):
    """Tag sequences; a sequence's score is the sum over its adjacent pairs of tags.

    Group j is the pair of positions j and j+1, so G = N-1; a candidate is previous tag * T + next tag, so
    C = T * T. A sentence of one position has no group: its T tags are equally probable, log Z = log T.

    Args:
        scores: (B, N-1, T, T): scores[b, j, a, c] is tag a at position j followed by tag c at j+1.
            Entries from the length on never matter, NaN included.
        lengths: (B,) positions of each sentence, 1..N; defaults to N.

    Raises:
        ValueError: scores or lengths have the wrong shape, type or range.
    """

    LABEL_AXES: ClassVar[tuple[int, ...]] = (-2, -1)

    @staticmethod
    def _positions(scores: Tensor) -> int:
        if scores.ndim != 4 or scores.shape[2] != scores.shape[3] or scores.shape[3] < 1:
            raise ValueError(f"scores must have shape (B, N-1, T, T), got {tuple(scores.shape)}")
        return scores.shape[1] + 1

    @property
    def valid_parts(self) -> Tensor:
        """Bool (B, N-1, T, T): pairs within the sentence."""
        return self._inside()[:, 1:, None, None].expand(self.scores.shape)

    @property
    def group_lengths(self) -> Tensor:
        """(B,) pairs of each sentence."""
        return self.lengths - 1

    def group_view(self, x: Tensor) -> Tensor:
        """Rearrange (B, N-1, T, T) to (B, N-1, T * T)."""
        return x.flatten(2)

    def part_view(self, x: Tensor) -> Tensor:
        """Rearrange (B, N-1, T * T) to (B, N-1, T, T)."""
        tag_count = math.isqrt(x.shape[2])
        return x.reshape(*x.shape[:2], tag_count, tag_count)

    def candidates(self, best: Tensor) -> Tensor:
        """Return (B, N-1) previous tag * T + next tag, -1 in padding and if either tag is negative."""
        tag_count = self.scores.shape[3]
        check_below(best, tag_count, "tags")
        before, after = best[:, :-1], best[:, 1:]
        absent = (before < 0) | (after < 0) | ~self._inside()[:, 1:]
        return (before.long() * tag_count + after).masked_fill(absent, -1)

    def best_from_candidates(self, candidates: Tensor) -> Tensor:
        """Return tags, (..., B, N); a sentence of one position, which has no pair, gets tag 0."""
        tag_count = self.scores.shape[3]
        absent = candidates < 0
        before = (candidates // tag_count).masked_fill(absent, -1)
        after = (candidates % tag_count).masked_fill(absent, -1)
        first = before[..., :1] if before.shape[-1] else before.new_full((*before.shape[:-1], 1), -1)
        alone = (self.lengths == 1).unsqueeze(1)
        return torch.cat([first.masked_fill(alone, 0), after], -1)

    def contains(self, best: Tensor) -> Tensor:
        """Return (bool, (B,)) which sequences have a tag at every position."""
        return (((best >= 0) & (best < self.scores.shape[3])) | ~self._inside()).all(1)

    def best(self) -> Tensor:
        """Return the tags of the best sequences, (B, N); ties go to lower tags, from the last position on."""
        return self.topk(1)[0]

    def sample(self, k: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw k sequences of each sentence, (k, B, N): forward filtering, backward sampling."""
        check_at_least_one(k)
        wide = self._wide()
        pairs, _ = wide._pairs()
        alpha = wide._forward(pairs)
        sentences = torch.arange(len(self.lengths), device=self.lengths.device)
        # p(y_n = c) is proportional to exp(alpha_n[c]): (k, B)
        tag = draw(alpha[-1].expand(k, -1, -1), generator)
        tags = [tag]
        for j in reversed(range(self.scores.shape[1])):
            # p(y_j = a | y_{j+1} = c) is proportional to exp(alpha_j[a] + score_j[a, c]): (k, B)
            drawn = draw(alpha[j] + pairs[j][sentences, :, tag], generator)
            # Beyond the end of a sentence the tag of its last position is carried along.
            tag = torch.where(self.lengths > j + 1, drawn, tag)
            tags.append(tag)
        empty = (wide.total() == NEGATIVE_INFINITY).unsqueeze(1)
        return torch.stack(tags[::-1], 2).masked_fill(empty | ~self._inside(), -1)

    def topk(self, k: int) -> Tensor:
        """Return the k best sequences of each sentence, best first: (k, B, N), -1 beyond their number.

        The Viterbi algorithm with the k best paths to every tag.
        """
        check_at_least_one(k)
        (pairs, _), tag_count = self._wide()._pairs(), self.scores.shape[3]
        # values[r, c] is the score of the r-th best path that ends in tag c; at the first position there is
        # one path per tag, with score 0: (B, k, T)
        values = self._first().unsqueeze(1).repeat(1, k, 1)
        values[:, 1:] = NEGATIVE_INFINITY
        pointers = []  # (B, k, T) each: rank * T + tag of the previous position on the r-th best path to c
        for j, pair in enumerate(pairs):
            # paths[r * T + a, c] = values[r, a] + score_j[a, c]: (B, k * T, T)
            paths = (values.unsqueeze(3) + pair.unsqueeze(1)).flatten(1, 2)
            # The k best over (r, a), for each c: (B, k, T)
            best, pointer = _best_of(paths, k)
            values = torch.where((self.lengths > j + 1)[:, None, None], best, values)
            pointers.append(pointer)
        # The k best over (r, c) at the last position, as r * T + c: (B, k)
        totals, state = _best_of(values.flatten(1), k)
        checked_below_infinity(totals)
        tags = [state % tag_count]
        for j, pointer in reversed(list(enumerate(pointers))):
            previous = pointer.flatten(1).gather(1, state)
            state = torch.where((self.lengths > j + 1).unsqueeze(1), previous, state)
            tags.append(state % tag_count)
        absent = (totals == NEGATIVE_INFINITY).unsqueeze(2) | ~self._inside().unsqueeze(1)
        return torch.stack(tags[::-1], 2).masked_fill(absent, -1).transpose(0, 1)

    def vote(self, ballots: Sequence[Tensor]) -> Tensor:
        """Return the tag with the most votes at every position, 0 without any; ties go to earlier sources."""
        tags = torch.stack(list(ballots))  # (S, B, N)
        votes = (tags.unsqueeze(0) == tags.unsqueeze(1)).sum(1).masked_fill(tags < 0, 0)
        winner = tags.gather(0, votes.argmax(0, keepdim=True)).squeeze(0).clamp(min=0)
        return winner.masked_fill(~self._inside(), -1)

    @classmethod
    def majority(cls, tags: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return the tag with the most votes at every position, (B, N), -1 in padding; see `vote`.

        Args:
            tags: (S, B, N) of S sources; -1 is an abstention.
            lengths: (B,) positions of each sentence; defaults to N.

        Raises:
            ValueError: tags are not integers of shape (S, B, N) with at least one source.
        """
        if tags.ndim != 3 or not len(tags) or tags.is_floating_point():
            raise ValueError(
                "tags must be integers of shape (S, B, N) with S at least 1, "
                f"got {tags.dtype} of {tuple(tags.shape)}"
            )
        _, batch, positions = tags.shape
        return cls(torch.zeros(batch, positions - 1, 1, 1, device=tags.device), lengths).vote(list(tags))

    def _log_partition(self) -> Tensor:
        zero = self.scores[:, :0].sum()  # keeps the result differentiable if no sentence has a pair
        pairs, best = self._pairs()
        # log Z = logsumexp_c alpha_n[c] + best: (B,)
        return logsumexp(self._forward(pairs)[-1], 1) + best + zero

    def _forward(self, pairs: Sequence[Tensor]) -> list[Tensor]:
        """Return the forward variables alpha_j, N tensors (B, T); beyond a sentence's end the last repeats.

        alpha_j[c] is the log of the sum of exp(score) over all sequences of the positions up to j that end in
        tag c.
        """
        alpha = [self._first()]
        for j, pair in enumerate(pairs):
            # alpha_{j+1}[c] = logsumexp_a (alpha_j[a] + score_j[a, c]): (B, T, T) summed over a to (B, T)
            longer = logsumexp(alpha[-1].unsqueeze(2) + pair, 1)
            alpha.append(torch.where((self.lengths > j + 1).unsqueeze(1), longer, alpha[-1]))
        return alpha

    def _first(self) -> Tensor:
        """Return alpha of the first position, where no pair has been scored: (B, T) zeros."""
        batch, _, tag_count, _ = self.scores.shape
        return self.scores.new_zeros(batch, tag_count, dtype=working_dtype(self.scores.device))

    def _pairs(self) -> tuple[tuple[Tensor, ...], Tensor]:
        """Return N-1 tensors (B, T, T) of pair scores in the working precision, less the best of each pair.

        They are 0 in padding. The second result is (B,) the sum of the best scores.
        """
        wide = self.scores.to(working_dtype(self.scores.device)).masked_fill(~self.valid_parts, 0)
        best = zero_if_infinite(wide.detach().flatten(2).amax(2))
        return (wide - best[:, :, None, None]).unbind(1), best.sum(1)


def _best_of(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest along axis 1 in descending order, and their indices; ties go to lower indices."""
    if k == 1:
        return values.max(1, keepdim=True)
    values, indices = values.sort(dim=1, descending=True, stable=True)
    return values[:, :k], indices[:, :k]
