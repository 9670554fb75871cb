"""Test the word table: lookup and its JSON file."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_xst.data.vectors import lookup_forms
from hf_xst.models.words import FIRST_WORD, PADDING, UNKNOWN, WordTable


def test_indices():
    table = WordTable(["a", "B", "b", "00", "x0"])
    assert (PADDING, UNKNOWN, FIRST_WORD) == (0, 1, 2)
    assert list(map(table.lookup, ["a", "A", "B", "b", "42", "X7", "x9", "c", ""])) == [
        2,
        2,
        3,
        4,
        5,
        6,
        6,
        1,
        1,
    ]


@pytest.mark.parametrize(
    ("words", "word", "expected"),
    [
        (["A1", "a1", "A0", "a0"], "A1", "A1"),
        (["a1", "A0", "a0"], "A1", "a1"),
        (["A0", "a0"], "A1", "A0"),
        (["a0"], "A1", "a0"),
        (["0000"], "٣٣٣٣", "0000"),
        (["istanbul"], "İstanbul", "istanbul"),
        (["i\u0307stanbul", "istanbul"], "İstanbul", "i\u0307stanbul"),
        (["ışık"], "IŞIK", "ışık"),
        (["diyarbakır"], "DİYARBAKIR", "diyarbakır"),
        (["ısparta", "isparta"], "ISPARTA", "isparta"),
        (["ısparta"], "Isparta", "ısparta"),
        (["izmir0"], "İzmir5", "izmir0"),
    ],
)
def test_order_of_lookup_forms(words, word, expected):
    table = WordTable(words)
    assert table.words[table.lookup(word) - FIRST_WORD] == expected
    assert lookup_forms("Ab12") == ("Ab12", "ab12", "Ab00", "ab00")
    assert lookup_forms("ab") == ("ab",)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_accents_are_found_composed_and_decomposed(form):
    word = unicodedata.normalize(form, "Ọjọ́")
    for other in ("NFC", "NFD"):
        table = WordTable(["x", unicodedata.normalize(other, "ọjọ́")])
        assert table.lookup(word) == FIRST_WORD + 1


def test_duplicate_words_are_rejected():
    with pytest.raises(ValueError, match="duplicate word 'a'"):
        WordTable(["a", "b", "a"])


@given(st.lists(st.text(st.characters(blacklist_categories=("Cs",))), unique=True))
def test_save_and_load(tmp_path_factory, words):
    path = tmp_path_factory.mktemp("w") / "words.json"
    WordTable(words).save(path)
    loaded = WordTable.load(path)
    assert list(loaded.words) == words
    assert list(map(loaded.lookup, words)) == list(range(FIRST_WORD, FIRST_WORD + len(words)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("no", "not valid JSON"),
        ("[]", "expected a mapping, found list"),
        (json.dumps({"format_version": 9}), "has format 9; this package reads format 1"),
        (json.dumps({"format_version": 1, "words": "ab"}), "words is not a list of strings"),
        (json.dumps({"format_version": 1, "words": [1]}), "words is not a list of strings"),
    ],
)
def test_malformed_files_are_rejected(write, content, message):
    with pytest.raises(ValueError, match=message):
        WordTable.load(write("t.json", content))
