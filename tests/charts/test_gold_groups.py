"""Groups with gold, one after another, tell the same as the padded tensors; the optimum of the weights."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

from helpers.random_pools import losses, problem
from hf_xst.charts import GoldGroups, learn_weights, log_opinion_pool
from hf_xst.charts.weights import PoolProblem, best_weights


def with_zeros(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A problem in which sources exclude candidates, never the gold one, and padding has no candidate."""
    marginals, gold = problem(seed, groups=5)
    excluded = torch.rand(marginals.shape) < 0.3
    excluded.scatter_(-1, gold.clamp(min=0)[None, ..., None].expand(3, -1, -1, 1), False)
    marginals = marginals.masked_fill(excluded, -math.inf).log_softmax(-1)
    marginals[:, 1, 3:] = -math.inf
    return marginals, gold


@given(st.integers(0, 1000), st.sampled_from([0.0, 1e-9, 1e-2]), st.booleans())
def test_losses_are_those_of_the_pool(seed, floor, all_valid):
    marginals, gold = with_zeros(seed)
    valid = torch.ones_like(marginals[0], dtype=torch.bool) if all_valid else None
    groups = GoldGroups.of(marginals, gold, floor, valid=valid)
    torch.manual_seed(seed)
    by_group = torch.rand(3, *gold.shape, dtype=torch.float64)
    fixed = [[1.0, 1.0, 1.0], [0.7, 0.3, 0.0], [0.0, 1.0, 0.0]]
    for weights in (*torch.tensor(fixed, dtype=torch.float64), by_group):
        shares = weights / weights.sum(0)
        own = shares.numpy() if shares.dim() == 1 else shares.permute(1, 2, 0)[gold >= 0].numpy()
        expected = losses(log_opinion_pool(marginals, weights, floor, valid=valid), gold)
        np.testing.assert_allclose(groups.losses(own), expected.numpy(), rtol=1e-9, atol=1e-12)


@given(st.integers(0, 1000), st.sampled_from([0.0, 1e-9]))
def test_batches_joined_are_one_batch(seed, floor):
    marginals, gold = with_zeros(seed)
    whole = GoldGroups.of(marginals, gold, floor)
    parts = [
        GoldGroups.of(marginals[:, [place]], gold[[place]], floor, sentences=[place]) for place in (0, 1)
    ]
    joined = GoldGroups.joined(parts)
    for name in ("logs", "starts", "gold", "places"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(whole, name))
    rows = joined.places[:, 0] == 1
    second = joined.selected(rows[joined.owner], rows)
    for name in ("logs", "starts", "gold", "places"):
        np.testing.assert_array_equal(getattr(second, name), getattr(parts[1], name))


def test_only_candidates_that_matter_are_kept():
    marginals, gold = with_zeros(3)
    groups = GoldGroups.of(marginals, gold)
    supported = (marginals > -math.inf).any(0)[gold >= 0]
    assert np.bincount(groups.owner).tolist() == supported.sum(-1).tolist()
    assert len(groups) == int((gold >= 0).sum())
    assert np.isfinite(groups.shared().logs).all()
    assert len(groups.shared()) == len(groups)


def test_gold_without_any_support_has_the_floors_probability():
    marginals = torch.tensor([[[[0.5, 0.5, 0.0]]]], dtype=torch.float64).log()
    groups = GoldGroups.of(marginals, torch.tensor([[2]]), 1e-3)
    assert groups.losses(np.ones(1))[0] == pytest.approx(-math.log(1e-3 / 1.003))
    with pytest.raises(ValueError, match=r"probability 0 in \(the first, group 0\)"):
        GoldGroups.of(marginals, torch.tensor([[2]])).check(lambda number: ["the first"][number])


@given(st.integers(0, 1000), st.sampled_from([0.0, 1e-3]))
def test_derivatives_are_those_of_finite_differences(seed, floor):
    pool = PoolProblem(GoldGroups.of(*problem(seed), floor))
    weights, step = np.array([0.5, 0.2, 0.3]), 1e-5
    for place in range(3):
        move = step * np.eye(3)[place]
        slope = (pool.value(weights + move) - pool.value(weights - move)) / (2 * step)
        bend = (pool.gradient(weights + move) - pool.gradient(weights - move)) / (2 * step)
        assert pool.gradient(weights)[place] == pytest.approx(slope, abs=1e-7)
        np.testing.assert_allclose(pool.hessian(weights)[place], bend, atol=1e-6)


@given(st.integers(0, 1000), st.integers(2, 5))
def test_the_optimum_meets_its_conditions(seed, sources):
    marginals, gold = problem(seed, sources, sentences=3)
    weights = learn_weights(marginals, gold)
    leaf = weights.clone().requires_grad_()
    losses(log_opinion_pool(marginals, leaf), gold).mean().backward()
    # Karush, Kuhn and Tucker: no direction within the simplex goes down. The pool normalises its weights,
    # so the gradient is orthogonal to them: 0 where a weight is positive, not negative at 0.
    assert leaf.grad[weights > 0].abs().max() < 1e-7
    assert (leaf.grad >= -1e-7).all()


@pytest.mark.parametrize(("seed", "sources"), [(0, 2), (1, 3), (2, 4)])
def test_another_optimiser_finds_the_same(seed, sources):
    marginals, gold = problem(seed, sources, sentences=3)

    def loss(weights: np.ndarray) -> float:
        return losses(log_opinion_pool(marginals, torch.from_numpy(weights.clip(1e-12))), gold).mean().item()

    found = minimize(
        loss,
        np.full(sources, 1 / sources),
        method="trust-constr",
        bounds=[(0, 1)] * sources,
        constraints=LinearConstraint(np.ones(sources), 1, 1),
    )
    weights = learn_weights(marginals, gold)
    np.testing.assert_allclose(weights.numpy(), found.x, atol=1e-3)
    assert losses(log_opinion_pool(marginals, weights), gold).mean().item() <= found.fun + 1e-9


def test_ragged_oracle_problems_reach_the_optimum(shared):
    """Each group with its own number of candidates, as batches of one: nothing is padded."""
    for entry in json.loads(shared("oracles", "lop_weights.json").read_text())["problems"]:
        parts = []
        for number, group in enumerate(entry["groups"]):
            marginals = torch.tensor(group["marginals"], dtype=torch.float64).log()[:, None, None]
            parts.append(GoldGroups.of(marginals, torch.tensor([[group["gold"]]]), sentences=[number]))
        groups = GoldGroups.joined(parts)
        weights, expected = best_weights(groups), entry["results"]
        if expected["optimum"]["unique"]:
            np.testing.assert_allclose(weights, expected["optimum"]["weights"], atol=1e-6)
        assert groups.losses(weights).mean() == pytest.approx(expected["optimum"]["mean_nll"], abs=1e-9)
        alone = [groups.losses(row).mean() for row in np.eye(groups.sources)]
        assert alone == pytest.approx(expected["source_mean_nll"], abs=1e-9)
        for point in (expected["at_uniform"], expected["at_probe"]):
            shares = np.array(point.get("weights", np.full(groups.sources, 1 / groups.sources)))
            slope = PoolProblem(groups).gradient(shares)
            by_logit = shares * (slope - shares @ slope)
            assert groups.losses(shares).mean() == pytest.approx(point["mean_nll"], abs=1e-9)
            np.testing.assert_allclose(by_logit, point["gradient_in_softmax_logits"], atol=1e-9)
