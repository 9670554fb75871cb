"""Sums over all non-projective trees, without a subtraction.

Elimination. Words are eliminated one by one, last word first, as states are eliminated from a Markov chain by
Grassmann, Taksar and Heyman (1985). With w(h, d) the weight of the arc h -> d and h, d over the root and the
words that are left, eliminating the word k

    pivot_k    = sum_h w(h, k)
    share_k(h) = w(h, k) / pivot_k
    w(h, d)   += share_k(h) * w(k, d)            the paths h -> k -> d become part of the arc h -> d

gives Z = prod_k pivot_k, the sum over all trees (Markov chain tree theorem). All terms are sums, products and
quotients of non-negative numbers, so Z keeps its relative accuracy, where a determinant suffers from
cancellation. The computation runs on plain numbers first and is repeated on logarithms, which do not
underflow, for sentences with a product close to the smallest float.

Single root. Multiply every root arc by a factor e: trees with one root arc are the terms of first order in e.
The leading term of a sum, product or quotient of non-negative numbers is that of their leading terms, so
only these are computed. A word with a head among the words left has a pivot of order 0, which excludes its
root arc. A word without one must be the root word: its pivot is its root arc, of order 1; from then on the
arcs that the root inherits are of order 0, and all other root arcs are of higher order and vanish. `rooted`
is true for a sentence once this has happened; if several roots are allowed, it is true from the start.

Marginals. Walk from a word to a head, drawn in proportion to the weights, to a head of that, and so on. With
escape_d(h) the probability that the walk from h reaches the root without visiting d, and escape_d(root) = 1:

    p(h -> d)   = w(h, d) * escape_d(h) / sum_h' w(h', d) * escape_d(h')          (Wilson 1996)
    escape_d(k) = share_k(root) + sum_h share_k(h) * escape_d(h)                  d, h left after k

The second line requires that d is not eliminated before k, so the words are split in halves and each half is
eliminated once, recursively, for the other half: O(n^3) in all. An arc that is in no tree gets exactly 0. In
the end every word has been the last one once, and its pivots give Z again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from hf_xst.numerics import NEGATIVE_INFINITY, smallest_safe, with_gradient, zero_if_infinite


class _Arithmetic:
    """Operations on tensors of non-negative numbers that represent themselves.

    An algorithm that only adds, multiplies and divides runs on these and on logarithms. Plain numbers are
    faster, and as exact as logarithms unless some product underflows; `least` detects that.
    """

    zero, one = 0.0, 1.0

    def from_logs(self, logs: Tensor) -> Tensor:
        """Return a new tensor that represents the numbers with these logarithms."""
        return logs.exp()

    def log(self, x: Tensor) -> Tensor:
        return x.log()

    def plain(self, x: Tensor) -> Tensor:
        return x

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y

    def multiply(self, x: Tensor, y: Tensor) -> Tensor:
        return x * y

    def divide(self, x: Tensor, y: Tensor) -> Tensor:
        # 0 / 0 is 0.
        return x / y.masked_fill(y == 0, 1)

    def sum(self, x: Tensor, dim: int) -> Tensor:
        return x.sum(dim)

    def add_outer(self, x: Tensor, rows: Tensor, columns: Tensor) -> None:
        """Add the outer product of rows (B, H) and columns (B, D) to x (B, H, D), in place."""
        x.addcmul_(rows.unsqueeze(2), columns.unsqueeze(1))

    def weigh(self, x: Tensor, weights: Tensor) -> Tensor:
        """Return sum_h x[b, d, h] * weights[b, h] for x (B, D, H) and weights (B, H): (B, D)."""
        return (x @ weights.unsqueeze(2)).squeeze(2)

    def least(self, x: Tensor) -> Tensor:
        """Return (B,) the least positive number of each sentence of x (B, ...), at most 1.

        If the product of the least numbers of x and y does not underflow, no product of their entries does.
        """
        return x.masked_fill(x == 0, 1).flatten(1).amin(1).clamp(max=1)


class _Logarithms(_Arithmetic):
    """Numbers represented by their logarithms, which do not underflow at any scale."""

    zero, one = NEGATIVE_INFINITY, 0.0

    def from_logs(self, logs: Tensor) -> Tensor:
        return logs.clone()

    def log(self, x: Tensor) -> Tensor:
        return x

    def plain(self, x: Tensor) -> Tensor:
        return x.exp()

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.logaddexp(x, y)

    def multiply(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y

    def divide(self, x: Tensor, y: Tensor) -> Tensor:
        return x - zero_if_infinite(y)

    def sum(self, x: Tensor, dim: int) -> Tensor:
        return torch.logsumexp(x, dim)

    def add_outer(self, x: Tensor, rows: Tensor, columns: Tensor) -> None:
        torch.logaddexp(x, rows.unsqueeze(2) + columns.unsqueeze(1), out=x)

    def weigh(self, x: Tensor, weights: Tensor) -> Tensor:
        return torch.logsumexp(x + weights.unsqueeze(1), 2)

    def least(self, x: Tensor) -> Tensor:
        return x.new_ones(x.shape[:1])


PLAIN_NUMBERS, LOGARITHMS = _Arithmetic(), _Logarithms()

Compute = Callable[[Tensor, Tensor, _Arithmetic], tuple[Tensor, ...]]
"""From log weights, `rooted` and arithmetic to results and, last, bool (B,) whether they are accurate."""


class _Eliminated(NamedTuple):
    """The result of an elimination."""

    weights: Tensor  # (B, kept+1, kept+1) weights among the root and the words that are left
    rooted: Tensor  # bool (B,)
    log_pivots: Tensor  # (B,) log of the product of all pivots
    steps: list[tuple[Tensor, Tensor]]  # for each word k: share_k(h), (B, k), and then `rooted`, bool (B,)
    safe: Tensor  # bool (B,) no product underflowed


def _eliminate(weights: Tensor, rooted: Tensor, kept: int, numbers: _Arithmetic) -> _Eliminated:
    """Eliminate all words but the first `kept`, last word first.

    Args:
        weights: (B, m+1, m+1) weights, head first; index 0 is the root. Overwritten.
        rooted: bool (B,).
        kept: number of words to keep.
        numbers: representation of the weights.
    """
    log_pivots = weights.new_zeros(weights.shape[0])
    safe, limit = torch.ones_like(rooted), smallest_safe(weights.dtype)
    steps: list[tuple[Tensor, Tensor]] = []
    for k in range(weights.shape[1] - 1, kept, -1):
        into, out_of = weights[:, :k, k], weights[:, k, :k]  # w(h, k) and w(k, d): (B, k) each
        from_words = numbers.sum(into[:, 1:], 1)  # (B,)
        # Without a head among the words left, k must be the root word (unless there is one already).
        is_root = ~rooted & (from_words == numbers.zero)
        rooted = rooted | is_root
        # pivot_k = sum_h w(h, k), where the root arc counts only once the sentence is rooted: (B,)
        pivot = numbers.add(from_words, into[:, 0].masked_fill(~rooted, numbers.zero))
        # share_k(h) = w(h, k) / pivot_k: (B, k)
        shares = numbers.divide(into, pivot.unsqueeze(1))
        safe &= numbers.least(shares) * numbers.least(out_of) >= limit
        left = weights[:, :k, :k]
        # If k is the root word, all other root arcs vanish; the root inherits k's arcs in the next line.
        left[:, 0].masked_fill_(is_root.unsqueeze(1), numbers.zero)
        # w(h, d) += share_k(h) * w(k, d): (B, k, k)
        numbers.add_outer(left, shares, out_of)
        # log Z = sum_k log pivot_k: (B,)
        log_pivots += numbers.log(pivot)
        steps.append((shares, rooted))
    return _Eliminated(weights[:, : kept + 1, : kept + 1], rooted, log_pivots, steps, safe)


def _with_idle_word(weights: Tensor, numbers: _Arithmetic) -> Tensor:
    """Append a word with one possible head, word 1, and no dependents: no sum changes."""
    wider = torch.nn.functional.pad(weights, (0, 1, 0, 1), value=numbers.zero)
    wider[:, 1, -1] = numbers.one
    return wider


class _Escapes(NamedTuple):
    """Escape probabilities of all pairs of words."""

    chances: Tensor  # (B, m, m): entry [d, h] is escape_d(h)
    rooted: Tensor  # bool (B, m): whether the sentence was rooted when only d was left
    log_pivots: Tensor  # (B,) log of the product of all pivots, with word 1 as the last
    safe: Tensor  # bool (B,): no product underflowed


def _escapes(weights: Tensor, rooted: Tensor, numbers: _Arithmetic) -> _Escapes:
    """Return all escape probabilities; arguments as for `_eliminate`, but the weights are not changed."""
    m = weights.shape[1] - 1
    if m == 1:  # the walk from d to d: escape_d(d) = 0
        nowhere = torch.full_like(weights[:, 1:, 1:], numbers.zero)
        return _Escapes(nowhere, rooted.unsqueeze(1), numbers.log(weights[:, 0, 1]), torch.ones_like(rooted))
    if m % 2:  # the halves must be of equal size
        even = _escapes(_with_idle_word(weights, numbers), rooted, numbers)
        return even._replace(chances=even.chances[:, :m, :m], rooted=even.rooted[:, :m])
    # As twice as many sentences, words in order and reversed: the first keep the first half of the words, the
    # second the second half: (2B, m+1, m+1), then (2B, m/2+1, m/2+1)
    backwards = -torch.arange(m + 1, device=weights.device) % (m + 1)  # 0, m, m-1, .., 1
    both = torch.cat([weights, weights[:, backwards[:, None], backwards]])
    left = _eliminate(both, rooted.repeat(2), m // 2, numbers)
    # escape_d(h) for d and h among the words left: (2B, m/2, m/2)
    chances, rooted_at_last, log_pivots, safe = _escapes(left.weights, left.rooted, numbers)
    safe, limit, least = safe & left.safe, smallest_safe(weights.dtype), numbers.least(chances)
    # The eliminated words k in the order of their indices, m/2+1 .. m, each from the words before it.
    for shares, rooted_here in reversed(left.steps):
        safe &= least * numbers.least(shares) >= limit
        # sum_h share_k(h) * escape_d(h): (2B, m/2)
        from_words = numbers.weigh(chances, shares[:, 1:])
        # share_k(root); of higher order, so 0, if the sentence became rooted only after k: (2B, m/2)
        too_early = rooted_at_last & ~rooted_here.unsqueeze(1)
        from_root = shares[:, :1].expand_as(from_words).masked_fill(too_early, numbers.zero)
        # escape_d(k) for all d, appended as a column: (2B, m/2, k)
        escape = numbers.add(from_words, from_root)
        least = torch.minimum(least, numbers.least(escape))
        chances = torch.cat([chances, escape.unsqueeze(2)], 2)
    # Reverse the second half back, and stack the rows d: (B, m, m)
    first, second = chances.chunk(2)
    first_rooted, second_rooted = rooted_at_last.chunk(2)
    return _Escapes(
        torch.cat([first, second.flip(1, 2)], 1),
        torch.cat([first_rooted, second_rooted.flip(1)], 1),
        (left.log_pivots + log_pivots).chunk(2)[0],
        torch.stack(safe.chunk(2)).all(0),
    )


def _log_pivots(logs: Tensor, rooted: Tensor, numbers: _Arithmetic) -> tuple[Tensor, ...]:
    """Compute (B,) the log of the product of all pivots."""
    eliminated = _eliminate(numbers.from_logs(logs), rooted, 0, numbers)
    return eliminated.log_pivots, eliminated.safe


def _marginals(logs: Tensor, rooted: Tensor, numbers: _Arithmetic) -> tuple[Tensor, ...]:
    """Compute (B, N+1, N+1) arc probabilities, 0 where d = 0, and (B,) the log of the pivots' product."""
    weights = numbers.from_logs(logs)
    escapes = _escapes(weights, rooted, numbers)
    # A root arc to d is of higher order, so 0, if the sentence was rooted before only d was left: (B, 1, N)
    too_early = escapes.rooted & ~rooted.unsqueeze(1)
    from_root = weights[:, :1, 1:].masked_fill(too_early.unsqueeze(1), numbers.zero)
    chances = escapes.chances.transpose(1, 2)
    # w(h, d) * escape_d(h), with escape_d(root) = 1: (B, N+1, N)
    joint = torch.cat([from_root, numbers.multiply(weights[:, 1:, 1:], chances)], 1)
    # p(h -> d), normalised over h: (B, N+1, N)
    shares = numbers.divide(joint, numbers.sum(joint, 1).unsqueeze(1))
    kept = numbers.least(weights) * numbers.least(chances) >= smallest_safe(logs.dtype)
    marginals = torch.nn.functional.pad(numbers.plain(shares), (1, 0))
    return marginals, escapes.log_pivots, escapes.safe & kept


