"""Weights by group: they come from certainty, fit the gold better, and go to JSON and back."""

from __future__ import annotations

import json
import math

import numpy as np
import torch
from grouped_weights import GroupedWeights, certainty, certainty_of_groups, learn_grouped_weights
from hypothesis import given
from hypothesis import strategies as st

from helpers.random_pools import losses, problem
from hf_xst.charts import GoldGroups, log_opinion_pool
from hf_xst.charts.weights import best_weights


def certain_or_blind(seed: int, groups: int = 200) -> tuple[torch.Tensor, torch.Tensor]:
    """Two sources that are right where they are sure, and say wrong things where they are not."""
    torch.manual_seed(seed)
    gold = torch.randint(0, 5, (1, groups))
    expert = torch.randint(0, 2, (groups,))
    scores = torch.randn(2, 1, groups, 5, dtype=torch.float64)
    wrong = (gold[0] + torch.randint(1, 5, (groups,))) % 5
    for source in range(2):
        right = expert == source
        scores[source, 0].scatter_add_(-1, gold[0][:, None], 5.0 * right[:, None].double())
        scores[source, 0].scatter_add_(-1, wrong[:, None], 1.5 * (~right)[:, None].double())
    return scores.log_softmax(-1), gold


def test_sources_get_their_weight_where_they_are_sure():
    marginals, gold = certain_or_blind(0)
    groups = GoldGroups.of(marginals, gold, 1e-9)
    found = learn_grouped_weights(groups)
    fixed = groups.losses(best_weights(groups)).mean()
    assert groups.losses(found.of_groups(groups)).mean() < fixed - 0.05
    # Also where it has not learned.
    marginals, gold = certain_or_blind(1)
    fresh = GoldGroups.of(marginals, gold, 1e-9)
    by_group = log_opinion_pool(marginals, found.weights(marginals), 1e-9)
    assert losses(by_group, gold).mean() < fresh.losses(best_weights(fresh)).mean() - 0.05
    surer = marginals.amax(-1).argmax(0)
    assert (found.weights(marginals).argmax(0) == surer).double().mean() > 0.9


@given(st.integers(0, 1000))
def test_dense_and_ragged_weights_agree_and_sum_to_one(seed):
    marginals, gold = problem(seed)
    marginals[0, 0, 0, :2] = -math.inf
    marginals[:, 1, -1] = -math.inf
    groups = GoldGroups.of(marginals, gold, 1e-9)
    found = GroupedWeights(np.random.default_rng(seed).normal(size=(3, 3)))
    dense = found.weights(marginals)
    torch.testing.assert_close(dense.sum(0), torch.ones_like(dense[0]))
    np.testing.assert_allclose(found.of_groups(groups), dense.permute(1, 2, 0)[gold >= 0].numpy(), 1e-5)
    pooled = losses(log_opinion_pool(marginals, dense, 1e-9), gold)
    np.testing.assert_allclose(groups.losses(found.of_groups(groups)), pooled.numpy(), 1e-5)
    assert found.weights(marginals.float()).dtype == torch.float32


def test_it_is_a_minimum_of_loss_and_shrinkage():
    marginals, gold = problem(4, sentences=4)
    groups = GoldGroups.of(marginals, gold, 1e-9)
    found = learn_grouped_weights(groups, shrinkage=1e-2)
    leaf = torch.tensor(found.parameters, requires_grad=True)
    features = torch.from_numpy(certainty_of_groups(groups))
    weights = torch.softmax(leaf[:, 0] + (features * leaf[:, 1:]).sum(-1), -1)
    by_group = torch.full((3, *gold.shape), 1 / 3, dtype=torch.float64)
    by_group = by_group.masked_scatter((gold >= 0).expand(3, -1, -1), weights.T.contiguous())
    loss = losses(log_opinion_pool(marginals, by_group, 1e-9), gold).mean() + 1e-2 * (leaf**2).sum()
    loss.backward()
    assert leaf.grad.abs().max() < 1e-4
    assert np.abs(learn_grouped_weights(groups, shrinkage=1e3).parameters).max() < 1e-3


def test_parameters_go_to_json_and_back_by_name():
    marginals, _ = problem(5)
    found = GroupedWeights(np.arange(9.0).reshape(3, 3))
    content = json.loads(json.dumps(found.by_name(["a", "b", "c"])))
    assert content["b"] == {"bias": 3.0, "negative_entropy": 4.0, "log_top": 5.0}
    order = [2, 0, 1]
    turned = GroupedWeights.from_names(content, ["c", "a", "b"])
    torch.testing.assert_close(turned.weights(marginals[order]), found.weights(marginals)[order])


def test_certainty_by_hand():
    log_marginals = torch.tensor([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5], [0.0, 0.0, 0.0]]).double().log()
    expected = [[-math.log(2), math.log(0.5)], [-1.5 * math.log(2), math.log(0.5)], [0, 0]]
    torch.testing.assert_close(certainty(log_marginals), torch.tensor(expected, dtype=torch.float64))
