"""Tables of typed cells, which know nothing of the formats that they are written in."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from hf_xst.sources.quality import size_text

Value = float | int | str | None
SIZE = "size"
"""The form of a number of structures that is given by its natural logarithm."""


@dataclass(frozen=True)
class Cell:
    """A cell; without value it is empty.

    Args:
        value: a text, or a number, which the column's form turns into text.
        std: standard deviation of a number over seeds.
        mark: sign of the footnote that belongs here.
        bold: whether it is the best of its row.
    """

    value: Value = None
    std: float | None = None
    mark: str = ""
    bold: bool = False

    @property
    def empty(self) -> bool:
        """Whether nothing is to be shown."""
        return self.value in (None, "") or (isinstance(self.value, float) and math.isnan(self.value))

    @property
    def number(self) -> float | None:
        """The value if it is a number."""
        return None if self.empty or isinstance(self.value, str) else float(self.value or 0)


@dataclass(frozen=True)
class Column:
    """A column.

    Args:
        title: what stands above it.
        form: how numbers are written, e.g. `.1f`; `SIZE`; the empty string for columns of text.
        group: what stands above the titles of adjacent columns.
        ranked: whether the highest number of a row among such columns is set in bold.
    """

    title: str
    form: str = ".1f"
    group: str = ""
    ranked: bool = False

    @property
    def heading(self) -> str:
        """Group and title in one."""
        return f"{self.group}: {self.title}" if self.group else self.title

    def text(self, cell: Cell) -> str:
        """Write a cell's value."""
        if isinstance(cell.value, str):
            return cell.value
        return "" if cell.number is None else self._number(cell.number)

    def spread(self, cell: Cell) -> str:
        """Write a cell's standard deviation, if it has one."""
        return "" if cell.empty or cell.std is None else format(cell.std, self.form.lstrip("+"))

    def plain(self, cell: Cell) -> str:
        """Write a cell's value and standard deviation, without mark."""
        spread = self.spread(cell)
        return f"{self.text(cell)} ± {spread}" if spread else self.text(cell)

    def _number(self, value: float) -> str:
        if self.form == SIZE:
            return size_text(value)
        text = format(value, self.form)
        # A number that rounds to zero has no sign of its own.
        return format(0.0, self.form) if text.startswith("-") and float(text) == 0 else text


@dataclass(frozen=True)
class Row:
    """A row.

    Args:
        cells: one for each column.
        section: title of the part of the table that the row belongs to.
        summary: whether it sums up other rows.
    """

    cells: tuple[Cell, ...]
    section: str = ""
    summary: bool = False


def row(*values: Cell | Value, section: str = "", summary: bool = False) -> Row:
    """Make a row of cells or bare values."""
    cells = tuple(value if isinstance(value, Cell) else Cell(value) for value in values)
    return Row(cells, section, summary)


@dataclass(frozen=True)
class Table:
    """A table.

    Args:
        name: of its files.
        title: a few words.
        caption: what the numbers are, units included.
        columns: of the table, the first one naming the rows.
        rows: of the table.
        notes: footnotes, by sign.
        folded: whether readers see it only when they ask for it, where the format allows.
    """

    name: str
    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    folded: bool = False

    def __post_init__(self) -> None:
        for number, each in enumerate(self.rows):
            if len(each.cells) != len(self.columns):
                raise ValueError(
                    f"table {self.name}: row {number} has {len(each.cells)} cells "
                    f"for {len(self.columns)} columns"
                )

    def finished(self) -> Table:
        """Drop columns that no row fills, save the first, and set the best of each row in bold."""
        kept = [
            place
            for place in range(len(self.columns))
            if place == 0 or any(not each.cells[place].empty for each in self.rows)
        ]
        columns = tuple(self.columns[place] for place in kept)
        rows = [
            dataclasses.replace(each, cells=_ranked(columns, [each.cells[place] for place in kept]))
            for each in self.rows
        ]
        return dataclasses.replace(self, columns=columns, rows=tuple(rows))

    @property
    def filled(self) -> bool:
        """Whether any cell holds a number, or, if all columns are of text, anything."""
        numbers = [place for place, column in enumerate(self.columns) if column.form]
        places = numbers or range(len(self.columns))
        return any(not each.cells[place].empty for each in self.rows for place in places)

    @property
    def has_sections(self) -> bool:
        """Whether rows belong to parts of the table."""
        return any(each.section for each in self.rows)

    @property
    def has_groups(self) -> bool:
        """Whether columns belong to groups."""
        return any(column.group for column in self.columns)

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The columns' groups in order, with the number of adjacent columns of each."""
        spans: list[tuple[str, int]] = []
        for column in self.columns:
            if spans and spans[-1][0] == column.group:
                spans[-1] = (column.group, spans[-1][1] + 1)
            else:
                spans.append((column.group, 1))
        return spans


def _ranked(columns: Sequence[Column], cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """Set the highest of comparable numbers in bold, and all that look the same."""
    shown = {
        place: float(column.text(cell))
        for place, (column, cell) in enumerate(zip(columns, cells, strict=True))
        if column.ranked and not cell.empty
    }
    best = max(shown.values(), default=math.inf) if len(shown) > 1 else math.inf
    return tuple(
        dataclasses.replace(cell, bold=True) if shown.get(place) == best else cell
        for place, cell in enumerate(cells)
    )


class Marks:
    """Footnotes on targets.

    Args:
        texts: what is to be said about a target, by code; targets with one text share a sign.
    """

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self._texts = dict(texts or {})
        signs = {text: str(number) for number, text in enumerate(dict.fromkeys(self._texts.values()), 1)}
        self._signs = {code: signs[text] for code, text in self._texts.items()}

    def cell(self, code: str) -> Cell:
        """Return the cell that names a target."""
        return Cell(code, mark=self._signs.get(code, ""))

    def notes(self, codes: Collection[str]) -> dict[str, str]:
        """Return the footnotes of targets, by sign."""
        found = {self._signs[code]: self._texts[code] for code in codes if code in self._signs}
        return dict(sorted(found.items(), key=lambda note: int(note[0])))
