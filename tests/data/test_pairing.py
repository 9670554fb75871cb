"""Test which sentences of two files belong together."""

from __future__ import annotations

import pytest

from hf_xst.data.pairing import pair_sentences

YES, NO = ["yes"], ["no", "."]


@pytest.mark.parametrize(
    ("found", "wanted", "pairs"),
    [
        ([("a", YES), ("b", NO)], [("a", YES), ("b", NO)], [0, 1]),
        ([("a", YES), ("b", NO)], [("c", NO), ("d", YES)], [1, 0]),
        ([(None, YES), (None, YES)], [("a", YES), ("b", YES)], [0, 1]),
        ([("a", YES), ("a", NO), ("a", YES)], [("a", YES), ("a", YES)], [0, 2]),
        ([("a", YES), ("b", YES), ("c", YES)], [("c", YES), ("a", YES)], [2, 0]),
        ([("b", YES), ("a", YES)], [("a", YES), ("b", YES)], [1, 0]),
        ([("a", YES), ("a", YES)], [("a", YES), ("b", YES)], [0, 1]),
    ],
)
def test_sentences_are_paired_by_words_then_sent_id_then_order(found, wanted, pairs):
    assert pair_sentences(found, wanted, "f.conllu") == pairs


@pytest.mark.parametrize(
    ("found", "wanted", "message"),
    [
        (
            [("a", YES), ("b", YES)],
            [("c", YES)],
            "f.conllu: 2 sentences have the words of sentence c",
        ),
        ([("a", YES), ("a", YES)], [("a", YES)], "2 sentences have the words of sentence a, 1 expected"),
        ([(None, YES)], [("a", YES), ("b", YES)], "1 sentences have the words of sentence a, 2 expected"),
        ([("a", NO)], [("a", ["no", "!"])], "f.conllu, sentence a: word 2 is '.' there, '!' here"),
        ([("a", NO)], [("b", ["no"])], r"sentence a \(b here\): it has 2 words there, 1 here"),
        ([(None, NO)], [("b", YES)], "sentence b is missing; no sentence begins with 'yes'"),
        ([], [("b", YES)], "f.conllu: sentence b is missing"),
    ],
)
def test_sentences_that_cannot_be_paired_are_named(found, wanted, message):
    with pytest.raises(ValueError, match=message):
        pair_sentences(found, wanted, "f.conllu")
