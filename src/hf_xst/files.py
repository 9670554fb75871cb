"""Write files atomically, and name the files that commands leave."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Files that identify the output folder of a command.
MODEL, CHARTS, RESULTS = "config.json", "provenance.json", "results.json"
# Options of commands that name inputs: files, and folders of models or charts.
FILE_OPTIONS = frozenset(
    "input text treebank dev_treebank vectors gold predictions weights label_map".split()
)
_DESCRIPTIONS = (".md", ".svg", ".png")
FOLDER_OPTIONS = frozenset("model init_from like charts sources parsers taggers tagger encoder".split())


@contextmanager
def name_in_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name a file in errors of the block about a full disk, which Python raises without a name."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            error.filename = os.fspath(path)
        raise


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
        with name_in_errors(target):
            yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write UTF-8 text with Unix line ends, atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def protect_inputs(options: Any, *outputs: str | os.PathLike[str]) -> None:
    """Reject outputs that would overwrite an input of a command.

    Inputs are all existing paths that `FILE_OPTIONS` and `FOLDER_OPTIONS` name, in any form (`PATH`,
    `NAME=PATH`, `A=PATH,B=PATH`), and the files directly in a folder that the latter name.

    Args:
        options: the options of the command, a data class.
        outputs: all files that the command will write.

    Raises:
        ValueError: an output is an input.
    """
    for output in map(Path, outputs):
        target = output.resolve()
        for name, value in vars(options).items():
            for path in _paths_in(value) if name in FILE_OPTIONS | FOLDER_OPTIONS else ():
                inside = name in FOLDER_OPTIONS and target.parent == path and target.exists()
                if target == path or inside:
                    raise ValueError(
                        f"{output} would overwrite an input of --{name.replace('_', '-')}; choose another "
                        "--output"
                    )


def _paths_in(value: Any) -> Iterator[Path]:
    """Yield the existing paths that an option names, resolved."""
    for word in value if isinstance(value, list) else [value]:
        for part in {word, *word.split(",")} if isinstance(word, str) else ():
            for text in {part, part.partition("=")[2]}:
                if text and os.path.lexists(text):
                    yield Path(text).resolve()


def check_links(folder: str | os.PathLike[str], paths: Iterable[Path]) -> None:
    """Raise ValueError if a path in a folder leads out of it; the blobs of the Hub's cache belong to it.

    Args:
        folder: A folder of a model or of charts.
        paths: The files to be read from it.
    """
    root = Path(folder).resolve()
    roots = [root, root.parents[1] / "blobs"] if root.parent.name == "snapshots" else [root]
    for path in paths:
        target = path.resolve()
        if not any(target.is_relative_to(each) for each in roots):
            raise ValueError(f"{path} is a link to {target}, outside of its folder; replace it by a copy")


def sha256_of(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file's bytes in hexadecimal."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def input_files(options: Any) -> dict[str, list[Path]]:
    """Return the local files that each option of a command names, by option.

    Those of a folder are all but runs, hidden files, cards and pictures.
    """
    files: dict[str, list[Path]] = {}
    for name, value in vars(options).items():
        for place in _paths_in(value) if name in FILE_OPTIONS | FOLDER_OPTIONS else ():
            inside = [path for path in place.rglob("*") if path.is_file()] if place.is_dir() else [place]
            files.setdefault(name, []).extend(
                path
                for path in inside
                if path.suffix not in _DESCRIPTIONS
                and not any(part == "run" or part[0] == "." for part in path.relative_to(place).parts)
            )
    return files
