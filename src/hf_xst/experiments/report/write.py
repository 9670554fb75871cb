"""Write a study's report in all formats."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hf_xst.experiments.report.csv_tables import table_csv
from hf_xst.experiments.report.html import page_html
from hf_xst.experiments.report.latex import table_latex
from hf_xst.experiments.report.markdown import page_markdown
from hf_xst.experiments.report.page import make_page
from hf_xst.experiments.report.pictures import draw_all
from hf_xst.experiments.report.reading import Records, Results
from hf_xst.files import write_text

RESULTS = "results.json"
# Folders of an absolute path: file names alone are left where it is not known what is below the data folder.
_LOCAL = re.compile(r"(?<![\w./~:<-])/(?:[\w.@+ -]+/)+(?=[\w.@+-])")
KEPT = ("name", "key", "version", "needs", "settings", "seconds", "result")


def write_report(records: Records, folder: Path, about: Mapping[str, Any], data: Path | None = None) -> Path:
    """Write tables and plots of a study, or of as much as there is of it.

    The same input gives the same bytes. Into the folder go `README.md`, `index.html` (everything in one
    file), `csv/` and `latex/` (a file for each table), `plots/` (SVG; only with the extra `plots`), and
    `results.json` (all cells, from which the report can be made again).

    Args:
        records: all cells' records, see `hf_xst.experiments.cells.read_records`.
        folder: where to write.
        about: what the report begins with: see `hf_xst.experiments.report.page.make_page`.
        data: the study's data folder; file names are reported as they are below it, or alone if it is not
            known.

    Returns:
        The path of `README.md`.
    """
    text = results_json(records, about, data)
    write_text(folder / RESULTS, text)
    content = json.loads(text)
    page = make_page(Results(content["cells"], content["about"].get("stand_ins", ())), content["about"])
    drawn, missing = draw_all(page.pictures, folder / "plots")
    for table in page.tables:
        write_text(folder / "csv" / f"{table.name}.csv", table_csv(table))
        write_text(folder / "latex" / f"{table.name}.tex", table_latex(table))
    write_text(folder / "index.html", page_html(page, drawn, missing))
    write_text(folder / "README.md", page_markdown(page, drawn, missing))
    return folder / "README.md"


def results_json(records: Records, about: Mapping[str, Any], data: Path | None) -> str:
    """Write all cells as one JSON text, in the order of their names, without the data folder's path."""
    public = {
        name: {key: records[name][key] for key in KEPT if key in records[name]} for name in sorted(records)
    }
    text = json.dumps({"about": about, "cells": public}, indent=1, ensure_ascii=False)
    below = _LOCAL if data is None else re.compile(rf"(?<![\w./~-]){re.escape(str(data))}/")
    return below.sub("", text) + "\n"
