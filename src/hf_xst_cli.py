"""Entry point of `hf-xst`; stays outside the package, whose import loads torch, so that `--help` is fast."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple


class Command(NamedTuple):
    """A command, implemented by the function and module of its name in `hf_xst.commands`."""

    help: str
    resumes: bool = False  # running a stopped command again continues it
    positional: str | None = None  # the option that a first word without a flag sets


GROUPS = {
    "Use a model": {
        "predict": Command("Annotate sentences with a model."),
        "evaluate": Command("Score a model, or a file of predictions, on a treebank."),
        "show": Command("Draw trees of a CoNLL-U file, or charts.", positional="input"),
    },
    "Make a model for a language without labelled data": {
        "demo": Command("Run the whole method on invented languages in minutes.", resumes=True),
        "adapt": Command("Make a tagger and a parser from text and sources.", resumes=True),
        "build-charts": Command("Make charts for unlabelled sentences from source models.", resumes=True),
        "transfer": Command("Train a target model on charts.", resumes=True),
    },
    "Share a source, a model or charts": {
        "train-source": Command("Train a parser or a tagger on a treebank.", resumes=True),
        "card": Command("Write the card of a model or of charts.", positional="folder"),
        "push": Command("Push a model or charts to the Hub.", resumes=True, positional="folder"),
        "space": Command("Show the method step by step in the browser, or as a Space."),
    },
    "Research": {
        "vote": Command("Combine source models without training."),
        "learn-weights": Command("Learn the weights of sources from a few labelled sentences."),
        "analyse": Command("Measure charts, pools and sources on sentences with gold."),
    },
}
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return 0, or 1 after an error, 2 after wrong usage, 130 if interrupted."""
    for stream, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, stream) is None:  # closed by the caller
            setattr(sys, stream, Path(os.devnull).open(mode))
    name, *words = list(sys.argv[1:] if argv is None else argv) or [""]
    if name in ("-h", "--help", "--version"):
        sys.stdout.write(f"hf-xst {version('hf_xst')}\n" if name == "--version" else _overview())
        return 0
    if name not in COMMANDS:
        near = get_close_matches(name, COMMANDS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        shown = name if name.isprintable() else ascii(name)
        sys.stderr.write(f"hf-xst: unknown command {shown}{hint}\n" if name else _overview())
        return 2
    try:
        from hf_xst.cli import run  # takes seconds, because it imports torch
    except KeyboardInterrupt:
        sys.stderr.write("\nstopped\n")
        return 130
    return run(name, COMMANDS[name], words)


def _overview() -> str:
    lines = ["usage: hf-xst [--help] [--version] COMMAND [CONFIG.yaml] [--FLAG VALUE ...]", ""]
    lines += ["Parsers and taggers for languages without labelled data, from trained models.", ""]
    for title, commands in GROUPS.items():
        lines += [f"{title}:", *(f"  {name:14}{command.help}" for name, command in commands.items())]
    lines += ["", "`hf-xst COMMAND --help` lists its options; a YAML file can hold them, too."]
    return "\n".join([*lines, "Set HF_XST_TRACEBACK=1 to see where an error was raised.\n"])


if __name__ == "__main__":
    sys.exit(main())
