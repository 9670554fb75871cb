"""Write files atomically, by one process at a time, and never over inputs or files of others."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

# Files that identify the output folder of a command.
MODEL, CHARTS, RESULTS = "config.json", "provenance.json", "results.json"
WEIGHTS, PREDICTIONS = "weights.yaml", "predictions.conllu"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FULL_MESSAGE = re.compile(r"\(os error (\d+)\)|PytorchStreamWriter failed writing")  # of Rust and C++
# Options of commands that name inputs: files, and folders of models or charts.
FILE_OPTIONS = frozenset(
    "input text treebank dev_treebank vectors gold predictions weights tagger_weights parser_weights "
    "label_map exclude".split()
)
FOLDER_OPTIONS = frozenset("model init_from like charts sources parsers taggers tagger encoder".split())
_DESCRIPTIONS = (".md", ".svg", ".png")
_PARTS_OF_FOLDERS = ("", "data", "tagger", "run")
# How the pictures, pages and reports of this package begin.
_MARK = re.compile(rb'<svg [^>]*class="hf-xst|(<!doctype html>\n)?<!-- written by hf-xst')
_OWNERS = ("hf-xst ", "another process")
_owned: ContextVar[tuple[Path, ...]] = ContextVar("_owned", default=())


@contextmanager
def name_in_errors(path: str | os.PathLike[str], *temporary: Path) -> Iterator[None]:
    """Name a file or folder in errors about its temporary files or a full disk, and raise them as OSError."""
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError):
            is_full = error.filename is None and error.errno in _FULL
            if is_full or error.filename in map(str, temporary):
                error.filename = os.fspath(path)
        found = None if isinstance(error, OSError) else _FULL_MESSAGE.search(str(error))
        if found and (number := int(found[1] or errno.ENOSPC)) in _FULL:
            raise OSError(number, os.strerror(number), os.fspath(path)) from error
        raise


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new temporary file in the same folder and move it to `path` on success.

    Missing parent folders are created. If the block raises, the temporary file is removed and an existing
    file at `path` stays unchanged. A pipe or device is written directly.
    """
    if is_stream(path):
        yield Path(path)
        return
    target = behind_link(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f"{_temporary_prefix()}{secrets.token_hex(8)}.part")
    mode = target.stat().st_mode & 0o777 | 0o200 if target.exists() else 0o666
    with name_in_errors(target, temporary):
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL, mode))
        mode = temporary.stat().st_mode
        try:
            yield temporary
            temporary.chmod(mode)  # safetensors 0.8 replaces the file, and ignores the umask
            replace_file(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)


def _temporary_prefix() -> str:
    """Return how names of temporary files begin, with a digest of the output that this process owns."""
    owned = [hashlib.sha256(os.fsencode(path)).hexdigest()[:8] for path in _owned.get()[:1]]
    return "-".join([".hf_xst", *owned, ""])


def replace_file(temporary: Path, target: Path) -> None:
    """Move a finished file to its target, which keeps its permissions if it exists."""
    if target.exists():
        temporary.chmod(target.stat().st_mode & 0o7777)
    temporary.replace(target)


def behind_link(path: str | os.PathLike[str]) -> Path:
    """Return the file to write for a path: the target of a symbolic link, otherwise the path itself."""
    return Path(os.path.realpath(path) if Path(path).is_symlink() else path)


def is_stream(output: str | os.PathLike[str]) -> bool:
    """Return whether an output is stdout (`-`), a pipe or a device: it cannot be replaced when complete."""
    path = Path(output)
    return str(output) == "-" or (path.exists() and not path.is_file() and not path.is_dir())


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write UTF-8 text with Unix line ends, atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def protect_inputs(options: Any, *outputs: str | os.PathLike[str]) -> None:
    """Reject outputs that would overwrite an input of a command.

    Inputs are all existing paths that `FILE_OPTIONS` and `FOLDER_OPTIONS` name, in any form (`PATH`,
    `NAME=PATH`, `A=PATH,B=PATH`), and the files of a model or charts in a folder that the latter name.

    Raises:
        ValueError: an output is an input.
    """
    for name, _, _, path in _inputs(options):
        parts = [path / part for part in _PARTS_OF_FOLDERS if name in FOLDER_OPTIONS]
        for output in map(Path, outputs):
            target = output.resolve()
            same = target == path or (target.exists() and path.exists() and target.samefile(path))
            if same or (target.parent in parts and target.exists()):
                flag = f"--{name.replace('_', '-')}"
                raise ValueError(f"{output} would overwrite an input of {flag}; choose another --output")


