"""Run every command that several processes share.

Tests call `run_all`, `torchrun` starts this file; started with a port, it divides itself into two processes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import hf_xst_cli
from hf_xst.inference import annotation
from hf_xst.sources.building import build_shards

LOOP = ["--max-steps", "2", "--batch-size", "4", "--learning-rate", "0.001"]


def run_all(world: Path, output: Path) -> None:
    """Run the commands over the models and sentences in `world`.

    Raises:
        RuntimeError: a command fails.
    """
    assert build_shards.__kwdefaults__ is not None
    # Two shards or blocks for two processes, and one for both together
    build_shards.__kwdefaults__["shard_size"] = annotation.BLOCK = 4
    parsers = ["--sources", f"one={world}/parser1", f"two={world}/parser2"]
    gold, small = ["--treebank", f"test={world}/gold.conllu", "--split", "test"], ["--batch-words", "12"]
    tagger = ["--tagger", f"{world}/tagger1"]
    text = ["--text", f"{world}/text.conllu"]
    commands = {
        "build-charts": [
            *parsers,
            *text,
            "--preset",
            "recommended",
            *small,
            *tagger,
        ],
        "vote": [*parsers, *gold, *small],
        "evaluate": ["--model", f"{world}/parser1", *gold, *tagger],
        "analyse": [*parsers, *gold, *small, "--no-plots"],
        "learn-weights": [*parsers, *gold, *small],
        "adapt": [
            *(*text, "--gold", f"{world}/gold.conllu"),
            *("--taggers", f"a={world}/tagger1", f"b={world}/tagger2"),
            *("--parsers", *parsers[1:], *LOOP),
        ],
    }
    for name, words in commands.items():
        _run(name, *words, "--output", str(output / name))
    _run("vote", *parsers, *text, *small, *tagger, "--output", str(output / "vote-text"))
    predicted = str(output / "predicted.conllu.gz")
    _run("predict", "--model", f"{world}/parser1", "--input", f"{world}/text.conllu", "--output", predicted)


def _run(*words: str) -> None:
    if hf_xst_cli.main(words):
        raise RuntimeError(f"failed: {' '.join(words)}")


def main(world: str, output: str, port: str = "") -> int:
    """Run all commands, in two processes if a port for them is given, and return an exit status."""
    other = os.fork() if port else 0  # all is imported once
    if port:
        os.environ |= {
            "WORLD_SIZE": "2",
            "LOCAL_WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
        }
        os.environ |= dict.fromkeys(("RANK", "LOCAL_RANK"), "0" if other else "1")
    run_all(Path(world), Path(output))
    return os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]) if other else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
