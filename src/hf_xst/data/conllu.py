"""Read and write CoNLL-U: strict about the format, lossless, and streaming.

Writing what was read reproduces the file byte for byte: comments, ranges, empty nodes, Windows line ends,
several blank lines, a byte order mark, a missing final line end. Annotation is not validated here: blank,
stale or broken heads are accepted (`hf_xst.data.preparation` validates gold trees).
"""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, cast

from hf_xst.data.sentence import (
    BLANK,
    COLUMNS,
    MAX_WORDS,
    ConlluError,
    ConlluSentence,
    comment_value,
    line_body,
)
from hf_xst.data.streams import (
    BYTE_ORDER_MARK,
    MAX_BYTES,
    Source,
    numbered_lines,
    open_atomic,
    source_name,
)

_RANGE = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})")
_FORM, _UPOS = COLUMNS.index("form"), COLUMNS.index("upos")
_GLOBAL_COLUMNS = re.compile(r"#\s*global\.columns\s*=(.*)", re.IGNORECASE)
_BLANK_LINES = frozenset(("\n", "\r\n", "\r", ""))


class WithheldWordsWarning(UserWarning):
    """All forms of a sentence are underscores: the publisher has withheld the words."""


def read_conllu(source: Source) -> Iterator[ConlluSentence]:
    """Read sentences one by one from a path, or from an open stream of text or bytes, plain or gzipped.

    A sentence whose forms are all underscores is kept, with one `WithheldWordsWarning` per file. Otherwise a
    single underscore is an ordinary word.

    Raises:
        ConlluError: Malformed CoNLL-U; the message gives file, line and sentence.
        FileNotFoundError: The file does not exist.
    """
    path, warned = source_name(source), False
    for number, (leader, first, lines, trailer) in enumerate(_blocks(source), start=1):
        words = _word_rows(lines, first, path)
        sentence = ConlluSentence(tuple(lines), words, leader, trailer, path, first, number)
        if not warned and sentence.words[0] == BLANK and set(sentence.words) == {BLANK}:
            warned = True
            warnings.warn(
                f"{path}: every form of sentence {sentence.identifier} is '_'; the words may be withheld "
                "(reported once per file)",
                WithheldWordsWarning,
                stacklevel=2,
            )
        yield sentence


def write_conllu(
    sentences: Iterable[ConlluSentence], target: str | os.PathLike[str] | IO[str] | IO[bytes]
) -> int:
    """Write sentences, possibly of several files, to a path or an open stream, and return their number.

    Files are written atomically as the sentences arrive, and gzipped (reproducibly) if the name ends in
    ``.gz``. A missing blank line between two sentences is added.
    """
    count = 0
    with _text_writer(target) as write:
        for text in conllu_texts(sentences):
            count += 1
            write(text)
    return count


def conllu_texts(sentences: Iterable[ConlluSentence], before: ConlluSentence | None = None) -> Iterator[str]:
    """Yield the text of each sentence, to be appended to a file that ends with the sentence `before`."""
    for sentence in sentences:
        end = "" if before is None else _missing_end(before.lines[-1] + before.trailer)
        leader = sentence.leader if before is None else sentence.leader.removeprefix(BYTE_ORDER_MARK)
        yield f"{end}{leader}{''.join(sentence.lines)}{sentence.trailer}"
        before = sentence


def _blocks(source: Source) -> Iterator[tuple[str, int, list[str], str]]:
    """Yield leader, number of the first line, lines and trailer of each sentence."""
    leader, first, trailer, size = "", 0, "", 0
    lines: list[str] = []
    for number, line in numbered_lines(source, ConlluError, keep_mark=True):
        if number == 1 and line.startswith(BYTE_ORDER_MARK):
            leader, line = BYTE_ORDER_MARK, line.removeprefix(BYTE_ORDER_MARK)
        if line in _BLANK_LINES:
            if lines:
                trailer += line
            else:
                leader += line
            continue
        if trailer:
            yield leader, first, lines, trailer
            leader, lines, trailer, size = "", [], "", 0
        first = first if lines else number
        lines.append(line)
        size += len(line)
        if len(lines) > MAX_WORDS or size > MAX_BYTES:
            raise ConlluError(
                f"found over {MAX_WORDS:,} lines or {MAX_BYTES:,} bytes without an empty line, expected one "
                "after each sentence",
                path=source_name(source),
                line=first,
            )
    if lines:
        yield leader, first, lines, trailer


