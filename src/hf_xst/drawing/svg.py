"""Dependency trees as SVG: arcs above the sentence, coloured by confidence where it is known."""

from __future__ import annotations

from collections.abc import Sequence

from hf_xst.drawing.arcs import Arc, Layout, Look, lay_out
from hf_xst.drawing.markup import (
    BLUE,
    GREY,
    LABEL,
    LINE,
    ORANGE,
    SKY,
    TAG,
    VERMILION,
    draw_foot,
    element,
    foot_width,
    own_name,
    picture,
    text,
    tooltip,
)
from hf_xst.drawing.script import is_right_to_left, text_width
from hf_xst.drawing.text import check_columns

STEP = 24.0  # from one level of arcs to the next
WORD = 16.0  # size of its letters
CORNER = 10.0
HEAD = 5.0  # length of an arrow's head
# From sure to unsure; below a half the line is dashed too, for whoever sees no colours.
CONFIDENCE = (
    (0.9, Look("confidence 0.9 to 1", BLUE, 2.6)),
    (0.7, Look("0.7 to 0.9", SKY, 2.4)),
    (0.5, Look("0.5 to 0.7", GREY, 2.2)),
    (0.3, Look("0.3 to 0.5", ORANGE, 2.2, "6 3")),
    (0.0, Look("below 0.3", VERMILION, 2.2, "2 3")),
)


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
    """Draw a dependency tree.

    Lines and letters take the colour of the text around the picture, so it suits light and dark pages.

    Args:
        words: the words.
        heads: for each word its head, counted from 1; 0 for the root.
        labels: for each word the relation to its head.
        upos: for each word its tag, if tags shall be shown.
        confidence: for each word the probability of its arc, which then gives the arc its colour.
        right_to_left: the sentence's direction; by default that of most words.
        title: what the picture is called; by default the sentence.

    Returns:
        An `<svg>` element, which may stand in a page or be a file of its own.

    Raises:
        ValueError: the columns differ in length, a head is no word of the sentence or the word itself, or a
            confidence is no probability.
    """
    check_columns(words, heads, labels=labels, upos=upos, confidence=confidence)
    for position, head in enumerate(heads, start=1):
        if head == position:
            raise ValueError(f"Word {position} is its own head; expected 0 for the root or another word.")
    sure = [None] * len(words) if confidence is None else list(confidence)
    arcs = [
        Arc(head, position, label, *_confidence_look(value))
        for position, (head, label, value) in enumerate(zip(heads, labels, sure, strict=True), start=1)
    ]
    legend = [] if confidence is None else [look for _, look in CONFIDENCE]
    return arc_diagram(
        words,
        arcs,
        upos=upos,
        right_to_left=right_to_left,
        legend=legend,
        title=title or f"Dependency tree: {' '.join(words)}",
        kind="tree",
    )


def _confidence_look(value: float | None) -> tuple[Look, str]:
    """Return the look of an arc of this confidence, and what is said about it."""
    if value is None:
        return Look(), ""
    if not 0 <= value <= 1 + 1e-6:
        raise ValueError(f"a confidence is {value}; expected a probability from 0 to 1.")
    return next(look for least, look in CONFIDENCE if value >= least), f"probability {value:.3f}"


def arc_diagram(
    words: Sequence[str],
    arcs: Sequence[Arc],
    *,
    upos: Sequence[str] | None = None,
    right_to_left: bool | None = None,
    legend: Sequence[Look] = (),
    captions: Sequence[str] = (),
    title: str,
    kind: str,
) -> str:
    """Draw any arcs above a sentence; several may lead to one word.

    Args:
        words: the words.
        arcs: the arcs.
        upos: for each word its tag, if tags shall be shown.
        right_to_left: the sentence's direction; by default that of most words.
        legend: the looks to be explained.
        captions: lines below the sentence.
        title: what the picture shows.
        kind: see `picture`.
    """
    mirrored = is_right_to_left(words) if right_to_left is None else right_to_left
    tags = [""] * len(words) if upos is None else list(upos)
    widths = [
        max(text_width(word, WORD), text_width(tag, TAG)) for word, tag in zip(words, tags, strict=True)
    ]
    layout = lay_out(widths, arcs, [text_width(arc.label, LABEL) for arc in arcs])
    sketch = _Sketch(layout, arcs, mirrored, foot_width(captions, legend))
    below = sketch.base + WORD + 4
    parts = [*sketch.drawn_arcs(), *_columns(words, tags, sketch, below, mirrored)]
    foot, bottom = draw_foot(captions, legend, sketch.width, below + (LINE if any(tags) else LINE / 4))
    description = "; ".join([*captions, *(describe(arc, words) for arc in arcs)])
    return picture(sketch.width, bottom + 6, [*parts, *foot], title=title, description=description, kind=kind)


