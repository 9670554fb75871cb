"""Two processes that share the work of a command write what one process writes."""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

from helpers import shared_commands
from helpers.small_models import gold, model_of
from hf_xst.charts.dataset import shards_in
from hf_xst.data import ConlluSentence, write_conllu
from hf_xst.processes import from_main, process_count, process_index, share, shared_work, wait_for_all

LENGTHS = (3, 5, 1, 4, 2, 6, 3, 2, 5, 4, 3)
LAUNCHER = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The outputs of all commands in one process, and in two."""
    world = tmp_path_factory.mktemp("world")
    for seed in (1, 2):
        for kind in ("tagger", "parser"):
            model_of(kind, seed).save_pretrained(world / f"{kind}{seed}")
    for name, seed in (("text", 5), ("gold", 6)):
        sentences = [
            ConlluSentence.from_words(
                row["words"],
                sent_id=row["sent_id"],
                columns={column: row[column] for column in ("upos", "head", "deprel")},
            )
            for row in gold(LENGTHS, seed)
        ]
        write_conllu(sentences, world / f"{name}.conllu")
    one, two = world / "one", world / "two"
    shared_commands.run_all(world, one)
    run_all([sys.executable, shared_commands.__file__, str(world), str(two), str(free_port())])
    return one, two


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def run_all(*lines: list[str]) -> None:
    """Run command lines side by side."""
    with tempfile.TemporaryFile("w+") as log:
        machines = [subprocess.Popen(line, env=ENVIRONMENT, stdout=log, stderr=log) for line in lines]
        try:
            failed = [machine.wait(600) for machine in machines]
        finally:
            for machine in machines:
                machine.kill()
            log.seek(0)
            sys.stdout.write(log.read()[-3000:])
        assert not any(failed)


def test_charts_are_equal_to_the_byte(outputs):
    for folder in ("build-charts", "adapt/run/tagger/charts", "adapt/run/parser/charts"):
        one, two = (output / folder for output in outputs)
        shards = [{path.name: path.read_bytes() for path in shards_in(each)} for each in (one, two)]
        assert shards[0] == shards[1]
        assert len(shards[0]) == 3
        records = [json.loads((path / "provenance.json").read_text()) for path in (one, two)]
        assert records[0] == records[1]


@pytest.mark.parametrize(
    "name", ["vote/predictions.conllu", "vote-text/predictions.conllu", "predicted.conllu.gz"]
)
def test_predictions_are_equal_to_the_byte(outputs, name):
    one, two = ((output / name).read_bytes() for output in outputs)
    assert one == two
    text = gzip.decompress(one).decode() if name.endswith(".gz") else one.decode()
    assert text.count("# sent_id") == len(LENGTHS)


@pytest.mark.parametrize(
    "name",
    [
        "vote/run/scores.json",
        "evaluate/run/scores.json",
        "analyse/analysis.json",
        "learn-weights/weights.yaml",
    ],
)
def test_scores_and_weights_are_equal_to_the_last_digit(outputs, name):
    one, two = ((output / name).read_text() for output in outputs)
    assert one == two


def test_adapted_models_have_the_same_tensors(outputs):  # not the same values: dropout differs
    for model in ("adapt", "adapt/tagger"):
        one, two = (load_file(output / model / "model.safetensors") for output in outputs)
        assert {name: each.shape for name, each in one.items()} == {
            name: each.shape for name, each in two.items()
        }
        assert all(bool(each.isfinite().all()) for each in two.values())
    assert (outputs[1] / "adapt" / "report.md").exists()


@pytest.mark.slow
def test_two_machines_write_what_two_processes_write(outputs, tmp_path):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc_per_node", "1"]
    endpoint = ["--rdzv_backend", "c10d", "--rdzv_endpoint", f"127.0.0.1:{free_port()}"]
    script = [shared_commands.__file__, str(outputs[0].parent), str(tmp_path)]
    run_all(*[[*launcher, *endpoint, *script]] * 2)  # as the documents say; both machines are this one
    for name in ("analyse/analysis.json", "predicted.conllu.gz", "adapt/tagger/model.safetensors"):
        assert (tmp_path / name).read_bytes() == (outputs[1] / name).read_bytes()


def test_one_process_does_all_the_work():
    with shared_work():
        assert (process_count(), process_index()) == (1, 0)
        assert share([1, 2, 3], lambda item: item + 1) == [2, 3, 4]
        assert from_main(lambda: "x") == "x"
        wait_for_all()


LOST = """
import os, sys
from hf_xst.processes import process_index, share, shared_work
with shared_work():
    share([1, 2], str)
    if process_index():
        os.kill(os.getpid(), 9)
    share([1, 2], str)
"""


@pytest.mark.slow
def test_a_lost_process_ends_the_others(tmp_path):
    script = tmp_path / "lost.py"
    script.write_text(LOST)
    begin = time.monotonic()
    done = subprocess.run(
        [*LAUNCHER, str(script)], env=ENVIRONMENT, capture_output=True, timeout=120, check=False
    )
    assert done.returncode != 0
    assert time.monotonic() - begin < 60
