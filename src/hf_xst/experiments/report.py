"""Tables and plots of a study, made from its cells' JSON files alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hf_xst.files import write_text
from hf_xst.metrics import main_score

from .published import PUBLISHED_TEST

Records = Mapping[str, Mapping[str, Any]]
METHODS = {
    "majority": "majority vote",
    "pool": "pool as it stands",
    "union": "PPTX",
    "pooled": "pooled",
}


def main_scores(records: Records) -> dict[tuple[str, str, str], dict[str, float]]:
    """Return the main test score of every method, by (encoder, task, target)."""
    table: dict[tuple[str, str, str], dict[str, float]] = {}
    for name, record in records.items():
        encoder, task, *rest = name.split("/")
        if len(rest) == 2 and rest[1] == "ensemble":
            row = table.setdefault((encoder, task, rest[0]), {})
            for method, scores in record["result"].items():
                if isinstance(scores, Mapping):
                    row[method] = main_score(scores)[1]
        if len(rest) == 3 and rest[1] == "transferred":
            row = table.setdefault((encoder, task, rest[0]), {})
            row["pooled" if rest[2] == "pool" else rest[2]] = main_score(record["result"]["test"])[1]
    return table


def score_table(records: Records) -> str:
    """Return a Markdown table of all methods' main test scores, the published ones beneath."""
    scores = main_scores(records)
    sources = sorted({name.split("/")[3] for name in records if name.split("/")[2] == "source"})
    columns = [*(f"direct {code}" for code in sources), *METHODS]
    titles = [*columns[: len(sources)], *METHODS.values()]
    lines = [_line(["encoder", "task", "target", *titles]), _line(["---"] * (3 + len(titles)))]
    for (encoder, task, target), row in sorted(scores.items()):
        best = max((row.get(f"direct {code}", float("-inf")) for code in sources), default=0.0)
        cells = [
            _cell(row.get(column), oracle=column.startswith("direct") and row.get(column) == best)
            for column in columns
        ]
        lines.append(_line([encoder, task, target, *cells]))
    for task, target in sorted({(task, target) for _, task, target in scores}):
        paper = PUBLISHED_TEST.get(target, {}).get(task)
        if paper is not None:
            shown = {"majority": paper["majority"], "union": paper["union"], "pooled": paper["pool"]}
            lines.append(_line(["*paper*", task, target, *(_cell(shown.get(column)) for column in columns)]))
    return "\n".join(lines)


def curve_table(records: Records) -> str:
    """Return a Markdown table of development scores by update."""
    curves = {
        name.replace("/transferred", ""): record["result"]["curve"]
        for name, record in records.items()
        if "transferred" in name
    }
    scored = {
        name: {
            point["update"]: main_score(point)[1] for point in curve if "las" in point or "accuracy" in point
        }
        for name, curve in curves.items()
    }
    updates = sorted({update for curve in scored.values() for update in curve})
    lines = [_line(["model", *(str(int(update)) for update in updates)]), _line(["---"] * (1 + len(updates)))]
    lines += [
        _line([name, *(_cell(curve.get(update)) for update in updates)])
        for name, curve in sorted(scored.items())
    ]
    return "\n".join(lines)


def cost_table(records: Records) -> str:
    """Return a Markdown table of the time that kinds of cells took."""
    seconds: dict[tuple[str, str, str], list[float]] = {}
    for name, record in records.items():
        parts = name.split("/")
        kind = "source" if parts[2] == "source" else parts[3]
        seconds.setdefault((parts[0], parts[1], kind), []).append(record["seconds"])
    lines = [_line(["encoder", "task", "kind of cell", "cells", "minutes"]), _line(["---"] * 5)]
    lines += [
        _line([*key, str(len(times)), f"{sum(times) / 60:.1f}"]) for key, times in sorted(seconds.items())
    ]
    total = sum(sum(times) for times in seconds.values())
    return "\n".join([*lines, _line(["all", "", "", str(len(records)), f"{total / 60:.1f}"])])


def write_report(records: Records, folder: Path, about: Mapping[str, Any], data: Path) -> Path:
    """Write `results.json` (all cells) and `README.md` (the tables) and return the latter's path.

    Args:
        records: all cells' records, see `cells.read_records`.
        folder: where to write.
        about: what the report begins with: `title`, `command`, `notes`, and `settings` (the configuration).
        data: the study's data folder; file names are reported as they are below it.
    """
    public = {name: _public(record) for name, record in records.items()}
    text = json.dumps({"about": about, "cells": public}, indent=1, ensure_ascii=False)
    write_text(folder / "results.json", text.replace(f"{data}/", "") + "\n")
    parts = [
        f"# {about['title']}",
        f"Made by `{about['command']}`; all numbers are in `results.json`.",
        str(about.get("notes", "")).strip(),
        "## Scores on the test files",
        "Percent: LAS without punctuation (gold UPOS PUNCT and SYM) for the parser, accuracy for the tagger. "
        "The best of the direct transfers, in *italics*, is an oracle: nobody knows it without gold.",
        score_table(records),
        "## Development scores by update",
        curve_table(records),
        "## Time",
        cost_table(records),
        "## Settings",
        "```yaml\n" + str(about.get("settings", "")).strip() + "\n```",
    ]
    write_text(folder / "README.md", "\n\n".join(part for part in parts if part) + "\n")
    return folder / "README.md"


def _public(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: record[key] for key in ("needs", "settings", "seconds", "result")}


def _cell(value: float | None, oracle: bool = False) -> str:
    if value is None:
        return ""
    return f"*{value:.1f}*" if oracle else f"{value:.1f}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