def _fast_where_safe(compute: Compute, logs: Tensor, single_root: bool) -> list[Tensor]:
    """Compute on plain numbers, and again on logarithms for sentences whose numbers got too small."""
    rooted = torch.full(logs.shape[:1], not single_root, device=logs.device)
    *results, safe = compute(logs, rooted, PLAIN_NUMBERS)
    too_small = (logs > NEGATIVE_INFINITY) & (logs < math.log(smallest_safe(logs.dtype)))
    again = ~safe | too_small.flatten(1).any(1)
    if bool(again.any()):
        for result, accurate in zip(results, compute(logs[again], rooted[again], LOGARITHMS), strict=False):
            result[again] = accurate
    return results


def tree_marginals(arcs: Tensor, single_root: bool) -> tuple[Tensor, Tensor]:
    """Return the probability of every arc and the log partition; arguments as for `tree_log_partition`.

    Probabilities of a sentence without any tree are meaningless.

    Returns:
        (B, N+1, N+1), 0 where d = 0, and (B,), -inf if there is no tree.
    """
    marginals, log_partition = _fast_where_safe(_marginals, arcs, single_root)
    return marginals, log_partition


def tree_log_partition(arcs: Tensor, single_root: bool) -> Tensor:
    """Return the log of the sum over all trees of the product of their arcs' weights; once differentiable.

    Args:
        arcs: (B, N+1, N+1) log weights in the working precision, head first, index 0 the root; -inf where
            h = d, where d = 0 and for every excluded arc. The best head of each word should be near 0, which
            keeps digits. Words beyond a sentence's end are attached to word 1 with log weight 0 and have no
            dependents.
        single_root: whether trees have exactly one root arc.

    Returns:
        (B,), -inf if there is no tree; its gradient is then finite, but meaningless.
    """
    if not (torch.is_grad_enabled() and arcs.requires_grad):
        return _fast_where_safe(_log_pivots, arcs, single_root)[0]
    marginals, log_partition = tree_marginals(arcs.detach(), single_root)
    return with_gradient(arcs, log_partition, marginals)
