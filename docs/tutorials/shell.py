"""What the tutorials share: they run commands as a shell would, and show them."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import hf_xst_cli


def run(command: str) -> None:
    """Show a command and run it in this process; where it fails, the tutorial ends.

    Args:
        command: what stands behind `hf-xst` in a shell.
    """
    sys.stderr.write(f"\n$ hf-xst {' '.join(command.split())}\n")
    if hf_xst_cli.main(shlex.split(command)):
        raise SystemExit(f"hf-xst {command.split()[0]} failed")


def say(text: str) -> None:
    """Tell the reader something between two commands."""
    sys.stderr.write(f"\n{text}\n")


def tutorial(main: Callable[[int], object], about: str | None, folder: str, sentences: int) -> None:
    """Run a tutorial in the folder and with the number of sentences that the command line names.

    Args:
        main: the tutorial; it takes the number of sentences, and works in the current folder.
        about: what `--help` tells.
        folder: where it works by default.
        sentences: of each treebank, by default.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(folder), help="where all is written")
    parser.add_argument("sentences", nargs="?", type=int, default=sentences, help="of each treebank")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with chdir(given.folder):
        main(given.sentences)
