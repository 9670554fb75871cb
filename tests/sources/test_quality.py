"""Size, precision and recall over a data set, against enumeration and by hand."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers.categorical import IndependentGroups
from helpers.chart_oracle import SPACES, entries, mask_of
from hf_xst.sources.analysis import QualityTotals, compare, median_log, size_text
from hf_xst.structures import DependencyTreeCRF, LinearChainCRF


@pytest.mark.parametrize("space", SPACES)
def test_values_found_by_enumeration(shared, space):
    for case, expected in entries(shared, "quality", space):
        totals = QualityTotals()
        for sentence in case["sentences"]:
            n = sentence["n"]
            if space == "chain":
                structure = LinearChainCRF(torch.zeros(1, n - 1, case["n_tags"], case["n_tags"]))
                gold = structure.candidates(torch.tensor([sentence["gold"]]))
            else:
                structure = DependencyTreeCRF(torch.zeros(1, n + 1, n + 1, case["n_labels"]), **SPACES[space])
                heads, labels = sentence["gold"]["heads"], sentence["gold"]["labels"]
                gold = structure.candidates((torch.tensor([heads]), torch.tensor([labels])))
            totals.add(structure, mask_of(sentence["chart"], structure), gold)
        found = totals.result()
        if expected["precision"] is None:
            assert math.isnan(found["with_boundaries"]["precision"])
        else:
            assert found["with_boundaries"]["precision"] == pytest.approx(expected["precision"], abs=1e-12)
        assert found["with_boundaries"]["recall"] == pytest.approx(expected["recall"], abs=1e-12)
        sizes = sorted(part["n_structures"] for part in expected["per_sentence"])
        middle = (sizes[(len(sizes) - 1) // 2] + sizes[len(sizes) // 2]) / 2
        assert math.exp(found["median_log_size"]) == pytest.approx(middle)
        assert found["empty_charts"] == sizes.count(0)


sentences = st.lists(
    st.tuples(
        st.lists(st.lists(st.booleans(), min_size=2, max_size=2), min_size=1, max_size=4),
        st.lists(st.integers(-1, 1), min_size=4, max_size=4),
    ),
    min_size=1,
    max_size=4,
)


def by_listing(data, added):
    """Precision and recall by listing the structures of every chart; -1 is gold that nobody knows."""
    right = everything = found = wanted = 0
    for chart, gold in data:
        groups = range(added[0], len(chart) - added[1])
        structures = list(itertools.product(*([c for c in range(2) if group[c]] for group in chart)))
        everything += len(structures) * len(groups)
        right += sum(structure[g] == gold[g] for structure in structures for g in groups)
        wanted += len(groups)
        found += sum(any(structure[g] == gold[g] for structure in structures) for g in groups)
    return right, everything, found, wanted


@given(sentences)
def test_listing_every_structure_with_and_without_boundaries(data):
    totals = QualityTotals((1, 1))
    for chart, gold in data:
        structure = IndependentGroups(torch.zeros(1, len(chart), 2))
        totals.add(structure, torch.tensor([chart]), torch.tensor([gold[: len(chart)]]))
    found = totals.result()
    for scope, added in (("with_boundaries", (0, 0)), ("without_boundaries", (1, 1))):
        # A sentence of one group loses it to both ends.
        right, everything, recalled, wanted = by_listing([d for d in data if len(d[0]) >= sum(added)], added)
        precision, recall = found[scope]["precision"], found[scope]["recall"]
        assert (math.isnan(precision) and not everything) or precision == pytest.approx(right / everything)
        assert (math.isnan(recall) and not wanted) or recall == pytest.approx(recalled / wanted)
    sizes = sorted(math.prod(sum(group) for group in chart) for chart, _ in data)
    middle = (sizes[(len(sizes) - 1) // 2] + sizes[len(sizes) // 2]) / 2
    assert math.exp(found["median_log_size"]) == pytest.approx(middle)


def test_padding_and_batches_change_nothing():
    lengths = torch.tensor([4, 1, 2])
    whole = IndependentGroups(torch.zeros(3, 5, 3), lengths)
    chart = torch.rand(3, 5, 3) < 0.7
    gold = torch.where(whole.valid.any(-1), torch.randint(0, 3, (3, 5)), -1)
    together, apart = QualityTotals((1, 0)), QualityTotals((1, 0))
    together.add(whole, chart, gold)
    for place in range(3):
        one = torch.tensor([place])
        apart.add(whole.select(one), chart[one], gold[one])
    for scope in ("with_boundaries", "without_boundaries"):
        assert apart.result()[scope] == pytest.approx(together.result()[scope])
    assert apart.result()["median_log_size"] == pytest.approx(together.result()["median_log_size"])


def test_the_median_of_huge_numbers():
    assert median_log([5.0, 1e4, 3.0]) == 5.0
    assert median_log([1000.0, 2000.0]) == pytest.approx(2000 - math.log(2))
    assert median_log([math.log(3), math.log(6)]) == pytest.approx(math.log(4.5))
    assert median_log([-math.inf, -math.inf]) == -math.inf


def test_compare():
    def result(size, precision, recall):
        both = {"precision": precision, "recall": recall}
        return {"median_log_size": size, "with_boundaries": both, "without_boundaries": both}

    found = compare(result(math.log(2), 0.25, 0.9), result(math.log(100), 0.1, 0.95))
    assert found["size_ratio"] == pytest.approx(0.02)
    assert found["with_boundaries"] == pytest.approx({"precision": 0.15, "recall": -0.05})
    assert compare(result(2000.0, 0, 0), result(0.0, 0, 0))["size_ratio"] == math.inf
    assert math.isnan(compare(result(-math.inf, 0, 0), result(-math.inf, 0, 0))["size_ratio"])


@pytest.mark.parametrize(
    ("log_size", "text"),
    [
        (math.log(1.6e6), "1.6e6"),
        (math.log(999.99e3), "1.0e6"),
        (math.log(23_000), "2.3e4"),
        (math.log(4.5), "4.5"),
        (0.0, "1"),
        (3000 * math.log(10), "1.0e3000"),
        (-math.inf, "0"),
        (math.nan, "?"),
    ],
)
def test_sizes_are_written_as_the_papers_table_does(log_size, text):
    assert size_text(log_size) == text
