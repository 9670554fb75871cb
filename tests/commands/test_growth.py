"""Neither memory nor the number of open files grows with the number of sentences.

HF_XST_SECONDS sets for how long each kind of work is repeated.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import psutil
import pytest
from transformers import pipeline

import hf_xst_cli
from helpers.small_models import UPOS, WORDS, model_of
from hf_xst.data import ConlluSentence, write_conllu

pytestmark = pytest.mark.slow
SECONDS = float(os.environ.get("HF_XST_SECONDS", "10"))
SENTENCES, MEGABYTE = 500, 1 << 20
COMMANDS = {
    "predict": "predict --model {0}/1 --input {0}/text.conllu --output {0}/out --overwrite",
    "build-charts": "build-charts --sources {0}/1 {0}/2 --text {0}/text.conllu --output {0}/out",
}


def endless() -> Iterator[ConlluSentence]:
    """Yield sentences of words that partly never come again, which a cache would keep."""
    draw = random.Random(0)
    while True:
        words = [draw.choice([*WORDS, f"{draw.getrandbits(64):x}"]) for _ in range(draw.randint(1, 20))]
        yield ConlluSentence.from_words(words, columns={"upos": draw.choices(UPOS, k=len(words))})


def by_command(name: str, folder: Path) -> Callable[[], None]:
    sentences = endless()

    def repeat() -> None:
        shutil.rmtree(folder / "out", ignore_errors=True)
        write_conllu(islice(sentences, SENTENCES), folder / "text.conllu")
        assert hf_xst_cli.main(COMMANDS[name].format(folder).split()) == 0

    return repeat


def by_pipeline(folder: Path) -> Callable[[], None]:
    trees = pipeline("dependency-parsing", model=str(folder / "1"))(endless())
    return lambda: sum(1 for _ in islice(trees, SENTENCES)) and None


@pytest.mark.parametrize("name", ["pipeline", *COMMANDS])
def test_memory_and_files_do_not_grow(tmp_path, capfd, name):
    for seed in (1, 2):
        model_of("parser", seed).save_pretrained(tmp_path / str(seed))
    repeat = by_pipeline(tmp_path) if name == "pipeline" else by_command(name, tmp_path)
    process, samples, begin = psutil.Process(), [], time.monotonic()
    while time.monotonic() - begin < SECONDS or len(samples) < 9:
        repeat()
        samples.append((process.memory_info().rss / MEGABYTE, process.num_fds()))
    memory, files = np.array(samples[len(samples) // 3 :]).T
    growth = np.polyfit(np.linspace(0, 1, len(memory)), memory, 1)[0]
    with capfd.disabled():
        sys.stdout.write(
            f"\n{name}: {len(samples) * SENTENCES:,} sentences in {time.monotonic() - begin:.0f} s; memory "
            f"{memory[0]:.1f} to {memory[-1]:.1f} MB, slope {1000 * growth / len(memory) / SENTENCES:.4f} MB "
            f"per 1000 sentences; open files {files[0]:.0f} to {files[-1]:.0f}\n"
        )
    assert growth < 20
    assert files.max() <= files[0]
