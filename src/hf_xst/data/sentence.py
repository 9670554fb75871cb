"""Represent one CoNLL-U sentence, losslessly."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import PurePath
from typing import Any

from hf_xst.data.streams import InputError

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
BLANK = "_"
MAX_WORDS = 10_000
"""Most words of a sentence, and most lines of a sentence in CoNLL-U."""
_HEAD = re.compile("0|[1-9][0-9]{0,8}")  # int() would accept "+3", " 3", "1_0" and digits of other scripts


class ConlluError(InputError):
    """Malformed CoNLL-U, or unusable gold annotation; `sent_id` names the sentence if it has one."""

    def __init__(
        self, message: str, *, path: str | None = None, line: int | None = None, sent_id: str | None = None
    ) -> None:
        self.sent_id = sent_id
        super().__init__(
            message if sent_id is None else f"sentence {sent_id}: {message}", path=path, line=line
        )


@dataclass(frozen=True)
class ConlluSentence:
    """A sentence: its lines, and the positions of the rows that are words.

    Multiword ranges (``1-2``) and empty nodes (``8.1``) are kept among the lines but never count as words.
    Two sentences are equal if their text is equal.

    Attributes:
        lines: Comments and rows in file order, each with its line end.
        word_rows: Positions of the words in `lines`.
        leader: The byte order mark and blank lines before the first sentence of a file.
        trailer: The blank lines after the sentence.
        path: The file.
        line: Number of the sentence's first line in the file.
        number: Number of the sentence in the file, from 1.
        extra: What a row of JSON lines holds besides its words; its text and tags are in the lines, too.
    """

    lines: tuple[str, ...]
    word_rows: tuple[int, ...]
    leader: str = ""
    trailer: str = "\n"
    path: str = field(default="<memory>", compare=False)
    line: int = field(default=1, compare=False)
    number: int = field(default=1, compare=False)
    extra: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @classmethod
    def from_words(
        cls,
        words: Sequence[str],
        *,
        sent_id: str | None = None,
        text: str | None = None,
        columns: Mapping[str, Sequence[str]] | None = None,
    ) -> ConlluSentence:
        """Build a sentence from words; omitted columns are blank.

        Args:
            words: At least one form, and at most `MAX_WORDS`.
            sent_id: Written as a comment, together with the text.
            text: Defaults to the words joined by spaces; tabs and line breaks become spaces.
            columns: Further columns, as for `with_columns`.
        """
        if not words or isinstance(words, str):
            raise ValueError(f"found {words!r:.40}: a sentence requires at least one word, in a list")
        if len(words) > MAX_WORDS:
            raise ValueError(f"found {len(words):,} words, expected at most {MAX_WORDS:,}; split them")
        for word in words:
            _check_value("form", word)
        comments = []
        if sent_id is not None:
            line = " ".join(re.split(r"[\t\r\n]+", text or "")).strip() or " ".join(words)
            named = {"sent_id": sent_id, "text": line}
            comments = [f"# {key} = {_check_value(key, value)}\n" for key, value in named.items()]
        blanks = "\t".join([BLANK] * (len(COLUMNS) - 2))
        rows = [f"{number}\t{word}\t{blanks}\n" for number, word in enumerate(words, start=1)]
        sentence = cls((*comments, *rows), tuple(range(len(comments), len(comments) + len(rows))))
        return sentence.with_columns(columns) if columns else sentence

    @cached_property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The ten columns of each word."""
        return tuple([tuple(line_body(self.lines[index]).split("\t")) for index in self.word_rows])

    def column(self, name: str) -> list[str]:
        """Return one column of the words, by its lower-case CoNLL-U name, as written in the file."""
        index = COLUMNS.index(name)
        return [row[index] for row in self.rows]

    @property
    def words(self) -> list[str]:
        """FORM of each word; an underscore is an ordinary form."""
        return self.column("form")

    @property
    def upos(self) -> list[str]:
        """UPOS of each word."""
        return self.column("upos")

    @property
    def heads(self) -> list[str]:
        """HEAD of each word as written, not validated."""
        return self.column("head")

    @property
    def head_numbers(self) -> list[int]:
        """HEAD of each word as a number, which may be beyond the sentence; ConlluError if one is not."""
        for index, head in enumerate(self.heads, start=1):
            if head_number(head) is None:
                raise self.error(f"word {index} has head {head!r:.60}, expected a non-negative integer")
        return list(map(int, self.heads))

    @property
    def deprels(self) -> list[str]:
        """DEPREL of each word as written, including its subtype."""
        return self.column("deprel")

    @property
    def spaces(self) -> list[bool]:
        """Whether a space follows each word, by SpaceAfter in MISC; after a range, by that of the range.

        Words inside a range are separated only if they do not spell its form (`von dem` for `vom`).
        """
        form, misc = COLUMNS.index("form"), COLUMNS.index("misc")
        rows = [line_body(line).split("\t") for line in self.lines if not line.startswith("#")]
        after = {row[0]: "SpaceAfter=No" not in row[misc].split("|") for row in rows}
        spaces = [after[row[0]] for row in self.rows]
        for row in rows:
            first, _, last = row[0].partition("-")
            if last:
                start, end = int(first) - 1, int(last)
                is_spelt = "".join(self.words[start:end]) == row[form]
                spaces[start:end] = [not is_spelt] * (end - start - 1) + [after[row[0]]]
        return spaces

    @property
    def comments(self) -> list[str]:
        """The comment lines in order, without their line ends."""
        return [line_body(line) for line in self.lines if line.startswith("#")]

    @property
    def sent_id(self) -> str | None:
        """The value of the ``sent_id`` comment, or None."""
        return comment_value(self.lines, "sent_id")

    @property
    def text(self) -> str | None:
        """The value of the ``text`` comment, or None."""
        return comment_value(self.lines, "text")

    @property
    def identifier(self) -> str:
        """The ``sent_id``, or else the file name and sentence number (``file.conllu:3``)."""
        return self.sent_id or f"{PurePath(self.path).name.removesuffix('.gz')}:{self.number}"

    @property
    def raw(self) -> str:
        """The exact text of the sentence in its file."""
        return f"{self.leader}{''.join(self.lines)}{self.trailer}"

    def with_columns(self, columns: Mapping[str, Sequence[str | int]]) -> ConlluSentence:
        """Copy the sentence, replacing columns ("upos", "misc", ...); ValueError if one is invalid."""
        rows = [list(row) for row in self.rows]
        for name, values in columns.items():
            if name not in COLUMNS[1:]:
                raise ValueError(f"found column {name!r}, expected one of {', '.join(COLUMNS[1:])}")
            self._check_count(name, values)
            index = COLUMNS.index(name)
            for row, value in zip(rows, values, strict=True):
                row[index] = _check_value(name, str(value))
        lines = list(self.lines)
        for index, row in zip(self.word_rows, rows, strict=True):
            lines[index] = "\t".join(row) + line_end(lines[index])
        return replace(self, lines=tuple(lines))

    def with_annotation(
        self, columns: Mapping[str, Sequence[str | int]], *, drop: Collection[str] = ()
    ) -> ConlluSentence:
        """Copy the sentence with new columns; names that CoNLL-U lacks become attributes in MISC.

        A blank value adds no attribute. Attributes in `drop` are removed.
        """
        for name, values in columns.items():
            self._check_count(name, values)
        attributes = {name: values for name, values in columns.items() if name not in COLUMNS}
        for name in attributes:
            if not name or {*name} & {*"=|"}:
                raise ValueError(f"found {name!r}, expected the name of an attribute, without = and |")
        replaced = {name: values for name, values in columns.items() if name in COLUMNS}
        cells = []
        for index, cell in enumerate(map(str, columns.get("misc", self.column("misc")))):
            entries = [e for e in cell.split("|") if e.partition("=")[0] not in {*attributes, *drop}]
            new = [
                f"{name}={_check_value(name, str(values[index]), end='|')}"
                for name, values in attributes.items()
                if values[index] != BLANK
            ]
            if new:
                entries = [entry for entry in entries if entry != BLANK] + new
            cells.append("|".join(entries) or BLANK)
        return self.with_columns({**replaced, "misc": cells})

    def with_comments(self, comments: Sequence[str], *, drop: Sequence[str] = ()) -> ConlluSentence:
        """Copy the sentence with comments (``# key = value``) appended to the existing ones.

        Existing comments that start with a prefix in `drop` are removed.
        """
        for comment in comments:
            if not comment.startswith("#") or any(mark in comment for mark in "\n\r"):
                raise ValueError(f"found {comment!r}, expected a comment: one line that begins with #")
        count = next(index for index, line in enumerate(self.lines) if not line.startswith("#"))
        header = [line for line in self.lines[:count] if not line.startswith(tuple(drop))]
        header += [comment + line_end(self.lines[count]) for comment in comments]
        return replace(
            self,
            lines=(*header, *self.lines[count:]),
            word_rows=tuple(index + len(header) - count for index in self.word_rows),
        )

    def error(self, message: str) -> ConlluError:
        """Build an error with the file, line and name of this sentence."""
        name = self.sent_id or f"number {self.number}"
        return ConlluError(message, path=self.path, line=self.line, sent_id=name)

    def _check_count(self, name: str, values: Sequence[str | int]) -> None:
        if isinstance(values, str) or len(values) != len(self.word_rows):
            raise ValueError(
                f"sentence {self.identifier}: found {len(values)} values for {name}, "
                f"expected {len(self.word_rows)}, one per word, in a list"
            )


