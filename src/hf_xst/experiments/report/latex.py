"""Tables as LaTeX, for the package booktabs."""

from __future__ import annotations

from collections.abc import Iterator

from hf_xst.experiments.report.table import Cell, Column, Row, Table

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "–": "--",
}


def escape(text: str) -> str:
    """Make a text safe for LaTeX."""
    return " ".join("".join(_SPECIAL.get(letter, letter) for letter in text).split())


def table_latex(table: Table) -> str:
    """Write a table as a float with caption, label and footnotes."""
    shape = "".join("r" if column.form else "l" for column in table.columns)
    notes = [
        rf"\par\smallskip\footnotesize\textsuperscript{{{sign}}} {escape(text)}"
        for sign, text in table.notes.items()
    ]
    lines = [
        "% needs \\usepackage{booktabs}",
        r"\begin{table}",
        r"\centering\small\setlength{\tabcolsep}{4pt}",
        rf"\caption{{{escape(table.title)}. {escape(table.caption)}}}",
        rf"\label{{tbl:{table.name}}}",
        rf"\begin{{tabular}}{{@{{}}{shape}@{{}}}}",
        r"\toprule",
        *_head(table),
        r"\midrule",
        *_body(table),
        r"\bottomrule",
        r"\end{tabular}",
        *notes,
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _head(table: Table) -> Iterator[str]:
    if table.has_groups:
        spans, rules, place = [], [], 1
        for group, width in table.groups:
            spans.append(rf"\multicolumn{{{width}}}{{c}}{{{escape(group)}}}" if group else "& " * (width - 1))
            if group:
                rules.append(rf"\cmidrule(lr){{{place}-{place + width - 1}}}")
            place += width
        yield " & ".join(spans) + r" \\"
        yield " ".join(rules)
    yield " & ".join(escape(column.title) for column in table.columns) + r" \\"


def _body(table: Table) -> Iterator[str]:
    last = ""
    for number, row in enumerate(table.rows):
        if row.section != last:
            last = row.section
            if number:
                yield r"\midrule"
            yield rf"\multicolumn{{{len(table.columns)}}}{{c}}{{\textit{{{escape(last)}}}}} \\"
        yield " & ".join(_texts(table, row)) + r" \\"


def _texts(table: Table, row: Row) -> list[str]:
    return [_text(column, cell) for column, cell in zip(table.columns, row.cells, strict=True)]


def _text(column: Column, cell: Cell) -> str:
    text, spread = escape(column.text(cell)), column.spread(cell)
    if column.form and text.startswith("-"):
        text = f"$-${text[1:]}"
    strong = rf"\textbf{{{text}}}" if cell.bold and text else text
    mark = rf"\textsuperscript{{{cell.mark}}}" if cell.mark else ""
    return (rf"{strong} $\pm$ {spread}" if spread else strong) + mark
