"""The command that makes a report again."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

from canned import study

from hf_xst.experiments.report import write_report
from hf_xst.experiments.report.job import ReportArguments, report
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
