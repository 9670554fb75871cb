"""Binary constituency trees with labelled spans, over torch-struct's `TreeCRF`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import ClassVar

import torch
from torch import Tensor

from hf_xst.numerics import NEGATIVE_INFINITY, logsumexp, maximum, working_dtype, zero_if_infinite
from hf_xst.structures.base import Structure, check_below, checked_below_infinity


class ConstituencyTreeCRF(Structure[Tensor]):
    """Binary trees over the words, with a label for each constituent.

    A group is a span of words; its candidates are 0, no constituent, and the labels 1 to L - 1. Spans come in
    the order of their last word, then of their first: those of a shorter sentence are the first ones of a
    longer one. A tree over n words has 2n - 1 constituents, among them each word and the whole sentence.

    The sums are those of `torch_struct.TreeCRF` (Stern et al. 2017) with a semiring that is exact at minus
    infinity.

    Args:
        scores: (B, N, N, L): scores[b, i, j, l] is the span from word i to word j >= i (from 0) with label l.
            Entries with j < i or beyond the length, and those of 0 for spans that every tree has, never
            matter, NaN included.
        lengths: (B,) words of each sentence, 1..N; defaults to N.

    Raises:
        ValueError: scores or lengths have the wrong shape, type or range.
    """

    LABEL_AXES: ClassVar[tuple[int, ...]] = (-1,)

    @staticmethod
    def _positions(scores: Tensor) -> int:
        if scores.ndim != 4 or scores.shape[1] != scores.shape[2] or scores.shape[3] < 2:
            raise ValueError(f"scores must have shape (B, N, N, L > 1), got {tuple(scores.shape)}")
        return scores.shape[1]

    @property
    def valid_parts(self) -> Tensor:
        """Bool (B, N, N, L): spans within the sentence, and 0 where a tree may lack the span."""
        valid = self._spans_inside().unsqueeze(3).repeat(1, 1, 1, self.scores.shape[3])
        valid[..., 0] &= ~self._in_every_tree()
        return valid

    @property
    def group_lengths(self) -> Tensor:
        """(B,) spans of each sentence."""
        return self.lengths * (self.lengths + 1) // 2

    def group_view(self, x: Tensor) -> Tensor:
        """Rearrange (B, N, N, ...) to (B, N (N + 1) / 2, ...)."""
        first, last = _spans(x.shape[1], x.device)
        return x[:, first, last]

    def part_view(self, x: Tensor) -> Tensor:
        """Rearrange (B, N (N + 1) / 2, L) to (B, N, N, L)."""
        words = self.scores.shape[1]
        first, last = _spans(words, x.device)
        parts = x.new_zeros(x.shape[0], words, words, *x.shape[2:])
        parts[:, first, last] = x
        return parts

    def candidates(self, best: Tensor) -> Tensor:
        """Return (B, G) the label of each span."""
        check_below(best, self.scores.shape[3], "labels")
        candidates = self.group_view(best.long())
        return candidates.masked_fill(~self.group_view(self._spans_inside()), -1).clamp(min=-1)

    def best_from_candidates(self, candidates: Tensor) -> Tensor:
        """Return labels of spans, (..., B, N, N), 0 where there is no constituent, -1 outside."""
        words = self.scores.shape[1]
        first, last = _spans(words, candidates.device)
        labels = candidates.new_full((*candidates.shape[:-1], words, words), -1)
        labels[..., first, last] = candidates
        return labels

    def contains(self, best: Tensor) -> Tensor:
        """Return (bool, (B,)) which labels form a binary tree."""
        inside = self._spans_inside()
        in_range = ((best >= 0) & (best < self.scores.shape[3])) | ~inside
        spans = (best > 0) & inside
        # 2n - 1 spans that do not cross each other are a binary tree.
        crossing = (_crossed_by(spans) & spans).flatten(1).any(1)
        return in_range.flatten(1).all(1) & (spans.flatten(1).sum(1) == 2 * self.lengths - 1) & ~crossing

    def best(self) -> Tensor:
        """Return the labels of the best trees' spans, (B, N, N): 0 for no constituent, -1 outside."""
        potentials, _ = self._potentials()
        with torch.inference_mode(False), torch.enable_grad():
            leaf = potentials.clone().detach().requires_grad_()
            total = checked_below_infinity(_tree_sum(leaf, self.lengths, maximum))
            (chosen,) = torch.autograd.grad(total.sum(), leaf)
        chosen = chosen * self._spans_inside().unsqueeze(3)
        labels = (chosen * torch.arange(1, self.scores.shape[3], device=chosen.device)).sum(3).long()
        empty = (total == NEGATIVE_INFINITY)[:, None, None]
        return labels.masked_fill(empty | ~self._spans_inside(), -1)

    def _log_partition(self) -> Tensor:
        potentials, base = self._potentials()
        return _tree_sum(potentials, self.lengths, logsumexp) + base

    def marginals_and_total(self) -> tuple[Tensor, Tensor]:
        """Return the marginals and (B,) log Z; see `Structure`."""
        # The marginal of 0 is one minus those of the labels, and rounding may put it below zero.
        marginals, total = super().marginals_and_total()
        return marginals.clamp(min=0), total

    def _potentials(self) -> tuple[Tensor, Tensor]:
        """Return scores (B, N, N, L - 1) whose sum over the spans of a tree is its score, less (B,) a base.

        A span that a tree lacks contributes its score of 0. The base is the sum of all of these, and each
        span of the tree takes its own back. Where it is -inf, the span must be in the tree: its best label
        is part of the base, as for spans of every tree, and all spans that cross it are excluded.
        """
        scores = self.scores.to(working_dtype(self.scores.device))
        inside = self._spans_inside()
        scores = scores.masked_fill(~inside.unsqueeze(3), 0)
        required = (scores[..., 0] == NEGATIVE_INFINITY) & inside
        best = zero_if_infinite(scores[..., 1:].detach().amax(3))
        absent = torch.where(required | self._in_every_tree(), best, scores[..., 0])
        crossed = _crossed_by(required).unsqueeze(3)
        potentials = scores[..., 1:] - absent.unsqueeze(3)
        return potentials.masked_fill(crossed, NEGATIVE_INFINITY), absent.flatten(1).sum(1)

    def _spans_inside(self) -> Tensor:
        """Bool (B, N, N): spans within the sentence."""
        words = torch.arange(self.scores.shape[1], device=self.lengths.device)
        return (words[:, None] <= words) & (words < self.lengths[:, None, None])

    def _in_every_tree(self) -> Tensor:
        """Bool (B, N, N): single words, and the whole sentence."""
        words = torch.arange(self.scores.shape[1], device=self.lengths.device)
        whole = (words[:, None] == 0) & (words == self.lengths[:, None, None] - 1)
        return whole | (words[:, None] == words)


