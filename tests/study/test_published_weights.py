"""The published search for weights, against torch's own optimiser and scheduler on the padded tensors."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from published_weights import PublishedSearch, published_weights

from helpers.random_pools import losses, problem
from hf_xst.charts import GoldGroups, log_opinion_pool
from hf_xst.charts.weights import best_weights


def plainly(marginals, gold, batches, units, search):
    """The search as its description goes; `batches` gives the sentences of each step, epoch by epoch."""
    sources = marginals.shape[0]
    logits = torch.full((sources,), math.log(1 / sources), dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.SGD([logits], lr=search.learning_rate)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimiser, search.decay)
    norm, steps = logits.norm().item(), 0
    for epoch in range(search.epochs):
        for batch in batches[epoch % len(batches)]:
            pooled = log_opinion_pool(marginals[:, batch], logits.softmax(0), 1e-9)
            loss = losses(pooled, gold[batch]).sum() / units[batch].sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            steps += 1
            if abs(logits.norm().item() - norm) < search.tolerance:
                return logits.softmax(0).tolist(), steps
            norm = logits.norm().item()
        scheduler.step()
    return logits.softmax(0).tolist(), steps


@pytest.mark.parametrize("tolerance", [1e-3, 1e-5, 0.0])
@pytest.mark.parametrize("seed", range(4))
def test_one_batch_is_gradient_descent_with_the_stopping_rule(seed, tolerance):
    marginals, gold = problem(seed, sharpness=2.5)
    units = torch.tensor([7, 5])
    search = PublishedSearch(tolerance=tolerance, epochs=30)
    found, updates = published_weights(GoldGroups.of(marginals, gold, 1e-9), units.numpy(), search=search)
    expected, steps = plainly(marginals, gold, [[[0, 1]]], units, search)
    assert found.tolist() == pytest.approx(expected, abs=1e-9)
    assert updates == steps
    assert found.sum() == pytest.approx(1)


def test_sentences_of_like_length_share_batches():
    torch.manual_seed(0)
    marginals = torch.randn(2, 3, 25, 3, dtype=torch.float64).log_softmax(-1)
    gold = torch.randint(0, 3, (3, 25))
    gold[0, 8:] = gold[1, 9:] = -1
    units = torch.tensor([9, 10, 26])
    search = PublishedSearch(tolerance=0.0, epochs=1)
    groups = GoldGroups.of(marginals, gold, 1e-9)
    orders = [plainly(marginals, gold, [order], units, search)[0] for order in ([[0, 1], [2]], [[2], [0, 1]])]
    for seed in range(6):
        found, updates = published_weights(groups, units.numpy(), seed=seed, search=search)
        assert updates == 2
        assert min(np.abs(found - order).max() for order in np.array(orders)) < 1e-12
    small = PublishedSearch(tolerance=0.0, epochs=1, batch_size=1)
    assert published_weights(groups, units.numpy(), search=small)[1] == 3


def test_the_first_step_away_from_even_logits_often_ends_it():
    """A step of 0.1 in logits of norm 1.9 changes the norm by less than 0.003."""
    stopped_at_once, costs = 0, []
    for seed in range(10):
        groups = GoldGroups.of(*problem(seed, sentences=8), 1e-9)
        found, updates = published_weights(groups, np.full(8, 7))
        stopped_at_once += updates == 1
        costs.append(groups.losses(found).mean() - groups.losses(best_weights(groups)).mean())
    assert stopped_at_once >= 8
    assert min(costs) > 0


def test_sentences_without_gold_take_no_part():
    marginals, gold = problem(2, sentences=3)
    gold[2] = -1
    more = published_weights(GoldGroups.of(marginals, gold, 1e-9), np.array([7, 5, 9]))
    fewer = published_weights(GoldGroups.of(marginals[:, :2], gold[:2], 1e-9), np.array([7, 5]))
    assert more[0].tolist() == fewer[0].tolist()
