"""Read unlabelled text of several formats, as a stream of sentences or as a data set.

Formats, selected by suffix (ignoring ``.gz``) or by name:

- ``conllu`` (``.conllu``): heads and relations are ignored; tags are kept;
- ``text`` (``.txt``): one sentence per line, words separated by U+0020 (other spaces are part of words);
- ``jsonl`` (``.jsonl``): one object per line with ``words`` or ``tokens`` (a list of strings), and optionally
  ``upos``, ``sent_id`` and ``text``; other keys only return in JSON lines;
- ``raw`` (by name only): running text, segmented by `hf_xst.data.segmentation`; blank lines end paragraphs.

Blank lines are skipped. Missing UPOS is ``_``. A sentence without ``sent_id`` is named ``file:3``, by its
line or, in `conllu` and `raw`, by its number.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path, PurePath
from typing import Any

from datasets import Dataset

from hf_xst.data.conllu import read_conllu
from hf_xst.data.layout import Row, cached_rows, file_key
from hf_xst.data.preparation import prepared_features
from hf_xst.data.segmentation import paragraph_sentences
from hf_xst.data.sentence import ConlluSentence
from hf_xst.data.streams import MAX_BYTES, InputError, Source, numbered_lines, source_name

SUFFIXES = {".conllu": "conllu", ".txt": "text", ".jsonl": "jsonl"}
_FORM_KEYS = ("words", "tokens", "id", "form")


class TextError(InputError):
    """Malformed unlabelled text."""


def iterate_unlabelled(source: Source, *, format: str | None = None) -> Iterator[ConlluSentence]:
    """Iterate over the sentences of a file or stream; all of them can be written as CoNLL-U.

    Args:
        source: A path, or an open stream (which requires `format`).
        format: "conllu", "text", "jsonl" or "raw"; defaults to the format of the file's suffix.

    Raises:
        TextError: An unknown format or a malformed line, with file and line.
        ConlluError: Malformed CoNLL-U.
    """
    return _READERS[_resolve_format(source, format)](source)


def read_unlabelled(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
) -> Dataset:
    """Read a file in the prepared layout: ``sent_id``, ``words``, ``upos``.

    It is streamed to the cache, which defaults to a folder in the cache of `datasets`, and found there again.
    For data sets see `hf_xst.data.prepare`, for the format and errors `iterate_unlabelled`.
    """
    resolved = _resolve_format(path, format)

    def rows() -> Iterator[Row]:
        for sentence in _READERS[resolved](path):
            yield {"sent_id": sentence.identifier, "words": sentence.words, "upos": sentence.upos}

    features, kind = prepared_features(gold=False), f"unlabelled-{resolved}"
    return cached_rows(file_key(path), rows, features, kind=kind, cache_dir=cache_dir)


def read_labelled_jsonl(source: Source) -> Iterator[ConlluSentence]:
    """Read JSON lines as a treebank: each list of strings in an object is a column with one value per word.

    Names that CoNLL-U lacks (``ner_tags``) become attributes in MISC; ``head`` may hold integers. Other
    values, such as lists of numbers, are ignored.
    """
    return _line_sentences(source, partial(_parse_json, labels=True))


def _resolve_format(source: Source, format: str | None) -> str:
    suffix = PurePath(source_name(source).removesuffix(".gz")).suffix
    resolved = SUFFIXES.get(suffix) if format is None else format
    if resolved not in _READERS:
        unknown = f"suffix {suffix!r}" if format is None else f"format {format!r}"
        if isinstance(source, (str, os.PathLike)) and Path(source).is_dir():
            unknown = "a folder"
        raise TextError(
            f"found {unknown}, expected one of {', '.join(SUFFIXES)}, or a format: {' '.join(_READERS)}",
            path=source_name(source),
        )
    return resolved


_Parsed = tuple[list[str], Row, dict[str, list[str]]]  # words, other keys, further columns


def _line_sentences(source: Source, parse: Callable[[str], _Parsed]) -> Iterator[ConlluSentence]:
    """Read a format with one sentence per line; blank lines are skipped."""
    for number, line in numbered_lines(source, TextError):
        if not line.strip(" \r\n"):
            continue
        try:
            words, extra, columns = parse(line)
            name, text = extra.get("sent_id"), extra.get("text")
            sent_id = _position(source, number) if name in (None, "") else str(name)
            text = text if isinstance(text, str) else None
            sentence = ConlluSentence.from_words(words, sent_id=sent_id, text=text).with_annotation(columns)
            sentence = replace(sentence, extra=extra)
        except ValueError as error:
            raise TextError(str(error), path=source_name(source), line=number) from None
        yield sentence


def _position(source: Source, number: int) -> str:
    return f"{PurePath(source_name(source)).name.removesuffix('.gz')}:{number}"


def _parse_text(line: str) -> _Parsed:
    if "\t" in line:
        raise ValueError("found a tab, expected words separated by spaces; for CoNLL-U pass format='conllu'")
    return [word for word in line.rstrip("\r\n").split(" ") if word], {}, {}


def _parse_json(line: str, *, labels: bool) -> _Parsed:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:  # ValueError: an integer of more than 4300 digits
        raise ValueError(f"invalid JSON ({error}), expected one object per line") from None
    if not isinstance(row, dict) or not {"words", "tokens"} & set(row):
        raise ValueError(f"found {line.strip():.60}, expected an object with 'words' or 'tokens'")
    columns = {} if row.get("upos") is None else {"upos": _strings(row["upos"], "upos")}
    for name, values in row.items() if labels else ():
        kinds = (str, int) if name == "head" else str
        is_column = isinstance(values, list) and values and all(isinstance(value, kinds) for value in values)
        if is_column and name not in _FORM_KEYS:
            columns[name] = [str(value) for value in values]
    return (
        _strings(row.get("words", row.get("tokens")), "words"),
        {name: value for name, value in row.items() if name not in ("words", "tokens")},
        columns,
    )


def _strings(value: Any, key: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"found {key} {value!r:.60}, expected a list of strings")
    return value


def _read_raw(source: Source) -> Iterator[ConlluSentence]:
    count = 0
    numbered = numbered_lines(source, TextError)
    for is_blank, group in groupby(numbered, key=lambda item: not item[1].strip()):
        if is_blank:
            continue
        lines, size = [], 0
        for number, line in group:
            lines.append((number, line))
            size += len(line)
            if size > MAX_BYTES:
                raise TextError(
                    f"found over {MAX_BYTES:,} bytes without an empty line; separate paragraphs by one",
                    path=source_name(source),
                    line=lines[0][0],
                )
        comments = ["# newpar"]
        try:
            for sentence in paragraph_sentences("".join(line for _, line in lines)):
                count += 1
                comments += [f"# sent_id = {_position(source, count)}", *sentence.comments]
                yield sentence.with_comments(comments, drop=["#"])
                comments = []
        except ValueError as error:
            raise TextError(str(error), path=source_name(source), line=lines[0][0]) from None


_READERS: dict[str, Callable[[Source], Iterator[ConlluSentence]]] = {
    "conllu": read_conllu,
    "text": partial(_line_sentences, parse=_parse_text),
    "jsonl": partial(_line_sentences, parse=partial(_parse_json, labels=False)),
    "raw": _read_raw,
}
