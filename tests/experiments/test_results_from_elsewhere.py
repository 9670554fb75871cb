"""Results travel without models: cells made elsewhere count, and files that others need are made again."""

from __future__ import annotations

import pytest

from hf_xst.experiments.cells import Cell, Graph, read_records
from hf_xst.experiments.reproduce import kind_of_cell, time_to_go


def graph(folder, made: list[str], *, end: bool = True) -> Graph:
    """A source whose file a chart reads, a score that needs no file, and a model that reads the chart's."""

    def run_of(name: str, reads: str | None):
        def run(work, results):
            made.append(name)
            text = "" if reads is None else (work.parent.parent / reads / "file.txt").read_text()
            (work / "file.txt").write_text(text + name[0])
            return {"name": name, "needs": sorted(results)}

        return run

    cells = [
        Cell("B/a/source", run_of("source", None)),
        Cell("B/a/chart", run_of("chart", "a/source"), needs=["B/a/source"]),
        Cell("B/a/score", run_of("score", None), needs=["B/a/source"]),
    ]
    if end:
        cells.append(Cell("B/a/model", run_of("model", "a/chart"), needs=["B/a/chart"]))
    return Graph(cells, folder)


def test_results_are_taken_over_and_nothing_is_made(tmp_path):
    results = graph(tmp_path / "there", []).run()
    made: list[str] = []
    here = graph(tmp_path / "here", made)
    assert here.restore(read_records(tmp_path / "there")) == 4
    assert here.to_make() == []
    assert here.run() == results
    assert made == []


def test_only_files_that_are_needed_are_made_again(tmp_path):
    graph(tmp_path / "there", [], end=False).run()
    made: list[str] = []
    here = graph(tmp_path / "here", made)
    here.restore(read_records(tmp_path / "there"))
    assert here.to_make() == ["B/a/source", "B/a/chart", "B/a/model"]
    here.run()
    assert made == ["source", "chart", "model"]
    assert (here.work("B/a/model") / "file.txt").read_text() == "scm"
    assert here.to_make() == []


def test_files_that_come_out_otherwise_are_told_of(tmp_path, capsys):
    def graph_of(number: float) -> Graph:
        def source(work, results):
            return {"score": number, "seconds": number}

        cells = [Cell("B/a/source", source), Cell("B/a/x", lambda work, results: {}, needs=["B/a/source"])]
        return Graph(cells, tmp_path)

    graph_of(1).run()
    for number, changed in ((1.0, False), (2.0, True)):
        for path in (tmp_path / "cells/B/a/x.json", tmp_path / "work/B/a/source/cell.key"):
            path.unlink()
        graph_of(number).run()
        assert ("came out otherwise" in " ".join(capsys.readouterr().err.split())) == changed


def test_results_of_other_settings_are_not_taken(tmp_path):
    graph(tmp_path / "there", []).run()
    records = {name: {**record, "key": "0" * 64} for name, record in read_records(tmp_path / "there").items()}
    here = graph(tmp_path / "here", [])
    assert here.restore(records) == 0
    assert len(here.to_make()) == 4


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("B/parser/source/en", "B/parser/source"),
        ("B/parser/it/transferred/pool/42", "B/parser/transferred"),
        ("A/tagger/fa/ensemble", "A/tagger/ensemble"),
    ],
)
def test_cells_of_one_kind_cost_alike(name, kind):
    assert kind_of_cell(name) == kind


def test_the_time_to_go_is_told_from_cells_of_the_same_kind(tmp_path):
    def cell(name):
        return Cell(name, lambda work, results: {})

    names = ["B/parser/it/ensemble", "B/parser/fa/ensemble", "B/parser/fa/charts/pool"]
    half = Graph([cell(names[0])], tmp_path)
    half.run()
    whole = Graph([cell(name) for name in names], tmp_path)
    assert time_to_go(whole) == (
        "2 cells to make, about 0 minutes one after the other, "
        "not counting 1 cells of kinds that none was made of"
    )
    # Results of elsewhere that are only looked at tell times as well.
    elsewhere = Graph([cell(name) for name in names], tmp_path / "elsewhere")
    elsewhere.restore(read_records(tmp_path), write=False)
    assert time_to_go(elsewhere) == time_to_go(whole)
