"""Elimination on plain numbers and on logarithms, and when plain numbers are accurate."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from helpers.structure_spaces import SPACES
from hf_xst.numerics import smallest_safe
from hf_xst.structures import DependencyTreeCRF, elimination
from hf_xst.structures.elimination import (
    LOGARITHMS,
    PLAIN_NUMBERS,
    _Arithmetic,
    tree_log_partition,
    tree_marginals,
)

LIMIT = smallest_safe(torch.float64)
BOTH = pytest.mark.parametrize("numbers", [PLAIN_NUMBERS, LOGARITHMS], ids=["plain", "logarithms"])


def positive(*shape: int, absent: float = 0.3, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    values = torch.rand(shape, generator=generator, dtype=torch.float64) + 0.01
    return values.masked_fill(torch.rand(shape, generator=generator) < absent, 0)


def random_arcs(sentences: int, words: int, scale: float, absent: float, seed: int = 0) -> Tensor:
    """Draw log weights as `tree_log_partition` takes them, each column's best at 0."""
    space = SPACES["nonproj_multi"]
    structure = space.random([words] * sentences, 1, scale=scale, absent=absent, seed=seed)
    assert isinstance(structure, DependencyTreeCRF)
    arcs = structure.scores[..., 0].masked_fill(~structure.valid_parts[..., 0], -math.inf)
    best = arcs.amax(1, keepdim=True)
    return arcs - best.masked_fill(best == -math.inf, 0)


@BOTH
def test_operations(numbers: _Arithmetic) -> None:
    x, y = positive(4, 5, 3), positive(4, 5, 3, seed=1)
    rows, columns, weights = positive(4, 5, seed=2), positive(4, 3, seed=3), positive(4, 3, seed=4)
    converted = [numbers.from_logs(value.log()) for value in (x, y, rows, columns, weights)]
    x_, y_, rows_, columns_, weights_ = converted

    def check(result: Tensor, expected: Tensor) -> None:
        assert_close(numbers.plain(result), expected, rtol=1e-14, atol=0)
        assert_close(numbers.log(result), expected.log(), rtol=0, atol=1e-13)

    check(numbers.add(x_, y_), x + y)
    check(numbers.multiply(x_, y_), x * y)
    check(numbers.sum(x_, 1), x.sum(1))
    check(numbers.weigh(x_, weights_), (x * weights[:, None]).sum(2))
    x_of_y = numbers.multiply(x_, y_)
    check(numbers.divide(x_of_y, y_), x.masked_fill(y == 0, 0))
    numbers.add_outer(x_, rows_, columns_)
    check(x_, x + rows[:, :, None] * columns[:, None])


@BOTH
def test_zero_and_one(numbers: _Arithmetic) -> None:
    constants = torch.tensor([numbers.zero, numbers.one])
    assert numbers.plain(constants).tolist() == [0, 1]


@pytest.mark.parametrize("absent", [0.0, 0.4])
@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("words", [1, 2, 3, 7, 12])
def test_both_representations_agree(
    monkeypatch: pytest.MonkeyPatch, words: int, single_root: bool, absent: float
) -> None:
    arcs = random_arcs(30, words, 5.0, absent)
    fast = tree_log_partition(arcs, single_root), *tree_marginals(arcs, single_root)
    monkeypatch.setattr(elimination, "PLAIN_NUMBERS", LOGARITHMS)
    slow = tree_log_partition(arcs, single_root), *tree_marginals(arcs, single_root)
    for total in (fast[0], fast[2], slow[2]):
        assert_close(total, slow[0], rtol=0, atol=1e-12)
    possible = slow[0] > -math.inf
    assert_close(fast[1][possible], slow[1][possible], rtol=1e-12, atol=0)


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("scale", [30.0, 100.0, 300.0, 1000.0])
def test_underflow_is_detected(monkeypatch: pytest.MonkeyPatch, scale: float, single_root: bool) -> None:
    arcs = torch.cat([random_arcs(30, 8, scale, 0.5), random_arcs(5, 8, 1.0, 0.0)])
    fast = tree_log_partition(arcs, single_root), *tree_marginals(arcs, single_root)
    monkeypatch.setattr(elimination, "PLAIN_NUMBERS", LOGARITHMS)
    slow = tree_log_partition(arcs, single_root), *tree_marginals(arcs, single_root)
    for total in (fast[0], fast[2], slow[2]):
        assert_close(total, slow[0], rtol=1e-14, atol=1e-12)
    possible = slow[0] > -math.inf
    assert_close(fast[1][possible], slow[1][possible], rtol=1e-9, atol=LIMIT)


