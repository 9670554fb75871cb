"""Declare options, and read and write records: data classes as JSON, checked against their types."""

from __future__ import annotations

import dataclasses
import json
import os
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml

from hf_xst.files import write_text

Record = TypeVar("Record")


def option(help_text: str, default: Any = None) -> Any:
    """Declare an option of commands: a field with its help text."""
    if isinstance(default, list):
        return dataclasses.field(default_factory=lambda: list(default), metadata={"help": help_text})
    return dataclasses.field(default=default, metadata={"help": help_text})


def required(help_text: str) -> Any:
    """Declare a required option."""
    return dataclasses.field(metadata={"help": help_text})


def checked_options(options: Record) -> Record:
    """Return the options of a command, with paths as text, and tuples and NumPy numbers as those of Python.

    Raises:
        ValueError: an option has another type than declared, or a text is empty or no Unicode.
    """
    types_of = get_type_hints(type(options))

    def plain(value: Any, name: str) -> Any:
        value = value.tolist() if hasattr(value, "tolist") else value
        if isinstance(value, (list, tuple)):
            return [plain(each, name) for each in value]
        text = os.fspath(value) if isinstance(value, os.PathLike) else value
        if text == "":
            raise ValueError(f"{name} is empty: leave it out, or give a value (is a shell variable unset?)")
        if isinstance(text, str) and any("\ud800" <= mark <= "\udfff" for mark in text):
            raise ValueError(f"{name} is {text!r}, not UTF-8: rename the file, or set a UTF-8 locale")
        return text

    values = {name: checked(types_of[name], plain(each, name), name) for name, each in vars(options).items()}
    return type(options)(**values)


def write_json(path: Path, content: Any) -> None:
    """Write a mapping, a list or a data class to a JSON file."""
    text = json.dumps(content, indent=1, ensure_ascii=False, default=dataclasses.asdict)
    write_text(path, f"{text}\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds a mapping; raise ValueError if it is not JSON or holds something else."""
    return _read_mapping(path, "JSON", json.loads)


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file that holds a mapping, as `read_json` does."""
    return _read_mapping(path, "YAML", yaml.safe_load)


def _read_mapping(path: Path, language: str, parse: Callable[[str], Any]) -> dict[str, Any]:
    try:
        content = parse(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise ValueError(f"{path} is not valid {language}: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected a mapping, found {type(content).__name__}")
    return content


def read_record(kind: type[Record], path: Path, expected: int) -> Record:
    """Read a record from a JSON file; raise ValueError if it is broken, or not of the expected format."""
    content, where = read_json(path), str(path)
    check_format(content, expected, where)
    return from_mapping(kind, content, where)


def check_format(content: Mapping[str, Any], expected: int, where: str) -> None:
    """Raise ValueError unless a record has the expected format version."""
    version = content.get("format_version")
    if type(version) is not int or version < 1:
        raise ValueError(f"{where}: missing field format_version")
    if version != expected:
        remedy = "update it" if version > expected else "repeat the command that made it"
        raise ValueError(f"{where} has format {version}; this package reads format {expected}; {remedy}")


def from_mapping(kind: type[Record], content: Mapping[str, Any], where: str) -> Record:
    """Make a record from a mapping; fields with defaults may be missing. `where` names it in messages.

    Raises:
        ValueError: a field is unknown, missing, of another type, or refused by the data class.
    """
    types_of = get_type_hints(kind)
    fields: dict[str, dataclasses.Field[Any]] = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(content) - set(fields))
    if unknown:
        raise ValueError(f"{where}: unknown field {', '.join(unknown)}; expected {', '.join(fields)}")
    missing = [
        name
        for name, field in fields.items()
        if name not in content
        and field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise ValueError(f"{where}: missing field {', '.join(missing)}")
    values = {name: checked(types_of[name], value, f"{where}: {name}") for name, value in content.items()}
    try:
        return kind(**values)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def checked(expected: Any, value: Any, where: str) -> Any:
    """Return a value of the expected type, nested records included."""
    origin, arguments = get_origin(expected), get_args(expected)
    if origin in (Union, types.UnionType):
        (expected,) = (each for each in arguments if each is not type(None))
        return None if value is None else checked(expected, value, where)
    if expected is Any or (origin is Literal and value in arguments):
        return value
    if isinstance(value, Mapping):
        if dataclasses.is_dataclass(expected):
            return from_mapping(expected, value, where)  # type: ignore[arg-type]
        if origin in (dict, Mapping):
            return {key: checked(arguments[1], each, f"{where}.{key}") for key, each in value.items()}
    if origin is list and isinstance(value, list):
        return [checked(arguments[0], each, where) for each in value]
    if origin is None and _is_instance(value, expected):
        return value
    name = expected.__name__ if origin is None else str(expected)
    if origin is Literal:
        name = " or ".join(map(repr, arguments))
    raise ValueError(f"{where} is {str(value)[:80]!r}; expected {name}")


def _is_instance(value: Any, expected: type) -> bool:
    if isinstance(value, bool):
        return expected is bool
    return isinstance(value, (int, float) if expected is float else expected)
