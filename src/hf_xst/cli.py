"""Read a command's options from flags and YAML into its data class, and run the command."""

from __future__ import annotations

import argparse
import ctypes
import dataclasses
import inspect
import io
import json
import logging
import os
import re
import sys
import traceback
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, get_args, get_origin, get_type_hints

import datasets
import huggingface_hub.utils
import transformers.utils.logging
import yaml

from hf_xst.console import console, did_you_mean, printable
from hf_xst.remote import explain_os_error

if TYPE_CHECKING:
    from hf_xst_cli import Command

Options = TypeVar("Options")
_MAX_MESSAGE = 2000
_HOME = re.compile("(?:^|(?<=[=,]))~(?=/|$)")
_format_warning = warnings.formatwarning
_EXPECTED = (ValueError, ImportError, RuntimeError)  # with a message that says what to do
_NO_MEMORY = re.compile("MemoryError|out of memory|allocate memory")


def run(name: str, command: Command, words: Sequence[str]) -> int:
    """Run a command with the words behind its name; return the exit status."""
    _quiet_libraries()
    _keep_freed_memory()
    if isinstance(sys.stdout, io.TextIOWrapper):  # words and trees of any language, whatever the locale
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        identifier = name.replace("-", "_")
        module = vars(import_module(f"hf_xst.commands.{identifier}"))
        kind = module[f"{name.title().replace('-', '')}Arguments"]
        module[identifier](parse(kind, f"hf-xst {name}", command.help, words, command.positional))
        sys.stdout.flush()
    except KeyboardInterrupt:
        hint = "; run the same command again to resume" if command.resumes else ""
        sys.stderr.write(f"\nstopped{hint}\n")
        return 130
    except BrokenPipeError:  # the reader of our output has closed it, as `head` does
        return 1
    except Exception as error:
        if os.environ.get("HF_XST_TRACEBACK"):
            sys.stderr.write(printable(traceback.format_exc(), "\n"))
        sys.stderr.write(f"hf-xst {name}: {explain(error)}\n")
        return 1
    finally:
        try:
            sys.stdout.flush()
        except OSError:  # reported above; Python would report it again at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def explain(error: Exception) -> str:
    """Return one line of limited length that says what is wrong, where, and what to do if that is known."""
    if isinstance(error, OSError) and str(error):
        message = explain_os_error(error)
    elif _NO_MEMORY.search(f"{type(error).__name__} {error}") and not isinstance(error, ValueError):
        message = f"{str(error) or 'out of memory'}; lower the batch size, or the longest length of sentences"
    elif isinstance(error, RecursionError):
        message = f"an input is nested too deeply ({error})"
    elif isinstance(error, _EXPECTED) and str(error):
        message = str(error)
    else:
        message = f"unexpected {type(error).__name__}: {error}; is an input damaged, or of another version? "
        message += "HF_XST_TRACEBACK=1 shows where it was raised"
    line = printable(" ".join(message.split()))
    half = _MAX_MESSAGE // 2
    return line if len(line) <= _MAX_MESSAGE else f"{line[:half]} ... {line[-half:]}"


def _quiet_libraries() -> None:
    """Keep progress bars out of redirected output, and every process but the first silent."""
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    if not console.is_terminal:
        datasets.disable_progress_bars()
        huggingface_hub.utils.disable_progress_bars()  # type: ignore[attr-defined]
    console.quiet = os.environ.get("RANK", "0") != "0"
    logging.setLogRecordFactory(_Record)
    warnings.formatwarning = lambda *args, **options: printable(_format_warning(*args, **options), "\n")


def _keep_freed_memory() -> None:
    """Let glibc keep up to 256 MB of freed memory for the next batch, as new pages are slow.

    Settings of the user have precedence.
    """
    if sys.platform != "linux" or any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:  # not in musl
        mallopt(-1, 256 << 20)  # M_TRIM_THRESHOLD
        mallopt(-3, 32 << 20)  # M_MMAP_THRESHOLD, at its upper limit: larger blocks are returned at once


class _Record(logging.LogRecord):
    """A record of any library whose message is printable."""

    def getMessage(self) -> str:  # noqa: N802
        return printable(super().getMessage(), "\n\t")


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are printable."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


def parse(
    kind: type[Options], program: str, description: str, words: Sequence[str], positional: str | None = None
) -> Options:
    """Parse flags into a data class, and a YAML file that may precede them; wrong usage exits with 2.

    Fields may be `str`, `int`, `float`, `bool`, `Literal`, or lists, and optional; their metadata holds the
    help, and the class that declares them is their group. A first word without a flag sets `positional`.
    """
    first = f" [{positional.upper()}]" if positional else ""
    parser = _Parser(
        prog=program,
        usage=f"{program} [CONFIG.yaml]{first} [--FLAG VALUE ...]",
        description=description,
        formatter_class=_HelpFormatter,
        allow_abbrev=False,
    )
    options = _add_options(parser, kind)
    try:
        flags = _normalise(words, options)
        if flags and flags[0].endswith((".yaml", ".yml")):
            flags[:1] = _read_yaml(Path(flags[0]), options)
        elif positional and flags and (flags[0] == "-" or not flags[0].startswith("-")):
            flags.insert(0, f"--{positional.replace('_', '-')}")
    except (OSError, ValueError) as error:
        parser.error(explain(error))
    namespace, rest = parser.parse_known_args(flags)
    if rest:
        hint = "; a YAML file must come first" if rest[0].endswith((".yaml", ".yml")) else ""
        parser.error(f"unexpected {rest[0]}{hint}")
    return kind(**vars(namespace))


