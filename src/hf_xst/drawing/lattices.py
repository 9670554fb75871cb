"""Charts of tag sequences as a lattice: allowed tags below each word, a line for each allowed pair."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hf_xst.drawing.arcs import GAP, Look
from hf_xst.drawing.charts import ALLOWED, BEST, GOLD, MISSING, STAR, count_text
from hf_xst.drawing.markup import LABEL, draw_foot, element, foot_width, picture, text, tooltip
from hf_xst.drawing.script import is_right_to_left, text_width
from hf_xst.drawing.svg import WORD

ROW = 30.0
BOX = 20.0


def chain_chart_svg(
    words: Sequence[str],
    pairs: Sequence[Collection[tuple[str, str]]],
    *,
    tags: Sequence[Collection[str]] | None = None,
    gold: Sequence[str] | None = None,
    best: Sequence[str] | None = None,
    log_count: float | None = None,
    right_to_left: bool | None = None,
    title: str | None = None,
) -> str:
    """Draw a chart of tag sequences.

    Args:
        words: the words.
        pairs: for each two neighbours the allowed pairs of their tags; one set fewer than words.
        tags: for each word its allowed tags; by default those that occur in pairs.
        gold: for each word the right tag; marked, and drawn even where the chart lacks it.
        best: for each word the tag in the chart's best sequence.
        log_count: logarithm of the number of sequences in the chart.
        right_to_left: the sentence's direction; by default that of most words.
        title: what the picture is called; by default the sentence.

    Returns:
        An `<svg>` element.

    Raises:
        ValueError: the columns differ in length.
    """
    columns = _columns(words, pairs, tags)
    for name, column in (("gold", gold), ("best", best)):
        if column is not None and len(column) != len(words):
            raise ValueError(f"{len(column)} {name} tags for {len(words)} words; give one for each word.")
    mirrored = is_right_to_left(words) if right_to_left is None else right_to_left
    lattice = _Lattice(words, columns, gold, best, mirrored)
    lines = [lattice.line(place, pair) for place, allowed in enumerate(pairs) for pair in sorted(allowed)]
    boxes = [lattice.box(place, tag) for place in range(len(words)) for tag in lattice.shown(place)]
    used = {look.name for place in range(len(words)) for look in lattice.looks(place)}
    legend = [look for look in (ALLOWED, BEST, GOLD, MISSING) if look.name in used]
    captions = [] if log_count is None else [f"The chart holds {count_text(log_count, 'tag sequences')}."]
    width = max(lattice.width, foot_width(captions, legend))
    foot, bottom = draw_foot(captions, legend, width, lattice.bottom)
    shift = f"translate({(width - lattice.width) / 2:.1f} 0)"
    drawn = element("g", *lines, *boxes, *lattice.words(), transform=shift)
    said = [f"{word}: {', '.join(column) or 'none'}" for word, column in zip(words, columns, strict=True)]
    return picture(
        width,
        bottom + 6,
        [drawn, *foot],
        title=title or f"Chart of allowed tags: {' '.join(words)}",
        description="; ".join([*captions, *said]),
        kind="lattice",
    )


def _columns(
    words: Sequence[str], pairs: Sequence[Collection[tuple[str, str]]], tags: Sequence[Collection[str]] | None
) -> list[list[str]]:
    """Return each word's allowed tags, sorted.

    Raises:
        ValueError: the numbers do not go together.
    """
    if len(pairs) != max(0, len(words) - 1):
        raise ValueError(
            f"{len(pairs)} sets of pairs for {len(words)} words; expected {max(0, len(words) - 1)}."
        )
    if tags is not None and len(tags) != len(words):
        raise ValueError(f"tags of {len(tags)} words for {len(words)} words; give some for each word.")
    found: list[set[str]] = [set(each) for each in tags] if tags is not None else [set() for _ in words]
    for place, allowed in enumerate(pairs):
        for before, after in allowed:
            found[place].add(before)
            found[place + 1].add(after)
    return [sorted(column) for column in found]


class _Lattice:
    """Places of words and tags, and how each is drawn."""

    def __init__(
        self,
        words: Sequence[str],
        columns: Sequence[Sequence[str]],
        gold: Sequence[str] | None,
        best: Sequence[str] | None,
        mirrored: bool,
    ) -> None:
        self._words, self._columns, self._gold, self._best, self._mirrored = (
            words,
            columns,
            gold,
            best,
            mirrored,
        )
        names = sorted({tag for column in columns for tag in column} | set(gold or ()))
        self._rows = {tag: row for row, tag in enumerate(names)}
        self._box = max((text_width(STAR + tag, LABEL) for tag in names), default=0) + 10
        slots = [max(self._box, text_width(word, WORD)) + 2.5 * GAP for word in words]
        self._middles = [sum(slots[:place]) + slots[place] / 2 for place in range(len(slots))]
        self.width = max(sum(slots), 2 * GAP)
        self.bottom = ROW * len(names) + 2 * WORD + 6

    def shown(self, place: int) -> list[str]:
        """Return the tags to draw at a word: the allowed ones, and gold in any case."""
        extra = [] if self._gold is None or self._gold[place] in self._columns[place] else [self._gold[place]]
        return [*self._columns[place], *extra]

    def looks(self, place: int) -> list[Look]:
        """Return the looks of a word's tags."""
        return [self._look(place, tag) for tag in self.shown(place)]

    def _look(self, place: int, tag: str) -> Look:
        if self._gold is not None and tag == self._gold[place]:
            return GOLD if tag in self._columns[place] else MISSING
        return BEST if self._best is not None and tag == self._best[place] else ALLOWED

    def _x(self, place: int) -> float:
        middle = self._middles[place]
        return self.width - middle if self._mirrored else middle

    def _y(self, tag: str) -> float:
        return 2 * WORD + ROW * (self._rows[tag] + 0.5)

    def words(self) -> list[str]:
        """Draw the words above their columns."""
        shown = [
            text(word, self._x(place), WORD + 4, WORD, class_="word")
            for place, word in enumerate(self._words)
        ]
        return [element("g", *shown, class_="words", direction="rtl" if self._mirrored else None)]

    def box(self, place: int, tag: str) -> str:
        """Draw a tag."""
        look, x, y = self._look(place, tag), self._x(place), self._y(tag)
        starred = look in (GOLD, MISSING)
        return element(
            "g",
            tooltip(f"{self._words[place]}: {tag}, {look.name}"),
            element(
                "rect",
                x=x - self._box / 2,
                y=y - BOX / 2,
                width=self._box,
                height=BOX,
                rx=6,
                fill="none",
                stroke=look.colour,
                stroke_width=look.width,
                stroke_dasharray=look.dash,
            ),
            text((STAR if starred else "") + tag, x, y + 4, LABEL, font_weight=look.weight),
            class_="tag",
            data_place=str(place + 1),
            data_look=look.name,
        )

    def line(self, place: int, pair: tuple[str, str]) -> str:
        """Draw an allowed pair."""
        look = self._line_look(place, pair)
        side = -self._box / 2 if self._mirrored else self._box / 2
        return element(
            "path",
            d=f"M{self._x(place) + side:.1f} {self._y(pair[0]):.1f}"
            f"L{self._x(place + 1) - side:.1f} {self._y(pair[1]):.1f}",
            stroke=look.colour,
            stroke_width=look.width,
            opacity=look.opacity,
            class_="pair",
            data_look=look.name,
        )

    def _line_look(self, place: int, pair: tuple[str, str]) -> Look:
        for path, look in ((self._gold, GOLD), (self._best, BEST)):
            if path is not None and (path[place], path[place + 1]) == pair:
                return look
        return ALLOWED
