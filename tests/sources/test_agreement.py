"""Source ranking without labels: each measure by its definition, rankings, and selection."""

from __future__ import annotations

import math
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import stats

from helpers.categorical import IndependentGroups
from helpers.small_models import gold, model_of, unlabelled
from hf_xst.charts.chart import SourceDistributions
from hf_xst.sources.agreement import (
    AGREEMENT_POWER,
    MEASURES,
    add_totals,
    agreement_weights,
    mean_measures,
    measure_sources,
    rank_correlations,
    rank_sources,
    select_sources,
    source_terms,
    spearman,
)
from hf_xst.sources.pool import SourcePool

FLOOR = 1e-6


def by_definition(scores, lengths, sigma):
    """The measures of each source by loops over groups: (S, B, G, C) scores."""
    probs = scores.double().softmax(-1).numpy()
    sources, _, _, count = probs.shape
    groups = [(b, g) for b, length in enumerate(lengths) for g in range(length)]
    raised = (probs + FLOOR) / (1 + count * FLOOR)
    table = []
    for s in range(sources):
        agreement = divergence = entropy = size = 0.0
        for b, g in groups:
            own = probs[s, b, g]
            others = np.prod(
                [raised[o, b, g] ** (1 / (sources - 1)) for o in range(sources) if o != s], axis=0
            )
            others = others / others.sum()
            agreement += others[own.argmax()]
            divergence += (others * np.log(others / raised[s, b, g])).sum()
            entropy -= (own * np.log(own)).sum()
            kept = 1 + int((np.cumsum(np.sort(own)[::-1]) < sigma).sum())
            size += math.log(min(kept, count))
        n = len(groups)
        table.append({"agreement": agreement / n, "divergence": divergence / n})
        table[-1] |= {"entropy": entropy / n, "chart_size": size / n}
    return table


def batch_of(scores, lengths):
    return SourceDistributions([IndependentGroups(each, torch.tensor(lengths)) for each in scores]), sum(
        lengths
    )


def test_every_measure_matches_its_definition():
    scores, lengths = torch.randn(3, 2, 4, 5) * 2, [4, 2]
    totals = {}
    for place in range(2):  # batches add up
        batch = batch_of(scores[:, place : place + 1], lengths[place : place + 1])
        add_totals(totals, source_terms(["a", "b", "c"], *batch, sigma=0.7, floor=FLOOR))
    found = mean_measures(totals)
    for mine, wanted in zip(found.values(), by_definition(scores, lengths, 0.7), strict=True):
        assert mine == pytest.approx(wanted, rel=1e-4)


def test_the_share_of_correct_candidates_with_gold():
    scores = torch.zeros(1, 1, 3, 2)
    scores[..., 1] = 1.0
    terms = source_terms(["a"], *batch_of(scores, [3]), torch.tensor([[1, 0, -1]]))
    found = mean_measures(terms)["a"]
    assert found["right"] == pytest.approx(1 / 3)  # what nobody can know is not right
    assert math.isnan(found["agreement"])  # there are no others
    assert found["entropy"] > 0


def test_rankings_follow_the_sign_of_the_measure():
    found = {
        "a": {"agreement": 0.5, "divergence": 1.0, "entropy": 0.2, "chart_size": None},
        "b": {"agreement": 0.9, "divergence": 2.0, "entropy": 0.1, "chart_size": 1.0},
        "c": {"agreement": math.nan, "divergence": 0.5, "entropy": 0.1, "chart_size": 0.5},
    }
    assert rank_sources(found) == ["b", "a", "c"]
    assert rank_sources(found, "divergence") == ["c", "a", "b"]
    assert rank_sources(found, "entropy") == ["b", "c", "a"]  # equal ones as given
    assert rank_sources(found, "chart_size") == ["c", "b", "a"]
    with pytest.raises(ValueError, match="measure is 'luck'; expected 'agreement' or 'divergence'"):
        rank_sources(found, "luck")