def _columns(
    words: Sequence[str], tags: Sequence[str], sketch: _Sketch, below: float, mirrored: bool
) -> list[str]:
    places = [sketch.x(centre) for centre in sketch.layout.centres]
    direction = "rtl" if mirrored else None
    shown = [text(word, x, below, WORD, class_="word") for word, x in zip(words, places, strict=True)]
    parts = [element("g", *shown, class_="words", direction=direction)] if shown else []
    parts += [
        text(tag, x, below + 16, TAG, class_="upos", opacity=0.7)
        for tag, x in zip(tags, places, strict=True)
        if tag
    ]
    return parts


def describe(arc: Arc, words: Sequence[str]) -> str:
    """Say an arc in words."""
    head = words[arc.head - 1] if arc.head else "the root"
    said = [part for part in (arc.note, arc.look.name if not arc.note else "") if part]
    relation = f"is {arc.label} of" if arc.label else "hangs from"
    return f"{words[arc.dependent - 1]} {relation} {head}" + (f" ({', '.join(said)})" if said else "")


class _Sketch:
    """A layout on its canvas: directions, heights, lines."""

    def __init__(self, layout: Layout, arcs: Sequence[Arc], mirrored: bool, least: float) -> None:
        self.layout, self.arcs, self.mirrored = layout, arcs, mirrored
        self.width = max(layout.width, least)
        self.margin = (self.width - layout.width) / 2
        self.base = STEP * (max(layout.levels, default=0) + 1) + 4

    def x(self, place: float) -> float:
        """Turn a place of the layout into one of the canvas."""
        return self.width - self.margin - place if self.mirrored else self.margin + place

    def height(self, index: int) -> float:
        """Return the y of an arc's upper end."""
        return self.base - STEP * self.layout.levels[index]

    def drawn_arcs(self) -> list[str]:
        """Draw the lines, then the labels, for which other arcs' lines leave room."""
        if not self.arcs:
            return []
        room = own_name(self.layout, self.arcs, self.mirrored)
        holes = [self._hole(index) for index in range(len(self.arcs))]
        lines = [self._line(index, arc) for index, arc in enumerate(self.arcs)]
        names = [self._label(index, arc) for index, arc in enumerate(self.arcs)]
        area: dict[str, float] = {"x": 0, "y": 0, "width": self.width, "height": self.base + 4}
        everything = element("rect", fill="white", **area)
        return [
            element("mask", everything, *holes, id=room, maskUnits="userSpaceOnUse", **area),
            element("g", *lines, class_="arcs", fill="none", mask=f"url(#{room})"),
            element("g", *names, class_="labels"),
        ]

    def _place(self, index: int) -> tuple[float, float]:
        """Return the middle and the base line of an arc's label."""
        left, right = self.layout.ends[index]
        return self.x((left + right) / 2), self.height(index) - 5

    def _label(self, index: int, arc: Arc) -> str:
        (x, y), look = self._place(index), arc.look
        return text(arc.label, x, y, LABEL, class_="label", opacity=look.opacity, font_weight=look.weight)

    def _hole(self, index: int) -> str:
        (middle, base), width = self._place(index), text_width(self.arcs[index].label, LABEL)
        box = {"x": middle - width / 2, "y": base - LABEL + 1, "width": width, "height": LABEL + 1}
        return element("rect", fill="black", **box)

    def _line(self, index: int, arc: Arc) -> str:
        left, right = (self.x(end) for end in self.layout.ends[index])
        top = self.height(index)
        if arc.head == 0:
            path = f"M{left:.1f} {top:.1f}V{self.base:.1f}"
            tip = left
        else:
            path = _bracket(min(left, right), max(left, right), top, self.base)
            tip = left if arc.dependent == arc.span[0] else right
        arrow = (
            f"M{tip - HEAD * 0.7:.1f} {self.base - HEAD:.1f}h{HEAD * 1.4:.1f}L{tip:.1f} {self.base + 2:.1f}z"
        )
        look = arc.look
        return element(
            "g",
            tooltip(", ".join(part for part in (arc.label, arc.note) if part)),
            element("path", d=path, stroke_dasharray=look.dash),
            element("path", d=arrow, fill=look.colour, stroke="none"),
            class_="arc",
            data_head=str(arc.head),
            data_dependent=str(arc.dependent),
            data_look=look.name or None,
            stroke=look.colour,
            stroke_width=look.width,
            opacity=look.opacity,
        )


def _bracket(left: float, right: float, top: float, base: float) -> str:
    """Return a path up, over and down, with round corners."""
    corner = min(CORNER, (right - left) / 2)
    return (
        f"M{left:.1f} {base:.1f}V{top + corner:.1f}"
        f"Q{left:.1f} {top:.1f} {left + corner:.1f} {top:.1f}"
        f"H{right - corner:.1f}Q{right:.1f} {top:.1f} {right:.1f} {top + corner:.1f}V{base:.1f}"
    )
