"""The figures that the pages of results begin with are those of the committed cells."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
RESULTS = REPOSITORY / "docs" / "results"
METHODS = (
    "majority vote",
    "pool as it stands",
    "PPTX",
    "pooled",
    "pooled, learned weights",
    "recipe",
)
GROUP = "published test files"


def table(folder: str, name: str) -> list[dict[str, str]]:
    text = (RESULTS / folder / "csv" / f"{name}.csv").read_text(encoding="utf-8")
    return [row for row in csv.DictReader(text.splitlines()) if row["group"] == GROUP]


def numbers(section: str, begin: str) -> list[float]:
    """The numbers of the first row of a table that begins like this."""
    page = (RESULTS / "README.md").read_text(encoding="utf-8").split(f"\n## {section}")[1]
    line = next(line for line in page.splitlines() if line.startswith(f"| {begin} |"))
    cells = [cell.strip(" *") for cell in line.split("|")[2:-1]]
    return [float(cell) for cell in cells if cell]


@pytest.mark.parametrize(("task", "begin"), [("parser", "LAS"), ("tagger", "tag accuracy")])
def test_the_answer_in_short(task, begin):
    told = numbers("The answer in short", begin)
    del told[2]  # learned weights without training are no main method
    (row,) = (row for row in table("cpu", "averages") if row["task"] == task)
    assert int(row["targets"]) == 16
    assert told == [round(float(row[f"ours: {method}"]), 1) for method in METHODS]


@pytest.mark.parametrize(("task", "begin"), [("parser", "LAS"), ("tagger", "tag accuracy")])
def test_sources_from_one_start(task, begin):
    told = numbers("Sources from one start", begin)
    (row,) = (row for row in table("mean", "averages") if row["task"] == task)
    assert [told[0], told[1], told[-1]] == [
        round(float(row[f"ours: {method}"]), 1) for method in ("majority vote", "pool as it stands", "recipe")
    ]
    (wins,) = (row for row in table("mean", "wins") if row["task"] == task)
    assert wins["ours: recipe"] == "15 of 16"


def test_the_front_page_tells_the_same():
    page = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    for folder in ("cpu", "mean"):
        for row in table(folder, "averages"):
            for method in METHODS:
                score = row.get(f"ours: {method}")
                if score and method != "pooled, learned weights":
                    assert re.search(rf"\b{float(score):.1f}\b", page), (folder, row["task"], method)
