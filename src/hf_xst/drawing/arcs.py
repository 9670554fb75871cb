"""Draw labelled arcs above a sentence as SVG, such as a dependency tree coloured by confidence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hf_xst.drawing import markup as svg
from hf_xst.drawing.text import check_columns, check_head

PORT = 9.0  # between the ends of two arcs at one word
PADDING = 8.0  # beside a label
STEP = 24.0  # from one level of arcs to the next
CORNER = 10.0
HEAD = 5.0  # length of an arrow's head
# Minimum probability of each style. Below a half the line is also dashed, for readers who see no colours.
CONFIDENCE = (
    (0.9, svg.Look("confidence 0.9 to 1", svg.BLUE, 2.6)),
    (0.7, svg.Look("0.7 to 0.9", svg.SKY, 2.4)),
    (0.5, svg.Look("0.5 to 0.7", svg.GREY, 2.2)),
    (0.3, svg.Look("0.3 to 0.5", svg.ORANGE, 2.2, "6 3")),
    (0.0, svg.Look("below 0.3", svg.VERMILION, 2.2, "2 3")),
)
PLAIN = svg.Look()


@dataclass(frozen=True)
class Arc:
    """A labelled arc to a word from another word, counted from 1, or from the root, 0.

    The note is shown beside the label while the pointer rests on the arc.
    """

    head: int
    dependent: int
    label: str
    look: svg.Look = PLAIN
    note: str = ""

    @property
    def span(self) -> tuple[int, int]:
        """The two words from left to right; for an arc from the root, twice the dependent."""
        if self.head == 0:
            return self.dependent, self.dependent
        return min(self.head, self.dependent), max(self.head, self.dependent)


def dependency_svg(
    words: Sequence[str],
    heads: Sequence[int],
    labels: Sequence[str],
    *,
    upos: Sequence[str] | None = None,
    confidence: Sequence[float] | None = None,
    right_to_left: bool | None = None,
    title: str | None = None,
) -> str:
    """Draw a dependency tree in the colour of the surrounding text, for light and dark pages.

    Heads count from 1, and 0 is the root. Tags are shown if given; the confidence, the probability of each
    word's arc, sets its colour. The direction defaults to that of most words, the title to the sentence.

    Returns:
        An `<svg>` element, which can be part of a page or a file of its own.

    Raises:
        ValueError: if the columns differ in length, a head is out of range or the word itself, or a
            confidence is not a probability.
    """
    check_columns(words, heads=heads, labels=labels, upos=upos, confidence=confidence)
    for position, head in enumerate(heads, start=1):
        check_head(words, position, head)
    values = [None] * len(words) if confidence is None else list(confidence)
    arcs = [
        Arc(head, position, label, *_confidence_look(value))
        for position, (head, label, value) in enumerate(zip(heads, labels, values, strict=True), start=1)
    ]
    return arc_diagram(
        words,
        arcs,
        upos=upos,
        right_to_left=right_to_left,
        legend=[] if confidence is None else [look for _, look in CONFIDENCE],
        title=title or f"Dependency tree: {' '.join(words)}",
        kind="tree",
    )


def _confidence_look(value: float | None) -> tuple[svg.Look, str]:
    """Return the style of an arc of this confidence, and its note."""
    if value is None:
        return PLAIN, ""
    if not 0 <= value <= 1 + 1e-6:
        raise ValueError(f"a confidence is {value}; expected a probability from 0 to 1.")
    return next(look for minimum, look in CONFIDENCE if value >= minimum), f"probability {value:.3f}"


def arc_diagram(
    words: Sequence[str],
    arcs: Sequence[Arc],
    *,
    upos: Sequence[str] | None = None,
    right_to_left: bool | None = None,
    legend: Sequence[svg.Look] = (),
    captions: Sequence[str] = (),
    title: str,
    kind: str,
) -> str:
    """Draw any arcs above a sentence; several may lead to one word.

    Below the sentence come captions and a legend of line styles; `kind` is a class for style sheets. For the
    others see `dependency_svg`.
    """
    mirrored = svg.is_right_to_left(words) if right_to_left is None else right_to_left
    tags = [""] * len(words) if upos is None else list(upos)
    widths = [
        max(svg.text_width(word, svg.WORD), svg.text_width(tag, svg.TAG))
        for word, tag in zip(words, tags, strict=True)
    ]
    layout = lay_out(widths, arcs, [svg.text_width(arc.label, svg.LABEL) for arc in arcs])
    width = max(layout.width, svg.foot_width(captions, legend))
    margin = (width - layout.width) / 2
    base = STEP * (max(layout.levels, default=0) + 1) + 4  # y where arcs end

    def x(position: float) -> float:
        """Turn an x of the layout into one of the picture."""
        return width - margin - position if mirrored else margin + position

    parts = _draw_arcs(arcs, layout, x, base, width, mirrored)
    xs, y = [x(centre) for centre in layout.centres], base + svg.WORD + 4
    if words:
        drawn = [svg.text(word, at, y, svg.WORD, class_="word") for word, at in zip(words, xs, strict=True)]
        parts.append(svg.element("g", *drawn, class_="words", direction="rtl" if mirrored else None))
    for tag, at in zip(tags, xs, strict=True):
        if tag:
            parts.append(svg.text(tag, at, y + 16, svg.TAG, class_="upos", opacity=0.7))
    foot, bottom = svg.draw_foot(captions, legend, width, y + (svg.LINE if any(tags) else svg.LINE / 4))
    description = "; ".join([*captions, *(_describe(arc, words) for arc in arcs)])
    return svg.picture(width, bottom + 6, [*parts, *foot], title=title, description=description, kind=kind)


def _describe(arc: Arc, words: Sequence[str]) -> str:
    head = words[arc.head - 1] if arc.head else "the root"
    relation = f"is {arc.label} of" if arc.label else "hangs from"
    note = arc.note or arc.look.name
    return f"{words[arc.dependent - 1]} {relation} {head}" + (f" ({note})" if note else "")


# -- layout, as if words ran from left to right ----------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """Positions of words and arcs; arcs from the root are at the top level, with twice the same end."""

    centres: list[float]  # x of the middle of each word
    ends: list[tuple[float, float]]  # x of the left and right end of each arc
    levels: list[int]  # height of each arc, from 1
    width: float


def lay_out(word_widths: Sequence[float], arcs: Sequence[Arc], label_widths: Sequence[float]) -> Layout:
    """Position words and arcs, given the width of each word's column, so that no words or labels overlap."""
    between = [index for index, arc in enumerate(arcs) if arc.head]
    lower = dict(zip(between, levels([arcs[index].span for index in between]), strict=True))
    top = 1 + max(lower.values(), default=0)
    heights = [lower.get(index, top) for index in range(len(arcs))]
    offsets = _offsets(arcs, heights)
    slots = list(word_widths)
    for index, arc in enumerate(arcs):
        for word in set(arc.span):
            room = label_widths[index] + PADDING if arc.head == 0 else PORT
            slots[word - 1] = max(slots[word - 1], 2 * abs(offsets[index, word]) + room)
    centres = _centres(slots, arcs, label_widths, offsets)
    ends = [
        (centres[left - 1] + offsets[index, left], centres[right - 1] + offsets[index, right])
        for index, (left, right) in enumerate(arc.span for arc in arcs)
    ]
    width = centres[-1] + slots[-1] / 2 + svg.GAP if centres else 2 * svg.GAP
    return Layout(centres, ends, heights, width)


