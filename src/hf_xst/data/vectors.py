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
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hf_xst.data.streams import InputError, decoded, numbered_bytes
from hf_xst.data.words import lookup_forms
from hf_xst.files import sha256_of

_LOGGER = logging.getLogger(__name__)
_ROWS_AT_ONCE = 8192
FASTTEXT = ("cc", "wiki")
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


class VectorBlock(NamedTuple):
    """Some rows of a file.

    Attributes:
        words: n words, as the file spells them.
        numbers: the n rows without their words, as the file writes them.
        matrix: float32, (n, D).
    """

    words: list[str]
    numbers: list[str]
    matrix: NDArray[np.float32]


class VectorStream:
    """The rows of a file, some thousand at a time; beside those only the words kept are in memory.

    Args:
        path: the file.
        limit: look at the first so many rows only.
        words: keep only rows of exactly these words.

    Attributes:
        width: numbers a row, once a pass has begun.
        rows: rows seen by the last pass.
        duplicates: rows left out by the last pass because their word came before.

    Raises:
        ValueError: a negative limit.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        limit: int | None = None,
        words: Collection[str] | None = None,
    ) -> None:
        if limit is not None and limit < 0:
            raise ValueError(f"found limit {limit}, expected a number of rows")
        self.path = os.fspath(path)
        self.width = self.rows = self.duplicates = 0
        self._limit = limit
        self._wanted = None if words is None else {word.encode("utf-8", "surrogatepass") for word in words}

    def count(self) -> int:
        """Go through the file and return how many rows `blocks` gives; numbers are not read.

        Raises:
            VectorError: no rows, or a row that is too short, with file and line.
        """
        return sum(1 for _ in self._kept())

    def blocks(self) -> Iterator[VectorBlock]:
        """Give the rows in file order; each call is a pass of its own.

        Raises:
            VectorError: no rows, a row of the wrong width, or something that is no finite number, with file
                and line.
        """
        pending: list[tuple[int, str, str]] = []
        for number, word, values in self._kept():
            pending.append((number, decoded(word, number, self.path, VectorError), values.decode("latin-1")))
            if len(pending) == _ROWS_AT_ONCE:
                yield self._block(pending)
                pending.clear()
        if pending:
            yield self._block(pending)
        if self._limit is None and self._announced not in (None, self.rows):
            _LOGGER.warning(
                "%s: the header announces %s rows, the file has %s", self.path, self._announced, self.rows
            )

    def _kept(self) -> Iterator[tuple[int, bytes, bytes]]:
        self.rows = self.duplicates = 0
        known: set[bytes] = set()
        self._announced, self.width, rows = _opened(_content(self.path), self.path)
        for number, line in itertools.islice(rows, self._limit):
            self.rows += 1
            word, values = self._split(number, line)
            if word in known:
                self.duplicates += 1
            elif self._wanted is None or word in self._wanted:
                known.add(word)
                yield number, word, values

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

    def _block(self, pending: list[tuple[int, str, str]]) -> VectorBlock:
        numbers = [values for _, _, values in pending]
        try:
            matrix = np.loadtxt(numbers, dtype=np.float32, delimiter=" ", comments=None, ndmin=2)
        except ValueError:
            matrix = np.full((len(numbers), self.width), np.nan, np.float32)
        if not np.isfinite(matrix).all():
            raise self._no_number(pending)
        return VectorBlock([word for _, word, _ in pending], numbers, matrix)

    def _no_number(self, pending: list[tuple[int, str, str]]) -> VectorError:
        for number, _, values in pending:
            for field in values.split(" "):
                if not _is_float32(field):
                    return VectorError(
                        f"found {field!r}, expected a finite number", path=self.path, line=number
                    )
        return VectorError("found something that is no number", path=self.path, line=pending[0][0])


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
        name: name of the vector space, by default the file's, see `space_of`.

    Raises:
        VectorError: no rows, a row of the wrong width, or something that is no finite number, with file and
            line.
        ValueError: a negative limit.
    """
    stream = VectorStream(path, limit=limit, words=None if vocabulary is None else all_forms(vocabulary))
    words: list[str] = []
    blocks: list[NDArray[np.float32]] = []
    for block in stream.blocks():
        words += block.words
        blocks.append(block.matrix)
    return WordVectors(
        words=words,
        matrix=np.concatenate([np.empty((0, stream.width), np.float32), *blocks]),
        name=name if name is not None else space_of(path),
        sha256=sha256_of(path),
        duplicates=stream.duplicates,
    )


def all_forms(vocabulary: Iterable[str]) -> set[str]:
    """Return all forms that some words may be looked up under."""
    return {form for word in vocabulary for form in lookup_forms(word)}


def space_of(path: str | os.PathLike[str]) -> str:
    """Return the name of the vector space that a file's name tells: all up to its first dot.

    Files as fastText calls them (`cc.de.300.vec`, `wiki.de.vec`) have a space for each language, and are
    named with it, unless their name tells of an alignment (`wiki.de.align.vec`).
    """
    first, *others = Path(path).name.split(".")
    apart = first in FASTTEXT and len(others) > 1 and not {"align", "aligned", "multi"} & set(others)
    return f"{first}.{others[0]}" if apart else first


def file_in(space: str) -> str:
    """Return how a file of a space may be called, see `space_of`."""
    return f"{space}.LANGUAGE.align.vec" if space in FASTTEXT else f"{space}.LANGUAGE.vec"


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
