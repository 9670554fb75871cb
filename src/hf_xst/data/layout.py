"""Convert sentences to data set rows and back, in the layout of the Hub's Universal Dependencies data set.

The token columns hold words only; multiword ranges and empty nodes have columns of their own. Heads are
strings, as written. XPOS, FEATS, DEPS and MISC are null where the file has an underscore. Comments lose their
``# `` prefix, unless they could not be restored from the rest; ``sent_id`` and ``text`` have columns, and
markers among the comments keep their position.

A round trip loses only line ends, blank lines, and the order of an empty node and a range between the same
two words.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import datasets.config
import pyarrow as pa
from datasets import ClassLabel, Dataset, Features, List, Value
from datasets.arrow_writer import ArrowWriter
from pyarrow import compute

from hf_xst.data.labels import LabelColumn
from hf_xst.data.sentence import BLANK, COLUMNS, ConlluSentence, line_body
from hf_xst.files import atomic_path, name_in_errors, sha256_of

Row = dict[str, Any]

UPOS_TAGS = (
    "NOUN", "PUNCT", "ADP", "NUM", "SYM", "SCONJ", "ADJ", "PART", "DET",
    "CCONJ", "PROPN", "PRON", "X", "_", "ADV", "INTJ", "VERB", "AUX",
)  # fmt: skip
COMMENT_MARKERS = {"sent_id": "__SENT_ID__", "text": "__TEXT__"}
STRINGS = List(Value("string"))
TREEBANK_FEATURES = Features(
    {
        "sent_id": Value("string"),
        "text": Value("string"),
        "comments": STRINGS,
        "tokens": STRINGS,
        "lemmas": STRINGS,
        "upos": List(ClassLabel(names=list(UPOS_TAGS))),
        "xpos": STRINGS,
        "feats": STRINGS,
        "head": STRINGS,
        "deprel": STRINGS,
        "deps": STRINGS,
        "misc": STRINGS,
        "mwt": List({name: Value("string") for name in ("id", "form", "feats", "misc")}),
        "empty_nodes": List({name: Value("string") for name in COLUMNS}),
    }
)
UPOS_INDEX = {tag: index for index, tag in enumerate(UPOS_TAGS)}
_LIST_NAMES = {"form": "tokens", "lemma": "lemmas"}  # other lists are named like the CoNLL-U column
_NULLABLE = ("xpos", "feats", "deps", "misc")
_CACHE_VERSION = 2  # increase it if the same file would yield other rows
_BATCH_SIZE = 1000


def sentence_to_row(sentence: ConlluSentence) -> Row:
    """Convert a sentence to a row; raise ConlluError at an unknown UPOS tag.

    Without ``sent_id``, that column holds the sentence's `identifier`.
    """
    row: Row = {
        "sent_id": sentence.identifier,
        "text": sentence.text,
        "comments": _comments(sentence),
        "mwt": [],
        "empty_nodes": [],
    }
    for name in COLUMNS[1:]:
        values = sentence.column(name)
        row[_LIST_NAMES.get(name, name)] = list(map(_null, values)) if name in _NULLABLE else values
    for tag in row["upos"]:
        if tag not in UPOS_INDEX:
            raise sentence.error(f"found UPOS {tag!r}, expected one of {' '.join(sorted(UPOS_TAGS))}")
    row["upos"] = [UPOS_INDEX[tag] for tag in row["upos"]]
    words = set(sentence.word_rows)
    for index, line in enumerate(sentence.lines):
        if index not in words and not line.startswith("#"):
            cells: Row = dict(zip(COLUMNS, line_body(line).split("\t"), strict=True))
            cells |= {name: _null(cells[name]) for name in ("head", *_NULLABLE)}
            if "-" in cells["id"]:
                row["mwt"].append({name: cells[name] for name in ("id", "form", "feats", "misc")})
            else:
                row["empty_nodes"].append(cells)
    return row


def row_to_sentence(row: Row) -> ConlluSentence:
    """Convert a row in the treebank layout (UPOS as indices) to a sentence."""
    ranges = {int(cells["id"].partition("-")[0]): cells for cells in row["mwt"]}
    nodes: dict[int, list[Row]] = {}
    for cells in row["empty_nodes"]:
        nodes.setdefault(int(cells["id"].partition(".")[0]), []).append(cells)
    columns = [row[_LIST_NAMES.get(name, name)] for name in COLUMNS[1:]]
    columns[COLUMNS.index("upos") - 1] = LabelColumn("upos", "upos", UPOS_TAGS).labels(row)
    lines = [*_comment_lines(row), *(_line(map(cells.get, COLUMNS)) for cells in nodes.get(0, []))]
    word_rows = []
    for number, values in enumerate(zip(*columns, strict=True), start=1):
        if number in ranges:
            lines.append(_line(map(ranges[number].get, COLUMNS)))
        word_rows.append(len(lines))
        lines.append(_line((str(number), *values)))
        lines += [_line(map(cells.get, COLUMNS)) for cells in nodes.get(number, [])]
    for line in lines:
        has_tabs = not line.startswith("#") and line.count("\t") >= len(COLUMNS)
        if has_tabs or line.count("\n") > 1 or "\r" in line:
            found = f"sentence {row['sent_id']}: found {line[:-1]!r:.60}"
            raise ValueError(f"{found}, expected values without tabs and line breaks")
    return ConlluSentence(tuple(lines), tuple(word_rows))


def sentences_to_dataset(sentences: Iterable[ConlluSentence]) -> Dataset:
    """Collect sentences in memory as a data set in the treebank layout."""
    return rows_to_dataset(map(sentence_to_row, sentences), TREEBANK_FEATURES)


def dataset_to_sentences(dataset: Dataset) -> Iterator[ConlluSentence]:
    """Iterate over a data set in the treebank layout as sentences."""
    if dataset.features != TREEBANK_FEATURES:
        raise ValueError(
            f"found the columns {', '.join(dataset.column_names)}, expected the treebank layout "
            f"({', '.join(TREEBANK_FEATURES)}); convert the data set with to_treebank_layout"
        )
    return map(row_to_sentence, dataset)


def rows_to_dataset(rows: Iterable[Row], features: Features) -> Dataset:
    """Collect rows in memory as a data set with an explicit schema, even if there are no rows."""
    rows = list(rows)
    return Dataset.from_dict({name: [row[name] for row in rows] for name in features}, features=features)


def map_rows(
    dataset: Dataset,
    function: Callable[..., Row],
    features: Features,
    *,
    fn_kwargs: Mapping[str, Any],
    with_indices: bool = False,
    num_proc: int | None = None,
) -> Dataset:
    """Map rows to another schema, independent of the number of rows and processes."""
    if not len(dataset):  # Dataset.map would keep the old columns of an empty data set
        return rows_to_dataset([], features)
    with name_in_errors(datasets.config.HF_DATASETS_CACHE):
        return dataset.map(
            function,
            with_indices=with_indices,
            fn_kwargs=dict(fn_kwargs),
            remove_columns=[name for name in dataset.column_names if name not in features],
            features=features,
            num_proc=num_proc,
        )


def file_key(path: str | os.PathLike[str]) -> str:
    """Identify a file by its name and content."""
    return f"{Path(path).name} {sha256_of(path)}"


def cached_rows(
    key: str,
    rows: Callable[[], Iterable[Row]],
    features: Features,
    *,
    kind: str,
    cache_dir: str | os.PathLike[str] | None = None,
) -> Dataset:
    """Return rows as a memory-mapped data set, cached by a key of all that they depend on.

    Rows are streamed to the cache, so memory does not grow with their number; a failed build leaves no files.
    Each kind of reader has its own subfolder. The cache defaults to a folder in the cache of `datasets`.

    Raises:
        ValueError: the cached file is damaged.
    """
    root = Path(datasets.config.HF_DATASETS_CACHE if cache_dir is None else cache_dir)
    digest = hashlib.sha256(f"{_CACHE_VERSION} {key} {features}".encode()).hexdigest()
    cached = root / "hf_xst" / kind / digest[:32] / "rows.arrow"
    if not cached.exists():
        stream = iter(rows())
        with atomic_path(cached) as temporary, ArrowWriter(features=features, path=str(temporary)) as writer:
            while batch := list(islice(stream, _BATCH_SIZE)):
                writer.write_batch({name: [row[name] for row in batch] for name in features})
            writer.finalize()
    try:
        return Dataset.from_file(str(cached))
    except pa.ArrowInvalid as error:
        raise ValueError(f"{cached} is damaged ({error}); remove it, and it is made again") from error


def content_hash(rows: Dataset) -> str:
    """Return the SHA-256 of the content of all rows, before any transform set on the data set."""
    digest = hashlib.sha256()
    for table in rows.with_format("arrow").iter(_BATCH_SIZE):
        for name in sorted(table.column_names):
            digest.update(name.encode())
            for part in _content(table[name].combine_chunks()):
                digest.update(part)
    return digest.hexdigest()


def _content(array: pa.Array) -> Iterator[bytes]:
    """Yield which entries of an array are null, the lengths of lists and strings, and the values."""
    yield array.is_valid().to_numpy(zero_copy_only=False).tobytes()
    array = array.drop_null()
    if pa.types.is_struct(array.type):
        for field in array.flatten():
            yield from _content(field)
    elif pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        yield array.value_lengths().to_numpy().tobytes()
        yield from _content(array.flatten())
    elif pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        yield compute.binary_length(array).to_numpy().tobytes()
        yield "".join(array.to_pylist()).encode()
    else:
        yield array.to_numpy(zero_copy_only=False).tobytes()


def _null(value: str) -> str | None:
    return None if value == BLANK else value


def _comments(sentence: ConlluSentence) -> list[str]:
    comments, values = [], {"sent_id": sentence.sent_id, "text": sentence.text}
    for line in sentence.comments:
        body = line.removeprefix("# ")
        key = body.partition(" = ")[0]
        if values.get(key) is not None and line == f"# {key} = {values[key]}":
            comments.append(COMMENT_MARKERS[key])
            del values[key]
        else:
            is_plain = line.startswith("# ") and body and not body.startswith("#")
            comments.append(body if is_plain and body not in COMMENT_MARKERS.values() else line)
    return comments


def _comment_lines(row: Row) -> Iterator[str]:
    markers = {marker: f"{key} = {row[key]}" for key, marker in COMMENT_MARKERS.items()}
    for comment in row["comments"]:
        yield f"{comment}\n" if comment.startswith("#") else f"# {markers.get(comment, comment)}\n"


def _line(values: Iterable[str | None]) -> str:
    return "\t".join(BLANK if value is None else value for value in values) + "\n"
