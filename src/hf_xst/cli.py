"""From words of a command line, or a YAML file, to a command's arguments, and from there to its function."""

from __future__ import annotations

import argparse
import copy
import dataclasses
import inspect
import json
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeVar, get_origin, get_type_hints

import datasets
import huggingface_hub.utils
import torch.distributed
import transformers.utils.logging
import yaml
from transformers import HfArgumentParser

from hf_xst.console import ToldError, console

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

    @property
    def resumes(self) -> bool:
        """Whether the command, stopped and repeated, goes on where it stopped."""


def run(command: Command, name: str, words: Sequence[str]) -> int:
    """Run a command with its flags and return the exit status."""
    _be_quiet()
    try:
        module: Any = import_module(command.module)
        arguments = parse(module.__dict__[command.arguments], f"hf-xst {name}", command.help, words)
        module.__dict__[command.function](arguments)
    except KeyboardInterrupt:
        hint = "; the same command goes on from here" if command.resumes else ""
        sys.stderr.write(f"\nstopped{hint}\n")
        return 130
    except BrokenPipeError:  # whoever read our output has had enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError, ImportError, ToldError) as error:
        if os.environ.get("HF_XST_TRACEBACK"):
            traceback.print_exc()
        sys.stderr.write(f"hf-xst {name}: {error}\n")
        return 1
    finally:
        if torch.distributed.is_initialized():  # else one process in four aborts on its way out
            torch.distributed.destroy_process_group()
    return 0


def _be_quiet() -> None:
    """Keep the libraries' progress bars out of files, and all processes but the first one silent.

    That weights are read or written takes a moment, and is never worth a bar.
    """
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    if not console.is_terminal:
        datasets.disable_progress_bars()
        huggingface_hub.utils.disable_progress_bars()  # type: ignore[attr-defined]
    console.quiet = os.environ.get("RANK", "0") != "0"


def parse(kind: type[Arguments], program: str, description: str, words: Sequence[str]) -> Arguments:
    """Read a command's arguments.

    Args:
        kind: a data class.
        program: what the usage line calls the command.
        description: what the command does.
        words: flags; a first word that ends in .yaml or .yml is a file of them, and flags have the last word.
    """
    parser = HfArgumentParser(
        _groups(kind),  # type: ignore[arg-type]
        prog=program,
        usage=f"{program} [CONFIG.yaml] [--FLAG VALUE ...]",
        description=description,
        formatter_class=_Help,
        allow_abbrev=False,
    )
    flags = list(words)
    unknown = _unknown_flag(words, kind)
    if unknown is not None:  # before argparse asks for what it misses, which may be what is misspelt
        parser.error(_unknown(unknown, [f"--{name}" for name in _names(kind)]))
    twice = _given_twice(words, kind)
    if twice is not None:
        parser.error(f"{twice} is given twice; give it once, with all its values behind it")
    if flags and flags[0].endswith((".yaml", ".yml")):
        try:
            settings = _settings_of(Path(flags[0]), kind)
        except (OSError, ValueError, yaml.YAMLError) as error:
            parser.error(str(error))
        # What a flag cannot say, nothing and no entries, is said as a default.
        parser.set_defaults(**{name: value for name, value in settings.items() if value in (None, [], {})})
        flags = [*_flags_of(settings), *flags[1:]]
    *groups, left = parser.parse_args_into_dataclasses(
        args=flags, return_remaining_strings=True, look_for_args_file=False
    )
    if left and str(left[0]).endswith((".yaml", ".yml")):
        parser.error(f"found {left[0]} behind other words; a file that stands in for flags comes first")
    if left:
        parser.error(_unknown(str(left[0]), [f"--{name}" for name in _names(kind)]))
    return kind(**{name: value for group in groups for name, value in vars(group).items()})


def _unknown_flag(words: Sequence[str], kind: type[Any]) -> str | None:
    """Return a flag that the command does not have."""
    known = {"help", *_names(kind)}
    for word in words:
        flag = word.partition("=")[0]
        name = flag.removeprefix("--").replace("-", "_")
        if flag.startswith("--") and name and name not in known and name.removeprefix("no_") not in known:
            return flag
    return None


def _given_twice(words: Sequence[str], kind: type[Any]) -> str | None:
    """Return a flag of several values that occurs twice: the first ones would be lost without a word."""
    lists = {name for name, found in get_type_hints(kind).items() if get_origin(found) is list}
    flags = [word.partition("=")[0] for word in words if word.startswith("--")]
    names = [flag.removeprefix("--").replace("-", "_") for flag in flags]
    return next((flags[i] for i, name in enumerate(names) if name in lists and name in names[:i]), None)


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """Help that shows each flag once, and a default only where it says something."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.nargs == 0 and action.const is False:
            return f"The opposite of --{action.dest.replace('_', '-')}."
        text = (action.help or "").replace("%", "%%")
        if action.required:
            return f"{text} (needed)"
        says_nothing = action.default in (None, [], False, argparse.SUPPRESS)
        return text if says_nothing else f"{text} (default: %(default)s)"

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or "-h" in action.option_strings:
            return super()._format_action_invocation(action)
        flag = action.option_strings[-1]
        if action.nargs in (0, "?"):
            return flag
        return f"{flag} {self._format_args(action, action.dest.upper())}"


def _groups(kind: type[Any]) -> list[type[Any]]:
    """Cut a data class into one for each class that it is made of, so that the help shows groups."""
    types = get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    owner: dict[str, type] = {}
    for base in reversed(kind.__mro__):
        for name in inspect.get_annotations(base):
            if name in fields:
                owner.setdefault(name, base)
    groups = []
    for base in kind.__mro__:
        own = [(name, types[name], copy.copy(fields[name])) for name in fields if owner[name] is base]
        if own:
            title = (inspect.getdoc(base) or base.__name__).splitlines()[0].rstrip(".")
            space = {"_argument_group_name": title}
            groups.append(dataclasses.make_dataclass(base.__name__, own, kw_only=True, namespace=space))
    return groups


def _names(kind: type[Any]) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]


def _unknown(found: str, known: Iterable[str]) -> str:
    near = get_close_matches(found, list(known), n=1)
    return f"there is no {found}" + (f"; is {near[0]} meant?" if near else "")


def _settings_of(path: Path, kind: type[Any]) -> dict[str, Any]:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected a mapping of names to values, found {type(content).__name__}")
    settings = {str(name).replace("-", "_"): value for name, value in content.items()}
    known = _names(kind)
    for name in settings:
        if name not in known:
            hint = f"; if it is a study, say --config {path}" if "config" in known else ""
            raise ValueError(f"{path}: {_unknown(name, known)} (there are {', '.join(known)}){hint}")
    return settings


def _flags_of(settings: Mapping[str, Any]) -> Iterator[str]:
    for name, value in settings.items():
        if value in (None, [], {}):
            continue
        if isinstance(value, (dict, list)):
            yield from (f"--{name}", *_words_of(value))
        else:
            yield f"--{name}={_word(value)}"


def _words_of(value: dict[str, Any] | list[Any]) -> list[str]:
    if isinstance(value, dict):
        return [f"{key}={_word(inner)}" for key, inner in value.items()]
    return [_word(inner) for inner in value]


def _word(value: Any) -> str:
    # JSON is how key_values reads values, and how argparse wants truth values, null and numbers.
    return value if isinstance(value, str) else json.dumps(value, default=str)
