"""Distance of pools to gold, against enumeration, by law, and in the two ways to average it."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers.categorical import IndependentGroups
from helpers.chart_oracle import SPACES, entries, sources_of
from hf_xst.charts import log_opinion_pool, stacked_log_marginals
from hf_xst.charts.pooling import floored
from hf_xst.sources.agreement import add_totals
from hf_xst.sources.analysis import TERMS, distance_terms, mean_distances, split_distance


def gold_of(case, space, structure):
    gold = case["gold"]
    if space == "chain":
        return structure.candidates(torch.tensor([gold]))
    return structure.candidates((torch.tensor([gold["heads"]]), torch.tensor([gold["labels"]])))


@pytest.mark.parametrize("floor", [0.0, 1e-9])
@pytest.mark.parametrize("space", SPACES)
def test_values_found_by_enumeration(shared, space, floor):
    for case, expected in entries(shared, "build", space):
        sources = sources_of(case, space, torch.float64)
        marginals, gold = stacked_log_marginals(sources), gold_of(case, space, sources[0])
        for part in expected["lop"]:
            found = split_distance(marginals, gold, part["weights"], floor, valid=sources[0].valid)
            words = case["n"]
            result = mean_distances(distance_terms(sources[0], found, gold, words))["with_boundaries"]
            if floor:
                assert result["per_group"]["kl"] == pytest.approx(
                    part["with_1e-9_added"]["kl_mean"], abs=1e-9, rel=1e-9
                )
                continue
            wanted = part["kl"]
            assert found["kl"][0].tolist() == pytest.approx(wanted["per_group"], abs=1e-9)
            assert result["per_group"]["kl"] == pytest.approx(wanted["mean"], abs=1e-9)
            assert result["per_group"]["error"] == pytest.approx(wanted["error"], abs=1e-9)
            assert result["per_group"]["diversity"] == pytest.approx(wanted["diversity"], abs=1e-9)
            a_token = wanted["mean_over_tokens"] if space == "chain" else wanted["mean"]
            assert result["kl"] == pytest.approx(a_token, abs=1e-9)


@given(
    st.integers(1, 4),
    st.integers(1, 5),
    st.integers(0, 10**6),
    st.sampled_from([0.0, 1e-9, 1e-3]),
    st.floats(0.1, 30),
)
def test_distance_is_error_minus_diversity(sources, count, seed, floor, sharpness):
    draw = torch.Generator().manual_seed(seed)
    scores = torch.randn(sources, 2, 3, count, generator=draw, dtype=torch.float64) * sharpness
    marginals, weights = scores.log_softmax(-1), torch.rand(sources, generator=draw) + 0.01
    gold = torch.randint(-1, count, (2, 3), generator=draw)
    found = split_distance(marginals, gold, weights, floor)
    torch.testing.assert_close(found["kl"], found["error"] - found["diversity"], rtol=1e-9, atol=1e-9)
    for value in found.values():
        assert (value >= 0).all()
        assert (value[gold < 0] == 0).all()
    # By the definition: the weighted mean of KL(pool | source).
    pooled = log_opinion_pool(marginals, weights, floor)
    opinions = floored(marginals, floor, torch.ones(2, 3, count, dtype=torch.bool))
    apart = (pooled.exp() * (pooled - opinions)).sum(-1)
    mean = ((weights / weights.sum())[:, None, None] * apart).sum(0).masked_fill(gold < 0, 0)
    torch.testing.assert_close(found["diversity"], mean.to(torch.float64), rtol=1e-6, atol=1e-7)


def test_equal_sources_have_no_diversity_and_weight_zero_excludes_a_source():
    one = torch.tensor([[[0.7, 0.3, 0.0]]], dtype=torch.float64).log()
    gold = torch.tensor([[1]])
    alike = split_distance(torch.stack([one, one]), gold)
    assert alike["diversity"].item() == pytest.approx(0, abs=1e-12)
    assert alike["kl"].item() == pytest.approx(-math.log(0.3))
    silent = torch.tensor([[[1.0, 0.0, 0.0]]], dtype=torch.float64).log()
    weighed = split_distance(torch.stack([one, silent]), gold, [1, 0])
    assert {key: value.item() for key, value in weighed.items()} == pytest.approx(
        {key: value.item() for key, value in alike.items()}
    )


def test_excluded_gold_is_infinitely_far_without_a_floor():
    first = torch.tensor([0.5, 0.5, 0.0], dtype=torch.float64).log()
    second = torch.tensor([0.0, 0.5, 0.5], dtype=torch.float64).log()
    marginals, gold = torch.stack([first, second])[:, None, None], torch.tensor([[0]])
    found = split_distance(marginals, gold)
    assert found["kl"].item() == math.inf
    assert found["error"].item() == math.inf
    assert found["diversity"].item() == pytest.approx(math.log(2))
    totals = distance_terms(IndependentGroups(torch.zeros(1, 1, 3)), found, gold, 1)
    assert mean_distances(totals)["impossible"] == 1
    with_floor = split_distance(marginals, gold, floor=1e-9)
    assert 0 < with_floor["kl"].item() < 11


def test_scopes_and_unknown_gold():
    """Two sentences of 2 and 1 words with a group more than words, of which the first and last are added."""
    lengths = torch.tensor([3, 2])
    structure = IndependentGroups(torch.zeros(2, 3, 2), lengths)
    distances = {term: torch.tensor([[1.0, 10.0, 2.0], [4.0, 8.0, 99.0]]) for term in TERMS}
    gold = torch.tensor([[0, 0, 0], [0, 0, -1]])
    totals = {}
    for place in range(2):
        part = {term: value[place : place + 1] for term, value in distances.items()}
        one = structure.select(torch.tensor([place]))
        add_totals(totals, distance_terms(one, part, gold[place : place + 1], 2 - place, (1, 1)))
    found = mean_distances(totals)
    assert found["with_boundaries"]["per_group"]["kl"] == pytest.approx(25 / 5)
    assert found["with_boundaries"]["kl"] == pytest.approx(25 / 3)  # three words
    assert found["without_boundaries"]["per_group"]["error"] == pytest.approx(10)
    assert found["without_boundaries"]["diversity"] == pytest.approx(10 / 3)
    assert (found["unknown_gold"], found["impossible"]) == (0, 0)
    distances["kl"][0, 0] = 0.0
    found = mean_distances(distance_terms(structure, distances, torch.tensor([[-1, 0, 0], [0, 0, -1]]), 3))
    assert found["unknown_gold"] == 1
    assert found["with_boundaries"]["per_group"]["kl"] == pytest.approx(24 / 4)
    assert found["with_boundaries"]["kl"] == pytest.approx(24 / 4 * 5 / 3)
    assert found["without_boundaries"] == found["with_boundaries"]


@given(st.integers(0, 10**6), st.sampled_from([1e-9, 1e-3]))
def test_a_floor_may_be_added_before_pooling(seed, floor):
    draw = torch.Generator().manual_seed(seed)
    marginals = (torch.randn(3, 2, 2, 4, generator=draw, dtype=torch.float64) * 20).log_softmax(-1)
    valid = torch.ones(2, 2, 4, dtype=torch.bool)
    valid[1, 1] = False
    marginals = marginals.masked_fill(~valid, -torch.inf)
    once = log_opinion_pool(marginals, [1, 2, 3], floor, valid=valid)
    before = log_opinion_pool(floored(marginals, floor, valid), [1, 2, 3], valid=valid)
    torch.testing.assert_close(before, once, rtol=1e-9, atol=1e-9)
