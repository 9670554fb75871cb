"""The loss of a chart: bounds, sums over a batch, and charts that hold nothing."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.categorical import IndependentGroups
from hf_xst.charts import best_mask, chart_loss
from hf_xst.structures import DependencyTreeCRF, LinearChainCRF, Structure

LENGTHS = torch.tensor([1, 3, 2])


def structures(seed: int = 0, scale: float = 1.0) -> list[Structure]:
    torch.manual_seed(seed)
    trees = torch.randn(3, 4, 4, 2) * scale
    pairs = torch.randn(3, 3, 3, 3) * scale
    groups = torch.randn(3, 3, 4) * scale
    return [
        DependencyTreeCRF(trees.requires_grad_(), LENGTHS),
        DependencyTreeCRF(
            trees.detach().clone().requires_grad_(), LENGTHS, single_root=False, projective=True
        ),
        LinearChainCRF(pairs.requires_grad_(), LENGTHS + 1),
        IndependentGroups(groups.requires_grad_(), LENGTHS),
    ]


@settings(max_examples=15)
@given(st.integers(0, 50), st.sampled_from([0.1, 1.0, 30.0, 1000.0]))
def test_never_negative_and_nothing_for_the_whole_space(seed, scale):
    for structure in structures(seed, scale):
        chart = (torch.rand(structure.valid.shape) < 0.7) | best_mask(structure)
        loss = chart_loss(structure, chart)
        assert (loss >= 0).all()
        assert loss.isfinite().all()
        torch.testing.assert_close(chart_loss(structure, structure.valid), torch.zeros(3))
        torch.testing.assert_close(chart_loss(structure, torch.ones_like(chart)), torch.zeros(3))
        smaller = chart & ((torch.rand(chart.shape) < 0.5) | best_mask(structure))
        assert (chart_loss(structure, smaller) >= loss - 1e-4 * scale).all()


def test_a_chart_of_one_structure_costs_its_negative_log_probability():
    for structure in structures():
        loss = chart_loss(structure, best_mask(structure))
        torch.testing.assert_close(loss, -structure.log_prob(structure.best()))


def test_independent_groups_add_up():
    structure = structures()[3]
    chart = torch.rand(structure.valid.shape) < 0.5
    chart[..., 0] = True
    probabilities = structure.scores.softmax(-1)
    by_group = -(probabilities * chart).sum(-1).log()
    expected = torch.where(structure.valid[..., 0], by_group, 0.0).sum(-1)
    torch.testing.assert_close(chart_loss(structure, chart), expected)


def test_a_batch_is_its_sentences():
    for structure in structures():
        chart = (torch.rand(structure.valid.shape) < 0.5) | best_mask(structure)
        together = chart_loss(structure, chart)
        for place in range(3):
            alone = structure.select(torch.tensor([place]))
            torch.testing.assert_close(
                chart_loss(alone, chart[place : place + 1]), together[place : place + 1]
            )


def test_an_empty_chart_is_infinite_and_leaves_its_batch_mates_alone():
    for structure in structures():
        chart = (torch.rand(structure.valid.shape) < 0.6) | best_mask(structure)
        chart_loss(structure, chart)[[0, 2]].sum().backward()
        expected, structure.scores.grad = structure.scores.grad.clone(), None
        chart[1, 0] = False
        loss = chart_loss(structure, chart)
        assert loss.isinf().tolist() == [False, True, False]
        torch.where(loss.isinf(), 0.0, loss).sum().backward()
        torch.testing.assert_close(structure.scores.grad, expected)
        assert (structure.scores.grad[1] == 0).all()


def test_marginals_explain_the_gradient():
    for structure in structures():
        chart = (torch.rand(structure.valid.shape) < 0.6) | best_mask(structure)
        chart_loss(structure, chart).sum().backward()
        inside = structure.restricted_to(structure.part_view(chart)).marginals()
        torch.testing.assert_close(
            structure.scores.grad, structure.marginals() - inside, atol=1e-5, rtol=1e-4
        )


def test_wrong_shape_is_rejected():
    structure = structures()[3]
    with pytest.raises(ValueError, match=r"shape \(3, 3, 5\); expected \(B, G, C\) = \(3, 3, 4\)"):
        chart_loss(structure, torch.ones(3, 3, 5, dtype=torch.bool))


def test_sharp_scores_do_not_cancel():
    """Log-partitions of a million that differ by 3: the difference is what is left of both."""
    scores = torch.tensor([[[1e6, 1e6 - 3.0, 0.0]]])
    loss = chart_loss(IndependentGroups(scores), torch.tensor([[[False, True, False]]]))
    assert loss.item() == pytest.approx(3.0 + math.log1p(math.exp(-3.0)), rel=1e-5)
