"""The tutorials run, in small, as they are printed."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest

TUTORIALS = Path(__file__).resolve().parent.parent / "docs" / "tutorials"


@pytest.fixture
def tutorial(monkeypatch, tmp_path):
    """Import a tutorial as Python finds it when it is run, and work in an empty folder."""
    monkeypatch.syspath_prepend(str(TUTORIALS))
    monkeypatch.chdir(tmp_path)

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    return load


def test_a_structure_of_ones_own_can_be_pooled_and_trained_on(tutorial):
    assert 0 <= tutorial("add_a_structure").main() < 0.2


@pytest.mark.slow
def test_a_model_over_a_structure_of_ones_own(tutorial, tmp_path):
    tutorial("train_a_structure").main(24)
    assert "LabelProb=" in (tmp_path / "tagged.conllu").read_text(encoding="utf-8")


@pytest.mark.slow
def test_from_running_text_to_trees(tutorial, tmp_path):
    tutorial("a_parser_for_my_language").main(24)
    text = (tmp_path / "new.conllu").read_text(encoding="utf-8")
    assert text.count("\n\n") >= 4
    assert "ArcProb=" in text
    for name in ("tree.svg", "chart.svg"):
        assert (tmp_path / name).read_text(encoding="utf-8").lstrip().startswith("<svg")


@pytest.mark.slow
def test_a_study_and_its_report(tutorial, tmp_path):
    tutorial("reproduce_a_study").main(24)
    assert "narrow" in (tmp_path / "report" / "README.md").read_text(encoding="utf-8")
    # The second study shares the folder, and its report has its own cells alone.
    cells = json.loads((tmp_path / "report-seeds" / "results.json").read_text(encoding="utf-8"))["cells"]
    seeds = {tuple(name.split("/")[-2:]) for name in cells if "/transferred/" in name}
    assert seeds == {(method, seed) for method in ("union", "pool") for seed in ("42", "43", "44")}