def test_logarithms_are_used_only_where_plain_numbers_underflow(monkeypatch: pytest.MonkeyPatch) -> None:
    mild, sharp = random_arcs(3, 6, 1.0, 0.0), random_arcs(2, 6, 1000.0, 0.0)
    seen: list[tuple[_Arithmetic, int]] = []

    def spy(logs: Tensor, rooted: Tensor, numbers: _Arithmetic) -> tuple[Tensor, ...]:
        seen.append((numbers, len(logs)))
        return real(logs, rooted, numbers)

    real = elimination._log_pivots
    monkeypatch.setattr(elimination, "_log_pivots", spy)
    tree_log_partition(mild, True)
    assert seen == [(PLAIN_NUMBERS, 3)]
    seen.clear()
    tree_log_partition(torch.cat([mild, sharp]), True)
    assert seen == [(PLAIN_NUMBERS, 5), (LOGARITHMS, 2)]


def test_products_underflow_although_no_factor_does() -> None:
    """A chain of weak arcs from the root: each weight is a float, their product is not."""
    words, gap = 6, 300.0
    arcs = torch.full((1, words + 1, words + 1), -math.inf, dtype=torch.float64)
    for word in range(1, words + 1):
        arcs[0, word - 1, word] = -gap  # the chain
        if word < words:
            arcs[0, word + 1, word] = 0.0  # and a strong arc back
    arcs[0, 0, 1] = -gap
    expected = -gap * words  # the chain from the root is the only tree
    assert tree_log_partition(arcs, True).item() == pytest.approx(expected, rel=1e-14)
    marginals, _ = tree_marginals(arcs, True)
    assert_close(marginals[0, range(words), range(1, words + 1)], torch.ones(words, dtype=torch.float64))


def weak_chains(sentences: int, words: int, seed: int) -> Tensor:
    """Draw log weights where the arcs of trees are weak compared to those of cycles."""
    generator = torch.Generator().manual_seed(seed)
    arcs = torch.full((sentences, words + 1, words + 1), -math.inf, dtype=torch.float64)
    for one in arcs:
        order = [0, *(torch.randperm(words, generator=generator) + 1).tolist()]
        largest = 600 * torch.rand((), generator=generator)
        gaps = torch.rand(words, generator=generator) * largest
        for above, below, gap in zip(order, order[1:], gaps, strict=False):
            one[above, below] = -gap
        for below, above in zip(order[2:], order[1:], strict=False):
            one[below, above] = 0.0
        extra = torch.rand(words + 1, words + 1, generator=generator) < 0.15
        extra[:, 0] = False
        extra.fill_diagonal_(False)
        one[extra] = -torch.rand(int(extra.sum()), generator=generator, dtype=torch.float64) * largest
    return arcs - arcs.amax(1, keepdim=True).masked_fill(arcs.amax(1, keepdim=True) == -math.inf, 0)


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("words", [3, 4, 5, 8])
def test_results_marked_safe_are_accurate(words: int, single_root: bool) -> None:
    arcs = torch.cat([weak_chains(400, words, seed) for seed in range(3)])
    rooted = torch.full(arcs.shape[:1], not single_root)
    for compute, near_zero in ((elimination._log_pivots, 1e-11), (elimination._marginals, LIMIT)):
        fast, *_, safe = compute(arcs, rooted, PLAIN_NUMBERS)
        slow, *_, always = compute(arcs, rooted, LOGARITHMS)
        assert always.all()
        assert 0 < safe.sum() < len(safe)
        assert_close(fast[safe], slow[safe], rtol=1e-11, atol=near_zero)
