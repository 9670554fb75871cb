"""What an alignment reads and writes: dictionaries, matrices, and files of word vectors."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hf_xst.data.streams import InputError, numbered_lines, open_atomic
from hf_xst.files import atomic_path, write_text

Pair = tuple[str, str]
Matrix = NDArray[np.float64]


class AlignmentError(InputError):
    """A dictionary or a matrix that cannot be read."""


def read_dictionary(path: str | os.PathLike[str]) -> list[Pair]:
    """Read pairs of words, one pair a line; empty lines are skipped and pairs given twice count once.

    A line with a tab is split there, so that words may hold spaces; else it is split at its spaces.

    Args:
        path: the file, plain or gzipped.

    Raises:
        AlignmentError: a line is no pair, or there is none, with file and line.
    """
    pairs: dict[Pair, None] = {}
    for number, line in numbered_lines(path, AlignmentError):
        body = line.rstrip("\r\n")
        words = [word for word in body.split("\t" if "\t" in body else " ") if word]
        if len(words) == 2:
            pairs[words[0], words[1]] = None
        elif words:
            raise AlignmentError(
                f"found {len(words)} words, expected two, separated by a tab or a space",
                path=os.fspath(path),
                line=number,
            )
    if not pairs:
        raise AlignmentError("found no pairs, expected two words on each line", path=os.fspath(path))
    return list(pairs)


def read_matrix(path: str | os.PathLike[str]) -> Matrix:
    """Read a square matrix: ``.npy``, or text with D lines of D numbers.

    Raises:
        AlignmentError: it is not square, or holds something that is no finite number.
    """
    if Path(path).suffix == ".npy":
        matrix = _npy(path)
    else:
        matrix = np.array(_text_rows(path), dtype=np.float64)
    if matrix.ndim != 2 or not matrix.size or matrix.shape[0] != matrix.shape[1]:
        raise AlignmentError(
            f"found {' x '.join(map(str, matrix.shape))} numbers, expected a square matrix",
            path=os.fspath(path),
        )
    if not np.isfinite(matrix).all():
        raise AlignmentError("found numbers that are not finite", path=os.fspath(path))
    return matrix


def write_matrix(path: str | os.PathLike[str], matrix: Matrix) -> None:
    """Write a matrix for `read_matrix`, in the format that the name says."""
    if Path(path).suffix == ".npy":
        with atomic_path(path) as aside, aside.open("wb") as stream:
            np.save(stream, matrix, allow_pickle=False)
    else:
        write_text(path, "".join(f"{' '.join(map(repr, row))}\n" for row in matrix.tolist()))


def _npy(path: str | os.PathLike[str]) -> Matrix:
    try:
        return np.asarray(np.load(path, allow_pickle=False), dtype=np.float64)
    except (ValueError, EOFError, TypeError) as problem:
        raise AlignmentError(f"found no matrix of numbers ({problem})", path=os.fspath(path)) from None


def _text_rows(path: str | os.PathLike[str]) -> list[list[float]]:
    rows: list[list[float]] = []
    for number, line in numbered_lines(path, AlignmentError):
        fields = line.split()
        if not fields:
            continue
        try:
            rows.append([float(field) for field in fields])
        except ValueError as problem:
            raise AlignmentError(
                f"{problem}; expected numbers alone", path=os.fspath(path), line=number
            ) from None
        if len(fields) != len(rows[0]):
            raise AlignmentError(
                f"found {len(fields)} numbers, expected {len(rows[0])} as on the first line",
                path=os.fspath(path),
                line=number,
            )
    return rows


def write_vectors(
    path: str | os.PathLike[str], count: int, width: int, rows: Iterable[tuple[str, str]]
) -> None:
    """Write rows under a line with their number and width, as they come; whole or not at all.

    Args:
        path: the file, gzipped (reproducibly) if its name ends in ``.gz``.
        count: the number of rows.
        width: numbers a row.
        rows: words, and their numbers as text.

    Raises:
        ValueError: there are not `count` rows.
    """
    written = 0
    with open_atomic(path) as sink:
        sink.write(f"{count} {width}\n".encode())
        for word, numbers in rows:
            sink.write(f"{word} {numbers}\n".encode())
            written += 1
        if written != count:
            raise ValueError(f"{os.fspath(path)}: found {written} rows to write, expected {count}")
