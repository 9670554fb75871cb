from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_xst.metrics import attachment_scores, main_score, score

GOLD = {
    "sent_id": "s-1",
    "words": ["The", "dog", "$", "saw", "it", "."],
    "upos": ["DET", "NOUN", "SYM", "VERB", "PRON", "PUNCT"],
    "head": [2, 4, 2, 0, 4, 4],
    "deprel": ["det", "nsubj", "dep", "root", "obj", "punct"],
}


def changed(**columns):
    return GOLD | columns


def test_scores_counted_by_hand():
    guess = changed(
        head=[2, 4, 4, 0, 2, 2], deprel=["det", "obj", "dep", "root", "obj", "punct"], upos=["X"] * 6
    )
    assert attachment_scores([guess], [GOLD]) == {
        "uas": 75.0,
        "las": 50.0,
        "uas_punct": 50.0,
        "las_punct": pytest.approx(100 / 3),
        "words": 6,
        "words_without_punct": 4,
    }


def test_sentences_are_counted_together_not_averaged():
    short = {"upos": ["VERB"], "head": [0], "deprel": ["root"]}
    wrong = short | {"deprel": ["dep"]}
    assert attachment_scores([GOLD, wrong], [GOLD, short])["las"] == 80.0


@pytest.mark.parametrize(("strip", "las"), [(True, 100.0), (False, 75.0)])
def test_subtypes(strip, las):
    guess = changed(deprel=["det:def", "nsubj", "dep", "root", "obj", "punct:x"])
    assert attachment_scores([guess], [GOLD], strip_subtypes=strip)["las"] == las


def test_gold_tags_define_punctuation():
    everything = changed(upos=["PUNCT"] * 6)
    assert attachment_scores([everything], [GOLD])["words_without_punct"] == 4
    assert attachment_scores([GOLD], [changed(upos=["_"] * 6)])["words_without_punct"] == 6


def test_heads_may_be_text():
    assert attachment_scores([GOLD], [changed(head=["2", "4", "2", "0", "4", "4"])])["uas"] == 100.0


def test_missing_predicted_relation_is_wrong():
    guess = changed(deprel=["det", None, "dep", "root", "obj", "punct"])
    assert attachment_scores([guess], [GOLD])["las"] == 75.0
    assert attachment_scores([changed(deprel=[None] * 6)], [changed(deprel=[""] * 6)])["las"] == 0.0


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        ([GOLD], [GOLD, GOLD], r"1 predicted sentences for 2 gold.*sentence 1 \(sent_id 's-1'\)"),
        ([GOLD, GOLD], [GOLD], r"2 predicted sentences for 1 gold"),
        ([changed(head=[0])], [GOLD], r"sentence 0 \(sent_id 's-1'\): 1 entries.*'head' for 6"),
        ([GOLD], [changed(upos=["X"])], r"1 entries in the gold column 'upos'"),
        (
            [{"head": [0]}],
            [{"head": [0], "deprel": ["root"], "upos": ["X"]}],
            r"sentence 0: the predicted.*'deprel'",
        ),
        ([GOLD], [changed(upos=None)], r"gold row has no column 'upos'"),
        ([GOLD], [changed(upos="NOUNXX")], r"gold row has no column 'upos' with a list"),
        ([changed(head=[math.inf] * 6)], [GOLD], r"word 1 has no predicted head \(found inf"),
        ([GOLD], [changed(head=[2, 4, None, 0, 4, 4])], r"'s-1'\): word 3 has no gold head \(found None"),
        ([GOLD], [changed(head=["_"] * 6)], r"word 1 has no gold head \(found '_'"),
        ([changed(head=[2, 4, None, 0, 4, 4])], [GOLD], r"word 3 has no predicted head"),
        ([changed(head=[2, 4, 2.5, 0, 4, 4])], [GOLD], r"word 3 has no predicted head \(found 2.5"),
        ([changed(words=["other"] * 6)], [GOLD], r"'s-1'\): the predicted row has the words 'other other"),
        ([GOLD], [changed(deprel=["_"] * 6)], r"word 1 has no gold relation"),
        ([], [], r"No word to score: 0 sentences\."),
        ([GOLD], [changed(upos=["PUNCT"] * 6)], r"1 sentences with 6 words, all PUNCT or SYM"),
    ],
)
def test_invalid_rows_are_refused(predictions, references, message):
    with pytest.raises(ValueError, match=message):
        attachment_scores(predictions, references)


@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_score_bounds(words, seed):
    source = np.random.default_rng(seed)

    def row():
        return {
            "head": source.integers(words + 1, size=words).tolist(),
            "deprel": source.choice(["a", "b", "b:c"], words).tolist(),
            "upos": ["NOUN", *source.choice(["PUNCT", "NOUN"], words - 1).tolist()],
        }

    gold, guess = row(), row()
    scores = attachment_scores([guess], [gold])
    assert 0 <= scores["las"] <= scores["uas"] <= 100
    assert scores["las_punct"] <= scores["uas_punct"]
    assert attachment_scores([guess], [gold], strip_subtypes=False)["las"] <= scores["las"]
    assert attachment_scores([gold], [gold])["las"] == 100
    assert attachment_scores([guess, gold], [gold, gold])["las"] == pytest.approx((scores["las"] + 100) / 2)


def test_columns_select_the_scores():
    both = score([GOLD], [GOLD], {"head", "deprel", "upos"})
    assert both["las"] == both["accuracy"] == 100.0
    assert "accuracy" not in score([GOLD], [GOLD], ["head", "deprel"])
    assert "las" not in score([GOLD], [GOLD], ["upos"])
    for columns in (["deprel"], [], ["upos", "xpos"]):
        with pytest.raises(ValueError, match="expected 'head', or one column of tags"):
            score([GOLD], [GOLD], columns)


def test_main_score():
    assert main_score({"uas": 2, "las": 1, "accuracy": 3}) == ("las", 1.0)
    assert main_score({"accuracy": 3, "words": 4}) == ("accuracy", 3.0)
    assert main_score({"accuracy": 3, "f1": 2}) == ("f1", 2.0)
    with pytest.raises(ValueError, match="expected one of las, f1, accuracy"):
        main_score({"uas": 1.0})
