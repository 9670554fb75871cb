"""Draw charts as SVG: allowed arcs above a sentence, or a lattice of allowed tags, with gold and best marked.

This is figure 1 of Kurniawan et al. (2021) for any sentence: the structures that remain without the unlikely
candidates.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from hf_xst.drawing import markup as svg
from hf_xst.drawing.arcs import Arc, arc_diagram
from hf_xst.drawing.markup import Look
from hf_xst.drawing.text import check_columns, check_head

Candidate = tuple[int, str]
"""A head (0 for the root) and a label."""

ALLOWED = Look("allowed", width=1.1, opacity=0.6)
BEST = Look("best of the chart", width=2.6)
GOLD = Look("★ gold", svg.GREEN, 2.6, weight="bold")
MISSING = Look("★ gold, not allowed", svg.VERMILION, 2.2, "2 3", weight="bold")
STAR = "★ "
ROW, BOX = 30.0, 20.0  # height of a lattice's row, and of the box of a tag
_NAMES = 2  # labels written on one arc; further ones are counted there and listed in the tooltip


def count_text(log_count: float, noun: str) -> str:
    """Write a number of structures, given by its natural logarithm, with a noun in the plural."""
    if log_count == -math.inf:
        return f"no {noun}"
    if log_count < math.log(1e6):
        count = round(math.exp(log_count))
        return f"{count:,} {noun.removesuffix('s') if count == 1 else noun}"
    exponent = math.floor(log_count / math.log(10))
    superscript = str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"about {math.exp(log_count - exponent * math.log(10)):.1f} · 10{superscript} {noun}"


def _captions(log_count: float | None, noun: str) -> list[str]:
    return [] if log_count is None else [f"The chart holds {count_text(log_count, noun)}."]


def _legend(looks: Iterable[Look]) -> list[Look]:
    names = {look.name for look in looks}
    return [look for look in (ALLOWED, BEST, GOLD, MISSING) if look.name in names]


# -- trees -----------------------------------------------------------------------------------------------


def tree_chart_svg(
    words: Sequence[str],
    allowed: Sequence[Collection[Candidate]],
    *,
    gold: Sequence[Candidate] | None = None,
    best: Sequence[Candidate] | None = None,
    log_count: float | None = None,
    upos: Sequence[str] | None = None,
    title: str | None = None,
) -> str:
    """Draw a chart of trees as the set of its arcs; labels between the same two words share one arc.

    Each word has allowed candidates, its candidate in the best tree of the chart, and a gold candidate, which
    is marked, and drawn even if the chart lacks it. `log_count` is the logarithm of the number of trees.

    Raises:
        ValueError: if the columns differ in length or a head is not a word of the sentence.
    """
    check_columns(words, allowed=allowed, gold=gold, best=best)
    marks = [column for column in (gold, best) if column is not None]
    for position, (candidates, *marked) in enumerate(zip(allowed, *marks, strict=True), start=1):
        for head, _ in [*candidates, *marked]:
            check_head(words, position, head)
    arcs = chart_arcs(allowed, gold, best)
    return arc_diagram(
        words,
        arcs,
        upos=upos,
        legend=_legend(arc.look for arc in arcs),
        captions=_captions(log_count, "trees"),
        title=title or f"Chart of allowed arcs: {' '.join(words)}",
        kind="chart",
    )


def chart_arcs(
    allowed: Sequence[Collection[Candidate]],
    gold: Sequence[Candidate] | None = None,
    best: Sequence[Candidate] | None = None,
) -> list[Arc]:
    """Turn a chart of trees into arcs: one for each pair of words, with gold and best in their own style."""
    arcs = []
    for position, candidates in enumerate(allowed, start=1):
        right = None if gold is None else gold[position - 1]
        chosen = None if best is None else best[position - 1]
        for head in sorted({head for head, _ in candidates}):
            labels = [label for other, label in candidates if other == head]
            arcs.append(_chart_arc(position, head, labels, right, chosen))
        if right is not None and right not in candidates:
            arcs.append(Arc(right[0], position, STAR + right[1], MISSING, "gold, but not in the chart"))
    return arcs


def _chart_arc(
    position: int, head: int, labels: list[str], gold: Candidate | None, best: Candidate | None
) -> Arc:
    marked = [each[1] if each and each[0] == head and each[1] in labels else None for each in (gold, best)]
    is_gold, is_best = (label is not None for label in marked)
    ordered = list(dict.fromkeys([*(label for label in marked if label is not None), *labels]))
    shown = ordered[:_NAMES] if len(ordered) > _NAMES + 1 else ordered
    label = (STAR if is_gold else "") + "/".join(shown)
    if len(shown) < len(ordered):
        label += f" +{len(ordered) - len(shown)}"
    look = GOLD if is_gold else BEST if is_best else ALLOWED
    if is_gold and not is_best and best is not None:
        look = replace(GOLD, width=1.6)
    notes = ["gold"] * is_gold + ["best of the chart"] * is_best
    if len(ordered) > 1:
        notes.append(f"labels {', '.join(ordered)}")
    return Arc(head, position, label, look, "; ".join(notes))


# -- tag sequences ---------------------------------------------------------------------------------------


def chain_chart_svg(
    words: Sequence[str],
    pairs: Sequence[Collection[tuple[str, str]]],
    *,
    tags: Sequence[Collection[str]] | None = None,
    gold: Sequence[str] | None = None,
    best: Sequence[str] | None = None,
    log_count: float | None = None,
    title: str | None = None,
) -> str:
    """Draw a chart of tag sequences as a lattice: allowed tags below each word, a line for each allowed pair.

    `pairs` are the allowed pairs of tags of each two neighbours, one set fewer than words; allowed tags
    default to those that occur in pairs. For the others see `tree_chart_svg`.

    Raises:
        ValueError: if the columns differ in length.
    """
    check_columns(words, tags=tags, gold=gold, best=best)
    columns = _tag_columns(words, pairs, tags)
    lattice = _Lattice(words, columns, gold, best, svg.is_right_to_left(words))
    captions, legend = _captions(log_count, "tag sequences"), _legend(lattice.looks.values())
    width = max(lattice.width, svg.foot_width(captions, legend))
    foot, bottom = svg.draw_foot(captions, legend, width, lattice.bottom)
    shift = f"translate({(width - lattice.width) / 2:.1f} 0)"
    allowed = [f"{word}: {', '.join(column) or 'none'}" for word, column in zip(words, columns, strict=True)]
    return svg.picture(
        width,
        bottom + 6,
        [svg.element("g", *lattice.draw(pairs), transform=shift), *foot],
        title=title or f"Chart of allowed tags: {' '.join(words)}",
        description="; ".join([*captions, *allowed]),
        kind="lattice",
    )


def _tag_columns(
    words: Sequence[str], pairs: Sequence[Collection[tuple[str, str]]], tags: Sequence[Collection[str]] | None
) -> list[list[str]]:
    """Return the allowed tags of each word, sorted."""
    if len(pairs) != max(0, len(words) - 1):
        raise ValueError(
            f"{len(pairs)} sets of pairs for {len(words)} words; expected {max(0, len(words) - 1)}."
        )
    columns: list[set[str]] = [set() for _ in words] if tags is None else [set(each) for each in tags]
    for index, allowed in enumerate(pairs):
        columns[index] |= {before for before, _ in allowed}
        columns[index + 1] |= {after for _, after in allowed}
    return [sorted(column) for column in columns]


class _Lattice:
    """Positions and line styles of words, tags and pairs."""

    def __init__(
        self,
        words: Sequence[str],
        columns: Sequence[Sequence[str]],
        gold: Sequence[str] | None,
        best: Sequence[str] | None,
        mirrored: bool,
    ) -> None:
        self._words, self._mirrored = words, mirrored
        self._paths = [(path, look) for path, look in ((gold, GOLD), (best, BEST)) if path is not None]
        self.looks: dict[tuple[int, str], Look] = {}
        for index, column in enumerate(columns):
            marks = {path[index]: look for path, look in reversed(self._paths)}
            self.looks |= {(index, tag): marks.get(tag, ALLOWED) for tag in column}
            if gold is not None and gold[index] not in column:
                self.looks[index, gold[index]] = MISSING
        names = sorted({tag for _, tag in self.looks})
        self._ys = {tag: 2 * svg.WORD + ROW * (row + 0.5) for row, tag in enumerate(names)}
        self._box_width = max((svg.text_width(STAR + tag, svg.LABEL) for tag in names), default=0) + 10
        slots = [max(self._box_width, svg.text_width(word, svg.WORD)) + 2.5 * svg.GAP for word in words]
        self.width = max(sum(slots), 2 * svg.GAP)
        self.bottom = ROW * len(names) + 2 * svg.WORD + 6
        xs = [sum(slots[:index]) + slots[index] / 2 for index in range(len(slots))]
        self._xs = [self.width - x for x in xs] if mirrored else xs

    def draw(self, pairs: Sequence[Collection[tuple[str, str]]]) -> list[str]:
        """Draw pairs, tags and words."""
        words = [
            svg.text(word, x, svg.WORD + 4, svg.WORD, class_="word")
            for word, x in zip(self._words, self._xs, strict=True)
        ]
        return [
            *(self._line(index, pair) for index, allowed in enumerate(pairs) for pair in sorted(allowed)),
            *(self._box(index, tag, look) for (index, tag), look in self.looks.items()),
            svg.element("g", *words, class_="words", direction="rtl" if self._mirrored else None),
        ]

    def _box(self, index: int, tag: str, look: Look) -> str:
        x, y = self._xs[index], self._ys[tag]
        box = {"x": x - self._box_width / 2, "y": y - BOX / 2, "width": self._box_width, "height": BOX}
        label = (STAR if look in (GOLD, MISSING) else "") + tag
        return svg.element(
            "g",
            svg.tooltip(f"{self._words[index]}: {tag}, {look.name}"),
            svg.element("rect", **box, rx=6, fill="none", **look.stroke),
            svg.text(label, x, y + 4, svg.LABEL, font_weight=look.weight),
            class_="tag",
            data_place=str(index + 1),
            data_look=look.name,
        )

    def _line(self, index: int, pair: tuple[str, str]) -> str:
        marks = [look for path, look in self._paths if (path[index], path[index + 1]) == pair]
        look = [*marks, ALLOWED][0]
        side = self._box_width / 2 * (-1 if self._mirrored else 1)
        start = f"M{self._xs[index] + side:.1f} {self._ys[pair[0]]:.1f}"
        end = f"L{self._xs[index + 1] - side:.1f} {self._ys[pair[1]]:.1f}"
        return svg.element(
            "path",
            d=start + end,
            **look.stroke,
            opacity=look.opacity,
            class_="pair",
            data_look=look.name,
        )
