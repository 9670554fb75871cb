"""Scores of tags, which are not chunks (P25)."""

from __future__ import annotations

import pytest

from hf_xst.metrics import tag_scores

GOLD = [{"upos": ["NOUN", "VERB", "NOUN", "PUNCT"]}, {"upos": ["ADJ"]}]
GUESS = [{"upos": ["NOUN", "VERB", "ADJ", "PUNCT"]}, {"upos": ["ADJ"]}]


def test_tags_are_not_chunked():
    scores = tag_scores(GUESS, GOLD)
    assert scores["accuracy"] == 80.0
    assert scores["words"] == 5
    assert list(scores["per_tag"]) == ["ADJ", "NOUN", "PUNCT", "VERB"]
    assert scores["per_tag"]["NOUN"] == {
        "precision": 100.0,
        "recall": 50.0,
        "f1": pytest.approx(200 / 3),
        "support": 2,
    }
    assert scores["per_tag"]["ADJ"] == {
        "precision": 50.0,
        "recall": 100.0,
        "f1": pytest.approx(200 / 3),
        "support": 1,
    }


def test_equal_adjacent_tags_are_not_merged():
    rows = [{"upos": ["NOUN", "NOUN", "B-X", "I-X"]}]
    scores = tag_scores(rows, rows)
    assert scores["per_tag"]["NOUN"]["support"] == 2
    assert list(scores["per_tag"]) == ["B-X", "I-X", "NOUN"]
    assert scores["accuracy"] == 100.0


def test_tags_on_one_side_score_zero():
    per_tag = tag_scores([{"upos": ["X", None]}], [{"upos": ["Y", "Y"]}])["per_tag"]
    assert per_tag["X"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 0}
    assert per_tag["Y"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 2}


@pytest.mark.parametrize("missing", ["_", None])
def test_words_without_a_gold_tag_are_counted_not_scored(missing):
    predictions = [{"upos": ["X", "Y"]}, {"upos": ["Y", "Y"]}]
    scores = tag_scores(predictions, [{"upos": ["X", missing]}, {"upos": [missing, "X"]}])
    assert (scores["accuracy"], scores["words"], scores["words_without_gold"]) == (50.0, 2, 2)
    assert scores["per_tag"]["Y"]["precision"] == 0.0
    assert set(scores["per_tag"]) == {"X", "Y"}


def test_another_column():
    assert tag_scores([{"xpos": ["NN"]}], [{"xpos": ["NN"]}], column="xpos")["accuracy"] == 100.0


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        ([], [], "No word to score"),
        ([{"upos": ["X"]}], [{"upos": ["_"]}], "No word to score: 1 sentences"),
        ([{"upos": ["X"]}], [{"upos": [None]}], "No word to score"),
        ([{"upos": ["X", "X"]}], [{"upos": ["X"]}], "2 entries in the predicted column 'upos' for 1"),
        ([{"tags": ["X"]}], [{"upos": ["X"]}], "predicted row has no column 'upos'"),
    ],
)
def test_invalid_rows_are_refused(predictions, references, message):
    with pytest.raises(ValueError, match=message):
        tag_scores(predictions, references)
