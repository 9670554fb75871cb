"""Opinion pools: zeros (P19), weights, floors, and laws that hold for all of them."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers.categorical import IndependentGroups
from hf_xst.charts import learn_weights, log_opinion_pool, pool, pooled_chart, stacked_log_marginals
from hf_xst.charts.chart import SourceDistributions
from hf_xst.charts.pooling import normalised_weights, unsupported_groups
from hf_xst.structures import DependencyTreeCRF, LinearChainCRF


def logs(*sources: list[float]) -> torch.Tensor:
    """(S, 1, 1, C) out of one distribution a source."""
    return torch.tensor(sources, dtype=torch.float64).log()[:, None, None]


def pooled(sources: torch.Tensor, weights: list[float] | None = None, floor: float = 0.0) -> list[float]:
    return log_opinion_pool(sources, weights, floor).exp().flatten().tolist()


P, Q = [0.5, 0.5, 0.0], [0.2, 0.0, 0.8]


@pytest.mark.parametrize(
    ("sources", "weights", "expected", "with_floor"),
    [
        ((P, Q), [0.5, 0.5], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]),
        ((P, Q), [1.0, 0.0], P, P),
        ((P, Q), [0.0, 1.0], Q, Q),
        (([1.0, 0.0], [0.0, 1.0]), [0.5, 0.5], [0.5, 0.5], [0.5, 0.5]),
        # Nothing is shared: the sources' best alone, or with a floor all that either has, by its square root.
        (
            ([0.64, 0.36, 0.0, 0.0], [0.0, 0.0, 0.04, 0.96]),
            [0.5, 0.5],
            [0.5, 0, 0, 0.5],
            [0.31, 0.23, 0.08, 0.38],
        ),
    ],
)
def test_zero_probabilities_by_hand(sources, weights, expected, with_floor):
    given_weights = torch.tensor(weights, dtype=torch.float64, requires_grad=True)
    marginals = logs(*sources).requires_grad_()
    found = log_opinion_pool(marginals, given_weights)
    assert found.exp().flatten().tolist() == pytest.approx(expected, abs=1e-12)
    found[found > -math.inf].sum().backward()
    for gradient in (given_weights.grad, marginals.grad):
        assert gradient is None or gradient.isfinite().all()
    given_weights.grad = None
    smoothed = log_opinion_pool(logs(*sources), given_weights, 1e-9)
    assert smoothed.exp().flatten().tolist() == pytest.approx(with_floor, abs=5e-3)
    smoothed[smoothed > -math.inf].sum().backward()
    assert given_weights.grad.isfinite().all()


def test_gradient_by_the_weights_is_that_of_finite_differences():
    marginals = logs([0.6, 0.3, 0.1, 0.0], [0.1, 0.2, 0.3, 0.4])
    weights = torch.tensor([0.7, 0.3], dtype=torch.float64, requires_grad=True)

    def first(w: torch.Tensor) -> torch.Tensor:
        return log_opinion_pool(marginals, w)[0, 0, :3]

    assert torch.autograd.gradcheck(first, (weights,))


def test_one_word_pooled_from_two_sources_hangs_from_the_root():
    torch.manual_seed(0)
    sources = [DependencyTreeCRF(torch.randn(1, 2, 2, 1)) for _ in range(2)]
    found = pool(sources)
    assert found.marginals()[0, 0, 1, 0] == 1
    assert found.best()[0].tolist() == [[0]]
    assert pooled_chart(sources, 0.95).nonzero().tolist() == [[0, 0, 0]]


def distributions(sources: int, size: int) -> st.SearchStrategy[torch.Tensor]:
    """Distributions in which some probabilities are exactly zero: (S, 1, 1, C)."""
    entry = st.one_of(st.just(0.0), st.floats(0.01, 1.0))
    row = st.lists(entry, min_size=size, max_size=size).filter(any)
    return st.lists(row, min_size=sources, max_size=sources).map(
        lambda rows: logs(*([value / sum(row) for value in row] for row in rows))
    )


WEIGHTS = st.lists(st.floats(0.05, 1.0), min_size=3, max_size=3)
FLOORS = st.sampled_from([0.0, 1e-9, 1e-3])


@given(distributions(3, 4), WEIGHTS, FLOORS)
def test_a_pool_is_a_distribution(sources, weights, floor):
    found = pooled(sources, weights, floor)
    assert all(0 <= value <= 1 + 1e-12 for value in found)
    assert math.isclose(sum(found), 1, rel_tol=1e-9)
    supported = (sources > -math.inf).any(0).flatten().tolist()
    assert all(value == 0 for value, any_source in zip(found, supported, strict=True) if not any_source)


@given(distributions(3, 4), st.integers(0, 2))
def test_all_weight_on_one_source_gives_that_source(sources, chosen):
    weights = [0.0, 0.0, 0.0]
    weights[chosen] = 2.0
    assert pooled(sources, weights) == pytest.approx(sources[chosen].exp().flatten().tolist(), abs=1e-12)


@given(distributions(3, 4), WEIGHTS, FLOORS, st.permutations([0, 1, 2]))
def test_the_order_of_sources_does_not_matter(sources, weights, floor, order):
    turned = pooled(sources[order], [weights[index] for index in order], floor)
    assert turned == pytest.approx(pooled(sources, weights, floor), abs=1e-12)


@given(distributions(1, 5), WEIGHTS)
def test_equal_sources_are_a_fixed_point(source, weights):
    assert pooled(source.expand(3, -1, -1, -1), weights) == pytest.approx(
        source.exp().flatten().tolist(), abs=1e-12
    )


@given(distributions(3, 4), WEIGHTS, st.floats(0.1, 10))
def test_weights_are_normalised(sources, weights, factor):
    scaled = [weight * factor for weight in weights]
    assert pooled(sources, scaled) == pytest.approx(pooled(sources, weights), abs=1e-9)
    assert pooled(sources) == pytest.approx(pooled(sources, [1.0, 1.0, 1.0]), abs=1e-12)


@given(distributions(2, 3), st.sampled_from([1e-9, 1e-2]))
def test_the_floor_is_added_before_the_logarithm(sources, floor):
    first, second = sources.exp().flatten(1).tolist()
    raw = [
        math.sqrt((a + floor) * (b + floor)) if a > 0 or b > 0 else 0.0
        for a, b in zip(first, second, strict=True)
    ]
    assert pooled(sources, None, floor) == pytest.approx([value / sum(raw) for value in raw], rel=1e-9)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("floor", [0.0, 1e-300, 1e-50, 1e-9])
def test_no_floor_is_so_small_that_nothing_is_left(dtype, floor):
    found = log_opinion_pool(logs([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]).to(dtype), None, floor)
    assert found.dtype is dtype
    assert found.exp().flatten().tolist() == pytest.approx([0.5, 0.5, 0.0], abs=0.06)


def test_a_candidate_that_no_source_supports_may_be_allowed_by_the_caller():
    sources = logs([1.0, 0.0, 0.0], [0.5, 0.5, 0.0])
    valid = torch.tensor([[[True, True, True]]])
    assert log_opinion_pool(sources, None, 1e-3).exp()[0, 0, 2] == 0
    assert log_opinion_pool(sources, None, 1e-3, valid=valid).exp()[0, 0, 2] > 0
    none = torch.zeros_like(valid)
    assert (log_opinion_pool(sources, None, 1e-3, valid=none) == -math.inf).all()


def test_groups_on_which_sources_share_nothing_are_found():
    sources = torch.cat([logs([1.0, 0.0], [0.0, 1.0]), logs([0.5, 0.5], [0.0, 1.0])], dim=2)
    empty = torch.full((2, 1, 1, 2), -math.inf, dtype=torch.float64)
    sources = torch.cat([sources, empty], dim=2)
    assert unsupported_groups(sources).tolist() == [[True, False, False]]
    assert unsupported_groups(sources, [1.0, 0.0]).tolist() == [[False, False, False]]
    assert (log_opinion_pool(sources)[0, 2] == -math.inf).all()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], "a weight for each of 2 sources"),
        ([1.0, -0.1], "not negative"),
        ([0.0, 0.0], "not all zero"),
        ([1.0, math.nan], "must be finite"),
        ([1.0, math.inf], "must be finite"),
    ],
)
def test_weights_out_of_range_are_rejected(weights, message):
    with pytest.raises(ValueError, match=message):
        log_opinion_pool(logs(P, Q), weights)


def test_other_bad_input_is_rejected():
    with pytest.raises(ValueError, match=r"shape \(S, B, G, C\), found \(1, 1, 3\)"):
        log_opinion_pool(logs(P, Q)[0])
    for floor in (-0.1, math.nan, math.inf):
        with pytest.raises(ValueError, match=f"floor is {floor}"):
            log_opinion_pool(logs(P, Q), floor=floor)
        with pytest.raises(ValueError, match=f"floor is {floor}"):
            learn_weights(logs(P, Q), torch.zeros(1, 1, dtype=torch.long), floor)
    for value in (math.nan, math.inf):
        with pytest.raises(ValueError, match="NaN or"):
            log_opinion_pool(logs(P, [value, 0.5, 0.5]))
    with pytest.raises(ValueError, match="map them to one label set"):
        stacked_log_marginals(
            [IndependentGroups(torch.zeros(1, 2, 3)), IndependentGroups(torch.zeros(1, 2, 4))]
        )


def test_uniform_weights_by_default():
    assert normalised_weights(None, 4, torch.zeros(1)).tolist() == [0.25] * 4


def test_a_floor_gives_nothing_to_what_the_scores_of_all_sources_exclude():
    """Pairs that no labelling has stay out of charts and pools; what is too small for a number does not."""
    generator = torch.Generator().manual_seed(3)
    sources = []
    for _ in range(3):
        scores = 400 * torch.randn(2, 3, 4, 4, generator=generator)  # many a probability is zero as a number
        scores[..., 1, 2] = -torch.inf
        sources.append(LinearChainCRF(scores))
    possible = SourceDistributions(sources).valid
    excluded = sources[0].group_view(torch.ones_like(sources[0].scores, dtype=torch.bool)) & ~possible
    assert bool(excluded.any())
    marginals = stacked_log_marginals(sources)
    assert bool((possible & (marginals == -torch.inf).all(0)).any())
    found = log_opinion_pool(marginals, floor=1e-9, valid=possible)
    assert bool((found[possible] > -torch.inf).all())
    assert bool((pooled_chart(sources, 1.0, floor=1e-9) <= possible).all())
    together = pool(sources, floor=1e-9)
    assert bool((together.group_view(together.scores)[excluded] == -torch.inf).all())
