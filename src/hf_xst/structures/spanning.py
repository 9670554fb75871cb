"""The best non-projective tree: a maximum spanning arborescence, for a whole batch at a time.

Every word first takes its best head. Only sentences where that is no tree go on to the contraction of cycles
(Chu and Liu 1965, Edmonds 1967): one cycle of every open sentence per round, all sentences together, without
recursion.

One root. Of two trees the one with fewer roots is the better, whatever it scores; among equals the score
decides (Stanojevic and Cohen 2021 subtract a large constant from root arcs to this end). Here no constant is
subtracted, which would cost digits: an arc weighs an ordered pair (minus its number of root arcs, score). It
is kept as a complex number, as NumPy orders these by the real and then by the imaginary part. The contraction
only adds, subtracts and compares.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Weights = NDArray[np.float64] | NDArray[np.complex128]

ABSENT = float("-inf")


class _Contraction(NamedTuple):
    """What one round did to the K sentences that it contracted a cycle of; M = nodes."""

    sentences: Ints  # (K,)
    cycle: Ints  # (K, longest) nodes, each the head of the one before; the first stands for all, and fills up
    heads: Ints  # (K, longest) their heads
    entered: Ints  # (K, M) the node of the cycle at which an arc from h enters
    left: Ints  # (K, M) the node of the cycle from which an arc to d leaves


def best_heads(arcs: NDArray[np.float64], single_root: bool) -> Ints:
    """Return the heads of the best tree of every sentence; among equals, lower heads come first.

    Args:
        arcs: (B, N+1, N+1) scores, head first, index 0 the root; -inf for arcs that are not allowed, among
            them those with d = 0 or h = d.
        single_root: whether trees have exactly one root arc.

    Returns:
        (B, N), -1 throughout where there is no tree.
    """
    heads: Ints = arcs.argmax(1)
    reachable = (arcs.max(1)[:, 1:] > ABSENT).all(1)
    is_tree = (_walk(heads)[:, 1:] == 0).all(1)
    if single_root:
        is_tree &= (heads[:, 1:] == 0).sum(1) == 1
    heads[~reachable] = -1
    open_ones = np.flatnonzero(reachable & ~is_tree)
    if len(open_ones):
        found = _contract_and_expand(_weights(arcs[open_ones], single_root))
        if single_root:  # the fewest roots that are possible may be several
            found[(found[:, 1:] == 0).sum(1) > 1] = -1
        heads[open_ones] = found
    return heads[:, 1:]


def _weights(arcs: NDArray[np.float64], single_root: bool) -> Weights:
    """Return a copy of the arcs as they compare: (minus root arcs, score) if roots count, else score."""
    if not single_root:
        return arcs.copy()
    present = arcs > ABSENT
    pairs = np.empty(arcs.shape, dtype=np.complex128)
    pairs.real = np.where(present, 0, ABSENT)
    pairs.real[:, 0] -= 1
    pairs.imag = np.where(present, arcs, 0)
    return pairs


def _walk(heads: Ints) -> Ints:
    """Return where every node is after M steps from head to head: the root, or a cycle; (B, M) to (B, M)."""
    heads = heads.copy()
    heads[:, 0] = 0
    for _ in range(heads.shape[1].bit_length()):
        heads = np.take_along_axis(heads, heads, 1)
    return heads


def _contract_and_expand(weights: Weights) -> Ints:
    """Return (K, M) heads, the first of no meaning; -1 where there is no tree. Overwrites the weights."""
    heads: Ints = weights.argmax(1)
    heads[:, 0] = 0
    failed = np.zeros(len(heads), dtype=bool)
    rounds: list[_Contraction] = []
    while True:
        ends = _walk(heads)
        sentences = np.flatnonzero((ends != 0).any(1) & ~failed)
        if not len(sentences):
            break
        ends = ends[sentences]
        starts = np.take_along_axis(ends, (ends != 0).argmax(1)[:, None], 1)[:, 0]
        rounds.append(_contract(weights, heads, sentences, starts))
        failed[sentences] |= weights[sentences, :, starts].real.max(1) == ABSENT
    for contraction in reversed(rounds):
        _expand(heads, contraction)
    heads[failed] = -1
    return heads


def _contract(weights: Weights, heads: Ints, sentences: Ints, starts: Ints) -> _Contraction:
    """Let one node of a cycle stand for all of it, in place; its other nodes hang idle from the root."""
    rows = np.arange(len(sentences))
    cycle = _cycle(heads[sentences], starts)
    cycle_heads = heads[sentences[:, None], cycle]
    into = weights[sentences[:, None], :, cycle]  # (K, longest, M): from h into each node of the cycle
    into = into - weights[sentences[:, None], cycle_heads, cycle][:, :, None]
    out_of = weights[sentences[:, None], cycle, :]  # (K, longest, M): from each node of the cycle to d
    enter, leave = into.argmax(1), out_of.argmax(1)
    inside = np.zeros(heads[sentences].shape, dtype=bool)
    inside[rows[:, None], cycle] = True

    weights[sentences[:, None], :, cycle] = ABSENT
    weights[sentences[:, None], cycle, :] = ABSENT
    best_into = np.take_along_axis(into, enter[:, None], 1)[:, 0]
    best_out_of = np.take_along_axis(out_of, leave[:, None], 1)[:, 0]
    weights[sentences, :, starts] = np.where(inside, ABSENT, best_into)
    weights[sentences, starts, :] = np.where(inside, ABSENT, best_out_of)

    current = heads[sentences]
    hangs_from_cycle = inside[rows[:, None], current]
    current = np.where(hangs_from_cycle, starts[:, None], current)
    current[inside] = 0
    current[rows, starts] = weights[sentences, :, starts].argmax(1)
    heads[sentences] = current
    return _Contraction(
        sentences,
        cycle,
        cycle_heads,
        np.take_along_axis(cycle, enter, 1),
        np.take_along_axis(cycle, leave, 1),
    )


def _cycle(heads: Ints, starts: Ints) -> Ints:
    """Return (K, longest) the nodes met on the way from `starts` to itself, filled up with the start."""
    nodes, rows = [starts], np.arange(len(starts))
    closed = np.zeros(len(starts), dtype=bool)
    while True:
        ahead = heads[rows, nodes[-1]]
        closed |= ahead == starts
        if closed.all():
            return np.stack(nodes, 1)
        nodes.append(np.where(closed, starts, ahead))


def _expand(heads: Ints, contraction: _Contraction) -> None:
    """Undo a contraction, in place: the arc into the cycle breaks it at the node where it enters."""
    sentences, cycle, cycle_heads, entered, left = contraction
    rows = np.arange(len(sentences))
    starts = cycle[:, 0]
    current = heads[sentences]
    outside = current[rows, starts]
    current = np.where(current == starts[:, None], left, current)
    current[rows[:, None], cycle] = cycle_heads
    current[rows, entered[rows, outside]] = outside
    heads[sentences] = current
