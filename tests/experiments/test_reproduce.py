"""The command that runs a study: what it makes, reports and refuses."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.canned_cells import study
from hf_xst.experiments.cells import Cell
from hf_xst.experiments.lock import LOCK, alone_in
from hf_xst.experiments.report.page import make_page
from hf_xst.experiments.report.reading import TASKS, Results
from hf_xst.experiments.reproduce import TABLES, ReproduceArguments, reproduce
from hf_xst.experiments.study import Study

CONFIG = """
sources: {en: {train: x}}
targets: {it: {text: x, test: x}}
encoders: {B: {}}
tasks: {parser: {}}
"""
RESULTS = {name: each["result"] for name, each in study().items() if name.endswith("/ensemble")}


@pytest.fixture
def made(tmp_path, monkeypatch) -> list[str]:
    """Let every study have ready cells, and note which of them are made."""
    names: list[str] = []

    def cell(name: str) -> Cell:
        def run(work, results):
            names.append(name)
            return RESULTS[name]

        return Cell(name, run)

    monkeypatch.setattr(Study, "cells", lambda self: map(cell, RESULTS))
    (tmp_path / "study.yaml").write_text(CONFIG, encoding="utf-8")
    return names


@pytest.fixture
def told(tmp_path) -> dict[str, str]:
    return {"config": str(tmp_path / "study.yaml"), "data": str(tmp_path), "output": str(tmp_path / "run")}


def test_a_study_is_made_once_and_reported(made, told, tmp_path):
    reproduce(ReproduceArguments(**told))
    assert made == list(RESULTS)
    other = tmp_path / "run" / "cells" / "B" / "parser" / "of-another-study.json"
    other.write_text(json.dumps({"name": "B/parser/of-another-study", "key": "k", "result": {}}))
    reproduce(ReproduceArguments(**told, report=str(tmp_path / "again")))
    assert made == list(RESULTS)
    first, again = ((tmp_path / name / "results.json").read_text() for name in ("run/report", "again"))
    assert first == again
    content = json.loads(first)
    assert list(content["cells"]) == sorted(RESULTS)
    # The command of the report tells nobody's folders.
    assert content["about"]["command"] == "hf-xst reproduce --config study.yaml"
    assert str(tmp_path) not in first


def test_results_of_elsewhere_are_taken_over(made, told, tmp_path):
    reproduce(ReproduceArguments(**told))
    made.clear()
    there = {**told, "output": str(tmp_path / "there")}
    reproduce(ReproduceArguments(**there, known=str(tmp_path / "run" / "report" / "results.json")))
    assert made == []


def test_two_runs_do_not_share_a_folder(made, told, tmp_path):
    with (
        alone_in(tmp_path / "run"),
        pytest.raises(ValueError, match=r"process \d+ works in .*run: wait"),
    ):
        reproduce(ReproduceArguments(**told))
    assert made == []
    # What a killed run has left, or another process by the same number, keeps nobody out.
    for left in ({"pid": os.getpid(), "began": 1.0}, {"pid": 2**22 + 1, "began": 1.0}, {}):
        (tmp_path / "run" / LOCK).write_text(json.dumps(left))
        reproduce(ReproduceArguments(**told))
        assert not (tmp_path / "run" / LOCK).exists()
    assert made == list(RESULTS)


def test_the_status_makes_nothing(made, told, tmp_path, capsys):
    reproduce(ReproduceArguments(**told, status=True))
    assert made == []
    assert not (tmp_path / "run").exists()
    assert f"{len(RESULTS)} cells to make" in capsys.readouterr().err


def test_the_status_beside_results_of_elsewhere_writes_nothing(made, told, tmp_path, capsys):
    reproduce(ReproduceArguments(**told))
    there = {**told, "output": str(tmp_path / "there"), "known": str(tmp_path / "run" / "report")}
    reproduce(ReproduceArguments(**there, status=True))
    assert "0 cells to make" in capsys.readouterr().err
    assert not (tmp_path / "there").exists()


def test_only_the_cells_of_a_table(made, told, tmp_path):
    reproduce(ReproduceArguments(**told, only=["direct"]))  # made of ensembles, which all of these are
    assert made == list(RESULTS)
    with pytest.raises(ValueError, match=r"chart-size: found neither .* tables are .*chart-size, "):
        reproduce(ReproduceArguments(**told, only=["chart-size"]))


def test_every_table_says_which_cells_it_is_made_of():
    page = make_page(Results(study()), {})
    names = {table.name for table in page.tables} - {"time"} - {f"encoders-{task}" for task in TASKS}
    untold = [name for name in names if not any(name.startswith(table) for table in TABLES)]
    assert not untold


def test_a_run_that_is_killed_ends_with_the_same_tables(made, told, tmp_path):
    drawn = random.randrange(len(RESULTS))
    reproduce(ReproduceArguments(**told))
    killed = {**told, "output": str(tmp_path / "killed")}
    script = f"""
import os, signal, sys
sys.path.append({str(Path(__file__).parent)!r})
from helpers.canned_cells import study
from hf_xst.experiments.cells import Cell
from hf_xst.experiments.reproduce import ReproduceArguments, reproduce
from hf_xst.experiments.study import Study
RESULTS = {{name: each["result"] for name, each in study().items() if name.endswith("/ensemble")}}
def cell(place, name):
    def run(work, results):
        if place == {drawn}:
            os.kill(os.getpid(), signal.SIGKILL)
        return RESULTS[name]
    return Cell(name, run)
Study.cells = lambda self: [cell(*each) for each in enumerate(RESULTS)]
reproduce(ReproduceArguments(**{killed!r}))
"""
    died = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True)
    assert died.returncode == -signal.SIGKILL, died.stderr
    made.clear()
    reproduce(ReproduceArguments(**killed))
    assert made == list(RESULTS)[drawn:], drawn
    unbroken, resumed = (tmp_path / name / "report" for name in ("run", "killed"))
    tables = sorted(path.relative_to(unbroken) for path in unbroken.glob("*/*.csv"))
    assert tables
    assert all((unbroken / path).read_bytes() == (resumed / path).read_bytes() for path in tables)


def test_a_part_that_is_none_is_told(made, told):
    with pytest.raises(ValueError, match=r"B/parsing: found neither a cell whose name has these parts"):
        reproduce(ReproduceArguments(**told, only=["B/parsing"]))
    assert made == []


def test_a_data_folder_that_is_none_is_told(made, told):
    with pytest.raises(ValueError, match="there is no data folder nowhere; give it with --data"):
        reproduce(ReproduceArguments(**{**told, "data": "nowhere"}))
