"""Two processes on one machine make the updates and the scores of one (P20, P22)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import two_processes

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    output = tmp_path_factory.mktemp("two")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [*launcher, str(Path(two_processes.__file__)), str(output)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    content = json.loads((output / "found.json").read_text())
    assert content["processes"] == 2
    return content


@pytest.mark.parametrize("case", ["by_words", "by_charts", "resumed"])
@pytest.mark.parametrize("cut", ["2 1", "1 2"])
def test_updates_are_those_of_one_process(found, tmp_path, case, cut):
    alone = getattr(two_processes, case)(tmp_path, 4, 1)
    together = found[f"{case} {cut}"]
    assert together.keys() == alone.keys()
    for name, numbers in alone.items():
        if name == "empty":
            assert together[name] == numbers == [4, ["s1", "s4"]]
            continue
        for key, values in numbers.items():
            assert together[name][key] == pytest.approx(values, rel=1e-4, abs=1e-6), (name, key)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_scores_and_predictions_are_those_of_one_process(found, tmp_path, size):
    alone = two_processes.evaluated(tmp_path, 2, 1)
    together = found[f"evaluated {size} 1"]
    for kind, numbers in alone.items():
        assert together[kind]["predictions"] == numbers["predictions"]
        for part in ("before", "within"):
            assert together[kind][part] == pytest.approx(numbers[part], rel=1e-5)
