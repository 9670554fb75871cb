"""Tables as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from hf_xst.experiments.report.table import SIZE, Cell, Column, Row, Table


def table_csv(table: Table) -> str:
    """Write a table: numbers with six digits; sections, deviations and footnotes in columns of their own."""
    spread = [
        any(row.cells[place].std is not None for row in table.rows) for place in range(len(table.columns))
    ]
    noted = any(cell.mark for row in table.rows for cell in row.cells)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    head = [name for column, wide in zip(table.columns, spread, strict=True) for name in _names(column, wide)]
    writer.writerow([*(["section"] if table.has_sections else []), *head, *(["note"] if noted else [])])
    for row in table.rows:
        first = [row.section] if table.has_sections else []
        writer.writerow([*first, *_values(table, row, spread), *([_note(table, row)] if noted else [])])
    return stream.getvalue()


def _names(column: Column, wide: bool) -> list[str]:
    return [column.heading, f"{column.heading}, std"] if wide else [column.heading]


def _values(table: Table, row: Row, spread: list[bool]) -> Iterator[str]:
    for column, cell, wide in zip(table.columns, row.cells, spread, strict=True):
        yield _value(column, cell)
        if wide:
            yield "" if cell.std is None else f"{cell.std:.6g}"


def _value(column: Column, cell: Cell) -> str:
    if column.form == SIZE or cell.number is None:
        return column.text(cell)
    return f"{cell.number:.6g}"


def _note(table: Table, row: Row) -> str:
    return "; ".join(table.notes[cell.mark] for cell in row.cells if cell.mark)
