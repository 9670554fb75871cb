"""Linear opinion pools: laws, and weights of every group's own."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hf_xst.charts import linear_opinion_pool, log_opinion_pool

WEIGHTS = st.lists(st.floats(0.05, 1.0), min_size=3, max_size=3)


def logs(*sources: list[float]) -> torch.Tensor:
    """(S, 1, 1, C) out of one distribution a source."""
    return torch.tensor(sources, dtype=torch.float64).log()[:, None, None]


def distributions(sources: int, size: int) -> st.SearchStrategy[torch.Tensor]:
    entry = st.one_of(st.just(0.0), st.floats(0.01, 1.0))
    row = st.lists(entry, min_size=size, max_size=size).filter(any)
    return st.lists(row, min_size=sources, max_size=sources).map(
        lambda rows: logs(*([value / sum(row) for value in row] for row in rows))
    )


def pooled(sources: torch.Tensor, weights: list[float] | None = None) -> list[float]:
    return linear_opinion_pool(sources, weights).exp().flatten().tolist()


@given(distributions(3, 4), WEIGHTS)
def test_it_is_the_weighted_mean(sources, weights):
    shares = torch.tensor(weights, dtype=torch.float64) / sum(weights)
    expected = (sources.exp()[:, 0, 0] * shares[:, None]).sum(0)
    assert pooled(sources, weights) == pytest.approx(expected.tolist(), abs=1e-12)
    assert sum(pooled(sources, weights)) == pytest.approx(1)


@given(distributions(3, 4), WEIGHTS, st.permutations([0, 1, 2]))
def test_the_order_of_sources_does_not_matter(sources, weights, order):
    turned = pooled(sources[order], [weights[index] for index in order])
    assert turned == pytest.approx(pooled(sources, weights), abs=1e-12)


@given(distributions(3, 4), st.integers(0, 2))
def test_all_weight_on_one_source_gives_that_source(sources, chosen):
    weights = [0.0, 0.0, 0.0]
    weights[chosen] = 2.0
    assert pooled(sources, weights) == pytest.approx(sources[chosen].exp().flatten().tolist(), abs=1e-12)


@given(distributions(1, 5), WEIGHTS)
def test_equal_sources_are_a_fixed_point(source, weights):
    same = source.expand(3, -1, -1, -1)
    assert pooled(same, weights) == pytest.approx(source.exp().flatten().tolist(), abs=1e-12)


@given(distributions(3, 4), WEIGHTS)
def test_parts_of_a_group_may_be_pooled_before_or_after_they_are_merged(sources, weights):
    """What marks linear pools out (McConway 1981): a logarithmic pool does not do it."""

    def merged(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([x[..., :2].logsumexp(-1), x[..., 2:].logsumexp(-1)], -1)

    torch.testing.assert_close(
        linear_opinion_pool(merged(sources), weights).exp(),
        merged(linear_opinion_pool(sources, weights)).exp(),
    )


def test_support_of_one_source_is_enough():
    sources = logs([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    assert pooled(sources) == pytest.approx([0.5, 0.5, 0.0])
    valid = torch.tensor([[[True, False, True]]])
    assert linear_opinion_pool(sources, valid=valid).exp().flatten().tolist() == pytest.approx([1.0, 0, 0])
    assert (linear_opinion_pool(sources, valid=torch.zeros_like(valid)) == -math.inf).all()


def test_a_source_without_a_distribution_leaves_the_others():
    sources = torch.cat([logs([0.2, 0.8]), torch.full((1, 1, 1, 2), -math.inf, dtype=torch.float64)])
    assert pooled(sources) == pytest.approx([0.2, 0.8])


def test_no_gradient_is_lost_or_invented_at_zeros():
    sources = logs([0.5, 0.5, 0.0], [0.2, 0.0, 0.8]).requires_grad_()
    weights = torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True)
    found = linear_opinion_pool(sources, weights)
    found[found > -math.inf].sum().backward()
    assert sources.grad.isfinite().all()
    assert weights.grad.isfinite().all()


def test_bad_input_is_rejected():
    with pytest.raises(ValueError, match=r"shape \(S, B, G, C\), found \(1, 1, 2\)"):
        linear_opinion_pool(logs([0.5, 0.5])[0])
    with pytest.raises(ValueError, match="NaN"):
        linear_opinion_pool(logs([0.5, math.nan]))
    with pytest.raises(ValueError, match="not negative"):
        linear_opinion_pool(logs([0.5, 0.5]), [-1.0])


@pytest.mark.parametrize("pool", [log_opinion_pool, linear_opinion_pool])
def test_weights_by_group_are_those_of_each_group(pool):
    torch.manual_seed(1)
    sources = torch.randn(3, 2, 4, 5, dtype=torch.float64).log_softmax(-1)
    sources[0, 0, 0, :3] = -math.inf
    sources[:, 1, 3] = -math.inf
    sources[1, 0, 0, 2:] = -math.inf  # nothing is shared there
    weights = torch.rand(3, 2, 4, dtype=torch.float64)
    weights[2, 0] = 0
    found = pool(sources, weights)
    for sentence in range(2):
        for group in range(4):
            alone = pool(sources[:, sentence, group][:, None, None], weights[:, sentence, group])
            torch.testing.assert_close(found[sentence, group], alone[0, 0])
    even = torch.full((3, 2, 4), 2.0)
    torch.testing.assert_close(pool(sources, even), pool(sources))


def test_weights_by_group_must_fit_the_groups():
    sources = torch.zeros(3, 2, 4, 5).log_softmax(-1)
    with pytest.raises(ValueError, match=r"\(S,\) or \(S, B, G\); found shape \(3, 4, 2\)"):
        log_opinion_pool(sources, torch.ones(3, 4, 2))
    weights = torch.ones(3, 2, 4)
    weights[:, 1, 2] = 0
    with pytest.raises(ValueError, match="not all zero"):
        log_opinion_pool(sources, weights)
