"""The command that makes a report again."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from helpers.canned_cells import study
from hf_xst.experiments.report import write_report
from hf_xst.experiments.report.job import ReportArguments, report
from hf_xst.experiments.report.write import results_json
from hf_xst_cli import COMMANDS

RECORDS = {
    name: {"name": name, "key": "k", **each} for name, each in study().items() if name.endswith("/ensemble")
}
CONFIG = """
about: From a configuration.
sources: {en: {train: x}}
targets: {it: {text: x, test: x, mark: another split}}
encoders: {B: {}}
tasks: {parser: {}}
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a study with its cells."""
    for name, each in RECORDS.items():
        path = tmp_path / "mine" / "cells" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(each), encoding="utf-8")
    return tmp_path / "mine"


def test_the_command_is_listed():
    command = COMMANDS["report"]
    assert (command.module, command.function, command.arguments) == (
        report.__module__,
        report.__name__,
        ReportArguments.__name__,
    )


@pytest.mark.parametrize("given", ["mine", "mine/cells"])
def test_a_report_is_made_of_a_folder_of_cells(run, tmp_path, given):
    report(ReportArguments(cells=str(tmp_path / given), output=str(tmp_path / "out"), data="/somewhere/data"))
    direct = write_report(RECORDS, tmp_path / "direct", {"title": "mine"}, Path("/somewhere/data"))
    for name in ("README.md", "index.html", "results.json"):
        assert (tmp_path / "out" / name).read_bytes() == (direct.parent / name).read_bytes()


def test_cells_win_over_an_older_report_beside_them(run, tmp_path):
    report(ReportArguments(cells=str(run), output=str(run)))
    name = next(iter(RECORDS))
    path = run / "cells" / f"{name}.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(record | {"seconds": 4321.0}), encoding="utf-8")
    report(ReportArguments(cells=str(run), output=str(run)))
    assert json.loads((run / "results.json").read_text())["cells"][name]["seconds"] == 4321.0


@pytest.mark.parametrize("given", ["results.json", ""])
def test_a_report_is_made_of_another(tmp_path, given):
    about = {"title": "some", "command": "hf-xst some", "marks": {"it": "a mark"}}
    write_report(RECORDS, tmp_path / "first", about)
    report(ReportArguments(cells=str(tmp_path / "first" / given), output=str(tmp_path / "out")))
    for name in ("README.md", "index.html", "results.json"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "first" / name).read_bytes()


def test_a_configuration_brings_notes_marks_and_settings(run, tmp_path):
    config = tmp_path / "small.yaml"
    config.write_text(CONFIG, encoding="utf-8")
    report(ReportArguments(cells=str(run), output=str(tmp_path / "out"), config=str(config), title="Mine"))
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert text.startswith("# Mine\n")
    assert "From a configuration." in text
    assert "<sup>1</sup> another split" in text
    assert "encoders: {B: {}}" in text


def test_a_wrong_configuration_is_told(run, tmp_path):
    config = tmp_path / "small.yaml"
    config.write_text("nonsense: 1", encoding="utf-8")
    with pytest.raises(ValueError, match=r"small\.yaml.*nonsense"):
        report(ReportArguments(cells=str(run), output=str(tmp_path / "out"), config=str(config)))


def test_a_folder_without_cells_is_told(tmp_path):
    with pytest.raises(ValueError, match="holds no cells; expected a folder with cells/"):
        report(ReportArguments(cells=str(tmp_path), output=str(tmp_path / "out")))


@pytest.mark.parametrize("text", ["no json", "[]", '{"about": {}}'])
def test_a_file_of_something_else_is_told(tmp_path, text):
    (tmp_path / "results.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"results\.json: .*expected JSON with `about` and `cells`"):
        report(ReportArguments(cells=str(tmp_path / "results.json"), output=str(tmp_path / "out")))


def test_searches_stand_beside_the_papers_values(run, tmp_path):
    found = {
        "model_type": "hf_xst_biaffine_parser",
        "rule": "pool",
        "treebank": "dev=fa.conllu",
        "split": "dev",
        "best": {"values": {"learning_rate": 1e-4, "l2": 1e-3}, "score": 57.0},
        "trials": [{"score": score, "seconds": 1.0} for score in (50.0, 57.0, 55.0, 40.0)],
    }
    (tmp_path / "trials.json").write_text(json.dumps(found))
    told = {"cells": str(run), "output": str(tmp_path / "report")}
    report(ReportArguments(**told, searches=[str(tmp_path / "trials.json")]))
    lines = (tmp_path / "report" / "csv" / "search.csv").read_text(encoding="utf-8").splitlines()
    (row,) = csv.DictReader(lines)
    scores = [float(row[f"score: {name}"]) for name in ("best", "second", "median", "worst")]
    assert scores == [57, 55, 52.5, 40]
    assert float(row["paper: step"]) == pytest.approx(9.4e-5)
    assert float(row["paper: pull"]) == pytest.approx(1.6e-4)
    # The report's own results tell it again.
    report(ReportArguments(cells=str(tmp_path / "report"), output=str(tmp_path / "again")))
    assert (tmp_path / "again/csv/search.csv").read_text() == (tmp_path / "report/csv/search.csv").read_text()
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(ValueError, match=r"other\.json: .*expected a trials\.json of hf-xst search"):
        report(ReportArguments(**told, searches=[str(tmp_path / "other.json")]))


def test_without_the_data_folder_files_are_told_by_their_names(tmp_path):
    files = {"x": "train=/srv/kim/a b/it.conllu,dev=/srv/kim/dev.conllu"}
    records = {"B/parser/it/ensemble": {**study()["B/parser/it/ensemble"], "settings": files}}
    text = results_json(records, {"notes": "see https://some.where/a/b and docs/results/x"}, None)
    assert "train=it.conllu,dev=dev.conllu" in text
    assert "https://some.where/a/b and docs/results/x" in text


def test_a_search_that_kept_one_value_has_a_table_too(run, tmp_path):
    found = {
        "model_type": "some_model",
        "rule": "pool",
        "treebank": "dev=fa.conllu",
        "split": "dev",
        "best": {"values": {"learning_rate": 1e-4}, "score": 57.0},
        "trials": [{"score": 57.0, "seconds": 1.0}],
    }
    (tmp_path / "trials.json").write_text(json.dumps(found))
    told = {"cells": str(run), "output": str(tmp_path / "report")}
    report(ReportArguments(**told, searches=[str(tmp_path / "trials.json")]))
    (row,) = csv.DictReader((tmp_path / "report" / "csv" / "search.csv").read_text().splitlines())
    assert row["task"] == "some_model"
    assert row["ours: step"] == "0.0001"
    assert "paper: step" not in row  # columns without a value are left out


def test_only_whole_paths_lose_the_data_folder(tmp_path):
    cell = {"B/x": {"settings": {"text": "data/a", "dev": "mydata/b", "test": "../data/c"}}}
    text = results_json(cell, {}, Path("data"))
    assert json.loads(text)["cells"]["B/x"]["settings"] == {
        "text": "a",
        "dev": "mydata/b",
        "test": "../data/c",
    }
