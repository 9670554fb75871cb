"""Span scores: seqeval against a plain count, in every scheme."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_xst.data import bio_alphabet, to_bio
from hf_xst.metrics import main_score, score, span_scores

labeling = pytest.importorskip("seqeval.metrics.sequence_labeling")

KINDS = ("PER", "LOC", "a-b")
LABELS = ["O", *(f"{position}-{kind}" for kind in KINDS for position in "BI")]
ALL_LABELS = [*LABELS, *(f"{position}-{kind}" for kind in KINDS for position in "ES")]
GOLD = [
    {"words": ["Ana", "Lu", "saw", "Rio"], "ner_tags": ["B-PER", "I-PER", "O", "B-LOC"]},
    {"words": ["Bo", "Cy"], "ner_tags": ["B-PER", "B-PER"]},
]
GUESS = [{"ner_tags": ["B-PER", "I-PER", "O", "B-PER"]}, {"ner_tags": ["B-PER", "I-PER"]}]


def rows(sentences: list[list[str]]) -> list[dict[str, Any]]:
    return [{"words": ["w"] * len(labels), "ner_tags": labels} for labels in sentences]


def spans(labels: list[str]) -> set[tuple[str, int, int]]:
    """Find spans as the CoNLL scorer does: type, first word, end."""
    result, opened, start = set(), None, 0
    for position, label in enumerate([*labels, "O"]):
        mark, _, kind = label.partition("-")
        if opened is not None and (mark in "OB" or kind != opened):
            result.add((opened, start, position))
            opened = None
        if mark != "O" and opened is None:
            opened, start = kind, position
    return result


def counted(guess: list[list[str]], gold: list[list[str]]) -> dict[str, tuple[int, int, int]]:
    """Count right, guessed and gold spans by type, and of all types under the empty name."""
    right, guessed, true = Counter(), Counter(), Counter()
    for mine, theirs in zip(map(spans, guess), map(spans, gold), strict=True):
        for counter, result in ((right, mine & theirs), (guessed, mine), (true, theirs)):
            counter.update(name for kind, *_ in result for name in (kind, ""))
    return {kind: (right[kind], guessed[kind], true[kind]) for kind in {"", *guessed, *true}}


def of_counts(right: int, guessed: int, true: int) -> dict[str, float]:
    return {
        "precision": 100 * right / guessed if guessed else 0.0,
        "recall": 100 * right / true if true else 0.0,
        "f1": 200 * right / (guessed + true),
    }


def test_spans_match_by_words_and_type():
    scores = span_scores(GUESS, GOLD, "ner_tags")
    assert (scores["precision"], scores["recall"], scores["spans"]) == (pytest.approx(100 / 3), 25.0, 4)
    assert scores["f1"] == pytest.approx(200 / 7)
    assert scores["per_type"] == {
        "LOC": {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 1},
        "PER": {
            "precision": pytest.approx(100 / 3),
            "recall": pytest.approx(100 / 3),
            "f1": pytest.approx(100 / 3),
            "support": 3,
        },
    }
    assert all(type(value) is float for value in scores["per_type"]["PER"].values() if value != 3)


@st.composite
def two_sides(draw: st.DrawFn) -> tuple[list[list[str]], list[list[str]]]:
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    guess, gold = (
        [draw(st.lists(st.sampled_from(LABELS), min_size=n, max_size=n)) for n in lengths] for _ in range(2)
    )
    gold[0][0] = "B-PER"
    return guess, gold


@given(two_sides())
def test_seqeval_agrees_with_a_plain_count(sides):
    guess, gold = sides
    scores = span_scores(rows(guess), rows(gold), "ner_tags")
    expected = counted(guess, gold)
    assert {name: scores[name] for name in ("precision", "recall", "f1")} == pytest.approx(
        of_counts(*expected.pop(""))
    )
    assert set(scores["per_type"]) == set(expected)
    for kind, numbers in expected.items():
        assert scores["per_type"][kind] == pytest.approx(of_counts(*numbers) | {"support": numbers[2]})


@given(st.lists(st.sampled_from(ALL_LABELS), min_size=1, max_size=10))
def test_schemes_are_converted_as_in_seqeval(labels):
    converted = to_bio(labels)
    assert {(kind, first, last + 1) for kind, first, last in labeling.get_entities(labels)} == spans(
        converted
    )
    assert to_bio(converted) == converted
    assert set(converted) <= set(bio_alphabet(labels))
    before = "O"
    for label in converted:
        assert not label.startswith("I-") or before[1:] == label[1:]
        before = label


def test_a_scheme_adds_span_scores_to_the_accuracy():
    assert "f1" not in score(GUESS, GOLD, ["ner_tags"])
    scores = score(GUESS, GOLD, ["ner_tags"], "bio")
    assert scores["f1"] == pytest.approx(200 / 7)
    assert scores["accuracy"] == pytest.approx(400 / 6)
    assert main_score(scores) == ("f1", scores["f1"])
    other = [
        {**GOLD[0], "ner_tags": ["B-PER", "E-PER", "O", "S-LOC"]},
        {**GOLD[1], "ner_tags": ["S-PER"] * 2},
    ]
    assert score(GUESS, other, ["ner_tags"], "bio") == scores


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["O", "O"], "No span to score: 1 sentences, column 'ner_tags'"),
        (["B-X", "_"], "word 2 has '_' in column 'ner_tags', expected O, B-X or I-X"),
        (["B-X", None], "word 2 has None"),
        (["B-X", "NOUN"], "word 2 has 'NOUN'"),
    ],
)
def test_invalid_rows_are_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        span_scores(rows([["O", "O"]]), rows([labels]), "ner_tags")


def test_predictions_without_spans_score_zero():
    scores = span_scores([{"ner_tags": [None, "NOUN"]}], rows([["B-X", "O"]]), "ner_tags")
    assert (scores["precision"], scores["recall"], scores["f1"]) == (0.0, 0.0, 0.0)


def test_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "seqeval.metrics", None)
    with pytest.raises(ImportError, match=r"extra 'ner': pip install \"hf_xst\[ner\]\""):
        span_scores(GUESS, GOLD, "ner_tags")
