"""Charts in words: every allowed candidate is named, and nothing else; the indices stay as they are."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.group_model import GroupModel
from helpers.recorded_runs import TYPES, save_charts
from hf_xst import BiaffineParser, CrfTagger, load_charts
from hf_xst.hub.chart_columns import allowed_candidates, spell_out, with_readable_columns
from hf_xst.models.configuration import BOUNDARIES

RELATIONS = ["amod", "obj", "root"]
TAGS = ["ADJ", "NOUN", *BOUNDARIES]


def test_a_parser_names_heads_and_labels() -> None:
    # Candidate = head * 3 + label: word 1 under 2 as obj or amod; word 2 under the root symbol or under 1.
    allowed = [[2 * 3 + 1, 2 * 3], [2, 1 * 3 + 1]]
    assert BiaffineParser.readable_candidates(["red", "bird"], allowed, RELATIONS) == {
        "allowed_heads": [["2 bird"], ["0 (root)", "1 red"]],
        "allowed_labels": [["amod|obj"], ["root", "obj"]],
    }


def test_a_tagger_names_tags_that_a_sequence_can_pass_through() -> None:
    start, end, tags = 2, 3, 4
    allowed = [
        [start * tags + 0, start * tags + 1],  # into word 1: ADJ or NOUN
        [0 * tags + 1, 1 * tags + 0],  # from ADJ to NOUN, from NOUN to ADJ
        [1 * tags + end],  # only NOUN ends the sentence
    ]
    named = CrfTagger.readable_candidates(["red", "bird"], allowed, TAGS)
    assert named == {"allowed_tags": [["ADJ", "NOUN"], ["NOUN"]]}


def test_any_other_model_names_labels_by_group() -> None:
    named = GroupModel.readable_candidates(["a", "b"], [[0, 2], [1]], ["cold", "dry", "warm"])
    assert named == {"allowed_labels": [["cold", "warm"], ["dry"]]}


@given(st.lists(st.sets(st.integers(0, 3 * 5 - 1)), min_size=4, max_size=4))
def test_a_parsers_candidates_can_be_read_back(allowed: list[set[int]]) -> None:
    words = ["a", "b", "c", "d"]
    named = BiaffineParser.readable_candidates(words, [sorted(group) for group in allowed], RELATIONS)
    nodes = {"0 (root)", "1 a", "2 b", "3 c", "4 d"}
    for group, heads, labels in zip(allowed, named["allowed_heads"], named["allowed_labels"], strict=True):
        pairs = zip(heads, labels, strict=True)
        again = {
            int(head.split()[0]) * 3 + RELATIONS.index(label)
            for head, joined in pairs
            for label in joined.split("|")
        }
        assert again == group
        assert set(heads) <= nodes


@pytest.mark.parametrize("kind", TYPES)
def test_the_columns_stand_beside_the_indices(kind: str, tmp_path: Path) -> None:
    save_charts(tmp_path, kind)
    before, provenance = load_charts(str(tmp_path))
    spell_out(tmp_path, provenance)
    after, _ = load_charts(str(tmp_path))
    added = set(after.column_names) - set(before.column_names)
    assert after.select_columns(before.column_names).to_list() == before.to_list()
    assert {name: after.features[name] for name in before.features} == dict(before.features)
    assert added
    for row in after:
        assert all(len(row[name]) == len(row["words"]) for name in added)
    assert with_readable_columns(after, provenance).to_list() == after.to_list()


def test_what_is_allowed_holds_each_sources_best(tmp_path: Path) -> None:
    save_charts(tmp_path)
    for row in load_charts(str(tmp_path))[0]:
        groups = allowed_candidates(row)
        kept = [row["candidates"][start:end] for start, end in pairwise(row["offsets"])]
        assert [set(group) for group in groups] == [
            {*kept[place], *(best[place] for best in row["source_best"])} for place in range(len(kept))
        ]


def test_charts_for_an_unknown_kind_of_model(tmp_path: Path) -> None:
    save_charts(tmp_path)
    place = tmp_path / "provenance.json"
    provenance = json.loads(place.read_text()) | {"model_type": "unheard_of"}
    with pytest.raises(ValueError, match="'unheard_of', which is unknown here"):
        spell_out(tmp_path, provenance)
