"""Learned pool weights are the optimum: against a grid, on the border, and what is refused."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_xst.charts import learn_weights, log_opinion_pool


def mean_loss(
    marginals: torch.Tensor, gold: torch.Tensor, weights: torch.Tensor, floor: float = 0.0
) -> float:
    found = log_opinion_pool(marginals, weights, floor).gather(-1, gold.clamp(min=0)[..., None])[..., 0]
    return -found[gold >= 0].mean().item()


def problem(seed: int, sources: int, sharpness: float = 1.5) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(seed)
    marginals = (torch.randn(sources, 2, 6, 4, dtype=torch.float64) * sharpness).log_softmax(-1)
    gold = torch.randint(0, 4, (2, 6))
    gold[1, 4:] = -1
    return marginals, gold


@given(st.integers(0, 1000), st.sampled_from([0.0, 1e-9, 1e-2]))
def test_no_point_of_a_grid_is_better_for_two_sources(seed, floor):
    marginals, gold = problem(seed, 2)
    weights = learn_weights(marginals, gold, floor)
    assert (weights >= 0).all()
    assert weights.sum().item() == pytest.approx(1)
    best = mean_loss(marginals, gold, weights, floor)
    for share in torch.linspace(0, 1, 41, dtype=torch.float64):
        assert best <= mean_loss(marginals, gold, torch.stack([share, 1 - share]), floor) + 1e-9


@settings(max_examples=8)
@given(st.integers(0, 1000))
def test_no_point_of_a_grid_is_better_for_three_sources(seed):
    marginals, gold = problem(seed, 3)
    best = mean_loss(marginals, gold, learn_weights(marginals, gold))
    steps = 12
    for a in range(steps + 1):
        for b in range(steps + 1 - a):
            weights = torch.tensor([a, b, steps - a - b], dtype=torch.float64) / steps
            assert best <= mean_loss(marginals, gold, weights) + 1e-9


def test_a_source_that_is_always_right_gets_all_the_weight():
    gold = torch.tensor([[0, 1, 2]])
    right = torch.full((1, 3, 3), 0.05, dtype=torch.float64)
    right.scatter_(-1, gold[..., None], 0.9)
    wrong = torch.full((1, 3, 3), 0.45, dtype=torch.float64)
    wrong.scatter_(-1, gold[..., None], 0.1)
    weights = learn_weights(torch.stack([wrong, right, wrong]).log(), gold)
    assert weights.tolist() == [0.0, 1.0, 0.0]


def test_equal_sources_have_many_optima_with_the_same_loss():
    marginals, gold = problem(3, 1)
    twice = marginals.expand(2, -1, -1, -1)
    weights = learn_weights(twice, gold)
    assert weights.sum().item() == pytest.approx(1)
    assert mean_loss(twice, gold, weights) == pytest.approx(
        mean_loss(marginals, gold, torch.ones(1).double())
    )


def test_one_source_has_weight_one_in_the_callers_precision():
    marginals, gold = problem(4, 1)
    weights = learn_weights(marginals.float(), gold)
    assert weights.tolist() == [1.0]
    assert weights.dtype == torch.float32


def test_the_order_of_sources_does_not_matter():
    marginals, gold = problem(5, 3)
    order = [2, 0, 1]
    torch.testing.assert_close(
        learn_weights(marginals[order], gold), learn_weights(marginals, gold)[order], rtol=0, atol=1e-6
    )


def test_groups_without_gold_do_not_count():
    marginals, gold = problem(6, 2)
    other = marginals.clone()
    other[:, 1, 4:] = torch.tensor([0.97, 0.01, 0.01, 0.01]).log()
    torch.testing.assert_close(learn_weights(other, gold), learn_weights(marginals, gold))


def test_a_gold_candidate_of_probability_zero_is_named():
    marginals, gold = problem(7, 2)
    gold[0, 3], marginals[1, 0, 3] = 2, torch.tensor([0.5, 0.5, 0.0, 0.0]).log()
    with pytest.raises(
        ValueError, match=r"probability 0 in \(sentence 0, group 3\); use a floor such as 1e-9"
    ):
        learn_weights(marginals, gold)
    weights = learn_weights(marginals, gold, 1e-9)
    assert weights.isfinite().all()
    marginals[1, :, :, :] = -math.inf
    with pytest.raises(ValueError, match=r"\(sentence 0, group 0\), .* and \d+ more"):
        learn_weights(marginals.repeat(1, 2, 1, 1), gold.repeat(2, 1))


def test_no_gold_and_wrong_shapes_are_rejected():
    marginals, gold = problem(8, 2)
    for place in (0, 1):  # whether the gold candidate or another one
        broken = marginals.clone()
        broken[1, 0, 0, place] = math.nan
        with pytest.raises(ValueError, match="a log-marginal is NaN"):
            learn_weights(broken, torch.zeros_like(gold))
    with pytest.raises(ValueError, match="gold holds no candidate"):
        learn_weights(marginals, torch.full_like(gold, -1))
    with pytest.raises(ValueError, match=r"expected log-marginals \(S, B, G, C\) and gold \(B, G\)"):
        learn_weights(marginals, gold[0])
    with pytest.raises(ValueError, match=r"expected log-marginals"):
        learn_weights(marginals[0], gold)


def test_a_source_that_is_worth_only_what_it_excludes_keeps_a_trace():
    """At floor 0 a source of weight 0 excludes nothing: the weights must hold for the pool that uses them."""
    marginals = torch.tensor([[[[0.30, 0.05, 0.65]]], [[[0.5, 0.5, 0.0]]]], dtype=torch.float64).log()
    gold = torch.tensor([[0]])
    weights = learn_weights(marginals, gold)
    assert weights[1] > 0
    best = mean_loss(marginals, gold, weights)
    for share in torch.linspace(0, 1, 21, dtype=torch.float64):
        assert best <= mean_loss(marginals, gold, torch.stack([share, 1 - share])) + 1e-5
