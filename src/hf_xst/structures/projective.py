"""Sums and maxima over projective trees (Eisner 1996), for all spans of one width at a time.

A complete span [i, j] contains its head at one end and all descendants of the head up to the other end; an
incomplete span is an arc between its ends with everything below it. With s(h, d) the log weight of an arc and
"sum" either logsumexp or max, for i < j:

    incomplete:  I_right(i, j) = s(i, j) + sum_k [C_right(i, k) + C_left(k+1, j)]     i <= k < j
                 I_left(i, j)  = s(j, i) + sum_k [C_right(i, k) + C_left(k+1, j)]     i <= k < j
    complete:    C_right(i, j) = sum_k [I_right(i, k) + C_right(k, j)]                i < k <= j
                 C_left(i, j)  = sum_k [C_left(i, k) + I_left(k, j)]                  i <= k < j

with C(i, i) = 0. The total of the words 1..n is C_right(0, n). Spans are tabulated by their left end and by
their right end, with the width as the last axis, so that all splits of all spans of one width are two slices.
The gradient of the maximum with respect to an arc's score is 1 if the arc is in the best tree, else 0.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from hf_xst.numerics import NEGATIVE_INFINITY, logsumexp, maximum

Reduction = Callable[[Tensor, int], Tensor]


class _Table:
    """Values of all spans up to the present width, by either end; entries out of range are never read."""

    def __init__(self, first: Tensor) -> None:
        self.by_left = first.unsqueeze(2)  # (B, M, widths): [i, w] spans i to i+w
        self.by_right = first.unsqueeze(2)  # (B, M, widths): [j, w] spans j-w to j

    def append(self, spans: Tensor) -> None:
        """Append the (B, M-w) spans of the next width w, in the order of their left ends."""
        missing = self.by_left.shape[1] - spans.shape[1]
        left = torch.nn.functional.pad(spans, (0, missing)).unsqueeze(2)
        right = torch.nn.functional.pad(spans, (missing, 0)).unsqueeze(2)
        self.by_left = torch.cat([self.by_left, left], 2)
        self.by_right = torch.cat([self.by_right, right], 2)


def _splits(left: Tensor, right: Tensor, width: int) -> Tensor:
    """Add spans that start at i to spans that end at i + width, for all splits: (B, M-width, splits)."""
    count = left.shape[1] - width
    return left[:, :count] + right[:, width:].flip(2)


def _chart(arcs: Tensor, single_root: bool, reduce: Reduction) -> Tensor:
    """Return (B, N), the sum (or maximum) over the trees of the words 1..n for each n; M = N+1 nodes."""
    batch, nodes, _ = arcs.shape
    point = arcs.new_zeros(batch, nodes)
    complete_right, complete_left = _Table(point), _Table(point)
    incomplete_right, incomplete_left = _Table(point), _Table(point)
    impossible = arcs.new_full((batch, 1), NEGATIVE_INFINITY)
    totals = []
    for width in range(1, nodes):
        # inner(i, j) = sum_k [C_right(i, k) + C_left(k+1, j)], j = i + width: (B, M-width)
        inner = reduce(_splits(complete_right.by_left, complete_left.by_right, width), 2)
        # I_right = inner + s(i, j), I_left = inner + s(j, i): (B, M-width) each
        incomplete_right.append(inner + arcs.diagonal(width, 1, 2))
        incomplete_left.append(inner + arcs.diagonal(-width, 1, 2))
        # C_right = sum_k [I_right(i, k) + C_right(k, j)]: (B, M-width); width 0 is no incomplete span
        right = reduce(_splits(incomplete_right.by_left[:, :, 1:], complete_right.by_right, width), 2)
        # C_left = sum_k [C_left(i, k) + I_left(k, j)]: (B, M-width)
        left = reduce(_splits(complete_left.by_left, incomplete_left.by_right[:, :, 1:], width), 2)
        totals.append(right[:, 0])  # C_right(0, width): (B,)
        if single_root:  # no larger span may contain C_right(0, j): it would attach another root word
            right = torch.cat([impossible, right[:, 1:]], 1)
        complete_right.append(right)
        complete_left.append(left)
    return torch.stack(totals, 1)


def _total(arcs: Tensor, lengths: Tensor, single_root: bool, reduce: Reduction) -> Tensor:
    return _chart(arcs, single_root, reduce).gather(1, lengths.unsqueeze(1) - 1).squeeze(1)


def projective_log_partition(arcs: Tensor, lengths: Tensor, single_root: bool) -> Tensor:
    """Return the log of the sum over all projective trees of the product of their arcs' weights.

    Args:
        arcs: (B, N+1, N+1) log weights, head first, index 0 the root; -inf for excluded arcs, which include
            d = 0, h = d and everything beyond a sentence's end.
        lengths: (B,) words of each sentence.
        single_root: whether trees have exactly one root arc.

    Returns:
        (B,), -inf if there is no tree.
    """
    return _total(arcs, lengths, single_root, logsumexp)


def best_projective_heads(arcs: Tensor, lengths: Tensor, single_root: bool) -> Tensor:
    """Return (B, N) heads of the best projective tree, -1 without any tree; arguments as above."""
    with torch.inference_mode(False), torch.enable_grad():
        leaf = arcs.clone().detach().requires_grad_()
        best = _total(leaf, lengths.clone(), single_root, maximum)
        (chosen,) = torch.autograd.grad(best.sum(), leaf)
    impossible = (best == NEGATIVE_INFINITY).unsqueeze(1)
    return chosen[:, :, 1:].argmax(1).masked_fill(impossible, -1)
