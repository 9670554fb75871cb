"""Where the arcs of a drawing go: levels without overlaps, ends side by side, room for every label."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

PORT = 9.0  # between the ends of two arcs at one word
GAP = 16.0  # between two words
PADDING = 8.0  # beside a label


@dataclass(frozen=True)
class Look:
    """How an arc is drawn.

    Attributes:
        name: what it means, for the legend.
        colour: of the line.
        width: of the line.
        dash: pattern of the line, None for a solid one.
        opacity: of line and label.
        weight: of the label's letters.
    """

    name: str = ""
    colour: str = "currentColor"
    width: float = 1.4
    dash: str | None = None
    opacity: float | None = None
    weight: str | None = None


PLAIN = Look()


@dataclass(frozen=True)
class Arc:
    """A labelled arc to a word, from another one or (head 0) from the root.

    Attributes:
        head: position of the head from 1; 0 for the root.
        dependent: position of the dependent from 1.
        label: written on it.
        look: how it is drawn.
        note: what a pointer on it is told beside its label.
    """

    head: int
    dependent: int
    label: str
    look: Look = PLAIN
    note: str = ""

    @property
    def span(self) -> tuple[int, int]:
        """The two words, left one first; for an arc from the root twice the dependent."""
        if self.head == 0:
            return self.dependent, self.dependent
        return min(self.head, self.dependent), max(self.head, self.dependent)


@dataclass(frozen=True)
class Layout:
    """Places, as if words ran from left to right.

    Attributes:
        centres: x of each word's middle.
        ends: for each arc the x of its left and right end (the same for an arc from the root).
        levels: for each arc its height, 1 being the lowest; arcs from the root end above all others.
        width: of the whole.
    """

    centres: list[float]
    ends: list[tuple[float, float]]
    levels: list[int]
    width: float


def levels(spans: Sequence[tuple[int, int]]) -> list[int]:
    """Give each arc the lowest level above all that it encloses on which it overlaps no other arc.

    Shorter arcs choose first. Two arcs of one level have at most an end in common, so that arcs cross only
    where their spans do.

    Args:
        spans: left and right word of each arc, left < right.
    """
    found = [0] * len(spans)
    placed: list[int] = []
    for index in sorted(range(len(spans)), key=lambda one: (spans[one][1] - spans[one][0], spans[one], one)):
        left, right = spans[index]
        overlapping = [other for other in placed if spans[other][0] < right and left < spans[other][1]]
        inside = (
            found[other] for other in overlapping if left <= spans[other][0] <= spans[other][1] <= right
        )
        level = 1 + max(inside, default=0)
        taken = {found[other] for other in overlapping}
        while level in taken:
            level += 1
        found[index] = level
        placed.append(index)
    return found


def lay_out(word_widths: Sequence[float], arcs: Sequence[Arc], label_widths: Sequence[float]) -> Layout:
    """Place words and arcs so that no two words or labels overlap.

    Args:
        word_widths: of each word's column.
        arcs: the arcs.
        label_widths: of each arc's label.
    """
    heights = _heights(arcs)
    offsets = _offsets(arcs, heights)
    slots = list(word_widths)
    for index, arc in enumerate(arcs):
        for word in set(arc.span):
            room = label_widths[index] + PADDING if arc.head == 0 else PORT
            slots[word - 1] = max(slots[word - 1], 2 * abs(offsets[index, word]) + room)
    centres = _centres(slots, arcs, label_widths, offsets)
    ends = [
        (
            centres[arc.span[0] - 1] + offsets[index, arc.span[0]],
            centres[arc.span[1] - 1] + offsets[index, arc.span[1]],
        )
        for index, arc in enumerate(arcs)
    ]
    width = centres[-1] + slots[-1] / 2 + GAP if centres else 2 * GAP
    return Layout(centres, ends, heights, width)


def _heights(arcs: Sequence[Arc]) -> list[int]:
    between = [index for index, arc in enumerate(arcs) if arc.head]
    found = dict(zip(between, levels([arcs[index].span for index in between]), strict=True))
    top = 1 + max(found.values(), default=0)
    return [found.get(index, top) for index in range(len(arcs))]


def _offsets(arcs: Sequence[Arc], heights: Sequence[int]) -> dict[tuple[int, int], float]:
    """Return where at a word an arc ends, as (arc, word) -> distance from the word's middle.

    From left to right: arcs to the left, lowest first; arcs from the root; arcs to the right, highest first.
    So arcs that share a word enclose each other and never cross.
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
        (index, word): PORT * (place - (len(ends) - 1) / 2)
        for word, ends in at_word.items()
        for place, (_, _, index) in enumerate(sorted(ends))
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
            need = offsets[index, left] - offsets[index, right] + label_widths[index] + PADDING
            ending[right].append((left, need))
    centres: list[float] = []
    for word, slot in enumerate(slots, start=1):
        before = centres[-1] + slots[word - 2] / 2 if centres else 0.0
        least = before + GAP + slot / 2
        centres.append(max([least, *(centres[left - 1] + need for left, need in ending[word])]))
    return centres
