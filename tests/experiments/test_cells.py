"""Cells are made once, made anew when what they depend on changes, and survive being killed."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from hf_xst.experiments.cells import CODE_VERSION, Cell, Graph, read_records


class KilledError(Exception):
    pass


def chain(count: int, made: list[str], *, factor: int = 1, killed_at: str | None = None) -> list[Cell]:
    """A chain of cells, each the sum of its place and of the one before it."""

    def cell(place: int) -> Cell:
        name = f"block/{place}"
        needs = [f"block/{place - 1}"] if place else []

        def run(work, results):
            if name == killed_at:
                (work / "half.txt").write_text("half")
                raise KilledError
            made.append(name)
            return {"sum": factor * place + sum(result["sum"] for result in results.values())}

        return Cell(name, run, {"factor": factor if place >= 2 else 1}, needs)

    return [cell(place) for place in range(count)]


@pytest.mark.parametrize("killed_at", [f"block/{place}" for place in range(4)])
def test_a_killed_run_goes_on_and_ends_with_the_same_results(tmp_path, killed_at):
    whole = Graph(chain(4, []), tmp_path / "whole").run()
    made: list[str] = []
    with pytest.raises(KilledError):
        Graph(chain(4, made, killed_at=killed_at), tmp_path / "killed").run()
    results = Graph(chain(4, made), tmp_path / "killed").run()
    assert results == whole
    assert made == [f"block/{place}" for place in range(4)]  # nothing was made twice


def test_cells_are_made_anew_from_the_first_that_changed(tmp_path):
    made: list[str] = []
    Graph(chain(4, made), tmp_path).run()
    made.clear()
    results = Graph(chain(4, made, factor=10), tmp_path).run()
    assert made == ["block/2", "block/3"]
    assert results["block/3"] == {"sum": 0 + 1 + 20 + 30}


def test_files_of_a_cell_begun_with_other_settings_are_removed(tmp_path):
    with pytest.raises(KilledError):
        Graph(chain(4, [], killed_at="block/2"), tmp_path).run()
    graph = Graph(chain(4, [], factor=10), tmp_path)
    assert (graph.work("block/2") / "half.txt").exists()
    graph.run()
    assert not (graph.work("block/2") / "half.txt").exists()


def test_only_runs_what_is_named_and_what_it_needs(tmp_path):
    graph = Graph([*chain(3, []), Cell("other/1", lambda work, results: {"sum": 0})], tmp_path)
    assert list(graph.run(["block/1"])) == ["block/0", "block/1"]
    left = ["block/2", "other/1"]
    assert graph.status() == {"done": ["block/0", "block/1"], "running": [], "begun": [], "left": left}


def test_what_a_stopped_run_has_begun_is_told_from_what_runs(tmp_path):
    began = time.time()
    with pytest.raises(KilledError):
        Graph(chain(4, [], killed_at="block/2"), tmp_path).run()
    graph = Graph(chain(4, []), tmp_path)
    assert graph.status(since=began - 1)["running"] == ["block/2"]
    later = graph.status(since=time.time() + 1)
    assert (later["running"], later["begun"], later["left"]) == ([], ["block/2"], ["block/3"])
    # Files that were begun with other settings count for nothing.
    assert Graph(chain(4, [], factor=10), tmp_path).status(since=began - 1)["running"] == []


def test_results_may_be_looked_at_without_being_kept(tmp_path):
    Graph(chain(2, []), tmp_path / "there").run()
    graph = Graph(chain(3, []), tmp_path / "here")
    assert graph.restore(read_records(tmp_path / "there"), write=False) == 2
    assert graph.status()["done"] == ["block/0", "block/1"]
    assert not (tmp_path / "here").exists()


def test_cells_of_another_version_of_the_code_are_made_again(tmp_path):
    Graph(chain(3, []), tmp_path).run()
    first, second, third = chain(3, [])
    newer = [first, replace(second, version=CODE_VERSION + 1), third]
    assert Graph(newer, tmp_path).to_make() == ["block/1", "block/2"]
    Graph(newer, tmp_path).run()
    assert read_records(tmp_path)["block/1"]["version"] == CODE_VERSION + 1


def test_records_hold_settings_and_results(tmp_path):
    Graph(chain(2, []), tmp_path).run()
    record = read_records(tmp_path)["block/1"]
    assert record["result"] == {"sum": 1}
    assert record["needs"] == ["block/0"]
    assert record["seconds"] >= 0


def test_cells_must_be_in_order_and_differ(tmp_path):
    with pytest.raises(ValueError, match="does not come before it"):
        Graph(reversed(chain(2, [])), tmp_path)
    with pytest.raises(ValueError, match="two cells are called block/0"):
        Graph([*chain(1, []), *chain(1, [])], tmp_path)
