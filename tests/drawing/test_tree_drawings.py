from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.pictures import any_trees
from hf_xst.drawing import tree_text
from hf_xst.drawing.markup import display_width

PLAIN = (
    "The big dog saw a cat .".split(),
    [3, 3, 4, 0, 6, 4, 4],
    "det amod nsubj root det obj punct".split(),
    "DET ADJ NOUN VERB DET NOUN PUNCT".split(),
)
CROSSING = (
    "A hearing is scheduled on the issue today".split(),
    [2, 4, 4, 0, 7, 7, 2, 4],
    "det nsubj aux root case det nmod advmod".split(),
)
WIDE = (
    "私 は ３ 本 を 読ん だ".split(),
    [6, 1, 4, 6, 4, 0, 6],
    "nsubj case nummod obj case root aux".split(),
)
COMBINING = (["a\u0308b\u0301", "xyz", "é"], [2, 0, 2], ["a", "root", "b"], ["X", "Y", "Z"])


def drawing(text):
    return text.strip("\n").replace("·", " ")


def test_projective_tree():
    assert tree_text(*PLAIN) == drawing("""
   ┌─► det    The  DET
   ├─► amod   big  ADJ
┌─►└── nsubj  dog  NOUN
├───── root   saw  VERB
│  ┌─► det    a    DET
├─►└── obj    cat  NOUN
└────► punct  .    PUNCT
""")


def test_crossings_differ_from_joints():
    assert tree_text(*CROSSING) == drawing("""
   ┌────► det     A
┌─►├───── nsubj   hearing
├──┼────► aux     is
├──┼───── root    scheduled
│  │  ┌─► case    on
│  │  ├─► det     the
│  └─►└── nmod    issue
└───────► advmod  today
""")


def test_wide_letters_take_two_cells():
    tags = "PRON ADP NUM NOUN ADP VERB AUX".split()
    assert tree_text(*WIDE, tags) == drawing("""
┌─►┌── nsubj   私    PRON
│  └─► case    は    ADP
│  ┌─► nummod  ３    NUM
├─►├── obj     本    NOUN
│  └─► case    を    ADP
├───── root    読ん  VERB
└────► aux     だ    AUX
""")


def test_combining_marks_take_no_cell():
    assert tree_text(*COMBINING) == drawing("""
┌─► a     a\u0308b\u0301   X
├── root  xyz  Y
└─► b     é    Z
""")


def test_one_word_no_words_and_two_roots():
    assert tree_text(["Go"], [0], ["root"]) == "root  Go"
    assert tree_text([], [], []) == ""
    assert tree_text(["a", "b", "c"], [0, 0, 2], ["root", "root", "x"]) == drawing("""
····root  a
┌── root  b
└─► x     c
""")


def test_control_characters_do_not_break_the_line():
    text = tree_text(["a\nb", "c\t\x1b[31m", "d\u2028e"], [0, 1, 1], ["root", "x", "y"])
    assert len(text.splitlines()) == 3
    assert "\x1b" not in text
    assert "\t" not in text


@pytest.mark.parametrize(
    ("heads", "deprels", "upos", "message"),
    [
        ([0], ["root", "x"], None, "1 heads for 2 words"),
        ([0, 1], ["root"], None, "1 deprels for 2 words"),
        ([0, 1], ["root", "x"], ["X"], "1 upos for 2 words"),
        (
            [0, 3],
            ["root", "x"],
            None,
            "Word 2 has the head 3; expected 0 for the root or another word",
        ),
        ([-1, 0], ["x", "root"], None, "Word 1 has the head -1"),
        ([0, 2], ["root", "x"], None, "Word 2 has the head 2; expected 0"),
        ([2, 1], ["x", "y"], None, r"not form a tree: no path leads from the root to words \[1, 2\]"),
    ],
)
def test_invalid_trees_are_rejected(heads, deprels, upos, message):
    with pytest.raises(ValueError, match=message):
        tree_text(["a", "b"], heads, deprels, upos)


