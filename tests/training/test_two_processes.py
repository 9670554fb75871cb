"""Two processes on one machine make the updates and the scores of one."""

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
def results(tmp_path_factory):
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
    content = json.loads((output / "results.json").read_text())
    assert content["processes"] == 2
    return content


@pytest.mark.parametrize("case", ["by_words", "by_charts", "resumed"])
@pytest.mark.parametrize("division", ["2 1", "1 2"])
def test_updates_equal_those_of_one_process(results, tmp_path, case, division):
    expected = getattr(two_processes, case)(tmp_path, 4, 1)
    actual = results[f"{case} {division}"]
    assert actual.keys() == expected.keys()
    if "empty" in expected:
        assert actual.pop("empty") == expected.pop("empty") == [4, ["s1", "s4"]]
    for name, numbers in expected.items():
        for key, values in numbers.items():
            assert actual[name][key] == pytest.approx(values, rel=1e-4, abs=1e-6), (name, key)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_scores_and_predictions_equal_those_of_one_process(results, tmp_path, size):
    expected = two_processes.evaluated(tmp_path, 2, 1)
    actual = results[f"evaluated {size} 1"]
    for kind, numbers in expected.items():
        assert actual[kind]["predictions"] == numbers["predictions"]
        for time in ("before", "during"):
            assert actual[kind][time] == pytest.approx(numbers[time], rel=1e-5)
