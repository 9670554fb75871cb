"""Our own CoNLL-U reader and writer: strict about the format, lossless, and streaming.

What is read and written again is the same, byte for byte: comments, ranges, empty nodes, the order of
everything,
Windows line ends, several blank lines, a byte order mark, a missing last line end. Annotation is not looked
at: blank, stale or broken heads are accepted here, and `hf_xst.data.gold` judges them when somebody wants
gold.
"""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, cast

from hf_xst.data.sentence import BLANK, COLUMNS, ConlluError, ConlluSentence, comment_value, line_body
from hf_xst.data.streams import BYTE_ORDER_MARK, Source, name_of, numbered_lines, written_bytes

_RANGE = re.compile(r"([1-9][0-9]*)-([1-9][0-9]*)")
_EMPTY_NODE = re.compile(r"(0|[1-9][0-9]*)\.([1-9][0-9]*)")
_BLANK_LINES = frozenset(("\n", "\r\n", "\r", ""))
_ID, _FORM, _UPOS = (COLUMNS.index(name) for name in ("id", "form", "upos"))


class WithheldWordsWarning(UserWarning):
    """All forms of a sentence are underscores: the treebank's publisher has withheld the words."""


def read_conllu(source: Source) -> Iterator[ConlluSentence]:
    """Read sentences one by one.

    A sentence whose forms are all underscores is kept, with one `WithheldWordsWarning` for the file. Within a
    sentence a single underscore is a word like any other.

    Args:
        source: a path or an open stream of text or bytes, plain or gzipped.

    Yields:
        The sentences in file order.

    Raises:
        ConlluError: the format is broken, with file, line and sentence.
        FileNotFoundError: there is no such file.
    """
    path, warned = name_of(source), False
    for number, block in enumerate(_blocks(source), start=1):
        words = _checked_word_rows(block, path)
        sentence = ConlluSentence(
            tuple(block.lines), words, block.leader, block.trailer, path, block.first, number
        )
        if not warned and sentence.words[0] == BLANK and set(sentence.words) == {BLANK}:
            warned = True
            warnings.warn(
                f"{path}: every form of sentence {sentence.identifier} is '_': are the words withheld? "
                "(said once a file)",
                WithheldWordsWarning,
                stacklevel=2,
            )
        yield sentence


def write_conllu(
    sentences: Iterable[ConlluSentence], target: str | os.PathLike[str] | IO[str] | IO[bytes]
) -> int:
    """Write sentences as they come, and return how many there were.

    A file is written beside its place and renamed when it is whole, gzipped (reproducibly) if its name ends
    in ``.gz``. Where a sentence without closing blank line is followed by another one, the line is added.

    Args:
        sentences: sentences, which may come from several files.
        target: a path, or an open stream of text or bytes.
    """
    count = 0
    with _byte_sink(target) as sink:
        for text in conllu_texts(sentences):
            count += 1
            sink.write(text.encode())
    return count


def conllu_texts(sentences: Iterable[ConlluSentence], before: ConlluSentence | None = None) -> Iterator[str]:
    """Give the text of each sentence, so that all of them joined are one file.

    Args:
        sentences: sentences, which may come from several files.
        before: the sentence that stands before the first one, if the file has begun.
    """
    for sentence in sentences:
        end = "" if before is None else _missing_end(before.lines[-1] + before.trailer)
        leader = sentence.leader if before is None else sentence.leader.removeprefix(BYTE_ORDER_MARK)
        yield f"{end}{leader}{''.join(sentence.lines)}{sentence.trailer}"
        before = sentence


@dataclass
class _Block:
    """The lines of one sentence on their way to be checked."""

    first: int
    leader: str
    lines: list[str]
    trailer: str = ""


def _blocks(source: Source) -> Iterator[_Block]:
    leader, block = "", None
    for number, line in numbered_lines(source, ConlluError, keep_mark=True):
        if number == 1 and line.startswith(BYTE_ORDER_MARK):
            leader, line = BYTE_ORDER_MARK, line.removeprefix(BYTE_ORDER_MARK)
        blank = line in _BLANK_LINES
        if block is None and blank:
            leader += line
        elif block is None:
            block = _Block(number, leader, [line])
        elif blank:
            block.trailer += line
        elif not block.trailer:
            block.lines.append(line)
        else:
            yield block
            block = _Block(number, "", [line])
    if block is not None:
        yield block