def levels(spans: Sequence[tuple[int, int]]) -> list[int]:
    """Assign each arc the lowest level above all arcs that it encloses where it overlaps no other arc.

    Shorter arcs come first. Two arcs of one level share at most an end, so arcs cross only if their spans,
    (left, right) with left < right, do.
    """
    result = [0] * len(spans)
    assigned: list[int] = []
    for index in sorted(
        range(len(spans)), key=lambda each: (spans[each][1] - spans[each][0], spans[each], each)
    ):
        left, right = spans[index]
        overlapping = [other for other in assigned if spans[other][0] < right and left < spans[other][1]]
        inside = [
            result[other] for other in overlapping if left <= spans[other][0] <= spans[other][1] <= right
        ]
        taken = {result[other] for other in overlapping}
        level = 1 + max(inside, default=0)
        while level in taken:
            level += 1
        result[index] = level
        assigned.append(index)
    return result


def _offsets(arcs: Sequence[Arc], heights: Sequence[int]) -> dict[tuple[int, int], float]:
    """Return where at a word an arc ends: (arc, word) -> distance from the middle of the word.

    From left to right: arcs to the left, lowest first; arcs from the root; arcs to the right, highest first.
    Arcs that share a word therefore enclose each other and never cross.
    """
    at_word: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for index, arc in enumerate(arcs):
        left, right = arc.span
        if arc.head == 0:
            at_word[left].append((1, 0, index))
        else:
            at_word[left].append((2, -heights[index], index))
            at_word[right].append((0, heights[index], index))
    return {
        (index, word): PORT * (rank - (len(ends) - 1) / 2)
        for word, ends in at_word.items()
        for rank, (_, _, index) in enumerate(sorted(ends))
    }


