"""Sums and maxima over projective trees (Eisner 1996), all spans of one width at a time.

A complete span has its head at one end, with all of the head's descendants up to the other end; an incomplete
one is an arc between its ends. Spans are kept in tables by their left end, and in others by their right end,
with the width as the last axis, so that all ways to split all spans of one width are two slices. The same
recurrences give the sum and the maximum; the gradient of the maximum by an arc's score is 1 where the arc is
in the best tree, else 0.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from hf_xst.numerics import NEGATIVE_INFINITY, logsumexp

Reduction = Callable[[Tensor, int], Tensor]


def _maximum(x: Tensor, dim: int) -> Tensor:
    return x.max(dim).values


class _Table:
    """Spans of all widths so far, found by either end; entries of spans beyond the ends are never read."""

    def __init__(self, first: Tensor) -> None:
        self.by_left = first.unsqueeze(2)  # (B, M, widths): [i, w] spans i to i+w
        self.by_right = first.unsqueeze(2)  # (B, M, widths): [j, w] spans j-w to j

    def append(self, spans: Tensor) -> None:
        """Add the (B, M-w) spans of the next width w, in the order of their left ends."""
        missing = self.by_left.shape[1] - spans.shape[1]
        left = torch.nn.functional.pad(spans, (0, missing)).unsqueeze(2)
        right = torch.nn.functional.pad(spans, (missing, 0)).unsqueeze(2)
        self.by_left = torch.cat([self.by_left, left], 2)
        self.by_right = torch.cat([self.by_right, right], 2)


def _splits(left: Tensor, right: Tensor, width: int) -> Tensor:
    """Join spans that start at i with spans that end at i + width, in all ways: (B, M-width, ways)."""
    count = left.shape[1] - width
    return left[:, :count] + right[:, width:].flip(2)


def _chart(arcs: Tensor, single_root: bool, reduce: Reduction) -> Tensor:
    """Return (B, N): for each n, the sum (or maximum) over the trees of the words 1 to n."""
    batch, nodes, _ = arcs.shape
    point = arcs.new_zeros(batch, nodes)
    rightward, leftward = _Table(point), _Table(point)  # complete spans, headed by their left, right end
    to_right, to_left = _Table(point), _Table(point)  # incomplete spans
    barred = arcs.new_full((batch, 1), NEGATIVE_INFINITY)
    totals = []
    for width in range(1, nodes):
        inner = reduce(_splits(rightward.by_left, leftward.by_right, width), 2)
        to_right.append(inner + arcs.diagonal(width, 1, 2))
        to_left.append(inner + arcs.diagonal(-width, 1, 2))
        right = reduce(_splits(to_right.by_left[:, :, 1:], rightward.by_right, width), 2)
        left = reduce(_splits(leftward.by_left, to_left.by_right[:, :, 1:], width), 2)
        totals.append(right[:, 0])
        if single_root:  # a root that has a dependent must not take another one
            right = torch.cat([barred, right[:, 1:]], 1)
        rightward.append(right)
        leftward.append(left)
    return torch.stack(totals, 1)


def _total(arcs: Tensor, lengths: Tensor, single_root: bool, reduce: Reduction) -> Tensor:
    return _chart(arcs, single_root, reduce).gather(1, lengths.unsqueeze(1) - 1).squeeze(1)


def projective_log_partition(arcs: Tensor, lengths: Tensor, single_root: bool) -> Tensor:
    """Return the log of the sum over all projective trees of the product of their arcs' weights.

    Args:
        arcs: (B, N+1, N+1) log weights, head first, index 0 the root; -inf for arcs that are not allowed,
            among them those with d = 0 or h = d and all beyond a sentence's end.
        lengths: (B,) words of each sentence.
        single_root: whether trees have exactly one root arc.

    Returns:
        (B,), -inf where there is no tree.
    """
    return _total(arcs, lengths, single_root, logsumexp)


def best_projective_heads(arcs: Tensor, lengths: Tensor, single_root: bool) -> Tensor:
    """Return (B, N) heads of the best projective tree, -1 where there is none; arguments as above."""
    with torch.inference_mode(False), torch.enable_grad():
        leaf = arcs.clone().detach().requires_grad_()
        best = _total(leaf, lengths.clone(), single_root, _maximum)
        (chosen,) = torch.autograd.grad(best.sum(), leaf)
    impossible = (best == NEGATIVE_INFINITY).unsqueeze(1)
    return chosen[:, :, 1:].argmax(1).masked_fill(impossible, -1)
