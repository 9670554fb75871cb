"""Reports are made of cells' JSON alone."""

from __future__ import annotations

import json
from pathlib import Path

from hf_xst.experiments.report import curve_table, score_table, write_report


def record(result, seconds=30.0):
    return {"needs": [], "settings": {}, "seconds": seconds, "result": result}


RECORDS = {
    "A/parser/source/de": record({"dev": {"eval_las": 70.0}}),
    "A/parser/source/en": record({"dev": {"eval_las": 80.0}}),
    "A/parser/id/ensemble": record(
        {
            "data": "test=/somewhere/data/id-test.conllu",
            "direct de": {"las": 40.04},
            "direct en": {"las": 50.0},
            "majority": {"las": 55.0},
            "pool": {"las": 56.25},
        }
    ),
    "A/parser/id/charts/pool": record({"counts": {"sentences": 10}}),
    "A/parser/id/transferred/pool": record(
        {
            "test": {"las": 57.0, "data": "test"},
            "curve": [
                {"update": 100, "las": 51.0, "loss": 0.5},
                {"update": 150, "loss": 0.4},
                {"update": 200, "las": 52.0},
            ],
        }
    ),
}


def test_the_score_table_holds_all_methods_and_the_published_scores():
    assert score_table(RECORDS).splitlines() == [
        "| encoder | task | target | direct de | direct en "
        "| majority vote | pool as it stands | PPTX | pooled |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        "| A | parser | id | 40.0 | *50.0* | 55.0 | 56.2 |  | 57.0 |",
        "| *paper* | parser | id |  |  | 59.0 |  | 57.4 | 61.6 |",
    ]


def test_the_curve_table_has_a_column_for_each_scored_update():
    assert curve_table(RECORDS).splitlines()[2] == "| A/parser/id/pool | 51.0 | 52.0 |"


def test_a_report_names_no_local_path(tmp_path):
    about = {"title": "canned", "command": "hf-xst reproduce --config canned.yaml", "settings": "start: en"}
    path = write_report(RECORDS, tmp_path, about, Path("/somewhere/data"))
    text = (tmp_path / "results.json").read_text()
    assert "/somewhere" not in text
    assert json.loads(text)["cells"]["A/parser/id/ensemble"]["result"]["data"] == "test=id-test.conllu"
    assert "| all |  |  | 5 | 2.5 |" in path.read_text()
