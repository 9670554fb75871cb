"""The door of the command line, `hf-xst`: it answers `--help` without importing anything heavy.

It stands outside the package because importing the package brings torch and transformers with it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import NamedTuple


class Command(NamedTuple):
    """A command: its one-line help, the module and names of its function and arguments.

    `resumes` says whether it goes on where it stopped when it is repeated.
    """

    help: str
    module: str
    function: str
    arguments: str
    resumes: bool = False


COMMANDS = {
    "demo": Command(
        "See the whole method run on invented languages (some minutes, nothing is downloaded).",
        "hf_xst.demo.run",
        "demo",
        "DemoArguments",
    ),
    "train-source": Command(
        "Train a source model, a parser or a tagger, on a treebank.",
        "hf_xst.training.jobs.train_source",
        "train_source",
        "TrainSourceArguments",
        resumes=True,
    ),
    "build-charts": Command(
        "Let source models read unlabelled sentences and write charts of allowed structures.",
        "hf_xst.training.jobs.build_charts",
        "build_charts",
        "BuildChartsArguments",
        resumes=True,
    ),
    "vote": Command(
        "Combine source models without training: majority vote, or the pool as it stands.",
        "hf_xst.training.jobs.vote",
        "vote",
        "VoteArguments",
    ),
    "transfer": Command(
        "Train a model for the new language on charts.",
        "hf_xst.training.jobs.transfer",
        "transfer",
        "TransferArguments",
        resumes=True,
    ),
    "evaluate": Command(
        "Score a model or predictions on a treebank.",
        "hf_xst.training.jobs.evaluate",
        "evaluate",
        "EvaluateArguments",
    ),
    "predict": Command(
        "Annotate sentences: CoNLL-U or text in, CoNLL-U out.",
        "hf_xst.training.jobs.predict",
        "predict",
        "PredictArguments",
    ),
    "reproduce": Command(
        "Run an experiment of many cells, resumable, and write its table.",
        "hf_xst.experiments.reproduce",
        "reproduce",
        "ReproduceArguments",
        resumes=True,
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return 0, 1 after an error that was told, 130 if stopped; wrong usage exits with 2."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog="hf-xst",
        description="Parsers and taggers for languages without labelled data, from source models alone.",
        epilog="`hf-xst COMMAND --help` tells a command's options; a YAML file may stand in for flags.",
    )
    parser.add_argument("--version", action="version", version=f"hf-xst {version('hf_xst')}")
    listed = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        listed.add_parser(name, help=command.help, add_help=False)
    chosen = parser.parse_args(words[:1])
    from hf_xst.cli import run

    return run(COMMANDS[chosen.command], chosen.command, words[1:])


if __name__ == "__main__":
    sys.exit(main())
