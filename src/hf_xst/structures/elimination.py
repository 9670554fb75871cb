"""The sum over all non-projective trees, without a subtraction.

Words are eliminated one after the other, last word first, as states are eliminated from a Markov chain by
Grassmann, Taksar and Heyman (1985): a path h -> k -> d through the eliminated word k becomes part of the arc
h -> d. By the Markov-chain tree theorem the product of the pivots (what reaches k from the words left) is the
sum over all trees. Everything is a sum, product or quotient of positive numbers, so it keeps its relative
accuracy, where a determinant cancels. It is done on plain numbers first, and on logarithms, which fit every
scale, for the sentences in which a product comes near the smallest float.

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

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from hf_xst.numerics import NEGATIVE_INFINITY, smallest_safe, zero_if_infinite
from hf_xst.structures.arithmetic import LOGARITHMS, PLAIN_NUMBERS, Arithmetic

Compute = Callable[[Tensor, Tensor, Arithmetic], tuple[Tensor, Tensor]]


class _Step(NamedTuple):
    """One eliminated word: (B, k) shares of its heads in what reaches it, (B,) its sentence rooted by now."""

    shares: Tensor
    rooted: Tensor


class _Eliminated(NamedTuple):
    weights: Tensor  # (B, kept+1, kept+1) weights among the root and the words that are left
    rooted: Tensor  # bool (B,)
    log_pivots: Tensor  # (B,) the logarithm of their product
    steps: list[_Step]
    safe: Tensor  # bool (B,) no product was lost


def _eliminate(weights: Tensor, rooted: Tensor, kept: int, numbers: Arithmetic) -> _Eliminated:
    """Eliminate all words but the first `kept`, last word first.

    Args:
        weights: (B, m+1, m+1) weights, head first; index 0 is the root. Overwritten.
        rooted: bool (B,).
        kept: how many words stay.
        numbers: how the weights are kept.
    """
    log_pivots = weights.new_zeros(weights.shape[0])
    safe, limit = torch.ones_like(rooted), smallest_safe(weights.dtype)
    steps = []
    for k in range(weights.shape[1] - 1, kept, -1):
        into, out_of = weights[:, :k, k], weights[:, k, :k]
        from_words = numbers.sum(into[:, 1:], 1)
        is_root = ~rooted & (from_words == numbers.zero)
        rooted = rooted | is_root
        pivot = numbers.add(from_words, into[:, 0].masked_fill(~rooted, numbers.zero))
        shares = numbers.divide(into, pivot.unsqueeze(1))
        safe &= numbers.least(shares) * numbers.least(out_of) >= limit
        left = weights[:, :k, :k]
        left[:, 0].masked_fill_(is_root.unsqueeze(1), numbers.zero)
        numbers.add_outer(left, shares, out_of)
        log_pivots += numbers.log(pivot)
        steps.append(_Step(shares, rooted))
    return _Eliminated(weights[:, : kept + 1, : kept + 1], rooted, log_pivots, steps, safe)


def _with_idle_word(weights: Tensor, numbers: Arithmetic) -> Tensor:
    """Append a word that hangs from word 1 with weight 1 and heads nothing: no sum changes."""
    wider = torch.nn.functional.pad(weights, (0, 1, 0, 1), value=numbers.zero)
    wider[:, 1, -1] = numbers.one
    return wider


class _Escapes(NamedTuple):
    """How probably the walk from a word reaches the root before it meets another word."""

    chances: Tensor  # (B, m, m): entry [d, h] is for the walk from h that must not meet d
    rooted: Tensor  # bool (B, m): whether the sentence was rooted by the time that d alone was left
    safe: Tensor  # bool (B,): no product was lost


def _escapes(weights: Tensor, rooted: Tensor, numbers: Arithmetic) -> _Escapes:
    """Find all escapes; arguments as for `_eliminate`, but the weights stay."""
    m = weights.shape[1] - 1
    if m == 1:
        nowhere = torch.full_like(weights[:, 1:, 1:], numbers.zero)
        return _Escapes(nowhere, rooted.unsqueeze(1), torch.ones_like(rooted))
    if m % 2:
        chances, rooted_at_last, safe = _escapes(_with_idle_word(weights, numbers), rooted, numbers)
        return _Escapes(chances[:, :m, :m], rooted_at_last[:, :m], safe)
    backwards = torch.tensor([0, *range(m, 0, -1)], device=weights.device)
    both = torch.cat([weights, weights[:, backwards[:, None], backwards]])
    left = _eliminate(both, rooted.repeat(2), m // 2, numbers)
    chances, rooted_at_last, safe = _escapes(left.weights, left.rooted, numbers)
    safe, limit, least = safe & left.safe, smallest_safe(weights.dtype), numbers.least(chances)
    for shares, rooted_here in reversed(left.steps):
        safe &= least * numbers.least(shares) >= limit
        from_words = numbers.weigh(chances, shares[:, 1:])
        too_early = rooted_at_last & ~rooted_here.unsqueeze(1)
        from_root = shares[:, :1].expand_as(from_words).masked_fill(too_early, numbers.zero)
        own = numbers.add(from_words, from_root)
        least = torch.minimum(least, numbers.least(own))
        chances = torch.cat([chances, own.unsqueeze(2)], 2)
    first, second = chances.chunk(2)
    first_rooted, second_rooted = rooted_at_last.chunk(2)
    return _Escapes(
        torch.cat([first, second.flip(1, 2)], 1),
        torch.cat([first_rooted, second_rooted.flip(1)], 1),
        torch.stack(safe.chunk(2)).all(0),
    )


def _log_pivots(logs: Tensor, rooted: Tensor, numbers: Arithmetic) -> tuple[Tensor, Tensor]:
    """Return (B,) the logarithm of the product of all pivots, and where it is safe."""
    eliminated = _eliminate(numbers.from_logs(logs), rooted, 0, numbers)
    return eliminated.log_pivots, eliminated.safe


def _marginals(logs: Tensor, rooted: Tensor, numbers: Arithmetic) -> tuple[Tensor, Tensor]:
    """Return (B, N+1, N+1) the probability of every arc, 0 where d = 0, and where they are safe."""
    weights = numbers.from_logs(logs)
    escapes = _escapes(weights, rooted, numbers)
    too_early = escapes.rooted & ~rooted.unsqueeze(1)
    from_root = weights[:, :1, 1:].masked_fill(too_early.unsqueeze(1), numbers.zero)
    chances = escapes.chances.transpose(1, 2)
    joint = torch.cat([from_root, numbers.multiply(weights[:, 1:, 1:], chances)], 1)
    shares = numbers.divide(joint, numbers.sum(joint, 1).unsqueeze(1))
    kept = numbers.least(weights) * numbers.least(chances) >= smallest_safe(logs.dtype)
    return torch.nn.functional.pad(numbers.plain(shares), (1, 0)), escapes.safe & kept


def _fast_where_safe(compute: Compute, logs: Tensor, single_root: bool) -> Tensor:
    """Compute on plain numbers, and again on logarithms for the sentences whose numbers got too small."""
    rooted = torch.full(logs.shape[:1], not single_root, device=logs.device)
    found, safe = compute(logs, rooted, PLAIN_NUMBERS)
    too_small = (logs > NEGATIVE_INFINITY) & (logs < math.log(smallest_safe(logs.dtype)))
    again = ~safe | too_small.flatten(1).any(1)
    if bool(again.any()):
        found[again] = compute(logs[again], rooted[again], LOGARITHMS)[0]
    return found


def tree_marginals(arcs: Tensor, single_root: bool) -> Tensor:
    """Return the probability of every arc, column by column; arguments as for `tree_log_partition`.

    Columns of a sentence that has no tree at all hold no meaningful numbers.

    Returns:
        (B, N+1, N+1), 0 where d = 0.
    """
    return _fast_where_safe(_marginals, arcs, single_root)


class _TreeLogPartition(torch.autograd.Function):
    """Elimination forward, marginals backward."""

    @staticmethod
    def forward(ctx: FunctionCtx, arcs: Tensor, single_root: bool) -> Tensor:
        # Gaps between columns would cost digits: each dependent's best head scores 0 inside.
        shifts = zero_if_infinite(arcs.amax(1))
        weights = arcs - shifts.unsqueeze(1)
        log_pivots = _fast_where_safe(_log_pivots, weights, single_root)
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