def line_body(line: str) -> str:
    """Return a line without its line end (LF or CRLF)."""
    return line.removesuffix("\n").removesuffix("\r")


def line_end(line: str) -> str:
    """Return the line end alone."""
    return line[len(line_body(line)) :]


def comment_value(lines: Sequence[str], key: str) -> str | None:
    """Return the value of the first ``# key = value`` comment (``sent_id``, ``text``), None if empty."""
    for line in lines:
        if not line.startswith("#"):
            break
        name, _, value = line_body(line)[1:].partition("=")
        if name.strip(" \t") == key and value.strip(" \t"):
            return value.strip(" \t")
    return None


def head_number(head: object) -> int | None:
    """Return a HEAD as a number; None unless it is 0 or a positive integer of at most nine ASCII digits."""
    return int(str(head)) if _HEAD.fullmatch(str(head)) else None


def misc_attribute(cell: str | None, name: str) -> str:
    """Return the value of an attribute in a MISC cell (``name=value|...``), blank if missing."""
    pairs = (entry.partition("=") for entry in (cell or "").split("|"))
    return next((value for key, _, value in pairs if key == name and value), BLANK)


def _check_value(name: str, value: str, end: str | None = None) -> str:
    if end is not None and end in value:
        raise ValueError(f"found {value!r} for {name}, expected text without {end}, which ends a value")
    if not value or "\t" in value or "\n" in value or "\r" in value:
        raise ValueError(
            f"found {value!r} for {name}, expected text without tabs and line breaks ({BLANK!r} for no value)"
        )
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"found {value!r} for {name}, which contains half of a surrogate pair") from None
    return value
