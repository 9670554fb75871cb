"""A chart folder written by version 0.1.0 keeps loading."""

import json
from pathlib import Path

from hf_xst import load_charts

FOLDER = Path(__file__).parents[1] / "fixtures" / "charts"


def test_a_saved_chart_folder_loads_as_recorded():
    expected = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))["rows"]
    rows, _ = load_charts(str(FOLDER))
    assert [{key: row[key] for key in expected[0]} for row in rows] == expected
    assert all(len(row["log_probs"]) == len(row["candidates"]) for row in rows)
