"""Parse drawn SVG back into words, arcs and labels with their positions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree import ElementTree

from hypothesis import strategies as st

from hf_xst.drawing.markup import text_width

SVG = "{http://www.w3.org/2000/svg}"
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@dataclass(frozen=True)
class DrawnArc:
    head: int
    dependent: int
    left: float
    right: float
    top: float
    colour: str
    dashed: bool
    look: str | None
    tip: float


def parsed(svg: str) -> ElementTree.Element:
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    return root


def of_class(svg: str, name: str) -> list[ElementTree.Element]:
    return [element for element in parsed(svg).iter() if element.get("class") == name]


def words(svg: str) -> list[tuple[str, float]]:
    return [(element.text or "", float(element.attrib["x"])) for element in of_class(svg, "word")]


def labels(svg: str) -> list[tuple[str, float, float, float]]:
    """Text, left and right end, base line."""
    results = []
    for element in of_class(svg, "label"):
        text, x, y = element.text or "", float(element.attrib["x"]), float(element.attrib["y"])
        half = text_width(text, float(element.attrib["font-size"])) / 2
        results.append((text, x - half, x + half, y))
    return results


def arcs(svg: str) -> list[DrawnArc]:
    results = []
    for element in of_class(svg, "arc"):
        line, arrow = element.findall(f"{SVG}path")
        numbers = [float(number) for number in _NUMBER.findall(line.attrib["d"])]
        if "Q" in line.attrib["d"]:
            # M left base V .. Q left top .. H .. Q right top right .. V base
            left, top, right = numbers[0], numbers[4], numbers[8]
        else:
            left, top, right = numbers[0], numbers[1], numbers[0]
        results.append(
            DrawnArc(
                int(element.attrib["data-head"]),
                int(element.attrib["data-dependent"]),
                left,
                right,
                top,
                element.attrib["stroke"],
                "stroke-dasharray" in line.attrib,
                element.get("data-look"),
                float(_NUMBER.findall(arrow.attrib["d"])[-2]),
            )
        )
    return results


def cross(one: DrawnArc, other: DrawnArc) -> bool:
    """Check whether a side of one arc crosses the upper line of the other, or vice versa."""
    return any(
        second.left < x < second.right and first.top < second.top
        for first, second in ((one, other), (other, one))
        for x in (first.left, first.right)
    )


@st.composite
def any_trees(draw: st.DrawFn) -> list[int]:
    """Draw the heads of any tree; most have crossing arcs."""
    order = draw(st.permutations(range(1, draw(st.integers(1, 12)) + 1)))
    heads = [0] * len(order)
    for place, word in enumerate(order[1:], start=1):
        heads[word - 1] = order[draw(st.integers(0, place - 1))]
    return heads


@st.composite
def projective_trees(draw: st.DrawFn) -> list[int]:
    """Draw the heads of a projective tree."""
    length = draw(st.integers(1, 14))
    heads = [0] * length

    def attach(first: int, last: int, head: int) -> None:
        """Split the words first..last into subtrees below `head`."""
        while first <= last:
            end = draw(st.integers(first, last))
            root = draw(st.integers(first, end))
            heads[root - 1] = head
            attach(first, root - 1, root)
            attach(root + 1, end, root)
            first = end + 1

    root = draw(st.integers(1, length))
    attach(1, root - 1, root)
    attach(root + 1, length, root)
    return heads
