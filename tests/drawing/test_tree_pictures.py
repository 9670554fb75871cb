from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.pictures import (
    DrawnArc,
    any_trees,
    arcs,
    cross,
    labels,
    of_class,
    parsed,
    projective_trees,
    words,
)
from hf_xst.drawing import Drawing, dependency_svg
from hf_xst.drawing.arcs import levels
from hf_xst.drawing.markup import is_right_to_left, standalone, text_width
from hf_xst.drawing.views import html_page

PLAIN = (
    "The big dog saw a cat .".split(),
    [3, 3, 4, 0, 6, 4, 4],
    "det amod nsubj root det obj punct".split(),
)
HEBREW = ("הילדה הקטנה קראה ספר .".split(), [3, 1, 0, 3, 3], "nsubj amod root obj punct".split())
WORD_SAMPLES = st.sampled_from(["a", "Wörter", "漢字", "e\u0301", "extraordinarily", "كتبت"])
LABEL_SAMPLES = st.sampled_from(["x", "nsubj:pass", "punct"])


def tree_of(heads: list[int], data: st.DataObject, **settings: object) -> str:
    length = len(heads)
    drawn_words = data.draw(st.lists(WORD_SAMPLES, min_size=length, max_size=length))
    drawn_labels = data.draw(st.lists(LABEL_SAMPLES, min_size=length, max_size=length))
    return dependency_svg(drawn_words, heads, drawn_labels, **settings)


def test_picture_holds_the_tree():
    svg = dependency_svg(*PLAIN, upos="DET ADJ NOUN VERB DET NOUN PUNCT".split(), title="A dog")
    assert [(arc.head, arc.dependent) for arc in arcs(svg)] == list(zip(PLAIN[1], range(1, 8), strict=True))
    assert [word for word, _ in words(svg)] == PLAIN[0]
    assert [label for label, *_ in labels(svg)] == PLAIN[2]
    assert [tag.text for tag in of_class(svg, "upos")] == "DET ADJ NOUN VERB DET NOUN PUNCT".split()
    root = parsed(svg)
    assert root.get("role") == "img"
    assert root.get("fill") == "currentColor"
    title, description = root[0], root[1]
    assert title.tag.endswith("title")
    assert title.text == root.get("aria-label") == "A dog"
    assert description.tag.endswith("desc")
    assert "dog is nsubj of saw" in (description.text or "")
    assert "saw is root of the root" in (description.text or "")


def test_arrows_point_at_dependents():
    svg = dependency_svg(*PLAIN)
    places = dict(enumerate((x for _, x in words(svg)), start=1))
    for arc in arcs(svg):
        near = min(places, key=lambda word: abs(places[word] - arc.tip))
        assert near == arc.dependent


@given(projective_trees(), st.data())
def test_arcs_of_projective_trees_never_cross(heads, data):
    drawn = arcs(tree_of(heads, data))
    assert not [(one, other) for one in drawn for other in drawn if cross(one, other)]


@given(any_trees(), st.data())
def test_arcs_of_one_level_do_not_overlap(heads, data):
    drawn = [arc for arc in arcs(tree_of(heads, data)) if arc.head]
    for place, one in enumerate(drawn):
        for other in drawn[:place]:
            if one.top == other.top:
                assert one.right <= other.left or other.right <= one.left


@given(any_trees(), st.data(), st.booleans())
def test_labels_and_words_do_not_overlap(heads, data, right_to_left):
    svg = tree_of(heads, data, right_to_left=right_to_left)
    named = labels(svg)
    for place, (_, left, right, base) in enumerate(named):
        assert 0 <= left
        assert right <= float(parsed(svg).attrib["width"])
        for _, other_left, other_right, other_base in named[:place]:
            assert base != other_base or right <= other_left or other_right <= left
    spans = sorted((x - text_width(word, 16) / 2, x + text_width(word, 16) / 2) for word, x in words(svg))
    assert all(one[1] < other[0] for one, other in pairwise(spans))


@given(any_trees(), st.data())
def test_right_to_left_is_mirrored(heads, data):
    length = len(heads)
    sampled_words = data.draw(st.lists(WORD_SAMPLES, min_size=length, max_size=length))
    one, other = (
        dependency_svg(sampled_words, heads, ["x"] * length, right_to_left=way) for way in (False, True)
    )
    width = float(parsed(one).attrib["width"])
    assert [x for _, x in words(one)] == sorted(x for _, x in words(one))
    for (word, x), (same, mirrored) in zip(words(one), words(other), strict=True):
        assert word == same
        assert mirrored == pytest.approx(width - x, abs=0.2)
    for arc, mirrored_arc in zip(arcs(one), arcs(other), strict=True):
        assert mirrored_arc.top == arc.top
        assert mirrored_arc.left == pytest.approx(width - arc.right, abs=0.3)
        assert mirrored_arc.tip == pytest.approx(width - arc.tip, abs=0.3)


def test_direction_follows_the_script():
    places = [x for _, x in words(dependency_svg(*HEBREW))]
    assert places == sorted(places, reverse=True)
    assert of_class(dependency_svg(*HEBREW), "words")[0].get("direction") == "rtl"
    assert of_class(dependency_svg(*PLAIN), "words")[0].get("direction") is None
    assert (
        Drawing.tree(*HEBREW)
        ._repr_html_()
        .startswith('<div style="overflow-x:auto;max-width:100%" dir="rtl"')
    )


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (["שלום", "!"], True),
        (["كتبت", "المقال", "CNN"], True),
        (["he", "said", "שלום"], False),
        (["...", "12"], False),
        (["(שלום", "2024"], True),
        ([], False),
    ],
)
def test_direction_of_sentences(sentence, expected):
    assert is_right_to_left(sentence) is expected