def _checked_word_rows(block: _Block, path: str) -> tuple[int, ...]:
    """Check the shape of a sentence and give the positions of its word rows."""
    ids, words, rows = _IdSequence(), [], 0
    for index, line in enumerate(block.lines):
        try:
            if not line.startswith("#"):
                rows += 1
                if ids.take(_checked_columns(line)):
                    words.append(index)
            elif rows:
                raise ValueError(
                    "found a comment after the first row, expected comments before all rows of a sentence"
                )
            if index == len(block.lines) - 1:
                ids.close()
        except ValueError as problem:
            sent_id = comment_value(block.lines, "sent_id")
            raise ConlluError(str(problem), path=path, line=block.first + index, sent_id=sent_id) from None
    return tuple(words)


def _checked_columns(line: str) -> str:
    """Check one row's columns and give its ID."""
    columns = line_body(line).split("\t")
    if len(columns) != len(COLUMNS):
        if not line.strip():
            raise ValueError("found a line of white space, expected an empty line between sentences")
        raise ValueError(f"found {len(columns)} columns, expected {len(COLUMNS)} columns separated by tabs")
    for place in (_FORM, _UPOS):
        if not columns[place]:
            raise ValueError(f"found an empty {COLUMNS[place].upper()}, expected a value ('_' for none)")
    return columns[_ID]


class _IdSequence:
    """The rule of IDs: words 1, 2, 3, ..., a range before its first word, empty nodes after their word."""

    def __init__(self) -> None:
        self.words = 0
        self.empty_nodes = 0
        self.range_end = 0

    def take(self, found: str) -> bool:
        """Accept the next ID and say whether it is a word's."""
        if found == str(self.words + 1):
            self.words += 1
            self.empty_nodes = 0
            return True
        if match := _RANGE.fullmatch(found):
            self._take_range(found, int(match[1]), int(match[2]))
        elif match := _EMPTY_NODE.fullmatch(found):
            expected = f"{self.words}.{self.empty_nodes + 1}"
            if found != expected:
                raise ValueError(f"found empty node {found}, expected {expected} here")
            self.empty_nodes += 1
        elif re.fullmatch("[0-9]+", found):
            raise ValueError(f"found ID {found}, expected {self.words + 1}: words are numbered 1, 2, 3, ...")
        else:
            raise ValueError(
                f"found ID {found!r}, expected a number (3), a range (3-4) or an empty node (3.1)"
            )
        return False

    def close(self) -> None:
        """Check what can only be told at the end of a sentence."""
        if not self.words:
            raise ValueError(
                "found a sentence without words, expected at least one row with a whole number as ID"
            )
        if self.range_end > self.words:
            raise ValueError(
                f"found a range that ends at {self.range_end}, expected at most {self.words}, the last word"
            )

    def _take_range(self, found: str, start: int, end: int) -> None:
        if start != self.words + 1 or end < start:
            raise ValueError(
                f"found range {found}, expected one that starts at {self.words + 1} and ends no earlier"
            )
        if start <= self.range_end:
            raise ValueError(
                f"found range {found}, expected one that begins after the range up to {self.range_end}"
            )
        self.range_end = end


def _missing_end(before: str) -> str:
    """What must follow a sentence before the next one may begin."""
    if not before or before.endswith(("\n\n", "\n\r\n")):
        return ""
    return "\n" if before.endswith("\n") else "\n\n"


class _TextSink:
    """Bytes for a stream that wants text."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def write(self, data: bytes) -> None:
        self.stream.write(data.decode())


@contextmanager
def _byte_sink(target: str | os.PathLike[str] | IO[str] | IO[bytes]) -> Iterator[IO[bytes] | _TextSink]:
    if isinstance(target, io.TextIOWrapper):
        target.flush()
        yield target.buffer
        target.buffer.flush()
    elif isinstance(target, io.TextIOBase):
        yield _TextSink(cast("IO[str]", target))
    elif isinstance(target, (str, os.PathLike)):
        with written_bytes(target) as stream:
            yield stream
    else:
        yield cast("IO[bytes]", target)
