"""Entry point of the command line, `hf-xst`: it answers `--help` without importing anything heavy.

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

    `resumes` says whether it goes on where it stopped when it is repeated; `first` is the flag that a person
    may leave out before the first word.
    """

    help: str
    module: str
    function: str
    arguments: str
    resumes: bool = False
    first: str | None = None


COMMANDS = {
    "demo": Command(
        "See the whole method run on invented languages (some minutes, nothing is downloaded).",
        "hf_xst.commands.demo",
        "demo",
        "DemoArguments",
    ),
    "train-source": Command(
        "Train a source model, a parser or a tagger, on a treebank.",
        "hf_xst.commands.train_source",
        "train_source",
        "TrainSourceArguments",
        resumes=True,
    ),
    "build-charts": Command(
        "Let source models read unlabelled sentences and write charts of allowed structures.",
        "hf_xst.commands.build_charts",
        "build_charts",
        "BuildChartsArguments",
        resumes=True,
    ),
    "learn-weights": Command(
        "Learn the weights of source models in the pool from a few labelled sentences.",
        "hf_xst.commands.learn_weights",
        "learn_weights_job",
        "LearnWeightsArguments",
    ),
    "vote": Command(
        "Combine source models without training: vote, opinion pools as they stand, truth inference.",
        "hf_xst.commands.vote",
        "vote",
        "VoteArguments",
    ),
    "analyse": Command(
        "Measure charts, pools and source models on sentences with gold.",
        "hf_xst.commands.analyse",
        "analyse",
        "AnalyseArguments",
    ),
    "transfer": Command(
        "Train a model for the new language on charts.",
        "hf_xst.commands.transfer",
        "transfer",
        "TransferArguments",
        resumes=True,
    ),
    "show": Command(
        "Show trees of a CoNLL-U file, or charts, in the terminal or as pictures.",
        "hf_xst.commands.show",
        "show",
        "ShowArguments",
        first="--input",
    ),
    "evaluate": Command(
        "Score a model or predictions on a treebank.",
        "hf_xst.commands.evaluate",
        "evaluate",
        "EvaluateArguments",
    ),
    "predict": Command(
        "Annotate sentences: CoNLL-U or text in; CoNLL-U, JSON lines or drawn trees out.",
        "hf_xst.commands.predict",
        "predict",
        "PredictArguments",
    ),
    "align-vectors": Command(
        "Bring word vectors into another language's space, or cut them to the words of a corpus.",
        "hf_xst.experiments.align_vectors",
        "align_vectors",
        "AlignVectorsArguments",
    ),
    "search": Command(
        "Search the learning rate and the pull of transfer at random on one development language.",
        "hf_xst.experiments.search",
        "search",
        "SearchArguments",
        resumes=True,
    ),
    "card": Command(
        "Write the card of a model or of charts from what its run has recorded.",
        "hf_xst.commands.card",
        "card",
        "CardArguments",
        first="--folder",
    ),
    "push": Command(
        "Put a model or charts on the Hub, after a search for what is private.",
        "hf_xst.commands.push",
        "push",
        "PushArguments",
        resumes=True,
        first="--folder",
    ),
    "space": Command(
        "See the method step by step in the browser, and share that as a Space.",
        "hf_xst.commands.space",
        "space",
        "SpaceArguments",
    ),
    "reproduce": Command(
        "Run an experiment of many cells, resumable, and write its table.",
        "hf_xst.experiments.reproduce",
        "reproduce",
        "ReproduceArguments",
        resumes=True,
    ),
    "report": Command(
        "Write an experiment's tables and plots again from its results, without any model.",
        "hf_xst.experiments.report.job",
        "report",
        "ReportArguments",
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return 0, 1 after a reported error, 130 if stopped; wrong usage exits with 2."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog="hf-xst",
        description="Parsers and taggers for languages without labelled data, from source models alone.",
        epilog="`hf-xst COMMAND --help` tells a command's options; a YAML file may stand in for flags. "
        "Where an error puzzles you, HF_XST_TRACEBACK=1 in the environment shows where it was raised.",
    )
    parser.add_argument("--version", action="version", version=f"hf-xst {version('hf_xst')}")
    listed = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        listed.add_parser(name, help=command.help, add_help=False)
    chosen = parser.parse_args(words[:1])
    try:
        from hf_xst.cli import run
    except KeyboardInterrupt:  # torch and its friends take some seconds
        sys.stderr.write("\nstopped\n")
        return 130
    return run(COMMANDS[chosen.command], chosen.command, _with_flag(COMMANDS[chosen.command], words[1:]))


def _with_flag(command: Command, words: list[str]) -> list[str]:
    """Put the flag of a command's first word before it, where a person has left it out."""
    bare = command.first and words and (words[0] == "-" or not words[0].startswith("-"))
    if not bare or words[0].endswith((".yaml", ".yml")):
        return words
    return [str(command.first), *words]


if __name__ == "__main__":
    sys.exit(main())
