"""From words of a command line, or a YAML file, to a command's arguments, and from there to its function."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeVar

import yaml
from transformers import HfArgumentParser

Arguments = TypeVar("Arguments")


class Command(Protocol):
    """Where a command's function and arguments are."""

    @property
    def help(self) -> str:
        """What the command does, in a line."""

    @property
    def module(self) -> str:
        """The module of both."""

    @property
    def function(self) -> str:
        """The function's name."""

    @property
    def arguments(self) -> str:
        """The data class's name."""


def run(command: Command, name: str, words: Sequence[str]) -> int:
    """Run a command with its flags and return the exit status."""
    module: Any = import_module(command.module)
    arguments = parse(module.__dict__[command.arguments], f"hf-xst {name}", command.help, words)
    try:
        module.__dict__[command.function](arguments)
    except KeyboardInterrupt:
        sys.stderr.write("\nstopped; the same command goes on from here\n")
        return 130
    except (ValueError, OSError) as error:
        sys.stderr.write(f"hf-xst {name}: {error}\n")
        return 1
    return 0


def parse(kind: type[Arguments], program: str, description: str, words: Sequence[str]) -> Arguments:
    """Read a command's arguments.

    Args:
        kind: a data class.
        program: what the usage line calls the command.
        description: what the command does.
        words: flags; a first word that ends in .yaml or .yml is a file of them, and flags have the last word.
    """
    parser = HfArgumentParser(
        kind,  # type: ignore[arg-type]
        prog=program,
        usage=f"{program} [CONFIG.yaml] [--FLAG VALUE ...]",
        description=description,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    flags = list(words)
    if flags and flags[0].endswith((".yaml", ".yml")):
        try:
            flags = [*_flags_of(Path(flags[0])), *flags[1:]]
        except (OSError, ValueError) as error:
            parser.error(str(error))
    parsed: Arguments = parser.parse_args_into_dataclasses(args=flags)[0]
    return parsed


def _flags_of(path: Path) -> list[str]:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected a mapping of names to values, found {type(content).__name__}")
    flags: list[str] = []
    for name, value in content.items():
        if value is None:
            continue
        flags.append(f"--{name}")
        flags += _words_of(value)
    return flags


def _words_of(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [f"{key}={inner}" for key, inner in value.items()]
    if isinstance(value, list):
        return [str(inner) for inner in value]
    return [str(value)]
