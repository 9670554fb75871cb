"""The best non-projective tree: a maximum spanning arborescence, for a batch of sentences at a time.

Every word first takes its best head. If the result is not a tree, cycles are contracted (Chu and Liu 1965,
Edmonds 1967): one cycle of every unfinished sentence per round, all sentences together, without recursion. A
cycle c of nodes v with heads pi(v) becomes one node with the weights

    w'(h, c) = max_v [w(h, v) - w(pi(v), v)]        enter the cycle at v, which replaces the arc into v
    w'(c, d) = max_v w(v, d)                        leave the cycle from v

Single root. Trees with fewer root arcs are better, whatever they score; the score decides among trees with
equally many (Stanojevic and Cohen 2021 subtract a large constant from root arcs). To keep all digits, no
constant is subtracted: the weight of an arc is the ordered pair (minus its number of root arcs, score),
stored as a complex number, because NumPy orders these by the real and then by the imaginary part. The
contraction only adds, subtracts and compares.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Weights = NDArray[np.float64] | NDArray[np.complex128]

ABSENT = float("-inf")


class _Contraction(NamedTuple):
    """One round: a cycle contracted in each of K sentences of M nodes."""

    sentences: Ints  # (K,)
    cycle: Ints  # (K, longest) nodes, each the head of the one before; the first is the new node and pads
    heads: Ints  # (K, longest) their heads
    entered: Ints  # (K, M) the node v at which an arc from h enters the cycle
    left: Ints  # (K, M) the node v from which an arc to d leaves the cycle


def best_heads(arcs: NDArray[np.float64], single_root: bool) -> Ints:
    """Return the heads of the best tree of every sentence; ties go to lower heads.

    Args:
        arcs: (B, N+1, N+1) scores, head first, index 0 the root; -inf for excluded arcs, which include d = 0
            and h = d.
        single_root: whether trees have exactly one root arc.

    Returns:
        (B, N), -1 if there is no tree.
    """
    heads: Ints = arcs.argmax(1)
    reachable = (arcs.max(1)[:, 1:] > ABSENT).all(1)
    is_tree = (_walk(heads)[:, 1:] == 0).all(1)
    if single_root:
        is_tree &= (heads[:, 1:] == 0).sum(1) == 1
    heads[~reachable] = -1
    unfinished = np.flatnonzero(reachable & ~is_tree)
    if len(unfinished):
        best = _contract_and_expand(_weights(arcs[unfinished], single_root))
        if single_root:  # the least possible number of root arcs may be above one
            best[(best[:, 1:] == 0).sum(1) > 1] = -1
        heads[unfinished] = best
    return heads[:, 1:]


def _weights(arcs: NDArray[np.float64], single_root: bool) -> Weights:
    """Return comparable copies of the arcs: (minus root arcs, score) for a single root, else the scores."""
    if not single_root:
        return arcs.copy()
    present = arcs > ABSENT
    pairs = np.empty(arcs.shape, dtype=np.complex128)
    pairs.real = np.where(present, 0, ABSENT)
    pairs.real[:, 0] -= 1
    pairs.imag = np.where(present, arcs, 0)
    return pairs


def _walk(heads: Ints) -> Ints:
    """Return the node that is reached from each node after at least M steps to heads: (B, M) from (B, M).

    It is the root, or a node of a cycle.
    """
    heads = heads.copy()
    heads[:, 0] = 0
    # Pointer doubling: after i rounds, heads[v] is 2^i steps from v.
    for _ in range(heads.shape[1].bit_length()):
        heads = np.take_along_axis(heads, heads, 1)
    return heads


def _contract_and_expand(weights: Weights) -> Ints:
    """Return (K, M) heads, column 0 meaningless, -1 if there is no tree. Overwrites the weights."""
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
    """Contract a cycle to one of its nodes, in place; its other nodes are attached to the root meanwhile."""
    rows = np.arange(len(sentences))
    cycle = _cycle(heads[sentences], starts)
    cycle_heads = heads[sentences[:, None], cycle]
    # into[v, h] = w(h, v) - w(pi(v), v), out_of[v, d] = w(v, d): (K, longest, M) each
    into = weights[sentences[:, None], :, cycle]
    into = into - weights[sentences[:, None], cycle_heads, cycle][:, :, None]
    out_of = weights[sentences[:, None], cycle, :]
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
    has_head_in_cycle = inside[rows[:, None], current]
    current = np.where(has_head_in_cycle, starts[:, None], current)
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
    """Return (K, longest) the nodes on the path from `starts` back to itself, padded with the start."""
    nodes, rows = [starts], np.arange(len(starts))
    closed = np.zeros(len(starts), dtype=bool)
    while True:
        ahead = heads[rows, nodes[-1]]
        closed |= ahead == starts
        if closed.all():
            return np.stack(nodes, 1)
        nodes.append(np.where(closed, starts, ahead))


def _expand(heads: Ints, contraction: _Contraction) -> None:
    """Undo a contraction, in place: the arc into the cycle replaces the head of the node where it enters."""
    sentences, cycle, cycle_heads, entered, left = contraction
    rows = np.arange(len(sentences))
    starts = cycle[:, 0]
    current = heads[sentences]
    outside = current[rows, starts]
    current = np.where(current == starts[:, None], left, current)
    current[rows[:, None], cycle] = cycle_heads
    current[rows, entered[rows, outside]] = outside
    heads[sentences] = current
