"""A report as one HTML page that needs no other file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape

from hf_xst.experiments.report.page import Page, Section
from hf_xst.experiments.report.pictures import Picture
from hf_xst.experiments.report.table import Cell, Column, Row, Table

STYLE = """
:root { color-scheme: light dark;
  --text: #1b1f24; --page: #fff; --soft: #5b6472; --line: #d5d9e0; --band: #f4f6f9; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e7ec; --page: #14171c; --soft: #9aa3b2; --line: #343b47; --band: #1e232b; }
}
body { margin: 0 auto; max-width: 76rem; padding: 1rem; color: var(--text); background: var(--page);
  font: 1rem/1.5 system-ui, sans-serif; }
a { color: inherit; }
nav ul { columns: 16rem; padding-left: 1.2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .55rem; text-align: left; vertical-align: bottom; white-space: nowrap; }
thead th { border-bottom: 1px solid var(--line); font-weight: 600; white-space: normal; }
thead th[scope="col"] { min-width: 2.2rem; max-width: 7rem; }
thead th.group { text-align: center; border-left: 1px solid var(--line); }
tbody th { font-weight: 400; position: sticky; left: 0; background: var(--page); }
tbody tr:hover > * { background: var(--band); }
tr.section th { font-style: italic; color: var(--soft); padding-top: .6rem; }
tr.summary > * { border-top: 1px solid var(--line); }
.number { text-align: right; }
.first { border-left: 1px solid var(--line); }
.spread, .caption, .notes, figcaption { color: var(--soft); }
.spread, .notes { font-size: .8rem; }
.caption { font-size: .9rem; max-width: 50rem; }
figure { margin: 1.5rem 0; }
figure svg { max-width: 100%; height: auto; background: #fff; border-radius: .4rem; }
pre { overflow-x: auto; background: var(--band); padding: .8rem; font-size: .8rem; }
summary { cursor: pointer; }
"""


def page_html(page: Page, drawn: Mapping[str, str], missing: str) -> str:
    """Write a report.

    Args:
        page: the report.
        drawn: SVG by the pictures' names.
        missing: what is to be said where pictures are missing.
    """
    title = escape(page.title)
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title>",
        f"<style>{STYLE}</style></head>",
        f"<body><header><h1>{title}</h1>",
        *_opening(page, missing),
        "</header>",
        *_contents(page),
        "<main>",
    ]
    for number, section in enumerate(page.sections, 1):
        lines += _section(number, section, drawn)
    lines.append("</main>")
    if page.settings:
        lines.append(
            f"<details><summary>Settings</summary><pre><code>{escape(page.settings)}</code></pre></details>"
        )
    return "\n".join([*lines, "</body></html>"]) + "\n"


def _section(number: int, section: Section, drawn: Mapping[str, str]) -> Iterator[str]:
    yield f'<section id="section-{number}"><h2>{escape(section.title)}</h2>'
    if section.text:
        yield f"<p>{escape(section.text)}</p>"
    for picture in section.pictures:
        if picture.name in drawn:
            yield _picture(picture, drawn[picture.name])
    for table in section.tables:
        yield from table_html(table)
    yield "</section>"


def table_html(table: Table) -> Iterator[str]:
    """Give the lines of a table with title, caption and footnotes."""
    yield f'<article id="{escape(table.name)}"><h3>{escape(table.title)}</h3>'
    if table.folded:
        yield "<details><summary>show the table</summary>"
    yield f'<p class="caption" id="{escape(table.name)}-caption">{escape(table.caption)}</p>'
    yield f'<div class="scroll"><table aria-describedby="{escape(table.name)}-caption">'
    yield "<thead>"
    yield from _head(table)
    yield "</thead><tbody>"
    yield from _body(table)
    yield "</tbody></table></div>"
    if table.notes:
        notes = "<br>".join(f"<sup>{sign}</sup> {escape(text)}" for sign, text in table.notes.items())
        yield f'<p class="notes">{notes}</p>'
    if table.folded:
        yield "</details>"
    yield "</article>"


def inline_svg(name: str, svg: str, label: str) -> str:
    """Make a drawing part of a page: no prolog, no metadata, ids of its own, a label for those who listen."""
    body = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'href="#', f'href="#{name}-', body)
    body = re.sub(r"url\(#", f"url(#{name}-", body)
    return body.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1).strip()


def _opening(page: Page, missing: str) -> Iterator[str]:
    if page.command:
        yield f"<p>Made by <code>{escape(page.command)}</code>. An empty cell: not measured.</p>"
    for paragraph in filter(None, [*re.split(r"\n\s*\n", page.notes), missing]):
        yield f"<p>{escape(paragraph)}</p>"


def _contents(page: Page) -> Iterator[str]:
    yield "<nav><ul>"
    for number, section in enumerate(page.sections, 1):
        yield f'<li><a href="#section-{number}">{escape(section.title)}</a></li>'
    yield "</ul></nav>"


def _picture(picture: Picture, svg: str) -> str:
    drawing = inline_svg(picture.name, svg, picture.caption)
    return f"<figure>{drawing}<figcaption>{escape(picture.caption)}</figcaption></figure>"


def _head(table: Table) -> Iterator[str]:
    if table.has_groups:
        groups = (
            f'<th class="group" colspan="{width}" scope="colgroup">{escape(group)}</th>'
            if group
            else f'<td colspan="{width}"></td>'
            for group, width in table.groups
        )
        yield f"<tr>{''.join(groups)}</tr>"
    titles = (
        f'<th scope="col"{_classes(table, place)}>{escape(column.title)}</th>'
        for place, column in enumerate(table.columns)
    )
    yield f"<tr>{''.join(titles)}</tr>"


def _body(table: Table) -> Iterator[str]:
    last = ""
    for row in table.rows:
        if row.section != last:
            last = row.section
            name = f'<th colspan="{len(table.columns)}" scope="rowgroup">{escape(last)}</th>'
            yield f'<tr class="section">{name}</tr>'
        yield _row(table, row)


def _row(table: Table, row: Row) -> str:
    cells = []
    for place, (column, cell) in enumerate(zip(table.columns, row.cells, strict=True)):
        text = _text(column, cell)
        cells.append(f"<td{_classes(table, place)}>{text}</td>" if place else f'<th scope="row">{text}</th>')
    kind = ' class="summary"' if row.summary else ""
    return f"<tr{kind}>{''.join(cells)}</tr>"


def _text(column: Column, cell: Cell) -> str:
    text = escape(column.text(cell))
    if column.form:
        text = text.replace("-", "−", 1) if text.startswith("-") else text
    strong = f"<b>{text}</b>" if cell.bold and text else text
    spread = column.spread(cell)
    mark = f"<sup>{cell.mark}</sup>" if cell.mark else ""
    return strong + (f' <span class="spread">± {spread}</span>' if spread else "") + mark


def _classes(table: Table, place: int) -> str:
    """Return the class attribute of a cell: numbers to the right, a line where a group begins."""
    column = table.columns[place]
    names = ["number"] if column.form else []
    if place and column.group != table.columns[place - 1].group:
        names.append("first")
    return f' class="{" ".join(names)}"' if names else ""
