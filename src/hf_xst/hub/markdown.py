"""From recorded facts to Markdown: whatever a name holds, it stays a name; paths become their last part."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Collection
from typing import Any

from hf_xst.drawing.script import printable

_SPACES = re.compile(r"\s+")
_SPECIAL = re.compile(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_TICKS = re.compile(r"`+")
_SEPARATOR = re.compile(r"([=,])")
_PARTS = re.compile(r"[/\\]+")
_HOME = re.compile(r"(?:[A-Za-z]:)?[/\\](?:home|Users)[/\\][^/\\]+[/\\]?")
_SECRET = re.compile(r"(?P<key>[^=]*(?:token|secret|password)[^=]*)=.+", re.I)


class Markdown(str):
    """Text that is Markdown already."""

    __slots__ = ()


def plain(text: object) -> Markdown:
    """Write a text so that Markdown shows it as it is, on one line."""
    line = _one_line(str(text))
    marked = _SPECIAL.sub(lambda found: f"\\{found[0]}", line)
    return Markdown("".join(_ENTITIES.get(letter, letter) for letter in marked))


def code(text: object) -> Markdown:
    """Write a text as code within a line."""
    content = _one_line(str(text)).replace("<!--", "<! --").replace("-->", "-- >")
    longest = max(map(len, _TICKS.findall(content)), default=0)
    fence = "`" * (longest + 1)
    space = " " if content.startswith("`") or content.endswith("`") or not content else ""
    return Markdown(f"{fence}{space}{content}{space}{fence}")


def cell(text: object) -> Markdown:
    """Write a text as code in a cell of a table, where a bar would end the cell."""
    return Markdown(code(text).replace("|", "\\|"))


def block(text: str, language: str = "") -> Markdown:
    """Write lines of code as a block of their own."""
    content = text.replace("<!--", "<! --").replace("-->", "-- >").rstrip()
    fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(content)), default=0))
    return Markdown(f"{fence}{language}\n{content}\n{fence}")


def score(value: float) -> Markdown:
    """Write a score in percent."""
    return Markdown(f"{value:.2f}")


def shown(value: Any) -> Markdown:
    """Write any value that a template puts out.

    Raises:
        ValueError: it is nothing, or no finite number: a card never says so.
    """
    if isinstance(value, Markdown):
        return value
    if isinstance(value, bool):
        return Markdown("yes" if value else "no")
    if isinstance(value, int):
        return Markdown(f"{value:,}")
    if isinstance(value, float) and math.isfinite(value):
        return Markdown(f"{value:g}")
    if value is None or isinstance(value, float):
        raise ValueError(f"a card was to say {value!r}; expected a fact")
    return plain(value)


def without_paths(text: str, ids: Collection[str] = ()) -> str:
    """Reduce every path in a word (`PATH`, `NAME=PATH`, `PATH,PATH`) to its last part.

    Args:
        text: the word.
        ids: what is known to be an id on the Hub, which stays whole, with or without `@REVISION`.
    """
    secret = _SECRET.fullmatch(text)
    if secret:
        return f"{secret['key']}=..."
    return "".join(_last_part(piece, ids) for piece in _SEPARATOR.split(text))


def _last_part(piece: str, ids: Collection[str]) -> str:
    if piece in ids or piece.rpartition("@")[0] in ids or not _PARTS.search(piece):
        return piece
    if _HOME.fullmatch(piece):
        return "~"
    return _PARTS.split(piece.rstrip("/\\"))[-1] or "."


def shown_command(command: str, ids: Collection[str] = ()) -> str:
    """Write a command without the paths of the machine that ran it; see `without_paths`."""
    return shlex.join(without_paths(_one_line(word), ids) for word in shlex.split(command))


def _one_line(text: str) -> str:
    return printable(_SPACES.sub(" ", text))
