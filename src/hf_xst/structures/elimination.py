"""The sum over all non-projective trees, without a subtraction.

Words are eliminated one after the other, last word first, as states are eliminated from a Markov chain by
Grassmann, Taksar and Heyman (1985): a path h -> k -> d through the eliminated word k becomes part of the arc
h -> d. By the Markov-chain tree theorem the product of the pivots (what reaches k from the words left) is the
sum over all trees. Everything is a sum, product or quotient of positive numbers, so it is done on logarithms
and keeps its relative accuracy at every scale, where a determinant cancels.

One root. Give every root arc a factor e: the trees with one root are the terms of first order in e. Sums,
products and quotients of positive numbers are to leading order those of their leading terms, so only leading
terms are kept. A word with a head among the words left has a pivot of order 0, without its root arc. A word
without one must be the root: its pivot is its root arc, of order 1; from there on the arcs that the root
inherits are of order 0, and all other root arcs are of too high an order to count. `rooted` says for each
sentence that this has happened; with several roots allowed it is true from the start.

Marginals. Walk from a word to its head, to that one's head, and so on. The probability of the arc h -> d is
in proportion to its weight times the probability that the walk from h escapes to the root without meeting d
(the last exit from d in Wilson's algorithm, 1996). The escapes from an eliminated word follow from those of
the words left, provided that d is among these; so the words are split in halves and each half is eliminated
once, recursively: O(n^3) in all. An arc that is in no tree gets exactly 0.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from hf_xst.numerics import NEGATIVE_INFINITY, zero_if_infinite


class _Step(NamedTuple):
    """One eliminated word k: (B, k) log shares of what reaches it, (B,) is its sentence rooted by now."""

    shares: Tensor
    rooted: Tensor


class _Eliminated(NamedTuple):
    weights: Tensor  # (B, kept+1, kept+1) log weights among the root and the words that are left
    rooted: Tensor  # bool (B,)
    log_pivots: Tensor  # (B,) their sum
    steps: list[_Step]


def _eliminate(weights: Tensor, rooted: Tensor, kept: int) -> _Eliminated:
    """Eliminate all words but the first `kept`, last word first.

    Args:
        weights: (B, m+1, m+1) log weights, head first; index 0 is the root. Overwritten.
        rooted: bool (B,).
        kept: how many words stay.
    """
    log_pivots = weights.new_zeros(weights.shape[0])
    steps = []
    for k in range(weights.shape[1] - 1, kept, -1):
        into, out_of = weights[:, :k, k], weights[:, k, :k]
        from_words = torch.logsumexp(into[:, 1:], 1)
        is_root = ~rooted & (from_words == NEGATIVE_INFINITY)
        rooted = rooted | is_root
        pivot = torch.logaddexp(from_words, into[:, 0].masked_fill(~rooted, NEGATIVE_INFINITY))
        shares = into - zero_if_infinite(pivot).unsqueeze(1)
        left = weights[:, :k, :k]
        left[:, 0].masked_fill_(is_root.unsqueeze(1), NEGATIVE_INFINITY)
        torch.logaddexp(left, shares.unsqueeze(2) + out_of.unsqueeze(1), out=left)
        log_pivots += pivot
        steps.append(_Step(shares, rooted))
    return _Eliminated(weights[:, : kept + 1, : kept + 1], rooted, log_pivots, steps)


def _with_idle_word(weights: Tensor) -> Tensor:
    """Append a word that hangs from word 1 with weight 1 and heads nothing: no sum changes."""
    wider = torch.nn.functional.pad(weights, (0, 1, 0, 1), value=NEGATIVE_INFINITY)
    wider[:, 1, -1] = 0
    return wider


def _log_escapes(weights: Tensor, rooted: Tensor) -> tuple[Tensor, Tensor]:
    """Return how probably the walk from a word reaches the root before it meets another word.

    Args:
        weights: (B, m+1, m+1) log weights.
        rooted: bool (B,).

    Returns:
        (B, m, m): entry [d, h] is the log probability for the walk from h that must not meet d; and
        bool (B, m): whether the sentence was rooted by the time that d alone was left.
    """
    m = weights.shape[1] - 1
    if m == 1:
        return torch.full_like(weights[:, 1:, 1:], NEGATIVE_INFINITY), rooted.unsqueeze(1)
    if m % 2:
        escapes, rooted_at_last = _log_escapes(_with_idle_word(weights), rooted)
        return escapes[:, :m, :m], rooted_at_last[:, :m]
    backwards = torch.tensor([0, *range(m, 0, -1)], device=weights.device)
    both = torch.cat([weights, weights[:, backwards[:, None], backwards]])
    left, left_rooted, _, steps = _eliminate(both, rooted.repeat(2), m // 2)
    escapes, rooted_at_last = _log_escapes(left, left_rooted)
    for shares, rooted_here in reversed(steps):
        from_words = torch.logsumexp(shares[:, None, 1:] + escapes, 2)
        too_early = rooted_at_last & ~rooted_here.unsqueeze(1)
        from_root = shares[:, :1].expand_as(from_words).masked_fill(too_early, NEGATIVE_INFINITY)
        escapes = torch.cat([escapes, torch.logaddexp(from_words, from_root).unsqueeze(2)], 2)
    first, second = escapes.chunk(2)
    first_rooted, second_rooted = rooted_at_last.chunk(2)
    return torch.cat([first, second.flip(1, 2)], 1), torch.cat([first_rooted, second_rooted.flip(1)], 1)


def tree_marginals(arcs: Tensor, single_root: bool) -> Tensor:
    """Return the probability of every arc, column by column; arguments as for `tree_log_partition`.

    Columns of a sentence that has no tree at all hold no meaningful numbers.

    Returns:
        (B, N+1, N+1), 0 where d = 0.
    """
    rooted = torch.full(arcs.shape[:1], not single_root, device=arcs.device)
    escapes, rooted_at_last = _log_escapes(arcs, rooted)
    too_early = rooted_at_last & ~rooted.unsqueeze(1)
    from_root = arcs[:, :1, 1:].masked_fill(too_early.unsqueeze(1), NEGATIVE_INFINITY)
    joint = torch.cat([from_root, arcs[:, 1:, 1:] + escapes.transpose(1, 2)], 1)
    shares = (joint - zero_if_infinite(torch.logsumexp(joint, 1, keepdim=True))).exp()
    return torch.nn.functional.pad(shares, (1, 0))


class _TreeLogPartition(torch.autograd.Function):
    """Elimination forward, marginals backward."""

    @staticmethod
    def forward(ctx: FunctionCtx, arcs: Tensor, single_root: bool) -> Tensor:
        # Gaps between columns would cost digits: each dependent's best head scores 0 inside.
        shifts = zero_if_infinite(arcs.amax(1))
        weights = arcs - shifts.unsqueeze(1)
        rooted = torch.full(arcs.shape[:1], not single_root, device=arcs.device)
        log_pivots = _eliminate(weights.clone(), rooted, 0).log_pivots
        ctx.save_for_backward(weights)
        ctx.single_root = single_root  # type: ignore[attr-defined]
        return log_pivots + shifts.sum(1)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None]:
        (weights,) = ctx.saved_tensors  # type: ignore[attr-defined]
        marginals = tree_marginals(weights, ctx.single_root)  # type: ignore[attr-defined]
        return marginals * gradient[:, None, None], None


def tree_log_partition(arcs: Tensor, single_root: bool) -> Tensor:
    """Return the log of the sum over all trees of the product of their arcs' weights. Once differentiable.

    Args:
        arcs: (B, N+1, N+1) log weights in the working precision, head first, index 0 the root; -inf where
            h = d, where d = 0 and for every arc that is not allowed. Words beyond a sentence's end hang from
            word 1 with weight 1 (log weight 0) and head nothing.
        single_root: whether trees have exactly one root arc.

    Returns:
        (B,), -inf where there is no tree; its gradient is finite there, but means nothing.
    """
    return _TreeLogPartition.apply(arcs, single_root)  # type: ignore[no-any-return, no-untyped-call]
