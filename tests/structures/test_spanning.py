"""The best non-projective tree: against enumeration and two other implementations."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from helpers.structure_oracle import trees
from hf_xst.structures import spanning
from hf_xst.structures.spanning import best_heads

ABSENT = -math.inf


def random_arcs(
    sentences: int, n: int, seed: int, *, absent: float = 0.0, scale: float = 1.0
) -> NDArray[np.float64]:
    """Draw (B, N+1, N+1) scores, without arcs into the root and self-loops."""
    generator = np.random.default_rng(seed)
    arcs = generator.normal(size=(sentences, n + 1, n + 1)) * scale
    arcs[generator.random(arcs.shape) < absent] = ABSENT
    return without_loops(arcs)


def without_loops(arcs: NDArray[np.float64]) -> NDArray[np.float64]:
    arcs[:, :, 0] = ABSENT
    arcs[:, np.arange(arcs.shape[1]), np.arange(arcs.shape[1])] = ABSENT
    return arcs


def total(arcs: NDArray[np.float64], heads: NDArray[np.int64]) -> float:
    return float(arcs[heads, np.arange(1, len(heads) + 1)].sum())


def check_against_enumeration(arcs: NDArray[np.float64], single_root: bool, tolerance: float = 1e-12) -> None:
    n = arcs.shape[1] - 1
    listed = np.array(trees(n, single_root=single_root, projective=False))
    names = {tuple(heads) for heads in listed.tolist()}
    scores = arcs[:, listed, np.arange(1, n + 1)].sum(2)
    for one, heads, best in zip(arcs, best_heads(arcs, single_root), scores.max(1), strict=True):
        if best == ABSENT:
            assert (heads == -1).all()
        else:
            assert tuple(heads.tolist()) in names
            assert total(one, heads) == pytest.approx(best, rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("absent", [0.0, 0.3, 0.6])
def test_against_enumeration(n: int, single_root: bool, absent: float) -> None:
    check_against_enumeration(random_arcs(60, n, n, absent=absent), single_root)
    check_against_enumeration(np.round(random_arcs(60, n, n + 10, absent=absent)), single_root, 0)


@pytest.mark.parametrize("single_root", [True, False])
def test_huge_scores_are_compared_exactly(single_root: bool) -> None:
    arcs = np.round(random_arcs(100, 4, 0) * 1024) / 1024
    arcs[:, :, 2] += 800_000
    arcs[50:, 0] -= 1_000_000
    check_against_enumeration(arcs, single_root, 0)


complete = st.lists(st.integers(-2, 2), min_size=16, max_size=16)


@given(complete, st.booleans(), st.sets(st.integers(0, 15)))
def test_ties_and_gaps(scores: list[int], single_root: bool, absent: set[int]) -> None:
    arcs = np.array([ABSENT if i in absent else score for i, score in enumerate(scores)], dtype=float)
    check_against_enumeration(without_loops(arcs.reshape(1, 4, 4)), single_root, 0)


def test_ties_go_to_lower_heads() -> None:
    arcs = without_loops(np.zeros((1, 5, 5)))
    assert best_heads(arcs, False).tolist() == [[0, 0, 0, 0]]
    single = best_heads(arcs, True)
    assert single.tolist() == best_heads(arcs.copy(), True).tolist()
    assert (single == 0).sum() == 1


def test_the_scores_are_not_changed() -> None:
    arcs = random_arcs(20, 6, 1)
    before = arcs.copy()
    best_heads(arcs, True)
    np.testing.assert_array_equal(arcs, before)


def test_sentences_of_a_batch_are_independent() -> None:
    arcs = random_arcs(40, 9, 2, absent=0.2)
    together = best_heads(arcs, True)
    for row, result in zip(arcs, together, strict=True):
        np.testing.assert_array_equal(best_heads(row[None], True)[0], result)


@pytest.mark.parametrize("n", [3, 10, 40])
def test_against_ufal_chu_liu_edmonds(n: int) -> None:
    ufal = pytest.importorskip("ufal.chu_liu_edmonds")
    arcs = random_arcs(20, n, n)
    for row, result in zip(arcs, best_heads(arcs, False), strict=True):
        scores = np.where(row == ABSENT, np.nan, row).T  # rows are dependents there
        heads, score = ufal.chu_liu_edmonds(np.ascontiguousarray(scores))
        assert result.tolist() == heads[1:]
        assert total(row, result) == pytest.approx(score)


@pytest.mark.parametrize("n", [3, 10, 40])
def test_single_root_is_the_best_over_all_root_words(n: int) -> None:
    ufal = pytest.importorskip("ufal.chu_liu_edmonds")
    arcs = random_arcs(8, n, n)
    for row, result in zip(arcs, best_heads(arcs, True), strict=True):
        scores = []
        for root in range(1, n + 1):
            forced = np.where(row == ABSENT, np.nan, row)
            forced[0] = np.nan
            forced[0, root] = row[0, root]
            scores.append(ufal.chu_liu_edmonds(np.ascontiguousarray(forced.T))[1])
        assert (result == 0).sum() == 1
        assert total(row, result) == pytest.approx(max(scores))


def test_against_networkx() -> None:
    networkx = pytest.importorskip("networkx")
    arcs = random_arcs(10, 8, 3, absent=0.4)
    for row, result in zip(arcs, best_heads(arcs, False), strict=True):
        graph = networkx.DiGraph()
        graph.add_nodes_from(range(9))
        graph.add_weighted_edges_from((h, d, row[h, d]) for h, d in np.argwhere(row > ABSENT).tolist())
        try:
            tree = networkx.maximum_spanning_arborescence(graph)
        except networkx.NetworkXException:
            assert (result == -1).all()
        else:
            assert sorted(tree.edges) == sorted((h, d) for d, h in enumerate(result.tolist(), 1))


@pytest.fixture
def search() -> Iterator[Any]:
    spanning._search.cache_clear()
    yield spanning._search
    spanning._search.cache_clear()


def test_without_numba_the_same_code_runs_in_numpy(search: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    assert search() is spanning._best_tree


def test_without_a_writable_cache_the_search_is_compiled_anew(
    search: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def njit(cache: bool = False, **options: Any) -> Any:
        if cache:
            raise RuntimeError("cannot cache function")
        return lambda function: (function, options)

    monkeypatch.setitem(sys.modules, "numba", SimpleNamespace(njit=njit))
    assert search() == (spanning._best_tree, {"nogil": True})


@pytest.mark.slow
@pytest.mark.parametrize("single_root", [True, False])
def test_compiled_search_returns_the_same_trees_even_if_scores_tie(search: Any, single_root: bool) -> None:
    pytest.importorskip("numba")
    for n, absent in ((1, 0.0), (4, 0.5), (12, 0.0), (12, 0.8), (30, 0.2)):
        for arcs in np.round(random_arcs(20, n, n, absent=absent)):
            words = np.ascontiguousarray(arcs.T)
            expected = spanning._best_tree(words, single_root)
            np.testing.assert_array_equal(search()(words, single_root), expected)
