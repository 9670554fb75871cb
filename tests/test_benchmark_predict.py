"""The benchmark of `hf-xst predict` runs at tiny sizes; no test depends on times."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"

pytestmark = pytest.mark.filterwarnings("ignore:.*arg_constraints:UserWarning")


def test_quick_run_writes_all_lines(monkeypatch, tmp_path, capsys):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    target = tmp_path / "figures.json"
    script = importlib.import_module("benchmark_predict")
    assert script.main(["--quick", "--json", str(target)]) == 0
    lines = json.loads(target.read_text(encoding="utf-8"))["lines"]
    assert sum("in the model" in line["note"] for line in lines) == 6
    assert lines[-1]["other"] == "with confidence"
    assert "ratio" in capsys.readouterr().out
