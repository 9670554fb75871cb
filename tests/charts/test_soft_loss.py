"""The soft loss is a cross-entropy; stored charts can be narrowed to what a smaller sigma would have kept."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers.categorical import IndependentGroups
from hf_xst.charts import soft_loss, threshold
from hf_xst.charts.dataset import from_ragged, narrowed, stored_log_probs, to_log_probs, to_ragged
from hf_xst.structures import DependencyTreeCRF, LinearChainCRF

LENGTHS = torch.tensor([3, 2])


def trees(seed: int, labels: int = 2):
    torch.manual_seed(seed)
    return DependencyTreeCRF(torch.randn(2, 4, 4, labels, dtype=torch.float64), LENGTHS)


def chains(seed: int):
    torch.manual_seed(seed)
    return LinearChainCRF(torch.randn(2, 2, 3, 3, dtype=torch.float64), LENGTHS)


@pytest.mark.parametrize("make", [trees, chains])
def test_it_is_the_expected_negative_log_probability(make):
    teacher, student = make(1), make(2)
    found = soft_loss(student, teacher.group_view(teacher.scores))
    best = teacher.topk(60)
    expected = torch.zeros(2, dtype=torch.float64)
    mass = torch.zeros(2, dtype=torch.float64)
    for place in range(60):
        one = tuple(part[place] for part in best) if isinstance(best, tuple) else best[place]
        real = teacher.contains(one)
        probability = torch.where(real, teacher.log_prob(one).exp(), 0.0)
        expected += torch.where(real, probability * -student.log_prob(one), 0.0)
        mass += probability
    # Of three words there are 9 labelled trees a shape; the longer sentence may have more than were listed.
    complete = mass > 1 - 1e-9
    assert bool(complete[1])
    torch.testing.assert_close(found[complete], expected[complete])


@pytest.mark.parametrize("make", [trees, chains])
def test_its_gradient_is_the_difference_of_marginals_and_vanishes_at_the_teacher(make):
    teacher, student = make(3), make(4)
    leaf = student.scores.clone().requires_grad_()
    soft_loss(student.with_scores(leaf), teacher.group_view(teacher.scores)).sum().backward()
    torch.testing.assert_close(leaf.grad, student.marginals() - teacher.marginals())
    again = teacher.scores.clone().requires_grad_()
    loss = soft_loss(teacher.with_scores(again), teacher.group_view(teacher.scores))
    loss.sum().backward()
    torch.testing.assert_close(again.grad, torch.zeros_like(again), atol=1e-12, rtol=0)
    torch.testing.assert_close(loss.detach(), teacher.entropy())


def test_impossible_candidates_do_not_count_and_the_rest_is_normalised():
    scores = torch.tensor([[[0.0, 1.0, -torch.inf]]], dtype=torch.float64)
    distribution = IndependentGroups(scores)
    found = soft_loss(distribution, torch.tensor([[[0.2, 0.2, 0.6]]]).log())
    log_probs = scores.log_softmax(-1)[0, 0]
    torch.testing.assert_close(found, -(log_probs[:1] + log_probs[1:2]) / 2)


def test_pooled_probabilities_that_no_distribution_has_leave_it_bounded():
    # Each of two words is said to hang from the other almost surely: no tree has both arcs.
    log_probs = torch.full((1, 3, 3, 1), -20.0, dtype=torch.float64)
    log_probs[0, 1, 2] = log_probs[0, 2, 1] = -1e-3
    pooled = DependencyTreeCRF(log_probs)
    scores = torch.zeros_like(log_probs)
    losses = []
    for size in (0.0, 1.0, 10.0, 100.0):
        scores[0, 1, 2] = scores[0, 2, 1] = size
        losses.append(float(soft_loss(DependencyTreeCRF(scores.clone()), pooled.group_view(log_probs))))
    assert min(losses) >= float(pooled.entropy()) - 1e-9


def test_a_pool_without_any_structure_is_recognised_and_moves_nothing():
    nothing = torch.full((2, 3, 8), -torch.inf, dtype=torch.float64)
    leaf = trees(0).scores.clone().requires_grad_()
    loss = soft_loss(trees(0).with_scores(leaf), nothing)
    loss.sum().backward()
    assert loss.tolist() == [math.inf, math.inf]
    assert not bool(leaf.grad.isnan().any())
    assert float(leaf.grad.abs().sum()) == 0


def test_another_shape_is_rejected():
    with pytest.raises(ValueError, match=r"expected \(B, G, C\) = \(2, 3, 8\)"):
        soft_loss(trees(0), torch.zeros(2, 3, 9))


@given(st.integers(0, 10_000), st.floats(0.05, 0.9))
def test_narrowing_keeps_what_a_smaller_sigma_would_have_kept(seed, sigma):
    torch.manual_seed(seed)
    log_probs = (torch.randn(3, 4, 6) * 2).log_softmax(-1)
    everything = torch.ones_like(log_probs, dtype=torch.bool)
    wide = threshold(log_probs, 0.99, everything)
    rows = [to_ragged(wide[b], 4, log_probs[b]) for b in range(3)]
    triples, stored = from_ragged(rows), stored_log_probs(rows)
    kept = torch.zeros_like(everything)
    chosen = triples[narrowed(triples, stored, sigma)]
    kept[chosen[:, 0], chosen[:, 1], chosen[:, 2]] = True
    assert torch.equal(kept, threshold(to_log_probs(triples, stored, everything), sigma, everything))


def test_charts_without_log_probabilities_are_named():
    row = {**to_ragged(torch.ones(1, 2, dtype=torch.bool), 1), "sent_id": "s7"}
    with pytest.raises(ValueError, match=r"sentence s7: .*--keep-log-probs"):
        stored_log_probs([row])