def _word_rows(lines: Sequence[str], first: int, path: str) -> tuple[int, ...]:
    """Validate the format of a sentence and return the positions of its words.

    IDs are those of words 1, 2, 3, ..., of a range before its first word, and of empty nodes after a word.
    """
    word_rows: list[int] = []
    index = empty_nodes = range_end = 0
    row_id = ""
    try:
        for index, line in enumerate(lines):
            if line.startswith("#") and not row_id:
                _check_comment(line)
                continue
            row_id, word = _row_id(line), len(word_rows) + 1
            empty_node, match = f"{word - 1}.{empty_nodes + 1}", _RANGE.fullmatch(row_id)
            if row_id == str(word):
                empty_nodes = 0
                word_rows.append(index)
            elif row_id == empty_node:
                empty_nodes += 1
            elif match and int(match[1]) == word > range_end and int(match[2]) >= word:
                range_end = int(match[2])
            else:
                expected = f"word {word}, empty node {empty_node} or a range from {max(word, range_end + 1)}"
                raise ValueError(f"found ID {row_id!r}, expected {expected}")
        if not word_rows:
            raise ValueError("found a sentence without words, expected at least one row with an integer ID")
        if range_end > len(word_rows):
            raise ValueError(
                f"found a range that ends at {range_end}, expected at most {len(word_rows)}, the last word"
            )
    except ValueError as error:
        sent_id = comment_value(lines, "sent_id")
        raise ConlluError(str(error), path=path, line=first + index, sent_id=sent_id) from None
    return tuple(word_rows)


def _check_line_end(line: str) -> None:
    if "\r" in line_body(line):
        raise ValueError("found a CR within the line, expected lines that end with LF or CRLF")


def _check_comment(line: str) -> None:
    _check_line_end(line)
    declared = _GLOBAL_COLUMNS.fullmatch(line_body(line))
    if declared and declared[1].lower().split() != list(COLUMNS):
        expected = " ".join(COLUMNS).upper()
        raise ValueError(f"found global.columns ={declared[1]}, expected {expected}: reorder the columns")


def _row_id(line: str) -> str:
    """Validate the columns of one row and return its ID."""
    _check_line_end(line)
    if line.startswith("#"):
        raise ValueError("found a comment after the first row, expected comments before all rows")
    columns = line_body(line).split("\t")
    if len(columns) != len(COLUMNS):
        if not line.strip():
            raise ValueError("found a line of white space, expected an empty line between sentences")
        raise ValueError(f"found {len(columns)} columns, expected {len(COLUMNS)} columns separated by tabs")
    for index in (_FORM, _UPOS):
        if not columns[index]:
            raise ValueError(
                f"found an empty {COLUMNS[index].upper()}, expected a value ('_' if unspecified)"
            )
    return columns[0]


def _missing_end(before: str) -> str:
    """Return the line ends to insert between a sentence and the next one."""
    if not before or before.endswith(("\n\n", "\n\r\n")):
        return ""
    return "\n" if before.endswith("\n") else "\n\n"


@contextmanager
def _text_writer(
    target: str | os.PathLike[str] | IO[str] | IO[bytes],
) -> Iterator[Callable[[str], object]]:
    """Yield a function that writes text to the target, as UTF-8 if the target takes bytes."""
    if isinstance(target, (str, os.PathLike)):
        with open_atomic(target) as stream:
            yield lambda text: stream.write(text.encode())
    elif isinstance(target, io.TextIOWrapper):  # bypass its encoding and its translation of line ends
        target.flush()
        yield lambda text: target.buffer.write(text.encode())
        target.buffer.flush()
    elif isinstance(target, io.TextIOBase):
        yield target.write
    else:
        yield lambda text: cast("IO[bytes]", target).write(text.encode())
