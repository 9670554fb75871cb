"""The word table: the order of look-up, special words out of reach, and one JSON file."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_xst.data import PADDING, UNKNOWN, WordTable, lookup_forms


def test_indices():
    table = WordTable(["a", "B", "b", "00", "x0"], specials=["<s>", "</s>"])
    assert (PADDING, UNKNOWN, table.first_word, len(table)) == (0, 1, 4, 9)
    assert (table.special("<s>"), table.special("</s>")) == (2, 3)
    assert table.lookup_many(["a", "A", "B", "b", "42", "X7", "x9", "c", ""]) == [4, 4, 5, 6, 7, 8, 8, 1, 1]


@pytest.mark.parametrize(
    ("words", "word", "found"),
    [
        (["A1", "a1", "A0", "a0"], "A1", "A1"),
        (["a1", "A0", "a0"], "A1", "a1"),
        (["A0", "a0"], "A1", "A0"),
        (["a0"], "A1", "a0"),
        (["0000"], "٣٣٣٣", "0000"),
    ],
)
def test_the_order_of_look_up(words, word, found):
    table = WordTable(words)
    assert table.words[table.lookup(word) - table.first_word] == found


def test_forms():
    assert lookup_forms("Ab12") == ("Ab12", "ab12", "Ab00", "ab00")
    assert lookup_forms("ab") == ("ab",)


@pytest.mark.parametrize("way", ["NFC", "NFD"])
def test_accents_are_found_composed_and_decomposed(way):
    word = unicodedata.normalize(way, "Ọjọ́")
    for other in ("NFC", "NFD"):
        table = WordTable(["x", unicodedata.normalize(other, "ọjọ́")])
        assert table.lookup(word) == table.first_word + 1


def test_text_never_reaches_special_words():
    assert WordTable(["a"], specials=["<root>"]).lookup("<root>") == UNKNOWN
    table = WordTable(["a", "<root>"], specials=["<root>"])
    assert (table.special("<root>"), table.lookup("<root>")) == (2, 4)


def test_misuse_is_said():
    with pytest.raises(ValueError, match="found word 'a' twice"):
        WordTable(["a", "b", "a"])
    with pytest.raises(ValueError, match="found special word 's' twice"):
        WordTable([], ["s", "s"])
    with pytest.raises(KeyError, match="found special word 'x', expected one of s"):
        WordTable([], ["s"]).special("x")


@given(
    st.lists(st.text(st.characters(blacklist_categories=("Cs",))), unique=True),
    st.sampled_from([[], ["<root>"]]),
)
def test_saved_and_loaded_is_the_same(tmp_path_factory, words, specials):
    path = tmp_path_factory.mktemp("w") / "words.json"
    table = WordTable(words, specials)
    table.save(path)
    again = WordTable.load(path)
    assert (again.words, again.specials, len(again)) == (table.words, table.specials, len(table))
    assert again.lookup_many(words) == list(range(table.first_word, len(table)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("no", "found no JSON"),
        ("[]", "found format version None"),
        (json.dumps({"format_version": 9}), "found format version 9, expected a word table of 1"),
        (
            json.dumps({"format_version": 1, "specials": [], "words": "ab"}),
            "words that are no list of strings",
        ),
        (
            json.dumps({"format_version": 1, "specials": [1], "words": []}),
            "specials that are no list of strings",
        ),
    ],
)
def test_files_that_are_no_tables(write, content, message):
    with pytest.raises(ValueError, match=message):
        WordTable.load(write("t.json", content))
