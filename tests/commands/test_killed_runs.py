"""A command that is killed at random moments and repeated gives the bytes of an undisturbed run.

HF_XST_KILLS sets the number of kills of each command.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import re
import shutil
import sys
import time
from pathlib import Path

import pytest

import hf_xst_cli
from helpers.small_models import gold, model_of
from hf_xst.data import ConlluSentence, write_conllu
from hf_xst.inference import annotation
from hf_xst.sources import building

pytestmark = pytest.mark.slow
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    ["hf_xst.commands.adapt", "hf_xst.commands.predict"]
)  # whose import takes seconds
KILLS = int(os.environ.get("HF_XST_KILLS", "2"))
SOURCES = "a={0}/parser1 b={0}/parser2"
TEXT = "--text {0}/text.conllu"
BANKS = "--treebank train={0}/text.conllu --dev-treebank dev={0}/text.conllu"
COMMANDS = {
    "build-charts": f"build-charts --sources {SOURCES} {TEXT} --batch-words 6",
    "train-source": f"train-source --task tagger --init-from {{0}}/tagger1 {BANKS} --batch-size 9 --epochs 4",
    "transfer": "transfer --charts {0}/charts --batch-size 9 --max-steps 12 --eval-every 3",
    "predict": "predict --model {0}/parser1 --input {0}/text.conllu --tagger none --batch-words 6 "
    "--overwrite",
    "adapt": f"adapt --taggers a={{0}}/tagger1 b={{0}}/tagger2 --parsers {SOURCES} {TEXT} --max-steps 6",
}
DURATIONS = re.compile(rb' *"eval_(runtime|samples_per_second|steps_per_second)": [0-9.e-]+,?\n')


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make two taggers, two parsers, a text with gold, and charts."""
    folder = tmp_path_factory.mktemp("world")
    for kind in ("tagger", "parser"):
        for seed in (1, 2):
            model_of(kind, seed).save_pretrained(folder / f"{kind}{seed}")
    sentences = [
        ConlluSentence.from_words(
            row["words"],
            sent_id=row["sent_id"],
            columns={name: [*map(str, row[name])] for name in ("upos", "head", "deprel")},
        )
        for row in gold([1 + index % 5 for index in range(40)])
    ]
    write_conllu(sentences, folder / "text.conllu")
    assert run("build-charts", folder, folder / "charts")[0] == 0
    return folder


def run(name: str, world: Path, output: Path, limit: float | None = None) -> tuple[int | None, float]:
    """Run a command in its own process; kill it `limit` seconds after it began to own its output.

    Returns:
        its exit status, and the seconds for which it owned the output.
    """
    words = [*COMMANDS[name].format(world).split(), "--output", str(output)]
    if output.with_name(f"{output.stem}.part{output.suffix}.json").exists():
        words.append("--resume")
    lock = output.with_name(f".{output.name}.hf-xst-lock")
    killed = lock.read_text() if lock.exists() else ""  # written by a killed process
    process = PROCESSES.Process(target=execute, args=(words,))
    process.start()
    while process.is_alive() and not (lock.exists() and lock.read_text() not in ("", killed)):
        time.sleep(0.001)
    begin = time.monotonic()
    process.join(limit)
    process.kill()
    process.join()
    return process.exitcode, time.monotonic() - begin


def execute(words: list[str]) -> None:
    """Run a command that saves its progress every few sentences."""
    annotation.BLOCK = 3
    building.build_shards.__kwdefaults__["shard_size"] = 5
    sys.exit(hf_xst_cli.main(words))


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files; only durations are left out."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): DURATIONS.sub(b"", path.read_bytes()) for path in files}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_killed_command_gives_the_same_result(world, tmp_path, name):
    folder = tmp_path / "runs"
    output = folder / ("out.conllu" if name == "predict" else "out")
    status, duration = run(name, world, output)
    assert status == 0
    wanted, draw, kills = contents(folder), random.Random(f"{name} {KILLS}"), 0
    while kills < KILLS:
        shutil.rmtree(folder)
        for _ in range(draw.randint(1, 3)):
            status, _ = run(name, world, output, draw.uniform(0, duration))
            kills += status == -9
            assert status in (0, -9)
        assert run(name, world, output)[0] == 0
        found = contents(folder)
        assert found.keys() == wanted.keys()
        assert [key for key in wanted if found[key] != wanted[key]] == []