def test_deep_trees_do_not_recurse():
    text = tree_text(["w"] * 500, list(range(500)), ["x"] * 500)
    assert len(text.splitlines()) == 500


def heads_read_off(text):
    """Follow the lines: from an arrow left to its bracket, along that to the line without an arrow."""
    rows = [line[: len(line) - len(line.lstrip(" ┌├└│┼─►"))] for line in text.splitlines()]

    def start(row, arrow):
        column = arrow - 1
        while rows[row][column] in "─┼":
            column -= 1
        assert rows[row][column] in "┌├└"
        return column

    def owner(row, column):
        step_up = rows[row][column] in "├└"
        first, last = row, row
        while step_up and rows[first][column] != "┌":
            first -= 1
        while rows[last][column] != "└":
            last += 1
        owners = []
        for place in range(first, last + 1):
            assert rows[place][column] in "┌├└│┼"
            rest = rows[place][column + 1 :].rstrip()
            if rows[place][column] in "┌├└" and "►" not in rest:
                owners.append(place + 1)
        assert len(owners) == 1
        return owners[0]

    return [owner(row, start(row, line.index("►"))) if "►" in line else 0 for row, line in enumerate(rows)]


@given(any_trees())
def test_drawing_determines_the_tree(heads):
    text = tree_text(["w"] * len(heads), heads, ["x"] * len(heads))
    assert heads_read_off(text) == heads


@given(any_trees())
def test_only_crossing_arcs_cross(heads):
    arcs = [(min(h, d), max(h, d)) for d, h in enumerate(heads, start=1) if h]
    crosses = any(a < c < b < d for a, b in arcs for c, d in arcs)
    root = heads.index(0) + 1
    covered = any(a < root < b for a, b in arcs)
    assert ("┼" in tree_text(["w"] * len(heads), heads, ["x"] * len(heads))) <= (crosses or covered)


@given(st.text("aé漢한ｆe\u0301\u200dא", max_size=8))
def test_width_of_composed_and_decomposed_text_agrees(text):
    composed = unicodedata.normalize("NFC", text)
    assert display_width(composed) <= display_width(text)
    assert display_width("a\u0301" + text) == 1 + display_width(text)


@given(any_trees(), st.lists(st.sampled_from(["aé", "漢字", "e\u0301", "한", "ｆ"]), min_size=12))
def test_columns_line_up(heads, words):
    text = tree_text(words[: len(heads)], heads, ["x"] * len(heads), ["T"] * len(heads))
    assert len({display_width(line) for line in text.splitlines()}) == 1


def test_right_to_left_is_mirrored_with_isolated_words():
    words = "הילדה הקטנה קראה ספר".split()
    text = tree_text(words, [3, 1, 0, 3], "nsubj amod root obj".split())
    assert text.replace("\u2068", "").replace("\u2069", "") == drawing("""
הילדה  nsubj ──┐◄─┐
הקטנה   amod ◄─┘  │
 קראה   root ─────┤
  ספר    obj ◄────┘
""")
    assert text.count("\u2068") == text.count("\u2069") == len(words)


@given(any_trees())
def test_mirrored_drawing_holds_the_same_tree(heads):
    plain = tree_text(["w"] * len(heads), heads, ["x"] * len(heads), right_to_left=False)
    mirrored = tree_text(["w"] * len(heads), heads, ["x"] * len(heads), right_to_left=True)
    width = max(map(len, mirrored.splitlines()))
    back = "\n".join(
        line.ljust(width)[::-1].translate(str.maketrans("┐┤┘◄", "┌├└►")) for line in mirrored.splitlines()
    )
    assert heads_read_off(back) == heads
    assert [line.replace("x  w", "w  x") for line in plain.splitlines()] == [
        line.rstrip().replace("x  w", "w  x") for line in back.splitlines()
    ]
