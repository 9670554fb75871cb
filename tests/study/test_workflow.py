"""Kill a study on invented languages, and resume it: its scores are those of one that was not killed."""

from __future__ import annotations

import csv
import os
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from configuration import read_config

from hf_xst.demo import write_languages

STUDY = Path(__file__).parents[2] / "scripts" / "study"
TABLES = ("scores.csv", "tables.md")


def command(output: str, *words: str) -> list[str]:
    snakemake = [sys.executable, "-m", "snakemake", "--snakefile", str(STUDY / "Snakefile"), "--cores", "2"]
    return [*snakemake, *words, "--configfile", "study.yaml", "--config", "data=data", f"output={output}"]


def scores(folder: Path) -> dict[tuple[str, ...], float]:
    """Return all scores of a study, without the times of its jobs."""
    with (folder / "scores.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    return {
        tuple(value for name, value in row.items() if name != "value"): float(row["value"])
        for row in rows
        if row["metric"] != "seconds"
    }


@pytest.mark.slow
def test_a_killed_study_resumes_and_ends_with_the_same_scores(tmp_path):
    if find_spec("snakemake") is None:
        pytest.skip("snakemake is not installed (extra `study`)")
    write_languages(tmp_path / "data", 60, seed=1, test=30)
    study = read_config(STUDY / "invented.yaml")
    del study["upos"], study["tasks"]["parser"], study["sources"]["Mirtash"], study["targets"]["Ulwedd"]
    study["methods"] = {"paper-pool-published": study["methods"]["paper-pool-published"]}
    study |= {"paper_methods": False, "seeds": [1]}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    run = {"cwd": tmp_path, "env": {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}}
    resumed = tmp_path / "resumed"
    process = subprocess.Popen(command("resumed"), start_new_session=True, **run)
    while process.poll() is None and not list(resumed.glob("*/*/targets/*/models/*/*/run/config.yaml")):
        time.sleep(0.1)
    assert process.poll() is None, "the study ended before it could be killed"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    finished = {path: path.stat().st_mtime_ns for path in resumed.glob("*/*/sources/*/run/results.json")}
    assert len(finished) == 2
    assert not (resumed / "scores.csv").exists()
    for path in finished:  # the other study starts from the same sources
        shutil.copytree(path.parents[1], tmp_path / "whole" / path.parents[1].relative_to(resumed))
    subprocess.run(command("whole", "--unlock"), check=True, **run)
    subprocess.run(command("whole"), check=True, **run)
    subprocess.run(command("resumed"), check=True, **run)
    assert {path: path.stat().st_mtime_ns for path in finished} == finished

    whole = scores(tmp_path / "whole")
    assert scores(resumed) == whole
    assert all((resumed / name).stat().st_size for name in TABLES)
    methods = {key[4] for key in whole}
    trained = {"paper-pool-published", "charts:published", "source"}
    assert methods >= {*study["rules"], *trained, "pool-learned", "direct:Belori"}
    assert {key[3] for key in whole} == {"target", "Belori", "Kasuni"}
    nothing = subprocess.run(
        command("resumed", "--dry-run"), capture_output=True, text=True, check=True, **run
    )
    assert "Nothing to be done" in nothing.stdout + nothing.stderr
