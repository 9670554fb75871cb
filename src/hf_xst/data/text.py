"""Unlabelled text: whatever holds words, streamed as sentences or held in the prepared layout without gold.

Formats, by suffix (a last ``.gz`` does not count) or by name:

- ``conllu`` (``.conllu``): heads and relations may be blank, stale or broken; tags are taken as they stand;
- ``text`` (``.txt``): one sentence a line, words separated by spaces (U+0020 only: other spaces are part of
  words), empty lines skipped;
- ``jsonl`` (``.jsonl``): one object a line with ``words`` or ``tokens`` (a list of strings), and optionally
  ``upos`` and ``sent_id`` (as a treebank it may hold more, see `labelled_lines`);
- ``raw`` (by name only): running text, cut into sentences and words as `hf_xst.data.segmentation` says;
  paragraphs end at blank lines and are read one by one.

UPOS is ``_`` where there is none. A sentence without ``sent_id`` is called ``file:3`` after its place in the
file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import PurePath
from typing import Any

from datasets import Dataset, List, Value

from hf_xst.data.cache import cached_dataset
from hf_xst.data.conllu import read_conllu
from hf_xst.data.layout import Row, rows_to_dataset
from hf_xst.data.preparation import prepare, prepared_features
from hf_xst.data.segmentation import paragraph_sentences
from hf_xst.data.sentence import ConlluSentence
from hf_xst.data.streams import InputError, Source, name_of, numbered_lines


class TextError(InputError):
    """A file of unlabelled text that cannot be read."""


def iterate_unlabelled(source: Source, *, format: str | None = None) -> Iterator[ConlluSentence]:
    """Give sentences one by one; whatever they were read from, they can be written as CoNLL-U.

    Args:
        source: a path or an open stream (then `format` is needed).
        format: "conllu", "text", "jsonl" or "raw"; by default the file's suffix says it.

    Raises:
        TextError: a line cannot be read, with file and line; or the format is unknown.
        ConlluError: a CoNLL-U file breaks the format.
    """
    return _READERS[_format_of(source, format)](source)


def read_unlabelled(
    source: Source | Dataset,
    *,
    column: str | None = None,
    format: str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
) -> Dataset:
    """Give unlabelled text in the prepared layout: ``sent_id``, ``words``, ``upos``.

    A file is streamed into the cache and found there again; a stream is held in memory.

    Args:
        source: a path, an open stream, or a data set with a column of words.
        column: the column of words of a data set, by default ``words`` or ``tokens``.
        format: as for `iterate_unlabelled`.
        cache_dir: where to cache, by default within the cache of `datasets`.

    Raises:
        TextError: a line cannot be read.
        ConlluError: a CoNLL-U file breaks the format.
        ValueError: a data set without such a column, or a `column` for a file.
    """
    if isinstance(source, Dataset):
        return _from_column(source, column)
    if column is not None:
        raise ValueError(f"found column {column!r} for {name_of(source)}, expected it with a data set only")
    kind = _format_of(source, format)
    features = prepared_features(gold=False)
    rows = partial(_rows, source, kind)
    if isinstance(source, (str, os.PathLike)):
        return cached_dataset(source, rows, features, kind=f"unlabelled-{kind}", cache_dir=cache_dir)
    return rows_to_dataset(rows(), features)


def _rows(source: Source, kind: str) -> Iterator[Row]:
    for sentence in _READERS[kind](source):
        yield {"sent_id": sentence.identifier, "words": sentence.words, "upos": sentence.upos}


def _format_of(source: Source, given: str | None) -> str:
    suffix = PurePath(name_of(source).removesuffix(".gz")).suffix
    found = given if given is not None else _SUFFIXES.get(suffix)
    if found not in _READERS:
        what = f"format {given!r}" if given is not None else f"suffix {suffix!r}"
        raise TextError(
            f"found {what}, expected one of {', '.join(_SUFFIXES)}, or by name: {' '.join(_READERS)}",
            path=name_of(source),
        )
    return found


def _read_text(source: Source) -> Iterator[ConlluSentence]:
    count = 0
    for number, line in numbered_lines(source, TextError):
        words = [word for word in line.rstrip("\r\n").split(" ") if word]
        if words:
            count += 1
            yield _sentence(source, number, words, _name(source, count), {})


def labelled_lines(source: Source) -> Iterator[ConlluSentence]:
    """Read JSON lines as a treebank: each list of strings in an object is a column with a value a word.

    What CoNLL-U has no column for (``ner_tags``) becomes attributes in MISC; ``head`` may hold numbers. All
    else in an object, such as lists of numbers, is left aside.

    Raises:
        TextError: a line cannot be read, with file and line.
    """
    return _json_sentences(source, _labels_of)


def _read_jsonl(source: Source) -> Iterator[ConlluSentence]:
    return _json_sentences(source, _upos_of)


def _json_sentences(
    source: Source, columns_of: Callable[[Row, int, Source], dict[str, list[str]]]
) -> Iterator[ConlluSentence]:
    count = 0
    for number, line in numbered_lines(source, TextError):
        if not line.strip():
            continue
        count += 1
        row = _json_object(line, number, source)
        words = _strings(row.get("words", row.get("tokens")), "words", number, source)
        name = str(row.get("sent_id") or _name(source, count))
        yield _sentence(source, number, words, name, columns_of(row, number, source))


def _upos_of(row: Row, number: int, source: Source) -> dict[str, list[str]]:
    return {} if row.get("upos") is None else {"upos": _strings(row["upos"], "upos", number, source)}


def _labels_of(row: Row, number: int, source: Source) -> dict[str, list[str]]:
    kinds = {name: (str, int) if name == "head" else str for name in row if name not in _FORMS}
    return _upos_of(row, number, source) | {
        name: [str(value) for value in row[name]]
        for name, kind in kinds.items()
        if isinstance(row[name], list) and row[name] and all(isinstance(value, kind) for value in row[name])
    }


def _read_raw(source: Source) -> Iterator[ConlluSentence]:
    count = 0
    for number, paragraph in _paragraphs(source):
        comments = ["# newpar"]
        try:
            for sentence in paragraph_sentences(paragraph):
                count += 1
                own = [*comments, f"# sent_id = {_name(source, count)}", *sentence.comments]
                yield sentence.commented(own, instead_of=["#"])
                comments = []
        except ValueError as problem:
            raise TextError(str(problem), path=name_of(source), line=number) from None


def _paragraphs(source: Source) -> Iterator[tuple[int, str]]:
    """Give the paragraphs of running text with the number of their first line."""
    lines: list[str] = []
    first = 1
    for number, line in numbered_lines(source, TextError):
        if line.strip():
            first = first if lines else number
            lines.append(line)
        elif lines:
            yield first, "".join(lines)
            lines = []
    if lines:
        yield first, "".join(lines)


def _json_object(line: str, number: int, source: Source) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as problem:
        raise TextError(
            f"found no JSON ({problem}), expected one object a line", path=name_of(source), line=number
        ) from None
    if not isinstance(row, dict) or not {"words", "tokens"} & set(row):
        raise TextError(
            f"found {line.strip():.60}, expected an object with 'words' or 'tokens'",
            path=name_of(source),
            line=number,
        )
    return row


def _strings(value: object, key: str, number: int, source: Source) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TextError(
            f"found {key} {value!r:.60}, expected a list of strings", path=name_of(source), line=number
        )
    return value


def _sentence(
    source: Source, number: int, words: list[str], sent_id: str, columns: dict[str, list[str]]
) -> ConlluSentence:
    try:
        return ConlluSentence.from_words(words, sent_id=sent_id).annotated(columns)
    except ValueError as problem:
        hint = (
            "; a file with tabs may be CoNLL-U: say format='conllu'"
            if any("\t" in word for word in words)
            else ""
        )
        raise TextError(f"{problem}{hint}", path=name_of(source), line=number) from None


def _name(source: Source, count: int) -> str:
    return f"{PurePath(name_of(source)).name.removesuffix('.gz')}:{count}"


def _from_column(dataset: Dataset, column: str | None) -> Dataset:
    names = [column] if column is not None else ["words", "tokens"]
    found = next((name for name in names if name in dataset.features), None)
    if found is None or dataset.features[found] != List(Value("string")):
        kind = "" if found is None else f" ({found}: {dataset.features[found]})"
        raise ValueError(
            f"found the columns {', '.join(dataset.features)}{kind}, "
            f"expected a list of strings called {' or '.join(names)}; text must be split into words first"
        )
    carried = [name for name in ("sent_id", "upos") if name in dataset.features]
    chosen = dataset.select_columns([found, *carried])
    if found != "words":
        chosen = chosen.rename_column(found, "words")
    return prepare(chosen, gold=False, faulty="skip")[0]  # rows without words are skipped, as empty lines are


_READERS: dict[str, Callable[[Source], Iterator[ConlluSentence]]] = {
    "conllu": read_conllu,
    "text": _read_text,
    "jsonl": _read_jsonl,
    "raw": _read_raw,
}
_FORMS = ("words", "tokens", "id", "form")
_SUFFIXES = {".conllu": "conllu", ".txt": "text", ".jsonl": "jsonl"}
