"""Probabilities as a table of shaded cells: a row for each word, a column for each candidate."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from hf_xst.drawing.arcs import GAP
from hf_xst.drawing.charts import STAR
from hf_xst.drawing.markup import BLUE, GREEN, element, picture, text, tooltip
from hf_xst.drawing.script import is_right_to_left, text_width

CELL = 34.0
HEIGHT = 20.0
SIZE = 12.0
LEAST = 0.005  # cells below stay empty, and so does the number of those that would read .0


def heat_svg(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float]],
    *,
    allowed: Collection[tuple[int, int]] = (),
    gold: Collection[tuple[int, int]] = (),
    notes: Mapping[tuple[int, int], str] | None = None,
    caption: str | None = None,
    right_to_left: bool | None = None,
    title: str,
) -> str:
    """Draw a table of probabilities: the darker the cell, the likelier.

    Args:
        rows: names of the rows, such as the words.
        columns: names of the columns, such as the possible heads.
        values: probabilities, one list a row.
        allowed: cells (row, column), from 0, that get a frame.
        gold: cells that get a star.
        notes: what a pointer on a cell is told; its names and value without it.
        caption: a line below the table.
        right_to_left: whether the first column is the rightmost; by default as most rows' names run.
        title: what the table shows.

    Returns:
        An `<svg>` element.

    Raises:
        ValueError: the values do not have the shape of rows and columns.
    """
    if len(values) != len(rows) or any(len(row) != len(columns) for row in values):
        raise ValueError(f"the values are not of {len(rows)} rows with {len(columns)} columns each.")
    mirrored = is_right_to_left(rows) if right_to_left is None else right_to_left
    grid = _Grid(rows, columns, mirrored, 0 if caption is None else text_width(caption, SIZE) + GAP)
    shown = {
        (row, column)
        for row, line in enumerate(values)
        for column, value in enumerate(line)
        if value >= LEAST or (row, column) in allowed or (row, column) in gold
    }
    cells = []
    for row, column in sorted(shown):
        value = values[row][column]
        note = (notes or {}).get((row, column)) or f"{rows[row]}, {columns[column]}: {value:.3f}"
        cells.append(grid.cell(row, column, value, note, (row, column) in allowed, (row, column) in gold))
    below = (
        []
        if caption is None
        else [text(caption, grid.width / 2, grid.bottom + SIZE + 2, SIZE, class_="caption")]
    )
    return picture(
        grid.width,
        grid.bottom + (2 * SIZE if below else 4),
        [*grid.names(), *cells, *below],
        title=title,
        description=_likeliest(rows, columns, values),
        kind="heat",
    )


def _likeliest(rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float]]) -> str:
    """Say the table in words: each row's likeliest column."""
    if not columns:
        return ""
    best = [max(range(len(columns)), key=line.__getitem__) for line in values]
    said = [f"{name}: {columns[b]} {line[b]:.2f}" for name, line, b in zip(rows, values, best, strict=True)]
    return "likeliest: " + "; ".join(said)


class _Grid:
    """Where rows, columns and their names stand."""

    def __init__(self, rows: Sequence[str], columns: Sequence[str], mirrored: bool, least: float) -> None:
        self._rows, self._columns, self._mirrored = rows, columns, mirrored
        self._side = max((text_width(name, SIZE) for name in rows), default=0) + GAP
        # Names of columns slant at 45 degrees, so that the last ones reach beyond the table.
        slanted = [text_width(name, SIZE) * 0.72 for name in columns]
        self._top = max(slanted, default=0) + 14
        table = self._side + CELL * len(columns) + 4
        overhang = max(
            (reach - CELL * (len(columns) - place - 0.5) for place, reach in enumerate(slanted)), default=0
        )
        self.width = max(table + max(0.0, overhang), least)
        self.bottom = self._top + HEIGHT * len(rows)

    def _x(self, column: int) -> float:
        place = self._side + CELL * (column + 0.5)
        return self.width - place if self._mirrored else place

    def names(self) -> list[str]:
        """Draw the names of rows and columns."""
        side = self.width - self._side / 2 if self._mirrored else self._side / 2
        slant, anchor = (45, "end") if self._mirrored else (-45, "start")
        return [
            *(
                text(name, side, self._top + HEIGHT * (row + 0.7), SIZE, class_="row")
                for row, name in enumerate(self._rows)
            ),
            *(
                text(
                    name,
                    0,
                    0,
                    SIZE,
                    class_="column",
                    text_anchor=anchor,
                    transform=f"translate({self._x(column):.1f} {self._top - 6:.1f}) rotate({slant})",
                )
                for column, name in enumerate(self._columns)
            ),
        ]

    def cell(self, row: int, column: int, value: float, note: str, is_allowed: bool, is_gold: bool) -> str:
        """Draw a cell."""
        x, y = self._x(column), self._top + HEIGHT * row
        box = {"x": x - CELL / 2 + 1, "y": y + 1, "width": CELL - 2, "height": HEIGHT - 2}
        shade = element("rect", fill=BLUE, fill_opacity=f"{min(1.0, value) * 0.75:.3f}", **box)
        colour = GREEN if is_gold else "currentColor"
        frame = element("rect", fill="none", stroke=colour, stroke_width=1.6, class_="frame", **box)
        shown = ("1" if value >= 0.995 else f"{value:.2f}".removeprefix("0")) if value >= LEAST else ""
        mark = STAR.strip() if is_gold else ""
        return element(
            "g",
            tooltip(note),
            shade,
            frame if is_allowed else "",
            text(mark + shown, x, y + HEIGHT * 0.7, 10.5) if mark + shown else "",
            class_="cell",
        )
