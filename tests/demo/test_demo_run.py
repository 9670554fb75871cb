"""The demo as a whole."""

from __future__ import annotations

import os

import pytest

from hf_xst.commands.demo import AVERAGE, METHODS, RECOMMENDED, VOTE, DemoArguments, comparison, demo, lesson
from hf_xst.demo import TARGET, write_languages


def test_target_text_has_no_gold_trees(tmp_path):
    write_languages(tmp_path, 5, 1)
    lines = (tmp_path / f"{TARGET}-train.conllu").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if "\t" in line]
    assert rows
    assert {(row[6], row[7]) for row in rows} == {("_", "_")}


def test_lesson_is_computed_from_the_scores():
    scores = {task: dict.fromkeys(METHODS, 60.0) for task in ("parser", "tagger")}
    scores["parser"][RECOMMENDED], scores["tagger"][RECOMMENDED] = 62.5, 59.0
    assert "+2.5 LAS, -1.0 UPOS accuracy" in lesson(scores)
    assert comparison(scores).row_count == len(METHODS)


@pytest.mark.slow
def test_tiny_run_compares_all_methods_and_is_not_repeated(tmp_path, capfd):
    sizes = {"output": str(tmp_path), "epochs": 1, "max_steps": 3}
    scores = demo(DemoArguments(sentences=30, **sizes))
    assert {task: sorted(row) for task, row in scores.items()} == {
        task: sorted(METHODS) for task in ("tagger", "parser")
    }
    printed = capfd.readouterr().out
    assert all(method in printed for method in METHODS)
    assert "─► " in printed.rstrip().splitlines()[-1] or "── " in printed.rstrip().splitlines()[-1]
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert demo(DemoArguments(sentences=30, **sizes)) == scores
    assert times == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match="sentences"):
        demo(DemoArguments(sentences=40, **sizes))


@pytest.mark.slow
def test_recommended_preset_is_best(tmp_path):
    finished = os.environ.get("HF_XST_DEMO")  # a demo with the default settings that was run before
    scores = demo(DemoArguments(output=finished or str(tmp_path)))
    for row in scores.values():
        assert 40 <= row[AVERAGE] <= 90
        assert row[VOTE] > row[AVERAGE]
        assert row[RECOMMENDED] > row[VOTE]
        assert row[RECOMMENDED] == max(row.values())