NASTY = ["<b>", "&amp;", "\"'", "a\x00b", "\x1b[1m", "\ud800", "\uffff", "]]>", "{{x}}", "--"]


def test_special_characters_are_escaped():
    length = len(NASTY)
    svg = dependency_svg(NASTY, [0, *[1] * (length - 1)], NASTY[::-1], upos=NASTY, title="<&>\x07")
    shown = [word for word, _ in words(svg)]
    assert shown[:3] == ["<b>", "&amp;", "\"'"]
    assert shown[3:7] == ["a�b", "�[1m", "�", "�"]
    assert parsed(svg).get("aria-label") == "<&>�"
    assert parsed(standalone(svg)).get("aria-label") == "<&>�"


@given(st.lists(st.text(max_size=6), min_size=1, max_size=5))
def test_any_text_gives_well_formed_markup(texts):
    parsed(dependency_svg(texts, [0, *[1] * (len(texts) - 1)], texts, upos=texts))


def test_colours_show_confidence():
    values = [0.05, 0.35, 0.5, 1.0, 0.75, 0.95, 0.69]
    svg = dependency_svg(*PLAIN, confidence=values)
    drawn = arcs(svg)
    assert [arc.colour for arc in drawn] == [
        "#D55E00", "#E69F00", "#8A8A8A", "#0072B2", "#56B4E9", "#0072B2", "#8A8A8A",
    ]  # fmt: skip
    assert [arc.dashed for arc in drawn] == [value < 0.5 for value in values]
    (legend,) = of_class(svg, "legend")
    assert len(list(legend.iter("{http://www.w3.org/2000/svg}text"))) == 5
    assert "probability 0.050" in svg
    plain = dependency_svg(*PLAIN)
    assert {arc.colour for arc in arcs(plain)} == {"currentColor"}
    assert not of_class(plain, "legend")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"heads": [1, 0]}, "Word 1 has the head 1; expected 0 for the root or another word"),
        ({"heads": [3, 0]}, "Word 1 has the head 3"),
        ({"heads": [0]}, "1 heads for 2 words"),
        ({"labels": ["x"]}, "1 labels for 2 words"),
        ({"upos": ["X"]}, "1 upos for 2 words"),
        ({"confidence": [0.5]}, "1 confidence for 2 words"),
        ({"confidence": [0.5, 1.5]}, "a confidence is 1.5"),
        ({"confidence": [0.5, float("nan")]}, "a confidence is nan"),
    ],
)
def test_invalid_columns_are_rejected(changes, message):
    arguments = {"words": ["a", "b"], "heads": [2, 0], "labels": ["x", "root"]} | changes
    with pytest.raises(ValueError, match=message):
        dependency_svg(**arguments)


def test_small_sentences():
    parsed(dependency_svg([], [], []))
    assert [arc.head for arc in arcs(dependency_svg(["Go"], [0], ["root"]))] == [0]


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(1, 9)).filter(lambda span: span[0] < span[1]), max_size=20
    )
)
def test_levels_enclose_and_do_not_overlap(spans):
    results = levels(spans)
    for one, level in zip(spans, results, strict=True):
        assert level >= 1
        for other, other_level in zip(spans, results, strict=True):
            inside = one[0] <= other[0] <= other[1] <= one[1] and one != other
            assert not inside or other_level < level
            if level == other_level and one != other:
                assert one[1] <= other[0] or other[1] <= one[0]
    for span in set(spans):
        same_span = [level for one, level in zip(spans, results, strict=True) if one == span]
        assert len(same_span) == len(set(same_span))


def test_drawing_in_notebook_shell_and_file(tmp_path):
    drawing = Drawing.tree(*PLAIN, confidence=[1.0] * 7)
    assert "<svg" in drawing._repr_html_()
    assert str(drawing).splitlines()[3].endswith("root   saw")
    drawing.save(tmp_path / "tree.svg")
    saved = (tmp_path / "tree.svg").read_text(encoding="utf-8")
    assert "prefers-color-scheme:dark" in saved
    assert arcs(saved) == arcs(drawing.svg)
    page = html_page([("<one>", drawing)], "A & B")
    assert "<h2>&lt;one&gt;</h2>" in page
    assert "<title>A &amp; B</title>" in page


def test_pictures_of_one_page_have_unique_ids():
    first, second = dependency_svg(*PLAIN), dependency_svg(*HEBREW)
    masks = [
        element.attrib["id"] for svg in (first, second) for element in parsed(svg).iter() if element.get("id")
    ]
    assert len(set(masks)) == 2
    assert all(f"url(#{name})" in svg for name, svg in zip(masks, (first, second), strict=True))


def test_oracle_detects_crossings():
    low, high = (
        DrawnArc(1, 3, 0, 20, 50, "", False, None, 20),
        DrawnArc(2, 4, 10, 30, 20, "", False, None, 30),
    )
    assert cross(low, high)
    assert not cross(low, DrawnArc(2, 4, -10, 30, 20, "", False, None, 30))
