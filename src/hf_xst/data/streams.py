"""Read numbered lines of plain or gzipped files and streams.

Lines end at a line feed only: other characters that Unicode treats as line breaks are part of words. Gzip is
detected by the first two bytes; the suffix ``.gz`` matters on writing only. Memory is bounded by `MAX_BYTES`.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, cast

from hf_xst.files import atomic_path

Source = str | os.PathLike[str] | IO[str] | IO[bytes]

BYTE_ORDER_MARK = "\ufeff"
MAX_BYTES = 10_000_000
"""Most bytes of a line, and of all lines of a sentence or a paragraph."""
_GZIP_MAGIC = b"\x1f\x8b"
_OTHER_MAGIC = {
    _GZIP_MAGIC: "gzip inside gzip",
    b"PK\x03\x04": "a zip archive",
    b"BZh9": "bz2 data",
    b"\xfd7zXZ": "xz data",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


class InputError(ValueError):
    """Malformed input at a path (or ``<stream>``) and a line from 1, or None for the whole file.

    Without `path` the message is used unchanged, so that instances can be pickled.
    """

    def __init__(self, message: str, *, path: str | None = None, line: int | None = None) -> None:
        self.path, self.line = path, line
        position = f"{path}:{line}" if line is not None else path
        super().__init__(message if path is None else f"{position}: {message}")


def source_name(source: Source) -> str:
    """Return the path of a source, ``<stdin>`` or ``<stream>``."""
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    return "<stdin>" if source is sys.stdin or source is sys.stdin.buffer else "<stream>"


def numbered_bytes(source: Source, error: type[InputError] = InputError) -> Iterator[tuple[int, bytes]]:
    """Yield the number (from 1) and the bytes of each line, including its line end.

    A text stream over bytes (``sys.stdin``, an open text file) is read below its decoder, so no encoding is
    guessed and no line end is translated.

    Raises:
        error: The gzip data is damaged or truncated, a line is too long, or the file is an archive or binary.
    """
    number = 0
    try:
        for number, line in enumerate(_byte_lines(source), start=1):
            if number == 1 and (kind := _binary_kind(line)):
                raise error(
                    f"found {kind}, expected UTF-8 text, plain or gzipped; unpack or convert the file first",
                    path=source_name(source),
                )
            if len(line) > MAX_BYTES:
                raise error(
                    f"found a line of more than {MAX_BYTES:,} bytes; is the file damaged, or another format?",
                    path=source_name(source),
                    line=number,
                )
            yield number, line
    except (EOFError, gzip.BadGzipFile, zlib.error) as problem:
        raise error(
            f"the gzip data is damaged or truncated after this line ({problem}); fetch the file again",
            path=source_name(source),
            line=number or None,
        ) from problem


def _binary_kind(line: bytes) -> str | None:
    """Return what a file is whose first line is not text."""
    kind = next((kind for magic, kind in _OTHER_MAGIC.items() if line.startswith(magic)), None)
    return "binary data" if kind is None and b"\0" in line else kind


def numbered_lines(
    source: Source, error: type[InputError] = InputError, *, keep_mark: bool = False
) -> Iterator[tuple[int, str]]:
    """Yield the number (from 1) and the text of each line, with its line end; raise `error` if invalid."""
    for number, line in numbered_bytes(source, error):
        text = decode_line(line, number, source, error)
        yield number, text if keep_mark or number > 1 else text.removeprefix(BYTE_ORDER_MARK)


def decode_line(line: bytes, number: int, source: Source, error: type[InputError]) -> str:
    """Decode UTF-8, or raise `error` with the position of the first invalid byte."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise error(
            f"found 0x{line[problem.start]:02x} as byte {problem.start + 1} of the line, expected UTF-8; "
            "convert the file to UTF-8",
            path=source_name(source),
            line=number,
        ) from problem


@contextmanager
def open_atomic(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a binary file for atomic writing, gzipped reproducibly if its name ends in ``.gz``."""
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        if Path(path).name.endswith(".gz"):
            with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as zipped:
                yield cast("IO[bytes]", zipped)
        else:
            yield stream


def _byte_lines(source: Source) -> Iterator[bytes]:
    if isinstance(source, (str, os.PathLike)):
        with Path(source).open("rb") as stream:
            yield from _unzipped(stream)
    elif isinstance(source, io.TextIOWrapper):
        yield from _unzipped(source.buffer)
    elif isinstance(source, io.TextIOBase):
        for line in source:
            yield line.encode("utf-8", "surrogatepass")
    else:
        yield from _unzipped(cast("IO[bytes]", source))


def _unzipped(stream: IO[bytes]) -> Iterator[bytes]:
    wrap = not isinstance(stream, io.BufferedReader)
    buffered = io.BufferedReader(cast(io.RawIOBase, stream)) if wrap else cast(io.BufferedReader, stream)
    try:
        is_zipped = buffered.peek(2)[:2] == _GZIP_MAGIC
        lines = gzip.GzipFile(fileobj=buffered) if is_zipped else buffered
        yield from iter(partial(lines.readline, MAX_BYTES + 1), b"")
    finally:
        if wrap:
            buffered.detach()  # otherwise garbage collection would close the caller's stream
