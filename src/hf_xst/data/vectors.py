"""Read word vectors in the text format of word2vec and fastText (``.vec``, ``.txt``), plain or gzipped.

A row is a word and D numbers, split from the right at U+0020 only, so a word may contain any spaces, but not
end in a further number of the same kind. A first
line ``COUNT D`` is a header if the next row ends in D numbers; otherwise the first row determines D. Trailing
spaces (fastText writes one) are ignored.
"""

from __future__ import annotations

import itertools
import logging
import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hf_xst.data.streams import InputError, decode_line, numbered_bytes
from hf_xst.files import sha256_of

_LOGGER = logging.getLogger(__name__)
_BLOCK_SIZE = 8192
FASTTEXT = ("cc", "wiki")
_HEADER = re.compile(rb"([0-9]+) ([0-9]+)")
_DECIMAL = re.compile(rb"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?|[-+][0-9]+")
_DIGIT = re.compile(r"\d")
_CONTROL = re.compile(rb"[\0-\x08\x0e-\x1b]")
_IGNORED = "\t\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0"  # by loadtxt, around numbers
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

NumberedLine = tuple[int, bytes]


class VectorError(InputError):
    """A malformed text file of word vectors."""


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Distinct words in file order, exactly as written, and their vectors, (V, D).

    `name` is that of the vector space, `sha256` the hash of the file's bytes.
    """

    words: list[str]
    matrix: NDArray[np.float32]
    name: str
    sha256: str

    @property
    def dimension(self) -> int:
        """The number of dimensions D."""
        return int(self.matrix.shape[1])


class VectorBlock(NamedTuple):
    """Consecutive rows of a file: n words, their numbers as written, and the matrix (float32, (n, D))."""

    words: list[str]
    numbers: list[str]
    matrix: NDArray[np.float32]


class VectorStream:
    """The rows of a file in blocks; only the words stay in memory. The first of duplicates is kept.

    Reads at most `limit` rows and keeps those of exactly the given `words`.

    Attributes:
        width: Number of dimensions, once a pass has begun.
        rows, duplicates: Rows read, and rows ignored as duplicates, by the last pass.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, limit: int | None = None, words: Collection[str] | None = None
    ) -> None:
        if limit is not None and limit < 0:
            raise ValueError(f"found limit {limit}, expected a number of rows")
        self.path = os.fspath(path)
        self.width = self.rows = self.duplicates = 0
        self._limit = limit
        self._words = None if words is None else {word.encode("utf-8", "surrogatepass") for word in words}

    def count(self) -> int:
        """Return the number of rows that `blocks` yields, without parsing numbers."""
        return sum(1 for _ in self._kept_rows())

    def blocks(self) -> Iterator[VectorBlock]:
        """Yield the rows in file order; each call reads the file again.

        Raises:
            VectorError: No rows, a row of the wrong width, or a value that is not a finite number; the
                message gives file and line.
        """
        rows = self._kept_rows()
        while block := list(itertools.islice(rows, _BLOCK_SIZE)):
            words = [decode_line(word, number, self.path, VectorError) for number, word, _ in block]
            numbers = [(number, values.decode("latin-1")) for number, _, values in block]
            yield VectorBlock(words, [values for _, values in numbers], _parse_numbers(numbers, self.path))
        if self._limit is None and self._announced not in (None, self.rows):
            _LOGGER.warning(
                "%s: the header announces %s rows, the file has %s", self.path, self._announced, self.rows
            )

    def _kept_rows(self) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield line number, word and numbers of each row to keep."""
        self.rows = self.duplicates = 0
        seen: set[bytes] = set()
        self._announced, self.width, lines = _open_rows(self.path)
        for number, line in itertools.islice(lines, self._limit):
            self.rows += 1
            word, values = _split_row(line, self.width, number, self.path)
            if word in seen:
                self.duplicates += 1
            elif self._words is None or word in self._words:
                seen.add(word)
                yield number, word, values


def read_vectors(
    path: str | os.PathLike[str],
    *,
    limit: int | None = None,
    vocabulary: Collection[str] | None = None,
) -> WordVectors:
    """Read word vectors; memory grows with the rows kept, not with the file.

    Args:
        path: The file.
        limit: Maximum number of rows to read (such files start with the most frequent words).
        vocabulary: Keep only rows that the lookup of one of these words may return; see `lookup_forms`.

    Raises:
        VectorError: See `VectorStream.blocks`.
    """
    stream = VectorStream(path, limit=limit, words=None if vocabulary is None else all_forms(vocabulary))
    blocks = list(stream.blocks())
    return WordVectors(
        words=[word for block in blocks for word in block.words],
        matrix=np.concatenate([np.empty((0, stream.width), np.float32), *(b.matrix for b in blocks)]),
        name=space_of(path),
        sha256=sha256_of(path),
    )


def lookup_forms(word: str) -> tuple[str, ...]:
    """Return the forms to look up: exact, lower-cased, digits as 0, both; then all in NFC and NFD.

    Lower-cased forms with Turkish letters, in which `I` is the capital of dotless `ı`, come last among the
    lower-cased ones. Python lowers `İ` to two characters, an `i` and a dot, which vectors rarely have.
    """
    undotted = word.replace("İ", "i")
    lowered = (word.lower(), undotted.lower(), undotted.replace("I", "ı").lower())
    forms = (word, *lowered, *(_DIGIT.sub("0", form) for form in (word, *lowered)))
    if word.isascii():
        return tuple(dict.fromkeys(forms))
    normalized = (unicodedata.normalize(way, form) for way in ("NFC", "NFD") for form in forms)
    return tuple(dict.fromkeys((*forms, *normalized)))


def all_forms(vocabulary: Iterable[str]) -> set[str]:
    """Return the lookup forms of all words."""
    return {form for word in vocabulary for form in lookup_forms(word)}


def space_of(path: str | os.PathLike[str]) -> str:
    """Return the name of a file's vector space: the file name up to its first dot.

    fastText files (`cc.de.300.vec`, `wiki.de.vec`) have one space per language, named with the language,
    unless the file name says that they are aligned (`wiki.de.align.vec`).
    """
    name, *others = Path(path).name.split(".")
    per_language = name in FASTTEXT and len(others) > 1 and not {"align", "aligned", "multi"} & set(others)
    return f"{name}.{others[0]}" if per_language else name


def example_file_name(space: str) -> str:
    """Return a file name that `space_of` maps to this space."""
    return f"{space}.LANGUAGE.align.vec" if space in FASTTEXT else f"{space}.LANGUAGE.vec"


def _open_rows(path: str) -> tuple[int | None, int, Iterator[NumberedLine]]:
    """Interpret the first two lines; return the announced number of rows, the width, and all rows."""
    lines = _nonempty_lines(path)
    first = list(itertools.islice(lines, 2))
    texts = [line.rstrip(b" \r\n") for _, line in first]
    header = _HEADER.fullmatch(texts[0]) if texts else None
    if not texts or (header and len(texts) == 1):
        raise VectorError("found no rows, expected a word and its numbers on each line", path=path)
    if header:
        count, width = (int(digits[:18]) for digits in header.groups())
        fields = texts[1].rsplit(b" ", width)[1:] if width else []
        if fields and len(fields) == width and all(_is_float32(field.decode("latin-1")) for field in fields):
            return count, width, itertools.chain(first[1:], lines)
        if _CONTROL.search(texts[1]):
            raise VectorError(
                "found binary data after the header, expected text; save the vectors as text (in gensim: "
                "save_word2vec_format(path, binary=False))",
                path=path,
                line=first[1][0],
            )
        spaces = texts[1].count(b" ")
        if spaces != 1:
            raise VectorError(
                f"found {spaces} numbers after a header that announces {width}", path=path, line=first[1][0]
            )
    width = texts[0].count(b" ")
    if not width:
        raise VectorError(
            "found a row without numbers, expected a word and its numbers separated by spaces",
            path=path,
            line=first[0][0],
        )
    return None, width, itertools.chain(first, lines)


def _split_row(line: bytes, width: int, number: int, path: str) -> tuple[bytes, bytes]:
    """Split a row into its word and its numbers."""
    body = line.rstrip(b" \r\n")
    spaces = body.count(b" ")
    if spaces < width:
        raise VectorError(f"found {spaces} numbers after the word, expected {width}", path=path, line=number)
    if spaces == width:
        word, _, values = body.partition(b" ")
        return word, values
    word, *fields = body.rsplit(b" ", width)
    *before, last = word.split(b" ")
    is_whole = last.isdigit() and all(field.isdigit() for field in fields)
    if _DECIMAL.fullmatch(last) or (is_whole and not all(field.isdigit() for field in before)):
        found = f"{last.decode()} before the last {width} numbers"
        raise VectorError(f"found {found}, expected a word; the row has too many", path=path, line=number)
    return word, b" ".join(fields)


def _parse_numbers(rows: Sequence[tuple[int, str]], path: str) -> NDArray[np.float32]:
    """Parse the numbers of rows, given with their line numbers; return (n, D)."""
    try:
        matrix = np.loadtxt([values for _, values in rows], np.float32, delimiter=" ", comments=None, ndmin=2)
        if np.isfinite(matrix).all() and not any(space in each for _, each in rows for space in _IGNORED):
            return matrix
    except ValueError:
        pass  # locate the invalid value below
    for number, values in rows:
        for field in values.split(" "):
            if not _is_float32(field):
                raise VectorError(f"found {field!r:.60}, expected a finite number", path=path, line=number)
    raise VectorError("found a value that is not a number", path=path, line=rows[0][0])


def _nonempty_lines(path: str) -> Iterator[NumberedLine]:
    for number, line in numbered_bytes(path, VectorError):
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if line.strip(b"\r\n"):
            yield number, line


def _is_float32(field: str) -> bool:
    try:
        value = float(field)
    except ValueError:
        return False
    return abs(value) <= float(np.finfo(np.float32).max) and "_" not in field and field.isprintable()
