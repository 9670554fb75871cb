"""What the threshold keeps, and the charts made of it."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers.categorical import IndependentGroups
from hf_xst.charts import best_mask, log_opinion_pool, pooled_chart, threshold, union_chart
from hf_xst.charts.chart import candidates_mask

ALL = torch.ones(1, 1, 4, dtype=torch.bool)


def kept(probabilities: list[float], sigma: float, valid: list[bool] | None = None) -> list[int]:
    log_probs = torch.tensor([[probabilities]], dtype=torch.float64).log()
    mask = torch.ones_like(log_probs, dtype=torch.bool) if valid is None else torch.tensor([[valid]])
    return torch.nonzero(threshold(log_probs, sigma, mask)[0, 0])[:, 0].tolist()


def whole_numbers(size: int) -> st.SearchStrategy[list[int]]:
    """Probabilities in sixty-fourths; no law hangs on rounding if sigma lies between two of them."""
    return st.lists(st.integers(0, 64), min_size=size - 1, max_size=size - 1).map(
        lambda cuts: [b - a for a, b in zip([0, *sorted(cuts)], [*sorted(cuts), 64], strict=True)]
    )


@given(st.integers(1, 6).flatmap(whole_numbers), st.integers(1, 64))
def test_the_fewest_candidates_that_reach_sigma(parts, sigma):
    found = kept([part / 64 for part in parts], (sigma - 0.5) / 64)
    assert sum(parts[index] for index in found) >= sigma
    best_first = sorted(range(len(parts)), key=lambda index: (-parts[index], index))
    assert set(found) == set(best_first[: len(found)])  # likeliest first, of equal ones the lower index
    assert sum(parts[index] for index in best_first[: len(found) - 1]) < sigma  # one fewer is too few
    assert all(parts[index] > 0 for index in found)


@given(whole_numbers(5), st.lists(st.booleans(), min_size=5, max_size=5), st.integers(1, 64))
def test_only_valid_candidates_and_at_least_one_of_them(parts, valid, sigma):
    found = kept([part / 64 for part in parts], (sigma - 0.5) / 64, valid)
    assert all(valid[index] for index in found)
    assert bool(found) == any(valid)
    inside = sum(part for part, ok in zip(parts, valid, strict=True) if ok)
    if inside < sigma:  # the mass is not there: all of it is kept
        assert set(found) >= {index for index in range(5) if valid[index] and parts[index]}


@pytest.mark.parametrize(
    ("probabilities", "sigma", "expected"),
    [
        ([0.25, 0.25, 0.25, 0.25], 0.5, [0, 1]),
        ([0.25, 0.25, 0.25, 0.25], 1.0, [0, 1, 2, 3]),
        ([0.5, 0.0, 0.5, 0.0], 1.0, [0, 2]),
        ([0.0, 1.0, 0.0, 0.0], 1e-9, [1]),
        ([0.1, 0.2, 0.3, 0.4], 1e-9, [3]),
        ([0.1, 0.2, 0.3, 0.4], 0.7, [2, 3]),
        ([0.0, 0.0, 0.0, 0.0], 0.9, [0]),
    ],
)
def test_cases_by_hand(probabilities, sigma, expected):
    assert kept(probabilities, sigma) == expected


def test_sigma_one_keeps_the_whole_support_of_float32_distributions():
    torch.manual_seed(0)
    log_probs = (torch.randn(3, 7, 9) * 2).log_softmax(-1)
    assert threshold(log_probs, 1.0, torch.ones_like(log_probs, dtype=torch.bool)).float().mean() > 0.95


@pytest.mark.parametrize("sigma", [0.0, -0.5, 1.0001, math.nan, math.inf])
def test_sigma_out_of_range_is_rejected(sigma):
    with pytest.raises(ValueError, match=r"sigma is .*expected a probability in \(0, 1\]"):
        threshold(torch.zeros(1, 1, 4), sigma, ALL)


def test_nan_is_rejected_where_it_could_be_kept_only():
    log_probs = torch.tensor([[[0.0, math.nan, -1.0, math.nan]]])
    with pytest.raises(ValueError, match="log-probability is NaN"):
        threshold(log_probs, 0.9, ALL)
    valid = torch.tensor([[[True, False, True, False]]])
    assert threshold(log_probs, 0.9, valid).tolist() == [[[True, False, False, False]]]


def test_a_structure_as_a_mask():
    mask = candidates_mask(torch.tensor([[2, -1], [0, 3]]), ALL.expand(2, 2, 4))
    assert mask.nonzero().tolist() == [[0, 0, 2], [1, 0, 0], [1, 1, 3]]


def test_charts_hold_every_sources_best_structure():
    torch.manual_seed(1)
    lengths = torch.tensor([3, 1])
    sources = [IndependentGroups(torch.randn(2, 3, 4), lengths) for _ in range(3)]
    for chart in (union_chart(sources, 1e-9), pooled_chart(sources, 1e-9, [0.0, 0.0, 1.0])):
        for source in sources:
            assert (chart & best_mask(source)).equal(best_mask(source))
        assert not chart[~sources[0].valid].any()
    assert union_chart(sources, 1.0).equal(sources[0].valid)


@given(st.sampled_from([0.1, 0.5, 0.9, 0.99]), st.sampled_from([0.2, 0.6, 1.0]))
def test_charts_grow_with_sigma(low, high):
    torch.manual_seed(2)
    sources = [IndependentGroups(torch.randn(1, 4, 5)) for _ in range(2)]
    low, high = min(low, high), max(low, high)
    for make in (union_chart, pooled_chart):
        small, large = make(sources, low), make(sources, high)
        assert (small & large).equal(small)


def test_a_source_without_any_structure_adds_nothing_to_the_union():
    scores = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(1))
    one, other = IndependentGroups(scores), IndependentGroups(scores.flip(2))
    other.scores[1] = -math.inf
    assert torch.equal(union_chart([one, other], 0.5)[1], union_chart([one], 0.5)[1])
    assert not torch.equal(union_chart([one, other], 0.5)[0], union_chart([one], 0.5)[0])


def test_no_source_is_rejected():
    with pytest.raises(ValueError, match="no source"):
        union_chart([], 0.9)
    with pytest.raises(ValueError, match="no source"):
        pooled_chart([], 0.9)


def test_the_example_of_figure_2():
    """The pool keeps what both sources allow and drops what one of them excludes (Kurniawan et al. 2021)."""
    probs = torch.tensor([[0.38, 0.01, 0.07, 0.27, 0.27], [0.01, 0.38, 0.07, 0.27, 0.27]])[:, None, None]
    valid = torch.ones(1, 1, 5, dtype=torch.bool)
    kept = [threshold(logs, 0.7, valid) for logs in [*probs.log(), log_opinion_pool(probs.log())]]
    assert [torch.nonzero(mask[0, 0])[:, 0].tolist() for mask in kept] == [[0, 3, 4], [1, 3, 4], [3, 4]]
