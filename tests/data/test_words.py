"""Test the word table: lookup, special words and its JSON file."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_xst.data import WordTable
from hf_xst.data.words import PADDING, UNKNOWN, lookup_forms


def test_indices():
    table = WordTable(["a", "B", "b", "00", "x0"], specials=["<s>", "</s>"])
    assert (PADDING, UNKNOWN, table.first_word, len(table)) == (0, 1, 4, 9)
    assert (table.special("<s>"), table.special("</s>")) == (2, 3)
    assert table.lookup_many(["a", "A", "B", "b", "42", "X7", "x9", "c", ""]) == [4, 4, 5, 6, 7, 8, 8, 1, 1]


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
    assert table.words[table.lookup(word) - table.first_word] == expected
    assert lookup_forms("Ab12") == ("Ab12", "ab12", "Ab00", "ab00")
    assert lookup_forms("ab") == ("ab",)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_accents_are_found_composed_and_decomposed(form):
    word = unicodedata.normalize(form, "Ọjọ́")
    for other in ("NFC", "NFD"):
        table = WordTable(["x", unicodedata.normalize(other, "ọjọ́")])
        assert table.lookup(word) == table.first_word + 1


def test_text_never_matches_special_words():
    assert WordTable(["a"], specials=["<root>"]).lookup("<root>") == UNKNOWN
    table = WordTable(["a", "<root>"], specials=["<root>"])
    assert (table.special("<root>"), table.lookup("<root>")) == (2, 4)


def test_invalid_arguments_are_rejected():
    with pytest.raises(ValueError, match="duplicate word 'a'"):
        WordTable(["a", "b", "a"])
    with pytest.raises(ValueError, match="duplicate special word 's'"):
        WordTable([], ["s", "s"])
    with pytest.raises(KeyError, match="found special word 'x', expected one of s"):
        WordTable([], ["s"]).special("x")


@given(
    st.lists(st.text(st.characters(blacklist_categories=("Cs",))), unique=True),
    st.sampled_from([[], ["<root>"]]),
)
def test_save_and_load(tmp_path_factory, words, specials):
    path = tmp_path_factory.mktemp("w") / "words.json"
    table = WordTable(words, specials)
    table.save(path)
    loaded = WordTable.load(path)
    assert (loaded.words, loaded.specials, len(loaded)) == (table.words, table.specials, len(table))
    assert loaded.lookup_many(words) == list(range(table.first_word, len(table)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("no", "not JSON in UTF-8"),
        ("[]", "found format version None"),
        (json.dumps({"format_version": 9}), "found format version 9, expected 1"),
        (json.dumps({"format_version": 1, "specials": [], "words": "ab"}), "words is not a list of strings"),
        (
            json.dumps({"format_version": 1, "specials": [1], "words": []}),
            "specials is not a list of strings",
        ),
    ],
)
def test_malformed_files_are_rejected(write, content, message):
    with pytest.raises(ValueError, match=message):
        WordTable.load(write("t.json", content))
