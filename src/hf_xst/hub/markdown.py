"""Escape recorded names for Markdown, and reduce paths to their last part."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Collection
from typing import Any

from hf_xst.console import printable

_SPACES = re.compile(r"\s+")
_SPECIAL = re.compile(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])")
_TICKS = re.compile(r"`+")
_SEPARATOR = re.compile(r"([=,])")
_SLASHES = re.compile(r"[/\\]+")
_HOME = re.compile(r"(?:[A-Za-z]:)?[/\\](?:home|Users)[/\\][^/\\]+[/\\]?")
_SECRET = re.compile(r"(?P<key>[^=]*(?:token|secret|password)[^=]*)=.+", re.I)


class Markdown(str):
    """Text that is Markdown already and is not escaped again."""

    __slots__ = ()


def plain(text: object) -> Markdown:
    """Escape a text so that Markdown shows it literally, on one line."""
    line = _SPECIAL.sub(r"\\\g<0>", _one_line(str(text)))
    return Markdown(line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def code(text: object) -> Markdown:
    """Format a text as inline code."""
    content = _without_comments(_one_line(str(text)))
    fence = "`" * (_longest_ticks(content) + 1)
    space = " " if content.startswith("`") or content.endswith("`") or not content else ""
    return Markdown(f"{fence}{space}{content}{space}{fence}")


def cell(text: object) -> Markdown:
    """Format a text as code in a table cell, where a bar would end the cell."""
    return Markdown(code(text).replace("|", "\\|"))


def block(text: str, language: str = "") -> Markdown:
    """Format lines as a fenced block of code."""
    content = _without_comments(text).rstrip()
    fence = "`" * max(3, 1 + _longest_ticks(content))
    return Markdown(f"{fence}{language}\n{content}\n{fence}")


def to_markdown(value: Any) -> Markdown:
    """Format the value of a template expression; raise ValueError if it is None, NaN or infinite."""
    if isinstance(value, Markdown):
        return value
    if isinstance(value, bool):
        return Markdown("yes" if value else "no")
    if isinstance(value, int):
        return Markdown(f"{value:,}")
    if isinstance(value, float) and math.isfinite(value):
        return Markdown(f"{value:g}")
    if value is None or isinstance(value, float):
        raise ValueError(f"the value of a card's template is {value!r}; expected a fact")
    return plain(value)


def strip_paths(text: str, ids: Collection[str] = ()) -> str:
    """Reduce every path in an argument (`PATH`, `NAME=PATH`, `PATH,PATH`) to its last part.

    Known Hub ids are kept whole, with or without `@REVISION`.
    """
    if secret := _SECRET.fullmatch(text):
        return f"{secret['key']}=..."
    return "".join(_last_part(piece, ids) for piece in _SEPARATOR.split(text))


def strip_command(command: str, ids: Collection[str] = ()) -> str:
    """Return a command with every path reduced to its last part; see `strip_paths`."""
    return shlex.join(strip_paths(_one_line(word), ids) for word in shlex.split(command))


def _last_part(piece: str, ids: Collection[str]) -> str:
    if piece in ids or piece.rpartition("@")[0] in ids or not _SLASHES.search(piece):
        return piece
    if _HOME.fullmatch(piece):
        return "~"
    return _SLASHES.split(piece.rstrip("/\\"))[-1] or "."


def _one_line(text: str) -> str:
    return printable(_SPACES.sub(" ", text))


def _without_comments(text: str) -> str:
    """Break HTML comment marks, which could be taken for the marks of a section."""
    return text.replace("<!--", "<! --").replace("-->", "-- >")


def _longest_ticks(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)
