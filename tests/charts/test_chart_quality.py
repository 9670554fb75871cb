"""Precision, recall and size of charts, also where counts are far beyond floating point."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers.categorical import IndependentGroups
from hf_xst.charts import chart_quality, combine_quality
from hf_xst.structures import DependencyTreeCRF, LinearChainCRF

masks = st.lists(st.booleans(), min_size=6, max_size=6)


@given(masks, st.lists(st.integers(-1, 2), min_size=2, max_size=2))
def test_listing_every_structure_of_two_groups(mask, gold):
    chart = torch.tensor(mask).view(1, 2, 3)
    found = chart_quality(IndependentGroups(torch.zeros(1, 2, 3)), chart, torch.tensor([gold]))
    inside = list(itertools.product(*(torch.nonzero(chart[0, group])[:, 0].tolist() for group in range(2))))
    groups = sum(g >= 0 for g in gold)
    right = sum(a == b for structure in inside for a, b in zip(structure, gold, strict=True) if b >= 0)
    occurs = sum(g >= 0 and any(s[place] == g for s in inside) for place, g in enumerate(gold))
    assert found["log_size"].tolist() == pytest.approx([math.log(len(inside)) if inside else -math.inf])
    assert (found["recall_numerator"], found["recall_denominator"]) == (occurs, groups)
    if inside and groups:
        assert found["precision"] == pytest.approx(right / (len(inside) * groups), abs=1e-12)
        assert found["recall"] == occurs / groups
    elif not inside:
        assert math.isnan(found["precision"])
    if not groups:
        assert math.isnan(found["recall"])


def test_two_hundred_words_with_every_tree_allowed():
    """Cayley: (n)^(n-1) single-root trees, each word's head equally likely by symmetry."""
    n = 200
    structure = DependencyTreeCRF(torch.zeros(1, n + 1, n + 1, 1))
    heads = torch.arange(n)[None]  # a chain from the first word, which hangs from the root
    gold = structure.candidates((heads, torch.zeros_like(heads)))
    found = chart_quality(structure, structure.valid, gold)
    assert found["log_size"].item() == pytest.approx((n - 1) * math.log(n), rel=1e-9)
    assert found["recall"] == 1.0
    root = 1 / n
    other = (1 - root) / (n - 1)
    assert found["precision"] == pytest.approx((root + (n - 1) * other) / n, rel=1e-6)


def test_an_allowed_candidate_that_no_structure_can_use_is_not_recalled():
    structure = DependencyTreeCRF(torch.zeros(1, 3, 3, 1))
    chart = structure.valid.clone()
    chart[0, 0] = torch.tensor([False, False, True])  # word 1 under word 2 only
    chart[0, 1] = torch.tensor([True, True, False])  # so word 2 must be the root, though 1 is allowed too
    found = chart_quality(structure, chart, torch.tensor([[2, 1]]))
    assert found["log_size"].tolist() == [0.0]
    assert (found["recall_numerator"], found["recall_denominator"]) == (1, 2)
    assert found["precision"] == pytest.approx(0.5)


def test_a_share_too_small_for_floats_still_counts_as_recalled():
    """One of 2^1200 sequences holds the gold pair, so its share rounds to zero."""
    positions, rare = 1200, 2
    scores = torch.zeros(1, positions - 1, 3, 3)
    structure = LinearChainCRF(scores)
    keep = torch.zeros(1, positions - 1, 9, dtype=torch.bool)
    keep[..., [0, 1, 3, 4]] = True  # tags 0 and 1 in any order: 2^1200 sequences
    keep[..., rare * 3 + rare] = True  # and one sequence of the rare tag alone
    gold = torch.full((1, positions - 1), -1)
    gold[0, [0, 700]] = rare * 3 + rare
    found = chart_quality(structure, keep, gold)
    assert (found["recall_numerator"], found["recall_denominator"]) == (2, 2)
    assert found["log_size"].item() == pytest.approx(1200 * math.log(2), rel=1e-9)
    assert found["precision"] == pytest.approx(0.0, abs=1e-100)


def test_batches_add_up():
    torch.manual_seed(0)
    lengths = torch.tensor([3, 1, 2])
    whole = IndependentGroups(torch.zeros(3, 3, 4), lengths)
    chart = (torch.rand(3, 3, 4) < 0.6) | (torch.arange(4) == 0)
    gold = torch.where(whole.valid[..., 0], torch.randint(0, 4, (3, 3)), -1)
    together = chart_quality(whole, chart, gold)
    parts = [
        chart_quality(whole.select(torch.tensor([i])), chart[i : i + 1], gold[i : i + 1]) for i in range(3)
    ]
    combined = combine_quality(parts)
    assert combined.keys() == together.keys()
    for key, value in together.items():
        torch.testing.assert_close(torch.as_tensor(combined[key]), torch.as_tensor(value))


def test_scores_do_not_matter():
    torch.manual_seed(0)
    chart = torch.rand(2, 3, 4) < 0.6
    gold = torch.randint(0, 4, (2, 3))
    plain = chart_quality(IndependentGroups(torch.zeros(2, 3, 4)), chart, gold)
    other = chart_quality(IndependentGroups(torch.randn(2, 3, 4) * 1e4), chart, gold)
    for key, value in plain.items():
        torch.testing.assert_close(torch.as_tensor(other[key]), torch.as_tensor(value), equal_nan=True)
