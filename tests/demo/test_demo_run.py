"""The embedded default as a whole."""

from __future__ import annotations

import pytest

from hf_xst.commands.demo import TARGET, DemoArguments, demo, write_languages


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
    methods = {"ensemble/majority", "ensemble/pool", "transferred/union", "transferred/pool"}
    assert methods <= set(scores["A", "parser", TARGET])
    shown = capfd.readouterr().out
    assert "majority vote" in shown
    assert "root" in shown
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").rglob("*.json")}
    assert demo(arguments) == scores
    assert made == {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").rglob("*.json")}


@pytest.mark.slow
def test_the_languages_are_hard_enough_that_methods_differ(tmp_path):
    runs = [demo(DemoArguments(output=str(tmp_path / str(seed)), seed=seed)) for seed in (1, 2, 3)]
    gains = []
    for task in ("parser", "tagger"):
        rows = [scores["A", task, TARGET] for scores in runs]
        for row in rows:
            direct = [value for name, value in row.items() if name.startswith("direct")]
            mean = sum(direct) / len(direct)
            assert len(direct) == 4
            assert 40 <= mean <= 85
            assert row["ensemble/majority"] >= mean + 2
        gains.append(sum(row["transferred/pool"] - row["transferred/union"] for row in rows) / len(rows))
    # Seeds differ by a point or two, so union and pool are compared by their means.
    assert max(gains) >= 1
    assert min(gains) > 0
