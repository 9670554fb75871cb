"""One CoNLL-U sentence, kept as the lines it was read from."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import PurePath

from hf_xst.data.streams import InputError

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
BLANK = "_"
_COMMENT = re.compile(r"#[ \t]*(sent_id|text)[ \t]*=[ \t]*(.*?)[ \t]*")


class ConlluError(InputError):
    """A CoNLL-U file that breaks the format, or gold annotation that cannot be used.

    Attributes:
        path: the file, or ``<stream>``.
        line: the line's number from 1.
        sent_id: the sentence's ``sent_id`` if it has one.
    """

    def __init__(
        self, message: str, *, path: str, line: int | None = None, sent_id: str | None = None
    ) -> None:
        self.sent_id = sent_id
        super().__init__(
            message if sent_id is None else f"sentence {sent_id}: {message}", path=path, line=line
        )


@dataclass(frozen=True)
class ConlluSentence:
    """A sentence as its raw lines, with an index of the rows that are words.

    Ranges (``1-2``) and empty nodes (``8.1``) stay among the lines and never count as words. Sentences are
    equal where their text is, wherever they came from.

    Attributes:
        lines: comments and rows in file order, each with its line end.
        word_rows: positions in `lines` of the word rows, in order.
        leader: what precedes the first sentence of a file: a byte order mark, blank lines.
        trailer: the blank lines that close the sentence; empty where the file just stops.
        path: the file, for messages and for `identifier`.
        line: number of the sentence's first line in the file.
        number: place of the sentence in the file, from 1.
    """

    lines: tuple[str, ...]
    word_rows: tuple[int, ...]
    leader: str = ""
    trailer: str = "\n"
    path: str = field(default="<memory>", compare=False)
    line: int = field(default=1, compare=False)
    number: int = field(default=1, compare=False)

    @classmethod
    def from_words(
        cls,
        words: Sequence[str],
        *,
        sent_id: str | None = None,
        columns: Mapping[str, Sequence[str]] | None = None,
    ) -> ConlluSentence:
        """Build a sentence from words alone; every column that is not given is blank.

        Args:
            words: the forms, at least one.
            sent_id: written as a comment, with the words joined by spaces as the text.
            columns: further columns by name, as for `replaced`.

        Raises:
            ValueError: no words, or a value that a CoNLL-U column cannot hold.
        """
        if not words:
            raise ValueError("a sentence needs at least one word")
        for word in words:
            _check_value("form", word)
        if sent_id is not None:
            _check_value("sent_id", sent_id)
        comments = [] if sent_id is None else [f"# sent_id = {sent_id}\n", f"# text = {' '.join(words)}\n"]
        blanks = "\t".join([BLANK] * (len(COLUMNS) - 2))
        rows = [f"{number}\t{word}\t{blanks}\n" for number, word in enumerate(words, start=1)]
        bare = cls((*comments, *rows), tuple(range(len(comments), len(comments) + len(rows))))
        return bare.replaced(columns) if columns else bare

    @cached_property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The ten columns of each word row."""
        return tuple([tuple(line_body(self.lines[index]).split("\t")) for index in self.word_rows])

    def column(self, name: str) -> list[str]:
        """One column of the word rows, by its lower-case CoNLL-U name, as it stands in the file."""
        place = COLUMNS.index(name)
        return [row[place] for row in self.rows]

    @property
    def words(self) -> list[str]:
        """FORM of each word; a form that is an underscore is just that."""
        return self.column("form")

    @property
    def upos(self) -> list[str]:
        """UPOS of each word."""
        return self.column("upos")

    @property
    def xpos(self) -> list[str]:
        """XPOS of each word."""
        return self.column("xpos")

    @property
    def heads(self) -> list[str]:
        """HEAD of each word as written: blank or stale values are nobody's concern until gold is wanted."""
        return self.column("head")

    @property
    def deprels(self) -> list[str]:
        """DEPREL of each word as written, with its subtype."""
        return self.column("deprel")

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
        """The ``sent_id``, or the file's name and the sentence's place in it (``file.conllu:3``)."""
        return self.sent_id or f"{PurePath(self.path).name.removesuffix('.gz')}:{self.number}"

    @property
    def raw(self) -> str:
        """The text exactly as it stood in the file."""
        return f"{self.leader}{''.join(self.lines)}{self.trailer}"

    def replaced(self, columns: Mapping[str, Sequence[str | int]]) -> ConlluSentence:
        """Copy the sentence with other values in the named columns of its word rows, and in nothing else.

        Args:
            columns: lower-case column name ("upos", "head", "deprel", "misc", ...) to one value for each
                word.

        Raises:
            ValueError: an unknown or protected column, a wrong number of values, or a value that holds a tab
                or a line break or is empty.
        """
        lines = list(self.lines)
        cells = [list(row) for row in self.rows]
        for name, values in columns.items():
            self._check_column(name, len(values))
            place = COLUMNS.index(name)
            for row, value in zip(cells, values, strict=True):
                row[place] = _check_value(name, str(value))
        for index, row in zip(self.word_rows, cells, strict=True):
            lines[index] = "\t".join(row) + line_end(lines[index])
        return replace(self, lines=tuple(lines))

    def annotated(
        self, columns: Mapping[str, Sequence[str | int]], *, instead_of: Collection[str] = ()
    ) -> ConlluSentence:
        """Copy the sentence as `replaced` does; what CoNLL-U has no column for becomes attributes in MISC.

        Args:
            columns: name to one value for each word; a blank value is no attribute.
            instead_of: further names of attributes that are dropped.

        Raises:
            ValueError: a wrong number of values, or a value that CoNLL-U cannot hold.
        """
        found = self.replaced({name: values for name, values in columns.items() if name in COLUMNS})
        others = {name: values for name, values in columns.items() if name not in COLUMNS}
        dropped = {*others, *instead_of}
        present = [cell.split("|") for cell in found.column("misc")]
        if not others and not any(each.partition("=")[0] in dropped for cell in present for each in cell):
            return found
        for name, values in others.items():
            self._check_count(name, len(values))
        cells = [
            [each for each in cell if each != BLANK and each.partition("=")[0] not in dropped]
            for cell in present
        ]
        for name, values in others.items():
            for entries, value in zip(cells, values, strict=True):
                if value != BLANK:
                    entries.append(f"{name}={_check_attribute(name, str(value))}")
        return found.replaced({"misc": ["|".join(entries) or BLANK for entries in cells]})

    def commented(self, comments: Sequence[str], *, instead_of: Sequence[str] = ()) -> ConlluSentence:
        """Copy the sentence with further comments behind those that it has.

        Args:
            comments: whole lines without their line end (``# key = value``).
            instead_of: beginnings of comments that are dropped.

        Raises:
            ValueError: a comment is none, or holds a line break.
        """
        for comment in comments:
            if not comment.startswith("#") or any(mark in comment for mark in "\n\r"):
                raise ValueError(f"found {comment!r}, expected a comment: one line that begins with #")
        count = next(index for index, line in enumerate(self.lines) if not line.startswith("#"))
        own = [line for line in self.lines[:count] if not line.startswith(tuple(instead_of))]
        if not comments and len(own) == count:
            return self
        own += [comment + line_end(self.lines[count]) for comment in comments]
        moved = len(own) - count
        return replace(
            self,
            lines=(*own, *self.lines[count:]),
            word_rows=tuple(index + moved for index in self.word_rows),
        )

    def error(self, message: str) -> ConlluError:
        """Build an error about this sentence, with file, line and sent_id."""
        return ConlluError(
            message, path=self.path, line=self.line, sent_id=self.sent_id or f"number {self.number}"
        )

    def _check_column(self, name: str, count: int) -> None:
        if name not in COLUMNS[1:]:
            raise ValueError(f"found column {name!r}, expected one of {', '.join(COLUMNS[1:])}")
        self._check_count(name, count)

    def _check_count(self, name: str, count: int) -> None:
        if count != len(self.word_rows):
            raise ValueError(
                f"sentence {self.identifier}: found {count} values for {name}, "
                f"expected {len(self.word_rows)}, one for each word"
            )