def test_rank_correlation_with_true_scores():
    values = {"a": 0.9, "b": 0.7, "c": 0.8, "d": 0.1}
    found = {name: dict.fromkeys(MEASURES, value) for name, value in values.items()}
    truth = {"a": 60.0, "b": 50.0, "c": 70.0, "d": 10.0, "unused": 99.0}
    table = rank_correlations(found, truth)
    assert table["agreement"]["rho"] == pytest.approx(0.8)  # 1 - 6 * 2 / (4 * 15)
    assert table["entropy"]["rho"] == pytest.approx(-0.8)
    assert (table["agreement"]["chosen"], table["agreement"]["best"]) == ("a", "c")
    assert table["agreement"]["regret"] == pytest.approx(10)
    assert (table["entropy"]["chosen"], table["entropy"]["regret"]) == ("d", pytest.approx(60))
    found["a"]["entropy"] = None
    assert rank_correlations(found, truth)["entropy"]["n"] == 3


@pytest.fixture(scope="module")
def pool():
    """Three models with the same parameters but for little noise, and one that knows nothing of them."""
    models = {}
    for number in range(4):
        model = model_of("groups", seed=7)
        with torch.no_grad():
            torch.manual_seed(number)
            model.output.weight *= 4
            model.output.weight += 0.1 * torch.randn(model.output.weight.shape)
            if number == 1:
                model.output.weight.copy_(-model.output.weight)
        models[f"m{number}"] = model
    return SourcePool(models, models["m0"].names)


def test_an_outlier_ranks_last(pool):
    rows = unlabelled(gold((3, 2, 5, 4)))
    chosen = select_sources(pool, rows, 4)
    assert chosen[-1] == "m1"
    assert (
        select_sources(pool, rows, 2, "divergence", batch_words=4)
        == select_sources(pool, rows, 4, "divergence")[:2]
    )
    assert select_sources(pool, list(rows), 2) == chosen[:2]


def test_an_outlier_gets_a_small_weight(pool):
    rows = unlabelled(gold((3, 2, 5, 4)))
    measures = measure_sources(pool, rows, batch_words=4)
    weights = agreement_weights(measures)
    assert sum(weights.values()) == pytest.approx(1)
    assert min(weights, key=weights.get) == "m1"
    ratio = measures["m1"]["agreement"] / measures["m0"]["agreement"]
    assert weights["m1"] == pytest.approx(weights["m0"] * ratio**AGREEMENT_POWER, abs=1e-6)


@pytest.mark.parametrize("value", [0.0, math.nan])
def test_weights_are_equal_without_agreement(value):
    found = {"a": {"agreement": value}, "b": {"agreement": value}}
    assert agreement_weights(found) == {"a": 0.5, "b": 0.5}


@pytest.mark.parametrize(
    ("count", "measure", "rows", "message"),
    [
        (0, "agreement", 1, "cannot select 0 of 4 sources: m0, m1, m2, m3"),
        (5, "agreement", 1, "cannot select 5 of 4 sources"),
        (1, "luck", 1, "measure is 'luck'"),
        (1, "agreement", 0, "comparing sources requires sentences"),
    ],
)
def test_impossible_selections_are_rejected(pool, count, measure, rows, message):
    given = [{"words": ["w1"]}] * rows
    with pytest.raises(ValueError, match=message):
        select_sources(pool, given, count, measure)


def test_no_labels_are_read(pool):
    rows = [{"words": ["w1", "w2"], "mark": SimpleNamespace()}]
    assert len(select_sources(pool, rows, 3)) == 3


def test_rank_correlation_is_exact_for_few_points():
    for size in (3, 5):
        first, second = torch.randn(size).tolist(), torch.randn(size).tolist()
        rho, p = spearman(first, second)
        orders = [stats.spearmanr(first, order).statistic for order in permutations(second)]
        assert rho == pytest.approx(stats.spearmanr(first, second).statistic)
        assert p == pytest.approx(np.mean(np.abs(orders) >= abs(rho) - 1e-9))
    many = (torch.randn(12).tolist(), torch.randn(12).tolist())
    assert spearman(*many) == pytest.approx(tuple(stats.spearmanr(*many)))
    for few in (([1, 2], [2, 1]), ([1, 1, 1], [1, 2, 3])):
        assert all(math.isnan(value) for value in spearman(*few))