def _centres(
    slots: Sequence[float],
    arcs: Sequence[Arc],
    label_widths: Sequence[float],
    offsets: dict[tuple[int, int], float],
) -> list[float]:
    """Move each word as far to the left as the words and labels before it allow."""
    ending: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for index, arc in enumerate(arcs):
        left, right = arc.span
        if arc.head:
            distance = offsets[index, left] - offsets[index, right] + label_widths[index] + PADDING
            ending[right].append((left, distance))
    centres: list[float] = []
    for word, slot in enumerate(slots, start=1):
        before = centres[-1] + slots[word - 2] / 2 if centres else 0.0
        minimum = before + svg.GAP + slot / 2
        centres.append(max([minimum, *(centres[left - 1] + distance for left, distance in ending[word])]))
    return centres


# -- drawing a layout ------------------------------------------------------------------------------------


def _draw_arcs(
    arcs: Sequence[Arc],
    layout: Layout,
    x: Callable[[float], float],
    base: float,
    width: float,
    mirrored: bool,
) -> list[str]:
    """Draw the lines, with gaps where labels are, then the labels."""
    if not arcs:
        return []
    mask = svg.unique_id(layout, arcs, mirrored)
    holes, lines, labels = [], [], []
    for arc, (left, right), level in zip(arcs, layout.ends, layout.levels, strict=True):
        top, look = base - STEP * level, arc.look
        middle, y, size = x((left + right) / 2), top - 5, svg.text_width(arc.label, svg.LABEL)
        box = {"x": middle - size / 2, "y": y - svg.LABEL + 1, "width": size, "height": svg.LABEL + 1}
        style = {"opacity": look.opacity, "font_weight": look.weight}
        holes.append(svg.element("rect", fill="black", **box))
        lines.append(_draw_line(arc, x(left), x(right), top, base))
        labels.append(svg.text(arc.label, middle, y, svg.LABEL, class_="label", **style))
    area: dict[str, float] = {"x": 0, "y": 0, "width": width, "height": base + 4}
    everything = svg.element("rect", fill="white", **area)
    return [
        svg.element("mask", everything, *holes, id=mask, maskUnits="userSpaceOnUse", **area),
        svg.element("g", *lines, class_="arcs", fill="none", mask=f"url(#{mask})"),
        svg.element("g", *labels, class_="labels"),
    ]


def _draw_line(arc: Arc, left: float, right: float, top: float, base: float) -> str:
    look, tip = arc.look, left if arc.dependent == arc.span[0] else right
    path = f"M{left:.1f} {top:.1f}V{base:.1f}"
    if arc.head:
        path = _bracket(min(left, right), max(left, right), top, base)
    arrow = f"M{tip - HEAD * 0.7:.1f} {base - HEAD:.1f}h{HEAD * 1.4:.1f}L{tip:.1f} {base + 2:.1f}z"
    return svg.element(
        "g",
        svg.tooltip(", ".join(filter(None, (arc.label, arc.note)))),
        svg.element("path", d=path, stroke_dasharray=look.dash),
        svg.element("path", d=arrow, fill=look.colour, stroke="none"),
        class_="arc",
        data_head=str(arc.head),
        data_dependent=str(arc.dependent),
        data_look=look.name or None,
        stroke=look.colour,
        stroke_width=look.width,
        opacity=look.opacity,
    )


def _bracket(left: float, right: float, top: float, base: float) -> str:
    """Return a path up, across and down, with round corners."""
    corner = min(CORNER, (right - left) / 2)
    return (
        f"M{left:.1f} {base:.1f}V{top + corner:.1f}"
        f"Q{left:.1f} {top:.1f} {left + corner:.1f} {top:.1f}"
        f"H{right - corner:.1f}Q{right:.1f} {top:.1f} {right:.1f} {top + corner:.1f}V{base:.1f}"
    )
