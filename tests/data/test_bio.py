"""Labels of spans: other schemes read as BIO, and alphabets that are none of BIO."""

from __future__ import annotations

import pytest

from hf_xst.data import bio_alphabet, to_bio
from hf_xst.data.bio import check_bio


@pytest.mark.parametrize(
    ("labels", "bio"),
    [
        (["I-A", "I-A", "B-A", "O", "I-B"], ["B-A", "I-A", "B-A", "O", "B-B"]),  # IOB1
        (["B-A", "I-A", "E-A", "S-A", "S-B"], ["B-A", "I-A", "I-A", "B-A", "B-B"]),  # BIOES
        (["B-A", "L-A", "U-A", "I-A"], ["B-A", "I-A", "B-A", "B-A"]),  # BILOU
        (["I-A", "E-A", "E-A"], ["B-A", "I-A", "B-A"]),  # IOE2
        (["_", "I-A", None, "I-B", "X", "I-A"], ["_", "I-A", None, "I-B", "X", "B-A"]),
        ([], []),
    ],
)
def test_other_schemes(labels, bio):
    assert to_bio(labels) == bio


def test_the_alphabet_is_whole():
    assert bio_alphabet({"S-A", "E-B", "X"}) == ["B-A", "B-B", "I-A", "I-B", "O", "X"]
    assert bio_alphabet([]) == ["O"]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["O", "S-A", "B-A"], "found the labels S-A; the scheme bio has O, B-X and I-X"),
        (["NOUN"], "found the labels NOUN"),
        (["B-"], "found the labels B-"),
        (["O", "I-A", "B-B"], "found the label I-A, but not B-A"),
    ],
)
def test_another_alphabet_is_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        check_bio(labels)


def test_types_may_hold_marks():
    check_bio(["O", "B-a-b", "I-a-b", "B-B-x"])
    assert to_bio(["I-a-b", "E-a-b"]) == ["B-a-b", "I-a-b"]
