"""Several processes make the same results as one, and a failure stops only what depends on it."""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass
from multiprocessing import active_children
from pathlib import Path

import pytest

from hf_xst.data import ConlluError
from hf_xst.experiments import workers
from hf_xst.experiments.cells import Cell, Graph
from hf_xst.experiments.workers import FailedCellsError, run_side_by_side

COUNT = 12


@dataclass(frozen=True)
class SumGraph:
    """Cells that each add up what earlier ones, drawn at random, have found."""

    folder: Path

    def __call__(self) -> Graph:
        draw = random.Random(5)
        cells = []
        for place in range(COUNT):
            needs = [f"cells/{other}" for other in sorted(draw.sample(range(place), min(place, 2)))]
            cells.append(Cell(f"cells/{place}", self._run_of(place), needs=needs))
        return Graph(cells, self.folder)

    def _run_of(self, place):
        def run(work, results):
            if (self.folder / f"kill-{place}").exists():
                os._exit(1)
            if (self.folder / f"fail-{place}").exists():
                raise ConlluError("[3] is no head", path="some.conllu", line=place, sent_id="s1")
            if (self.folder / "slow").exists():
                (self.folder / f"begun-{place}").touch()
                time.sleep(600)
            return {"sum": place + sum(result["sum"] for result in results.values())}

        return run


@pytest.mark.slow
def test_a_process_that_is_killed_is_told_like_any_failure(tmp_path):
    make = SumGraph(tmp_path)
    (tmp_path / "kill-0").touch()
    with pytest.raises(FailedCellsError, match="cells/0: BrokenProcessPool"):
        run_side_by_side(make(), make, 2)


@pytest.mark.slow
def test_a_run_with_failures_goes_on_and_ends_as_if_there_had_been_none(tmp_path):
    alone = SumGraph(tmp_path / "alone")().run()
    make = SumGraph(tmp_path / "together")
    make.folder.mkdir()
    for place in (3, 7):
        (make.folder / f"fail-{place}").touch()
    with pytest.raises(FailedCellsError, match=r"cells/3: ConlluError: some.conllu:3: sentence s1: \[3\] is"):
        run_side_by_side(make(), make, 2)
    kept = make().status()["done"]
    assert {"cells/0", "cells/1", "cells/2"} <= set(kept)
    assert not {"cells/3", "cells/7"} & set(kept)
    for mark in make.folder.glob("fail-*"):
        mark.unlink()
    assert run_side_by_side(make(), make, 2) == alone


@pytest.mark.slow
def test_a_stopped_run_leaves_no_process_at_work(tmp_path, monkeypatch):
    make = SumGraph(tmp_path)
    (tmp_path / "slow").touch()

    def interrupted(running, return_when):
        while not list(tmp_path.glob("begun-*")):
            time.sleep(0.05)
        raise KeyboardInterrupt

    monkeypatch.setattr(workers, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_side_by_side(make(), make, 2)
    assert not active_children()