def _inputs(options: Any) -> Iterator[tuple[str, str, str, Path]]:
    """Yield option, word of its value, name of the path in the word, and path: those that exist, resolved.

    In lists a path without a name has that of its last part, as sources have.
    """
    for option, value in vars(options).items():
        if option not in FILE_OPTIONS | FOLDER_OPTIONS:
            continue
        for word in value if isinstance(value, list) else [value]:
            for part in sorted({word, *word.split(",")}) if isinstance(word, str) else ():
                name, equals, named = part.partition("=")
                if os.path.lexists(part):
                    own = Path(part).absolute().name if isinstance(value, list) else ""
                    yield option, word, own, Path(part).resolve()
                if equals and os.path.lexists(named):
                    yield option, word, name, Path(named).resolve()


def check_links(folder: str | os.PathLike[str], paths: Iterable[Path]) -> None:
    """Raise ValueError if a path in a folder leads out of it; the blobs of the Hub's cache belong to it."""
    root = Path(folder).resolve()
    snapshots = [each for each in (root, *root.parents) if each.parent.name == "snapshots"]
    roots = [root, *(each.parents[1] / "blobs" for each in snapshots)]
    for path in paths:
        target = path.resolve()
        if not any(target.is_relative_to(each) for each in roots):
            raise ValueError(f"{path} leads to {target}, outside of its folder; replace it by a copy")


def protect_files(*outputs: str | os.PathLike[str], remedy: str = "pass --overwrite to replace it") -> None:
    """Raise ValueError if an output exists and does not begin with the mark of this package."""
    for path in map(Path, outputs):
        if not path.exists() or is_stream(path):
            continue
        with path.open("rb") as stream:
            if not _MARK.match(stream.read(4096)):
                raise ValueError(f"{path} exists and was not written by hf-xst; move it, or {remedy}")


@contextmanager
def sole_owner(output: str | os.PathLike[str], command: str) -> Iterator[None]:
    """Keep other processes and threads from writing an output, with an operating-system lock on a file.

    The lock file lies beside the output, or in it if the folder above is read-only. It is removed at the end;
    one that a killed process left does not block, and the temporary files of that process are removed. A
    command may call others that write the same output. Pipes and devices are not locked.

    Raises:
        ValueError: another process owns the output; the message names it.
    """
    target = Path(output).resolve()
    if is_stream(output) or target in _owned.get():
        yield
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    place = next((each for each in (target.parent, target) if os.access(each, os.W_OK)), None)
    if place is None:  # nothing can be written
        yield
        return
    path = place / f".{target.name}.hf-xst-lock"
    lock, is_stale = FileLock(path), path.exists()
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise ValueError(
            f"{output} is being written by {_owner(path)}; wait until it ends, or choose another output"
        ) from None
    if not _owner(path).startswith(_OWNERS):
        lock.release()
        raise ValueError(f"{path} exists and was not written by hf-xst; move it, or choose another output")
    token = _owned.set((*_owned.get(), target))
    try:
        if is_stale:
            pattern = f"{_temporary_prefix()}*.part"
            for temporary in (*target.parent.glob(pattern), *target.rglob(pattern)):
                temporary.unlink(missing_ok=True)
        with suppress(OSError):  # Windows lets nobody write a locked file
            since = time.strftime("%Y-%m-%d %H:%M:%S")
            path.write_text(
                f"hf-xst {command} (process {os.getpid()} on {socket.gethostname()} since {since})"
            )
        yield
    finally:
        _owned.reset(token)
        with suppress(OSError):
            path.unlink()
        lock.release()


def _owner(lock: Path) -> str:
    try:
        return lock.read_text("utf-8", "replace") or _OWNERS[1]
    except OSError:
        return _OWNERS[1]


def sha256_of(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file's bytes in hexadecimal."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest_of(files: Iterable[Path]) -> str:
    """Return the SHA-256 of the names and contents of files, in any order."""
    return hashlib.sha256(repr(sorted((path.name, sha256_of(path)) for path in files)).encode()).hexdigest()


def input_digests(options: Any) -> dict[str, dict[str, str]]:
    """Return what words that name local inputs mean, names and content, by option and word.

    The content of a folder is all but runs, hidden files, cards, pictures, and outputs of commands in it.
    """
    digests: dict[str, dict[str, str]] = {}
    for option, word, name, place in _inputs(options):
        inside = [path for path in place.rglob("*") if path.is_file()] if place.is_dir() else [place]
        outputs = {path.parent for path in place.rglob("run")} - {place}
        content = digest_of(
            path
            for path in inside
            if path.suffix not in _DESCRIPTIONS
            and outputs.isdisjoint(path.parents)
            and not any(part == "run" or part[0] == "." for part in path.relative_to(place).parts)
        )
        words = digests.setdefault(option, {})
        words[word] = f"{words.get(word, '')} {name}={content}".lstrip()
    return digests