def _add_options(parser: argparse.ArgumentParser, kind: type[Any]) -> dict[str, argparse.Action]:
    """Add a flag for each field with help, in one group for each class; return the actions by flag."""
    types = get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind) if "help" in field.metadata}
    owners = {name: base for base in kind.__mro__ for name in inspect.get_annotations(base)}
    options = {}
    for base in kind.__mro__:
        names = [name for name in fields if owners[name] is base]
        if names:
            group = parser.add_argument_group((inspect.getdoc(base) or "").partition("\n")[0].rstrip("."))
            for name in names:
                flag = f"--{name.replace('_', '-')}"
                options[flag] = group.add_argument(flag, **_settings(fields[name], types[name]))
    return options


def _settings(field: dataclasses.Field[Any], kind: Any) -> dict[str, Any]:
    """Return the arguments of `add_argument` for a field of this type."""
    settings: dict[str, Any] = {"help": field.metadata["help"], "default": field.default}
    if field.default_factory is not dataclasses.MISSING:
        settings["default"] = field.default_factory()
    elif field.default is dataclasses.MISSING:
        settings |= {"default": None, "required": True}
    if NoneType in get_args(kind):
        kind = get_args(kind)[0]
    if get_origin(kind) is list:
        kind = get_args(kind)[0]
        settings["nargs"] = "*"
    if get_origin(kind) is Literal:
        return settings | {"choices": get_args(kind)}
    if kind is bool:
        return settings | {"nargs": "?", "const": True, "type": _boolean}
    return settings | {"type": _expanded if kind is str else kind}


def _expanded(text: str) -> str:
    """Replace `~`, which shells keep in `--flag=~/x`, by the home folder."""
    return _HOME.sub(lambda _: str(Path("~").expanduser()), text)


def _boolean(text: str) -> bool:
    if text.lower() in ("true", "yes", "on", "1"):
        return True
    if text.lower() in ("false", "no", "off", "0"):
        return False
    raise argparse.ArgumentTypeError(f"expected true or false, found {text!r}")


def _normalise(words: Sequence[str], options: Mapping[str, argparse.Action]) -> list[str]:
    """Spell flags with hyphens and `--no-FLAG` as `--FLAG=false`; check what argparse does not."""
    normal: list[str] = []
    seen: set[str] = set()
    for word in words:
        flag, equals, value = word.partition("=")
        if not flag.startswith("--") or flag == "--":
            normal.append(word)
            continue
        flag = flag.replace("_", "-")
        positive = flag.replace("--no-", "--", 1)
        if not equals and flag not in options and positive in options and options[positive].nargs == "?":
            flag, equals, value = positive, "=", "false"
        if flag not in (*options, "--help"):
            raise ValueError(f"unknown flag {flag}{did_you_mean(flag, options)}")
        if flag in seen and options[flag].nargs == "*":
            raise ValueError(f"{flag} was passed twice; pass it once, followed by all its values")
        seen.add(flag)
        normal.append(f"{flag}{equals}{value}")
    return normal


def _read_yaml(path: Path, options: Mapping[str, argparse.Action]) -> list[str]:
    """Return a file's options as words; null becomes the option's default.

    Scalars keep their text, so that `no` and `1.10` can be language codes and revisions.
    """
    with path.open("rb") as stream:  # not its text, so that errors name the file
        try:
            root = yaml.compose(stream, Loader=yaml.SafeLoader)
        except (yaml.YAMLError, RecursionError) as error:
            raise ValueError(f"{path} is not valid YAML: {error}") from error
    if not isinstance(root, yaml.MappingNode):
        raise ValueError(f"{path}: expected a mapping of option names to values")
    words: dict[str, list[str]] = {}
    for key, node in root.value:
        flag = f"--{_text(key).replace('_', '-')}"
        if flag not in options:
            raise ValueError(f"{path}: unknown option {_text(key)}{did_you_mean(flag, options)}")
        if flag in words:
            raise ValueError(f"{path}: duplicate option {key.value}")
        if node.tag == "tag:yaml.org,2002:null":
            options[flag].default, words[flag] = None, []
        elif isinstance(node, yaml.ScalarNode):
            words[flag] = [f"{flag}={node.value}"]
        elif options[flag].nargs != "*":
            raise ValueError(f"{path}: {key.value} takes a single value")
        elif isinstance(node, yaml.MappingNode):
            words[flag] = [flag, *(f"{name.value}={_text(value)}" for name, value in node.value)]
        else:
            words[flag] = [flag, *(_text(value) for value in node.value)]
    return [word for option in words.values() for word in option]


def _text(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        return str(node.value)
    return json.dumps(yaml.safe_load(yaml.serialize(node)), default=str)


class _HelpFormatter(argparse.HelpFormatter):
    """Show each flag once, and only defaults that carry information."""

    def _expand_help(self, action: argparse.Action) -> str:
        if action.required:
            return f"{action.help} (required)"
        if action.default in (None, [], argparse.SUPPRESS) or action.default is False:
            return str(action.help)
        default = " ".join(map(str, action.default)) if isinstance(action.default, list) else action.default
        return f"{action.help} (default: {default})"

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if action.nargs == 0:
            return super()._format_action_invocation(action)
        flag = action.option_strings[0]
        if action.type is _boolean:
            return f"{flag}, --no-{flag[2:]}" if action.default else flag
        return f"{flag} {self._format_args(action, flag[2:].upper())}"
