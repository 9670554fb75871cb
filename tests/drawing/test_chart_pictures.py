from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers.categorical import IndependentGroups
from helpers.pictures import SVG, arcs, labels, of_class, parsed, words
from hf_xst.drawing import ChartView, chain_chart_svg, heat_svg, tree_chart_svg
from hf_xst.drawing.charts import count_text
from hf_xst.drawing.views import MOST_ARCS
from hf_xst.structures import DependencyTreeCRF, LinearChainCRF

WORDS = "saya makan nasi".split()
ALLOWED = [[(2, "nsubj"), (3, "nmod")], [(0, "root")], [(2, "obj"), (2, "obl"), (1, "appos"), (0, "root")]]
GOLD = [(2, "nsubj"), (0, "root"), (2, "obj")]
BEST = [(2, "nsubj"), (0, "root"), (1, "appos")]
NAMES = ["appos", "nmod", "nsubj", "obj", "obl", "root"]
GREEN = "#009E73"


def test_allowed_arcs_with_gold_and_best_marked():
    svg = tree_chart_svg(WORDS, ALLOWED, gold=GOLD, best=BEST, log_count=math.log(6))
    by_arc = {(arc.head, arc.dependent): arc for arc in arcs(svg)}
    assert set(by_arc) == {(2, 1), (3, 1), (0, 2), (2, 3), (1, 3), (0, 3)}
    assert {pair for pair, arc in by_arc.items() if arc.colour == GREEN} == {(2, 1), (0, 2), (2, 3)}
    assert by_arc[1, 3].look == "best of the chart"
    assert by_arc[3, 1].look == by_arc[0, 3].look == "allowed"
    assert sorted(label for label, *_ in labels(svg)) == sorted(
        ["★ nsubj", "nmod", "★ root", "★ obj/obl", "appos", "root"]
    )
    (caption,) = of_class(svg, "caption")
    assert caption.text == "The chart holds 6 trees."
    assert "The chart holds 6 trees." in (parsed(svg)[1].text or "")


def test_missing_gold_is_drawn_separately():
    svg = tree_chart_svg(WORDS, ALLOWED, gold=[(2, "obl"), (0, "root"), (2, "iobj")])
    missing = [arc for arc in arcs(svg) if arc.look == "★ gold, not allowed"]
    assert [(arc.head, arc.dependent) for arc in missing] == [(2, 1), (2, 3)]
    assert all(arc.dashed for arc in missing)
    assert {"★ obl", "★ iobj", "nsubj", "obj/obl"} <= {label for label, *_ in labels(svg)}
    assert "gold" not in tree_chart_svg(WORDS, ALLOWED)


def test_many_labels_of_one_arc_are_counted():
    svg = tree_chart_svg(
        WORDS, [[(2, name) for name in "abcde"], [(0, "root")], []], gold=[(2, "e"), *GOLD[1:]]
    )
    assert "★ e/a +3" in [label for label, *_ in labels(svg)]
    assert "labels e, a, b, c, d" in svg


@pytest.mark.parametrize(
    ("log_count", "expected"),
    [
        (-math.inf, "no trees"),
        (0.0, "1 tree"),
        (math.log(2), "2 trees"),
        (math.log(1234), "1,234 trees"),
        (math.log(3.2e15), "about 3.2 · 10¹⁵ trees"),
        (5000.0, "about 3.0 · 10²¹⁷¹ trees"),
    ],
)
def test_count_text(log_count, expected):
    assert count_text(log_count, "trees") == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"allowed": ALLOWED[:2]}, "2 allowed for 3 words"),
        ({"gold": GOLD[:1]}, "1 gold for 3 words"),
        ({"allowed": [[(4, "x")], [], []]}, "Word 1 has the head 4"),
        ({"best": [(2, "x"), (2, "x"), (0, "x")]}, "Word 2 has the head 2"),
    ],
)
def test_mismatched_charts_are_rejected(changes, message):
    with pytest.raises(ValueError, match=message):
        tree_chart_svg(**({"words": WORDS, "allowed": ALLOWED} | changes))


def tree_mask(allowed, names, length):
    mask = torch.zeros(length, (length + 1) * len(names), dtype=torch.bool)
    for group, candidates in enumerate(allowed):
        for head, label in candidates:
            mask[group, head * len(names) + names.index(label)] = True
    return mask


