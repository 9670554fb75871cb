"""Files that are whole or absent: everything is written beside its place and renamed into it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Files that identify the output folder of a command.
MODEL, CHARTS, RESULTS = "config.json", "provenance.json", "results.json"


@contextmanager
def written_aside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path in the same folder; rename it to `path` when the block ends well.

    If the block raises, the temporary file is removed and what stood at `path` before stays.

    Args:
        path: where the finished file shall be; missing parent folders are made.

    Yields:
        The path to write to.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield aside
        aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write UTF-8 text with Unix line ends, whole or not at all."""
    with written_aside(path) as aside:
        aside.write_text(text, encoding="utf-8", newline="\n")


def check_apart(output: str, *inputs: str | None) -> None:
    """Refuse an output that is one of the inputs, which it would replace.

    Raises:
        ValueError: it is; the message names it.
    """
    if any(each is not None and Path(each).resolve() == Path(output).resolve() for each in inputs):
        raise ValueError(f"--output {output} is also the input, which it would replace; choose another name")


def sha256_of(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file's bytes in hexadecimal."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
