"""Helpers of the tutorials: run commands as a shell does, and show them."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import hf_xst_cli


def run(command: str) -> None:
    """Show an `hf-xst` command and run it in this process; stop the tutorial if it fails.

    Args:
        command: The words after `hf-xst`.
    """
    sys.stderr.write(f"\n$ hf-xst {' '.join(command.split())}\n")
    if hf_xst_cli.main(shlex.split(command)):
        raise SystemExit(f"hf-xst {command.split()[0]} failed")


def say(text: str) -> None:
    """Print a message between two commands."""
    sys.stderr.write(f"\n{text}\n")


def tutorial(main: Callable[[int], object], about: str | None, folder: str, sentences: int) -> None:
    """Run a tutorial in the folder and with the number of sentences from the command line.

    Args:
        main: The tutorial, a function of the number of sentences that works in the current folder.
        about: Text of `--help`.
        folder: Default folder.
        sentences: Default number of sentences.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(folder), help="output folder")
    parser.add_argument(
        "sentences", nargs="?", type=int, default=sentences, help="sentences in each treebank"
    )
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with chdir(options.folder):
        main(options.sentences)
