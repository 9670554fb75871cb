"""A report as Markdown."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from hf_xst.experiments.report.page import Page
from hf_xst.experiments.report.pictures import Picture
from hf_xst.experiments.report.table import Cell, Column, Row, Table


def page_markdown(page: Page, drawn: Collection[str], missing: str) -> str:
    """Write a report.

    Args:
        page: the report.
        drawn: names of the pictures that lie in `plots/`.
        missing: what is to be said where pictures are missing.
    """
    parts = [f"# {page.title}", _opening(page), page.notes, missing]
    for section in page.sections:
        shown = [picture_markdown(picture) for picture in section.pictures if picture.name in drawn]
        shown += [table_markdown(table) for table in section.tables]
        parts += [f"## {section.title}", section.text, *shown] if shown else []
    if page.settings:
        parts += ["## Settings", f"```yaml\n{page.settings}\n```"]
    return "\n\n".join(part for part in parts if part) + "\n"


def picture_markdown(picture: Picture) -> str:
    """Write a picture with its caption."""
    return f"![{picture.name}](plots/{picture.name}.svg)\n\n{picture.caption}"


def table_markdown(table: Table) -> str:
    """Write a table with title, caption and footnotes."""
    body = "\n".join(_lines(table))
    notes = "  \n".join(f"<sup>{sign}</sup> {escape(text)}" for sign, text in table.notes.items())
    below = f"\n\n{notes}" if notes else ""
    if table.folded:
        return (
            f"### {table.title}\n\n<details><summary>show the table</summary>\n\n"
            f"{table.caption}\n\n{body}{below}\n\n</details>"
        )
    return f"### {table.title}\n\n{table.caption}\n\n{body}{below}"


def escape(text: str) -> str:
    """Make a text safe inside a table."""
    return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").split())


def _opening(page: Page) -> str:
    made = f"Made by `{page.command}`. " if page.command else ""
    return (
        f"{made}The same as one page: `index.html`; each table in `csv/` and `latex/`; all results, from "
        "which `hf-xst report` makes everything again, in `results.json`. An empty cell: not measured."
    )


def _lines(table: Table) -> Iterator[str]:
    yield _line([escape(column.heading) for column in table.columns])
    yield _line(["---:" if column.form else "---" for column in table.columns])
    last = ""
    for row in table.rows:
        if row.section != last:
            last = row.section
            yield _line([f"*{escape(last)}*", *("" for _ in table.columns[1:])])
        yield _line(_texts(table.columns, row))


def _texts(columns: Sequence[Column], row: Row) -> list[str]:
    return [_text(column, cell) for column, cell in zip(columns, row.cells, strict=True)]


def _text(column: Column, cell: Cell) -> str:
    text, spread = escape(column.text(cell)), column.spread(cell)
    strong = f"**{text}**" if cell.bold and text else text
    mark = f"<sup>{cell.mark}</sup>" if cell.mark else ""
    return (f"{strong} ± {spread}" if spread else strong) + mark


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