@cache
@torch.inference_mode(False)
def _spans(words: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the first and the last word of each span: (G,) each, also for computations with gradients."""
    last, first = torch.tril_indices(words, words, device=device)
    return first, last


def _crossed_by(spans: Tensor) -> Tensor:
    """Return which spans cross any of the given spans: bool (B, N, N) from (B, N, N)."""
    words = spans.shape[1]
    # before[i, j] counts spans that start before word i and end before word j: (B, N + 1, N + 1)
    before = torch.nn.functional.pad(spans.long(), (1, 0, 1, 0)).cumsum(1).cumsum(2)
    own = before.diagonal(dim1=1, dim2=2)
    # Spans that start before i and end in i..j - 1; spans that start in i + 1..j and end after j.
    left = before[:, :words, :words] - own[:, :words, None]
    right = (before[:, 1:, -1] - own[:, 1:])[:, None] - (before[:, 1:, -1:] - before[:, 1:, 1:])
    return (left + right > 0).triu()


def _tree_sum(potentials: Tensor, lengths: Tensor, reduce: Callable[[Tensor, int], Tensor]) -> Tensor:
    """Return (B,) the sum of torch-struct over all trees, where `reduce` adds; exact at minus infinity."""
    from torch_struct import LogSemiring, TreeCRF  # its import takes a second

    class Semiring(LogSemiring):  # type: ignore[misc, unused-ignore]
        zero = NEGATIVE_INFINITY

        @staticmethod
        def zero_(x: Tensor) -> Tensor:
            return x.fill_(NEGATIVE_INFINITY)

        @staticmethod
        def sum(x: Tensor, dim: int = -1) -> Tensor:
            return reduce(x, dim)

        @classmethod
        def dot(cls, *factors: Tensor) -> Tensor:
            return reduce(cls.times(*factors), -1)

    # It sets `requires_grad` on its input.
    leaf = potentials if potentials.requires_grad else potentials.clone()
    total: Tensor = TreeCRF.struct(Semiring).sum(leaf, lengths)
    return total