def number_of_trees(allowed):
    """By trying every choice of one candidate a word."""
    count = 0
    for choice in itertools.product(*allowed):
        heads = [head for head, _ in choice]
        reached, waiting = set(), [0]
        while waiting:
            head = waiting.pop()
            below = [word for word, its in enumerate(heads, start=1) if its == head]
            reached.update(below)
            waiting += below
        count += len(reached) == len(heads) and heads.count(0) == 1
    return count


@given(
    st.lists(
        st.sets(st.tuples(st.integers(0, 3), st.sampled_from(NAMES)), min_size=1, max_size=4),
        min_size=3,
        max_size=3,
    )
)
def test_view_draws_and_counts_the_same_chart(sets):
    allowed = [sorted(each) for each in sets]
    allowed = [
        [(head, label) for head, label in each if head != word] or [(0, "root")]
        for word, each in enumerate(allowed, start=1)
    ]
    space = DependencyTreeCRF(torch.zeros(1, 4, 4, len(NAMES)))
    view = ChartView(space, NAMES, tree_mask(allowed, NAMES, 3), WORDS)
    drawing = view.drawing()
    expected = number_of_trees(allowed)
    assert drawing.text.splitlines()[-1] == count_text(math.log(expected) if expected else -math.inf, "trees")
    pairs = {(head, word) for word, each in enumerate(allowed, start=1) for head, _ in each}
    assert {(arc.head, arc.dependent) for arc in arcs(drawing.svg)} == pairs


def test_view_marks_gold_and_best():
    space = DependencyTreeCRF(torch.zeros(1, 4, 4, len(NAMES)))
    columns = [dict(zip(("head", "deprel"), zip(*each, strict=True), strict=True)) for each in (GOLD, BEST)]
    view = ChartView(space, NAMES, tree_mask(ALLOWED, NAMES, 3), WORDS, gold=columns[0], best=columns[1])
    drawing = view.drawing()
    assert drawing.text.splitlines() == [
        "1 saya: [★nsubj(makan)] nmod(nasi)",
        "2 makan: [★root(ROOT)]",
        "3 nasi: root(ROOT) [appos(saya)] ★obj(makan) obl(makan)",
        f"{number_of_trees(ALLOWED)} trees",
    ]
    assert len([arc for arc in arcs(drawing.svg) if arc.colour == GREEN]) == 3


def test_too_many_arcs_become_a_table():
    length = 9
    space = DependencyTreeCRF(torch.zeros(1, length + 1, length + 1, 1))
    assert length * length > MOST_ARCS
    gold = {"head": [0, *[1] * 8], "deprel": ["x"] * 9}
    drawing = ChartView(space, ["x"], space.valid[0], ["w"] * length, gold=gold).drawing()
    assert "heat" in (parsed(drawing.svg).get("class") or "")
    assert len(of_class(drawing.svg, "frame")) == length * length
    assert len([text for text in parsed(drawing.svg).iter(f"{SVG}text") if text.text == "★"]) == length
    assert of_class(drawing.svg, "caption")[0].text == (
        "Allowed heads are framed. The chart holds about 4.3 · 10⁷ trees."  # 9 to the power of 8
    )


TAGS = ["ADV", "NOUN", "VERB", "<s>", "</s>"]


def chain_view(pairs, words, **marks):
    mask = torch.zeros(len(words) + 1, len(TAGS) ** 2, dtype=torch.bool)
    for group, allowed in enumerate(pairs):
        for before, after in allowed:
            mask[group, TAGS.index(before) * len(TAGS) + TAGS.index(after)] = True
    return ChartView(LinearChainCRF(torch.zeros(1, len(words) + 1, 5, 5)), TAGS, mask, words, **marks)


