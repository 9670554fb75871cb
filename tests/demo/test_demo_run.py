"""The embedded default as a whole."""

from __future__ import annotations

import pytest

from hf_xst.demo.run import TARGET, DemoArguments, demo, write_languages


def test_the_target_text_holds_no_gold(tmp_path):
    write_languages(tmp_path, 5, 1)
    lines = (tmp_path / f"{TARGET}-train.conllu").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if "\t" in line]
    assert rows
    assert {(row[6], row[7]) for row in rows} == {("_", "_")}


@pytest.mark.slow
def test_a_tiny_run_compares_all_methods_and_repeats_in_no_time(tmp_path, capfd):
    arguments = DemoArguments(output=str(tmp_path), sentences=30, epochs=1, updates=3)
    scores = demo(arguments)
    assert set(scores) == {("A", "parser", TARGET), ("A", "tagger", TARGET)}
    assert {"majority", "pool", "union", "pooled"} <= set(scores["A", "parser", TARGET])
    shown = capfd.readouterr().out
    assert "majority vote" in shown
    assert "root" in shown
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").rglob("*.json")}
    assert demo(arguments) == scores
    assert made == {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").rglob("*.json")}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_languages_are_hard_enough_that_methods_differ(tmp_path, seed):
    scores = demo(DemoArguments(output=str(tmp_path), seed=seed))
    for row in scores.values():
        direct = [value for name, value in row.items() if name.startswith("direct")]
        assert len(direct) == 4
        assert all(40 <= value <= 85 for value in direct)
        assert row["majority"] >= sum(direct) / 4 + 2
        assert abs(row["pooled"] - row["union"]) >= 1
