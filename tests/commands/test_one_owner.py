"""An output has one owner at a time: a second command stops before it reads anything."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import hf_xst.files
import hf_xst_cli
from helpers.small_models import gold, model_of
from hf_xst.console import console
from hf_xst.data import ConlluSentence, write_conllu
from hf_xst.files import sole_owner

# Loads the module alone: the package takes seconds.
HOLDER = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("files", sys.argv[1])
files = importlib.util.module_from_spec(spec)
spec.loader.exec_module(files)
with files.sole_owner(sys.argv[2], "vote"), files.atomic_path(sys.argv[2] + "/other/x"):
    print("held", flush=True)
    sys.stdin.read()
"""
TRAINING = (
    "train-source --task tagger --init-from {0}/model --treebank train={0}/text.conllu --max-steps 2 "
    "--output {0}/out"
)
COMMANDS = {
    "predict": "predict --model {0}/model --input {0}/text.conllu --output {0}/out",
    "build-charts": "build-charts --sources {0}/model --text {0}/text.conllu --output {0}/out",
    "train-source": TRAINING,
}
OTHERS = {
    "transfer": "transfer --charts {0}/charts --output {0}/out",
    "vote": "vote --sources {0}/model --treebank test={0}/text.conllu --output {0}/out",
    "evaluate": "evaluate --model {0}/model --treebank test={0}/text.conllu --output {0}/out",
    "adapt": "adapt --taggers {0}/model --text {0}/text.conllu --output {0}/out",
    "learn-weights": "learn-weights --sources {0}/model --treebank train={0}/text.conllu --output {0}/out",
    "analyse": "analyse --sources {0}/model --treebank dev={0}/text.conllu --output {0}/out",
    "demo": "demo --output {0}/out",
    "show": "show {0}/text.conllu --output {0}/out",
    "card": "card {0}/out",
}


@pytest.fixture
def world(tmp_path) -> Path:
    model_of("tagger", 1).save_pretrained(tmp_path / "model")
    sentences = (
        ConlluSentence.from_words(row["words"], sent_id=row["sent_id"], columns={"upos": row["upos"]})
        for row in gold((3, 2, 4, 1))
    )
    write_conllu(sentences, tmp_path / "text.conllu")
    return tmp_path


def words(command: str, world: Path) -> list[str]:
    return command.format(world).split()


@contextmanager
def held(output: Path) -> Iterator[subprocess.Popen[str]]:
    """Run another process that owns an output."""
    command = [sys.executable, "-c", HOLDER, hf_xst.files.__file__, str(output)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def locks(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*lock*")]


def test_an_owned_output_is_refused_by_every_command(world, capsys):
    with held(world / "out") as process:
        before = sorted(world.rglob("*"))
        for name, command in {**COMMANDS, **OTHERS}.items():
            assert hf_xst_cli.main(words(command, world)) == 1, name
            message = capsys.readouterr().err
            assert f"hf-xst {name}: {world}/out is being written by hf-xst vote (process" in message
            assert f"process {process.pid} on" in message
        assert locks(world) == [".out.hf-xst-lock"]
        assert sorted(world.rglob("*")) == before


def test_an_output_of_a_killed_process_is_free(world, capsys):
    with held(world / "out") as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert locks(world) == [".out.hf-xst-lock"]
        (left,) = (world / "out").rglob("*.part")
        other = left.with_name(".hf_xst-0123456789abcdef.part")  # of another process
        other.write_text("other")
        assert hf_xst_cli.main(words(COMMANDS["build-charts"], world)) == 0
    assert locks(world) == []
    assert [*(world / "out").rglob("*.part")] == [other]


@pytest.mark.parametrize("path", ["out", "link", "./x/../out", "out/"])
def test_one_output_has_one_owner_by_all_its_names(tmp_path, path):
    (tmp_path / "x").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "out")
    with held(tmp_path / "out"), pytest.raises(ValueError, match="is being written"):
        with sole_owner(f"{tmp_path}/{path}", "predict"):
            pass
    with sole_owner(tmp_path / "out", "adapt"), sole_owner(f"{tmp_path}/{path}", "transfer"):
        assert locks(tmp_path) == [".out.hf-xst-lock"]
    assert locks(tmp_path) == []


def test_another_thread_is_no_owner(tmp_path):
    errors = []

    def take() -> None:
        try:
            with sole_owner(tmp_path / "out", "predict"):
                pass
        except ValueError as error:
            errors.append(str(error))

    with sole_owner(tmp_path / "out", "predict"):
        thread = threading.Thread(target=take)
        thread.start()
        thread.join()
    (error,) = errors
    assert f"process {os.getpid()} on" in error


def test_files_with_the_name_of_a_lock_survive(tmp_path):
    lock, other = tmp_path / ".out.hf-xst-lock", tmp_path / "notes"
    for path in (lock, other):
        path.write_text("my notes")
    with (
        pytest.raises(ValueError, match="exists and was not written by hf-xst"),
        sole_owner(lock.parent / "out", "x"),
    ):
        pass
    lock.unlink()
    lock.symlink_to(other)
    with pytest.raises(OSError, match="symbolic links"), sole_owner(lock.parent / "out", "x"):
        pass
    assert other.read_text() == "my notes"


def test_only_the_first_process_of_a_training_run_owns_its_output(world, monkeypatch, capsys):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setattr(console, "quiet", False)  # for the tests after this one
    with held(world / "out"):
        assert hf_xst_cli.main([*words(TRAINING, world), "--trainer", "x=1"]) == 1
    assert "is being written" not in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("end", [signal.SIGCONT, signal.SIGKILL])
def test_two_processes_on_one_output(world, capsys, name, end):
    """The first one is stopped while it owns the output; then it ends, or is killed and repeated."""
    command = words(COMMANDS[name], world)
    alone = [word.replace("/out", "/alone") for word in command]
    assert hf_xst_cli.main(alone) == 0
    lock = world / ".out.hf-xst-lock"
    with subprocess.Popen([sys.executable, "-m", "hf_xst", *command]) as process:
        while not (lock.exists() and lock.read_text()):
            assert process.poll() is None
            time.sleep(0.002)
        process.send_signal(signal.SIGSTOP)
        assert hf_xst_cli.main(command) == 1
        assert f"(process {process.pid} on" in capsys.readouterr().err
        process.send_signal(end)
        assert process.wait(100) == (0 if end == signal.SIGCONT else -end)
    if end == signal.SIGKILL:
        resume = ["--resume"] if name == "predict" else []
        assert hf_xst_cli.main([*command, *resume]) == 0
    assert locks(world) == []
    names = {"predict": "", "build-charts": "data/train-00000-of-00001.parquet"}
    file = names.get(name, "model.safetensors")
    assert (world / "out" / file).read_bytes() == (world / "alone" / file).read_bytes()