def line_body(line: str) -> str:
    """A line without its line end (a line feed, or a carriage return and a line feed)."""
    return line.removesuffix("\n").removesuffix("\r")


def line_end(line: str) -> str:
    """The line end alone."""
    if line.endswith("\r\n"):
        return "\r\n"
    return line[-1:] if line.endswith(("\n", "\r")) else ""


def comment_value(lines: Sequence[str], key: str) -> str | None:
    """The value of the first ``# key = value`` comment (``sent_id``, ``text``), None if missing or empty."""
    for line in lines:
        if not line.startswith("#"):
            break
        found = _COMMENT.fullmatch(line_body(line))
        if found and found[1] == key and found[2]:
            return found[2]
    return None


def attribute(cell: str | None, name: str) -> str:
    """The value of an attribute in a cell of MISC (``name=value|...``), blank if it is not there."""
    pairs = (entry.partition("=") for entry in (cell or "").split("|"))
    return next((value for key, _, value in pairs if key == name and value), BLANK)


def _check_attribute(name: str, value: str) -> str:
    if "|" in value:
        raise ValueError(f"found {value!r} for {name}, expected text without |, which ends a value in MISC")
    return _check_value(name, value)


def _check_value(name: str, value: str) -> str:
    if not value or "\t" in value or "\n" in value or "\r" in value:
        raise ValueError(
            f"found {value!r} for {name}, expected text without tabs and line breaks ({BLANK!r} for no value)"
        )
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"found {value!r} for {name}, of which half a character cannot be written") from None
    return value
