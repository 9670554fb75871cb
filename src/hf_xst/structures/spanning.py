"""The best non-projective tree: a maximum spanning arborescence.

Every word first takes its best head, all sentences at once. If the result is a tree, it is the best one.
Otherwise cycles are contracted (Chu and Liu 1965, Edmonds 1967), in the order of Gabow et al. (1986): a path
grows from a word to its best head, to the best head of that, and so on. When it meets itself, the cycle c of
nodes v with heads pi(v) becomes one node at the end of the path, with the weights

    w'(h, c) = max_v [w(h, v) - w(pi(v), v)]        enter the cycle at v, which replaces the arc into v

When it meets the root or an earlier path, all its nodes have their heads. O(n^2) for n words: each of at most
n contractions handles rows of n weights.

Single root. Trees with fewer root arcs are better, whatever they score; the score decides among trees with
equally many. So a node takes the root as its head only if no word is left. Stanojevic and Cohen (2021)
subtract a large constant from root arcs, which has the same effect but costs digits.

The search is compiled if numba is installed (the extra `fast`), which takes some seconds once: numba keeps
the result. Without numba the same code runs in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ABSENT = float("-inf")


def best_heads(arcs: Floats, single_root: bool) -> Ints:
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
    is_tree: NDArray[np.bool_] = reaches_root(torch.from_numpy(heads[:, 1:])).numpy()
    if single_root:
        is_tree &= (heads[:, 1:] == 0).sum(1) == 1
    heads[~reachable] = -1
    for sentence in np.flatnonzero(reachable & ~is_tree):
        words = np.ascontiguousarray(arcs[sentence].T)
        best = _search()(words, False)  # contracts less, and usually has one root arc
        if single_root and (best[1:] == 0).sum() != 1:
            best = _search()(words, True)
        heads[sentence] = best
    if single_root:  # the fewest root arcs may be several
        heads[(heads[:, 1:] == 0).sum(1) != 1] = -1
    return heads[:, 1:]


def reaches_root(heads: Tensor) -> Tensor:
    """Return (B,) whether every word reaches the root by its heads (B, N), so that there is no cycle."""
    # Pointer doubling: after i rounds, ahead[w] is 2^i steps from w; the root points to itself.
    ahead = torch.nn.functional.pad(heads, (1, 0))
    for _ in range(ahead.shape[1].bit_length()):
        ahead = ahead.gather(1, ahead)
    return (ahead == 0).all(1)


@cache
def _search() -> Callable[[Floats, bool], Ints]:
    """Return `_best_tree`, compiled if possible."""
    try:
        from numba import njit
    except ImportError:
        return _best_tree
    compiled: Callable[[Floats, bool], Ints]
    try:
        compiled = njit(cache=True, nogil=True)(_best_tree)
    except RuntimeError:  # no folder for the compiled code is writable
        compiled = njit(nogil=True)(_best_tree)
    return compiled


def _best_tree(words: Floats, single_root: bool) -> Ints:
    """Return (M,) heads of the best tree, entry 0 meaningless; all -1 if there is no tree.

    Args:
        words: (M, M) weights, dependent first.
        single_root: whether to return a tree with the fewest root arcs.
    """
    size = len(words)
    # Nodes are the root 0, the words, and contracted cycles, numbered in the order in which they arise.
    into = np.empty((2 * size, size))  # [c, h]: weight of the best arc from the word h into the node c
    entered = np.empty((2 * size, size), np.int64)  # [c, h]: the word of c at which that arc enters
    into[:size] = words
    entered[:size] = np.arange(size).reshape(size, 1)
    outermost = np.arange(size)  # the node that contains each word and is in no other
    parent = np.zeros(2 * size, np.int64)  # the cycle that a node was contracted to
    head, dependent = np.zeros(2 * size, np.int64), np.zeros(2 * size, np.int64)  # each node's best arc
    on_path, attached = np.zeros(2 * size, np.bool_), np.zeros(2 * size, np.bool_)
    attached[0] = True
    path, nothing, nowhere = np.empty(size, np.int64), np.full(size, ABSENT), np.zeros(size, np.int64)
    first, nodes = int(single_root), size
    for start in range(1, size):
        node, steps = outermost[start], 0
        while not attached[node]:
            if on_path[node]:
                # Contract the cycle from `node` to the end of the path.
                best, entry, member = nothing, nowhere, -1
                while member != node:
                    steps -= 1
                    member = path[steps]
                    parent[member] = nodes
                    outermost[outermost == member] = nodes
                    entry = np.where(into[member] > best, entered[member], entry)
                    best = np.maximum(best, into[member])
                into[nodes] = np.where(outermost == nodes, ABSENT, best)
                entered[nodes] = entry
                node, nodes = nodes, nodes + 1
            weights = into[node]
            chosen = first + weights[first:].argmax()
            if weights[chosen] == ABSENT:
                chosen = 0
            if weights[chosen] == ABSENT:
                return np.full(size, -1)
            head[node], dependent[node] = chosen, entered[node, chosen]
            weights -= weights[chosen]
            path[steps], on_path[node] = node, True
            steps, node = steps + 1, outermost[chosen]
        attached[path[:steps]] = True
    heads = np.zeros(size, np.int64)
    replaced = np.zeros(nodes, np.bool_)
    # The arc into a cycle replaces the arcs of the nodes that it enters; inner nodes come before outer ones.
    for node in range(nodes - 1, 0, -1):
        if not replaced[node]:
            inner = dependent[node]
            heads[inner] = head[node]
            while inner != node:
                replaced[inner] = True
                inner = parent[inner]
    return heads