def test_lattice_with_gold_and_best():
    pairs = [
        {("<s>", "NOUN"), ("<s>", "VERB")},
        {("NOUN", "VERB"), ("NOUN", "NOUN"), ("VERB", "NOUN"), ("ADV", "NOUN")},
        {("VERB", "</s>"), ("NOUN", "</s>")},
    ]
    view = chain_view(
        pairs, ["dogs", "bark"], gold={"upos": ["NOUN", "ADV"]}, best={"upos": ["NOUN", "VERB"]}
    )
    drawing = view.drawing()
    assert drawing.text.splitlines() == [
        "1 dogs: [★NOUN] VERB",
        "2 bark: NOUN [VERB] (not allowed: ★ADV)",
        "3 tag sequences",
    ]
    boxes = {(box.attrib["data-place"], box[1].attrib["stroke"]): box for box in of_class(drawing.svg, "tag")}
    assert len(of_class(drawing.svg, "tag")) == 5
    assert ("1", GREEN) in boxes
    assert boxes["2", "#D55E00"].attrib["data-look"] == "★ gold, not allowed"
    assert len(of_class(drawing.svg, "pair")) == 3  # the tag that no pair leads to has none
    assert [line.attrib["data-look"] for line in of_class(drawing.svg, "pair")].count(
        "best of the chart"
    ) == 1


def test_single_word_has_tags_without_pairs():
    drawing = chain_view([{("<s>", "NOUN"), ("<s>", "VERB")}, {("NOUN", "</s>")}], ["dogs"]).drawing()
    assert drawing.text == "1 dogs: NOUN\n1 tag sequence"


def test_lattice_direction_follows_the_script():
    pairs = [{("A", "B")}, {("B", "A"), ("B", "B")}]
    for sentence, reverse in ((["a", "b", "c"], False), (["אב", "גד", "הו"], True)):
        svg = chain_chart_svg(sentence, pairs)
        places = [x for _, x in words(svg)]
        assert places == sorted(places, reverse=reverse)
        assert len(of_class(svg, "pair")) == 3
    with pytest.raises(ValueError, match="2 sets of pairs for 2 words; expected 1"):
        chain_chart_svg(["a", "b"], pairs)
    with pytest.raises(ValueError, match="1 gold for 3 words"):
        chain_chart_svg(["a", "b", "c"], pairs, gold=["A"])


def test_many_pairs_become_a_table():
    words_of_it = ["w"] * 40
    space = LinearChainCRF(torch.zeros(1, 41, 5, 5))
    kept = torch.ones(41, 25, dtype=torch.bool)
    svg = ChartView(space, TAGS, kept, words_of_it).drawing().svg
    assert "heat" in (parsed(svg).get("class") or "")


def test_tables_shade_frame_and_star():
    svg = heat_svg(
        ["a", "b"],
        ["x", "y", "z"],
        [[0.9, 0.1, 0.0], [0.0, 0.001, 0.999]],
        allowed={(0, 0), (1, 1)},
        gold={(0, 1)},
        notes={(0, 0): "<note>"},
        caption="Below.",
        title="T",
    )
    cells = of_class(svg, "cell")
    shown = [[text.text for text in cell.iter(f"{SVG}text")] for cell in cells]
    assert shown == [[".90"], ["★.10"], [], ["1"]]
    assert [cell.find(f"{SVG}title").text for cell in cells][:2] == ["<note>", "a, y: 0.100"]
    assert len(of_class(svg, "frame")) == 2
    opacities = [float(cell.find(f"{SVG}rect").attrib["fill-opacity"]) for cell in cells]
    assert opacities[3] > opacities[0] > opacities[1] > opacities[2]
    assert "likeliest: a: x 0.90; b: z 1.00" in svg
    with pytest.raises(ValueError, match="2 rows with 1 columns"):
        heat_svg(["a", "b"], ["x"], [[0.1], [0.1, 0.2]], title="T")


def test_right_to_left_tables_begin_at_the_right():
    svg = heat_svg(["אב", "גד"], ["x", "y"], [[1.0, 1.0]] * 2, title="T")
    first, second = (float(cell.find(f"{SVG}rect").attrib["x"]) for cell in of_class(svg, "cell")[:2])
    assert first > second
    assert parsed(svg).get("direction") == "ltr"  # numbers and captions stay left to right


def test_other_structures_are_rejected():
    space = IndependentGroups(torch.zeros(1, 2, 3))
    view = ChartView(space, ["a", "b", "c"], torch.ones(2, 3, dtype=torch.bool), ["v", "w"])
    with pytest.raises(ValueError, match="cannot draw a IndependentGroups; expected trees or chains"):
        view.drawing()
