"""The tutorials run, in small, as they are printed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

TUTORIALS = Path(__file__).resolve().parent.parent / "docs" / "tutorials"


def tutorial(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, TUTORIALS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_structure_of_ones_own_can_be_pooled_and_trained_on():
    assert 0 <= tutorial("add_a_structure").main() < 0.2


@pytest.mark.slow
def test_from_running_text_to_trees(tmp_path):
    tutorial("a_parser_for_my_language").main(str(tmp_path), 24)
    text = (tmp_path / "new.conllu").read_text(encoding="utf-8")
    assert text.count("\n\n") >= 20
    assert "ArcProb=" in text
    assert (tmp_path / "tree.svg").read_text(encoding="utf-8").lstrip().startswith("<svg")


@pytest.mark.slow
def test_a_study_and_its_report(tmp_path):
    tutorial("reproduce_a_study").main(str(tmp_path), 24)
    assert "narrow" in (tmp_path / "report" / "README.md").read_text(encoding="utf-8")
