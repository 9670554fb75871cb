"""The figures that the pages of results begin with are those of the committed cells."""

from __future__ import annotations

import csv
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
    rows = list(csv.DictReader(text.splitlines()))
    # Without stand-ins all targets have the published test files.
    group = GROUP if any(row["group"] == GROUP for row in rows) else "all"
    return [row for row in rows if row["group"] == group]


def numbers(section: str, begin: str, below: int = 0) -> list[float]:
    """The numbers of the first row of a table that begins like this, or of one below it."""
    page = (RESULTS / "README.md").read_text(encoding="utf-8").split(f"\n## {section}")[1]
    lines = page.splitlines()
    line = lines[next(i for i, line in enumerate(lines) if line.startswith(f"| {begin} |")) + below]
    cells = [cell.strip(" *") for cell in line.split("|")[2:-1]]
    return [float(cell) for cell in cells if cell]


@pytest.mark.parametrize(("task", "begin"), [("parser", "LAS"), ("tagger", "tag accuracy")])
def test_the_answer_in_short(task, begin):
    told = numbers("The answer in short", begin)
    del told[2]  # learned weights without training are no main method
    (row,) = (row for row in table("cpu", "averages") if row["task"] == task)
    assert int(row["targets"]) == 16
    assert told == [round(float(row[f"ours: {method}"]), 1) for method in METHODS]


@pytest.mark.parametrize(("task", "begin"), [("parser", "LAS"), ("tagger", "tags")])
def test_word_vectors(task, begin):
    told = numbers("Word vectors in place of an encoder", f"{begin}, word vectors")
    del told[2]
    (row,) = (row for row in table("vectors", "averages") if row["task"] == task)
    assert told == [round(float(row[f"ours: {method}"]), 1) for method in METHODS]
    (wins,) = (row for row in table("vectors", "wins") if row["task"] == task)
    above = numbers("Word vectors in place of an encoder", f"{begin}, word vectors", below=1)
    methods = [wins[f"ours: {method}"] for method in METHODS[2:]]
    assert methods == [f"{number:.0f} of 6" for number in above[2:]]


@pytest.mark.parametrize(("task", "begin"), [("parser", "LAS"), ("tagger", "tag accuracy")])
def test_sources_from_one_start(task, begin):
    told = numbers("Sources from one start", begin)
    (row,) = (row for row in table("mean", "averages") if row["task"] == task)
    assert [told[0], told[1], told[-1]] == [
        round(float(row[f"ours: {method}"]), 1) for method in ("majority vote", "pool as it stands", "recipe")
    ]
    (wins,) = (row for row in table("mean", "wins") if row["task"] == task)
    assert wins["ours: recipe"] == "15 of 16"


FRONT = {
    "cpu": "trained apart, frozen encoder",
    "mean": "fine-tuned from one start, frozen encoder",
    "tuned": "the same, upper half of the encoder trained too",
}


def front_page() -> dict[tuple[str, str], dict[str, str]]:
    """The rows of the README's table by folder and task, as they are written, by method."""
    page = (REPOSITORY / "README.md").read_text(encoding="utf-8").split("\n## Results\n")[1]
    lines = [
        [cell.strip(" *") for cell in line.split("|")[1:-1]] for line in page.splitlines() if "|" in line
    ]
    found: dict[tuple[str, str], dict[str, str]] = {}
    folder = None
    for first, task, *cells in lines[2:]:
        folder = next((each for each, title in FRONT.items() if title == first), None if first else folder)
        if folder is not None:
            shown = [name for name in METHODS if name != "pooled, learned weights"]
            found[folder, {"LAS": "parser", "tags": "tagger"}[task]] = dict(zip(shown, cells, strict=True))
    return found


@pytest.mark.parametrize(("folder", "task"), front_page())
def test_the_front_page_tells_the_same(folder, task):
    cells = front_page()[folder, task]
    (scores,), (wins,) = (
        [row for row in table(folder, name) if row["task"] == task] for name in ("averages", "wins")
    )
    assert cells["majority vote"]
    assert cells["recipe"]
    for method, cell in cells.items():
        if cell:
            number, _, above = cell.partition(" (")
            assert number.strip("*") == f"{float(scores[f'ours: {method}']):.1f}", (folder, task, method)
            assert not above or wins[f"ours: {method}"] == f"{above.rstrip(')')} of 16"


def test_the_front_page_has_all_studies():
    assert {folder for folder, _ in front_page()} == set(FRONT)
    assert len(front_page()) == 5
