"""A study's YAML file, which may say only in what it differs from another one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

BASE, WITHOUT = "base", "without"


def read_config(path: Path, above: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Read a study's configuration, laid over its base.

    `base: FILE`, a path from this file's folder, takes over what FILE says; `without: [ENTRY, ...]` leaves
    some of its top-level entries out. What this file says beside is laid over that: mappings entry by entry,
    a list of names in place of a mapping keeps only the entries of these names, `null` takes an entry
    away, and anything else replaces what was there.

    Args:
        path: the file.
        above: files that stand on this one.

    Raises:
        ValueError: the file is no YAML mapping, files are each other's base, or entries are left out, kept or
            taken away that the base does not have.
    """
    path = path.resolve()
    if path in above:
        chain = " on ".join(each.name for each in (*above, path))
        raise ValueError(f"{path}: a study cannot stand on itself: {chain}")
    content = _mapping(path)
    base = content.pop(BASE, None)
    without = content.pop(WITHOUT, [])
    if base is None:
        if without:
            raise ValueError(f"{path}: found {WITHOUT} but no {BASE}; expected both, or neither")
        return content
    below = read_config(path.parent / str(base), (*above, path))
    _known(without, below, f"{path}: {WITHOUT}")
    kept = {name: entry for name, entry in below.items() if name not in without}
    return overlay(kept, content, str(path))


def overlay(base: Mapping[str, Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Lay what is given over a base; see `read_config`.

    Args:
        base: what holds where nothing is given.
        given: entries to change, add, keep or take away.
        where: the place that errors name.

    Raises:
        ValueError: entries are kept or taken away that the base does not have.
    """
    result = dict(base)
    for name, value in given.items():
        place = f"{where}: {name}"
        below = base.get(name)
        if value is None:
            _known([name], base, where)
            del result[name]
        elif isinstance(below, Mapping) and isinstance(value, Mapping):
            result[name] = overlay(below, value, place)
        elif isinstance(below, Mapping) and isinstance(value, list):
            _known(value, below, place)
            result[name] = {entry: below[entry] for entry in value}
        else:
            result[name] = value
    return result


def config_text(path: Path) -> str:
    """Return what is to be kept with results: the file's text, or all that it says together with its base."""
    text = path.read_text(encoding="utf-8")
    if BASE not in _mapping(path):
        return text
    return yaml.safe_dump(read_config(path), sort_keys=False, allow_unicode=True, width=110)


def _known(names: Any, entries: Mapping[str, Any], where: str) -> None:
    if not isinstance(names, list):
        raise ValueError(f"{where}: found {names!r}; expected a list of names")
    unknown = [str(name) for name in names if name not in entries]
    if unknown:
        there = ", ".join(map(str, entries))
        raise ValueError(f"{where}: the base has no {', '.join(unknown)}; it has {there}")


def _mapping(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(
            f"there is no study {path}; expected a YAML file such as configs/small.yaml"
        ) from None
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: no YAML: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(
            f"{path}: found {type(content).__name__}; expected a mapping with sources, targets, encoders and "
            "tasks"
        )
    return content
