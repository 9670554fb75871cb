"""Every number on the pages of results is computed from the committed scores.csv files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
RESULTS = REPOSITORY / "docs" / "results"
sys.path.insert(0, str(REPOSITORY / "scripts" / "study"))
report = pytest.importorskip("report", reason="tables and plots need the extra `study`")
STUDIES = sorted(path.parent.name for path in RESULTS.glob("*/scores.csv"))


@pytest.mark.parametrize("study", STUDIES)
def test_tables_are_those_of_the_scores(study):
    scores = report.read_scores([RESULTS / study / "scores.csv"])
    assert set(scores["study"]) == {study}
    assert (RESULTS / study / "tables.md").read_text(encoding="utf-8") == report.tables(scores)


@pytest.mark.parametrize("study", STUDIES)
def test_scores_are_sorted_and_written_in_one_form(study, tmp_path):
    path = RESULTS / study / "scores.csv"
    report.write_scores(report.read_scores([path]), tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == path.read_bytes()
