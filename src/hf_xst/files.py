"""Write files atomically, and name the files that commands leave."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Files that identify the output folder of a command.
MODEL, CHARTS, RESULTS = "config.json", "provenance.json", "results.json"


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path in the same folder and rename it to `path` on success.

    If the block raises, the temporary file is removed and an existing file at `path` stays unchanged.

    Args:
        path: The final path; missing parent folders are created.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write UTF-8 text with Unix line ends, atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def check_output_path(output: str, *inputs: str | None) -> None:
    """Raise ValueError if the output would overwrite one of the inputs."""
    if any(path is not None and Path(path).resolve() == Path(output).resolve() for path in inputs):
        raise ValueError(f"--output {output} would overwrite an input file; choose another name")


def sha256_of(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file's bytes in hexadecimal."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
