"""Word vectors in the text format of word2vec and fastText (``.vec``, ``.txt``), plain or gzipped.

A row is a word and D numbers. It is split at U+0020 only and from the right, so a word may hold any
space-like character, plain spaces too. A first line ``COUNT D`` is a header if the row after it has at least
D numbers at its end to which it can refer; without a header the first row says D. Spaces at the end of a row
(fastText writes one) do not count.
"""

from __future__ import annotations

import itertools
import logging
import math
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hf_xst.data.streams import InputError, decoded, numbered_bytes
from hf_xst.data.words import lookup_forms
from hf_xst.files import sha256_of

_LOGGER = logging.getLogger(__name__)
_ROWS_AT_ONCE = 8192
_HEADER = re.compile(rb"([0-9]+) ([0-9]+)")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

NumberedLine = tuple[int, bytes]


class VectorError(InputError):
    """A file that is no text file of word vectors."""


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words and their vectors.

    Attributes:
        words: distinct words in file order, exactly as the file spells them.
        matrix: float32, (V, D).
        name: name of the vector space.
        sha256: hash of the file's bytes.
        duplicates: rows left out because their word came before.
    """

    words: list[str]
    matrix: NDArray[np.float32]
    name: str
    sha256: str
    duplicates: int = 0

    @property
    def dimension(self) -> int:
        """Numbers a word."""
        return int(self.matrix.shape[1])


def read_vectors(
    path: str | os.PathLike[str],
    *,
    limit: int | None = None,
    vocabulary: Collection[str] | None = None,
    name: str | None = None,
) -> WordVectors:
    """Read word vectors; memory is needed for the rows kept, not for the file.

    Args:
        path: the file.
        limit: look at the first so many rows only (such files begin with the commonest words).
        vocabulary: keep only rows that one of these words may be looked up under
            (`hf_xst.data.words.lookup_forms`).
        name: name of the vector space, by default the file's name up to its first dot.

    Raises:
        VectorError: no rows, a row of the wrong width, or something that is no finite number, with file and
            line.
        ValueError: a negative limit.
    """
    if limit is not None and limit < 0:
        raise ValueError(f"found limit {limit}, expected a number of rows")
    reader = _Reader(path, vocabulary)
    rows = _content(path)
    announced, reader.width, rows = _opened(rows, path)
    for number, line in itertools.islice(rows, limit):
        reader.take(number, line)
    if limit is None and announced not in (None, reader.rows):
        _LOGGER.warning("%s: the header announces %s rows, the file has %s", path, announced, reader.rows)
    return WordVectors(
        words=reader.words,
        matrix=reader.matrix(),
        name=name if name is not None else Path(path).name.partition(".")[0],
        sha256=sha256_of(path),
        duplicates=reader.duplicates,
    )


class _Reader:
    """Collects rows, and turns their numbers into arrays many rows at a time."""

    def __init__(self, path: str | os.PathLike[str], vocabulary: Collection[str] | None) -> None:
        self.path = os.fspath(path)
        self.width = 0
        self.rows = 0
        self.duplicates = 0
        self.words: list[str] = []
        self._wanted = None if vocabulary is None else _encoded_forms(vocabulary)
        self._known: set[bytes] = set()
        self._pending: list[tuple[int, str]] = []
        self._blocks: list[NDArray[np.float32]] = []

    def take(self, number: int, line: bytes) -> None:
        """Take the next row, unless it is not wanted or its word is known."""
        self.rows += 1
        word, values = self._split(number, line)
        if word in self._known:
            self.duplicates += 1
        elif self._wanted is None or word in self._wanted:
            self._known.add(word)
            self.words.append(decoded(word, number, self.path, VectorError))
            self._pending.append((number, values.decode("latin-1")))
            if len(self._pending) == _ROWS_AT_ONCE:
                self._convert()

    def matrix(self) -> NDArray[np.float32]:
        """All rows taken, (V, D)."""
        self._convert()
        return np.concatenate([np.empty((0, self.width), np.float32), *self._blocks])

    def _split(self, number: int, line: bytes) -> tuple[bytes, bytes]:
        body = line.rstrip(b" \r\n")
        spaces = body.count(b" ")
        if spaces == self.width:
            word, _, values = body.partition(b" ")
            return word, values
        if spaces < self.width:
            raise VectorError(
                f"found {spaces} numbers after the word, expected {self.width}", path=self.path, line=number
            )
        word, *fields = body.rsplit(b" ", self.width)
        return word, b" ".join(fields)

    def _convert(self) -> None:
        if not self._pending:
            return
        values = [row for _, row in self._pending]
        try:
            block = np.loadtxt(values, dtype=np.float32, delimiter=" ", comments=None, ndmin=2)
        except ValueError:
            block = np.full((len(values), self.width), np.nan, np.float32)
        if not np.isfinite(block).all():
            raise self._no_number()
        self._blocks.append(block)
        self._pending.clear()

    def _no_number(self) -> VectorError:
        for number, row in self._pending:
            for field in row.split(" "):
                if not _is_float32(field):
                    return VectorError(
                        f"found {field!r}, expected a finite number", path=self.path, line=number
                    )
        return VectorError("found something that is no number", path=self.path, line=self._pending[0][0])


def _content(path: str | os.PathLike[str]) -> Iterator[NumberedLine]:
    for number, line in numbered_bytes(path, VectorError):
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if line.strip(b"\r\n"):
            yield number, line


def _opened(
    rows: Iterator[NumberedLine], path: str | os.PathLike[str]
) -> tuple[int | None, int, Iterator[NumberedLine]]:
    """Look at the first two lines; give the announced number of rows, the width, and all rows."""
    start = list(itertools.islice(rows, 2))
    lines = [line.rstrip(b" \r\n") for _, line in start]
    header = _HEADER.fullmatch(lines[0]) if lines else None
    if not lines or (header and len(lines) == 1):
        raise VectorError("found no rows, expected a word and its numbers on each line", path=os.fspath(path))
    if header:
        width = int(header[2])
        if width and _ends_in_numbers(lines[1], width):
            return int(header[1]), width, itertools.chain(start[1:], rows)
        if lines[1].count(b" ") != 1:
            raise VectorError(
                f"found {lines[1].count(b' ')} numbers after a header that announces {width}",
                path=os.fspath(path),
                line=start[1][0],
            )
    width = lines[0].count(b" ")
    if not width:
        raise VectorError(
            "found a row without numbers, expected a word and its numbers separated by spaces",
            path=os.fspath(path),
            line=start[0][0],
        )
    return None, width, itertools.chain(start, rows)


def _ends_in_numbers(line: bytes, width: int) -> bool:
    fields = line.rsplit(b" ", width)[1:]
    return len(fields) == width and all(_is_float32(field.decode("latin-1")) for field in fields)


def _is_float32(field: str) -> bool:
    try:
        value = float(field)
    except ValueError:
        return False
    return math.isfinite(value) and abs(value) <= float(np.finfo(np.float32).max) and "_" not in field


def _encoded_forms(vocabulary: Collection[str]) -> set[bytes]:
    return {form.encode("utf-8", "surrogatepass") for word in vocabulary for form in lookup_forms(word)}
