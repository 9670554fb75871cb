"""Readable columns of charts name exactly the allowed candidates; the indices stay unchanged."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.group_model import GroupModel
from helpers.recorded_runs import TYPES, save_charts
from hf_xst import BiaffineParser, CrfTagger, load_charts
from hf_xst.hub.contents import add_readable_columns, allowed_candidates, with_readable_columns
from hf_xst.models.configuration import BOUNDARIES

RELATIONS = ["amod", "obj", "root"]
TAGS = ["ADJ", "NOUN", *BOUNDARIES]


def test_parser_columns_name_heads_and_labels() -> None:
    # Candidate = head * 3 + label: word 1 under 2 as obj or amod; word 2 under the root symbol or under 1.
    allowed = [[2 * 3 + 1, 2 * 3], [2, 1 * 3 + 1]]
    assert BiaffineParser.readable_candidates(["red", "bird"], allowed, RELATIONS) == {
        "allowed_heads": [["2 bird"], ["0 (root)", "1 red"]],
        "allowed_labels": [["amod|obj"], ["root", "obj"]],
    }


def test_tagger_columns_name_tags_of_complete_sequences_only() -> None:
    start, end, tags = 2, 3, 4
    allowed = [
        [start * tags + 0, start * tags + 1],  # into word 1: ADJ or NOUN
        [0 * tags + 1, 1 * tags + 0],  # from ADJ to NOUN, from NOUN to ADJ
        [1 * tags + end],  # only NOUN ends the sentence
    ]
    columns = CrfTagger.readable_candidates(["red", "bird"], allowed, TAGS)
    assert columns == {"allowed_tags": [["ADJ", "NOUN"], ["NOUN"]]}


def test_columns_of_other_models_name_labels() -> None:
    columns = GroupModel.readable_candidates(["a", "b"], [[0, 2], [1]], ["cold", "dry", "warm"])
    assert columns == {"allowed_labels": [["cold", "warm"], ["dry"]]}


@given(st.lists(st.sets(st.integers(0, 3 * 5 - 1)), min_size=4, max_size=4))
def test_parser_columns_determine_the_candidates(allowed: list[set[int]]) -> None:
    words = ["a", "b", "c", "d"]
    columns = BiaffineParser.readable_candidates(words, [sorted(group) for group in allowed], RELATIONS)
    nodes = {"0 (root)", "1 a", "2 b", "3 c", "4 d"}
    for group, heads, labels in zip(
        allowed, columns["allowed_heads"], columns["allowed_labels"], strict=True
    ):
        assert set(heads) <= nodes
        assert group == {
            int(head.split()[0]) * 3 + RELATIONS.index(label)
            for head, joined in zip(heads, labels, strict=True)
            for label in joined.split("|")
        }


@pytest.mark.parametrize("kind", TYPES)
def test_added_columns_leave_the_others_unchanged(kind: str, tmp_path: Path) -> None:
    save_charts(tmp_path, kind)
    before, info = load_charts(str(tmp_path))
    add_readable_columns(tmp_path, info)
    after, _ = load_charts(str(tmp_path))
    added = set(after.column_names) - set(before.column_names)
    assert after.select_columns(before.column_names).to_list() == before.to_list()
    assert {name: after.features[name] for name in before.features} == dict(before.features)
    assert added
    for row in after:
        assert all(len(row[name]) == len(row["words"]) for name in added)
    assert with_readable_columns(after, info).to_list() == after.to_list()


def test_allowed_candidates_include_the_best_of_each_source(tmp_path: Path) -> None:
    save_charts(tmp_path)
    for row in load_charts(str(tmp_path))[0]:
        kept = [row["candidates"][start:end] for start, end in pairwise(row["offsets"])]
        assert [set(group) for group in allowed_candidates(row)] == [
            {*group, *(best[index] for best in row["source_best"])} for index, group in enumerate(kept)
        ]


def test_unknown_model_type_is_rejected(tmp_path: Path) -> None:
    save_charts(tmp_path)
    rows, info = load_charts(str(tmp_path))
    with pytest.raises(ValueError, match="unheard_of"):
        with_readable_columns(rows, replace(info, model_type="unheard_of"))
