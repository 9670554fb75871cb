"""Lines of files and streams, plain or gzipped, with their numbers.

Lines end at a line feed only: other characters that Unicode counts as line breaks are part of words. Gzip is
known by its first two bytes, whatever the name; a name that ends in ``.gz`` decides on writing only.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from hf_xst.files import atomic_path

Source = str | os.PathLike[str] | IO[str] | IO[bytes]

BYTE_ORDER_MARK = "\ufeff"
_GZIP_MAGIC = b"\x1f\x8b"


class InputError(ValueError):
    """A file that is not what it should be.

    Attributes:
        path: the file, or ``<stream>``.
        line: the line's number from 1, or None where the whole file is meant.
    """

    def __init__(self, message: str, *, path: str, line: int | None = None) -> None:
        self.path = path
        self.line = line
        super().__init__(f"{path}:{line}: {message}" if line is not None else f"{path}: {message}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel between processes with the message as it stands."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[InputError], args: tuple[Any, ...], attributes: Mapping[str, Any]) -> InputError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    return error


def name_of(source: Source) -> str:
    """What messages call a source: its path, ``<stdin>`` or ``<stream>``."""
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    return "<stdin>" if source is sys.stdin or source is sys.stdin.buffer else "<stream>"


def numbered_bytes(source: Source, error: type[InputError] = InputError) -> Iterator[tuple[int, bytes]]:
    """Give each line with its line end and its number from 1.

    A text stream that wraps bytes (``sys.stdin``, an open text file) is read below its decoding, so no
    encoding is guessed and no line end is translated.

    Raises:
        error: the gzip data is damaged or stops early.
    """
    number = 0
    try:
        for number, line in enumerate(_byte_lines(source), start=1):
            yield number, line
    except (EOFError, gzip.BadGzipFile, zlib.error) as problem:
        raise error(
            f"the gzip data is damaged or cut off after this line ({problem}); fetch the file again",
            path=name_of(source),
            line=number,
        ) from problem


def numbered_lines(
    source: Source, error: type[InputError] = InputError, *, keep_mark: bool = False
) -> Iterator[tuple[int, str]]:
    """Give each line as text with its line end and its number from 1.

    Args:
        source: a path, or an open stream of text or bytes.
        error: the class of the errors raised.
        keep_mark: leave a byte order mark at the start of the first line.

    Raises:
        error: a line is not UTF-8, or the gzip data is damaged.
    """
    for number, line in numbered_bytes(source, error):
        try:
            text = line.decode()
        except UnicodeDecodeError:
            text = decoded(line, number, source, error)
        yield number, text if keep_mark or number > 1 else text.removeprefix(BYTE_ORDER_MARK)


def decoded(line: bytes, number: int, source: Source, error: type[InputError]) -> str:
    """Decode UTF-8, or raise `error` with the place of the first byte that is not."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise error(
            f"found 0x{line[problem.start]:02x} as byte {problem.start + 1} of the line, expected UTF-8; "
            "convert the file to UTF-8",
            path=name_of(source),
            line=number,
        ) from problem


@contextmanager
def written_bytes(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for bytes: whole or not at all, gzipped (reproducibly) if its name ends in ``.gz``."""
    with atomic_path(path) as aside, aside.open("wb") as stream:
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
    buffered = (
        stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, stream))
    )
    try:
        if buffered.peek(2)[:2] == _GZIP_MAGIC:
            yield from gzip.GzipFile(fileobj=buffered)
        else:
            # No `yield from`: it would close the stream itself when a reader stops early.
            for line in buffered:  # noqa: UP028
                yield line
    finally:
        if buffered is not stream:
            buffered.detach()  # or the caller's stream would be closed with the wrapper
