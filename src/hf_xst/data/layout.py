"""Sentences as rows of a data set, in the columns of the Hub's Universal Dependencies data set.

Columns hold words only; ranges and empty nodes have columns of their own. Heads are strings, as written.
XPOS, FEATS, DEPS and MISC are null where the file has an underscore. Comments lose their mark (``# newpar``
is ``newpar``); those that would not come back the same way are kept whole. ``sent_id`` and ``text`` stand in
columns, and markers among the comments keep their place.

What does not survive the way there and back: line ends, blank lines, and the order of an empty node and a
range between the same two words.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from datasets import ClassLabel, Dataset, Features, List, Value

from hf_xst.data.sentence import BLANK, COLUMNS, ConlluSentence, line_body

Row = dict[str, Any]

UPOS_TAGS = (
    "NOUN", "PUNCT", "ADP", "NUM", "SYM", "SCONJ", "ADJ", "PART", "DET",
    "CCONJ", "PROPN", "PRON", "X", "_", "ADV", "INTJ", "VERB", "AUX",
)  # fmt: skip
SENT_ID_MARKER, TEXT_MARKER = "__SENT_ID__", "__TEXT__"
_MARKERS = {"sent_id": SENT_ID_MARKER, "text": TEXT_MARKER}
_NULLABLE = ("xpos", "feats", "deps", "misc")
_STRING = Value("string")
_STRINGS = List(_STRING)

TREEBANK_FEATURES = Features(
    {
        "sent_id": _STRING,
        "text": _STRING,
        "comments": _STRINGS,
        "tokens": _STRINGS,
        "lemmas": _STRINGS,
        "upos": List(ClassLabel(names=list(UPOS_TAGS))),
        "xpos": _STRINGS,
        "feats": _STRINGS,
        "head": _STRINGS,
        "deprel": _STRINGS,
        "deps": _STRINGS,
        "misc": _STRINGS,
        "mwt": List({"id": _STRING, "form": _STRING, "feats": _STRING, "misc": _STRING}),
        "empty_nodes": List({name: _STRING for name in COLUMNS}),
    }
)
UPOS_INDEX = {tag: index for index, tag in enumerate(UPOS_TAGS)}
LIST_OF_COLUMN = {"form": "tokens", "lemma": "lemmas"}  # the layout's other lists are called like the column


def sentence_to_row(sentence: ConlluSentence) -> Row:
    """Give a sentence's row; where it has no ``sent_id``, that column holds its `identifier`.

    Raises:
        ConlluError: a UPOS that Universal Dependencies does not know.
    """
    row: Row = {
        "sent_id": sentence.identifier,
        "text": sentence.text,
        "comments": _comments_of(sentence),
        "mwt": [],
        "empty_nodes": [],
    }
    for name in COLUMNS[1:]:
        values: list[Any] = sentence.column(name)
        row[LIST_OF_COLUMN.get(name, name)] = [_null(v) for v in values] if name in _NULLABLE else values
    row["upos"] = [_upos_index(sentence, tag) for tag in row["upos"]]
    words = set(sentence.word_rows)
    for index, line in enumerate(sentence.lines):
        if index not in words and not line.startswith("#"):
            _add_other_row(row, line)
    return row


def row_to_sentence(row: Row) -> ConlluSentence:
    """Give the sentence of a row in the layout above (UPOS as indices)."""
    lines = [f"{comment}\n" for comment in _comment_lines(row)]
    ranges = {int(r["id"].partition("-")[0]): r for r in row["mwt"]}
    nodes: dict[int, list[Row]] = {}
    for node in row["empty_nodes"]:
        nodes.setdefault(int(node["id"].partition(".")[0]), []).append(node)
    columns = [row[LIST_OF_COLUMN.get(name, name)] for name in COLUMNS[1:]]
    columns[COLUMNS.index("upos") - 1] = [UPOS_TAGS[index] for index in row["upos"]]
    lines += [_line([node[name] for name in COLUMNS]) for node in nodes.get(0, [])]
    words = []
    for number, cells in enumerate(zip(*columns, strict=True), start=1):
        if (found := ranges.get(number)) is not None:
            lines.append(_line([found.get(name) for name in COLUMNS]))
        words.append(len(lines))
        lines.append(_line([str(number), *cells]))
        lines += [_line([node[name] for name in COLUMNS]) for node in nodes.get(number, [])]
    return ConlluSentence(tuple(lines), tuple(words))


def rows_to_dataset(rows: Iterable[Row], features: Features) -> Dataset:
    """Hold rows in memory as a data set with the schema given, so that no rows give the same columns."""
    held = list(rows)
    return Dataset.from_dict({name: [row[name] for row in held] for name in features}, features=features)


def map_rows(
    dataset: Dataset,
    function: Callable[..., Row],
    features: Features,
    *,
    fn_kwargs: Mapping[str, Any],
    with_indices: bool = False,
    num_proc: int | None = None,
) -> Dataset:
    """Map rows into another schema, which no rows and any number of processes have too."""
    if not len(dataset):  # Dataset.map would leave an empty data set its old columns
        return rows_to_dataset([], features)
    return dataset.map(
        function,
        with_indices=with_indices,
        fn_kwargs=dict(fn_kwargs),
        remove_columns=[name for name in dataset.column_names if name not in features],
        features=features,
        num_proc=num_proc,
    )


def tag_names(dataset: Dataset) -> list[str] | None:
    """The names of the class labels of column ``upos``, or None where tags are strings."""
    feature = dataset.features["upos"].feature
    return list(feature.names) if isinstance(feature, ClassLabel) else None


def tag_name(tag: int | str | None, names: Sequence[str] | None) -> str:
    """Return the name of a word's tag; what has none (no value, or -1 as a class label) is blank.

    Args:
        tag: a name, or the index of one.
        names: those of the class labels, where tags are such.
    """
    if tag is None or (isinstance(tag, int) and tag < 0):
        return BLANK
    return names[tag] if names is not None and isinstance(tag, int) else str(tag)


def sentences_to_dataset(sentences: Iterable[ConlluSentence]) -> Dataset:
    """Hold sentences in memory in the layout above."""
    return rows_to_dataset(map(sentence_to_row, sentences), TREEBANK_FEATURES)


def dataset_to_sentences(dataset: Dataset) -> Iterator[ConlluSentence]:
    """Give the sentences of a data set in the layout above, ready to be written as CoNLL-U.

    Raises:
        ValueError: the data set has another layout.
    """
    if dataset.features != TREEBANK_FEATURES:
        raise ValueError(
            f"found the columns {', '.join(dataset.column_names)}, expected the treebank layout "
            f"({', '.join(TREEBANK_FEATURES)}); bring the data set into it with to_treebank_layout"
        )
    return map(row_to_sentence, dataset)


def _null(value: str) -> str | None:
    return None if value == BLANK else value


def _upos_index(sentence: ConlluSentence, tag: str) -> int:
    if tag not in UPOS_INDEX:
        raise sentence.error(f"found UPOS {tag!r}, expected one of {' '.join(sorted(UPOS_TAGS))}")
    return UPOS_INDEX[tag]


def _comments_of(sentence: ConlluSentence) -> list[str]:
    comments, values = [], {"sent_id": sentence.sent_id, "text": sentence.text}
    for line in sentence.comments:
        key = line.removeprefix("# ").partition(" = ")[0]
        if values.get(key) is not None and line == f"# {key} = {values[key]}":
            comments.append(_MARKERS[key])
            del values[key]
            continue
        body = line.removeprefix("# ")
        plain = line.startswith("# ") and body and not body.startswith("#") and body not in _MARKERS.values()
        comments.append(body if plain else line)
    return comments


def _comment_lines(row: Row) -> Iterator[str]:
    for comment in row["comments"]:
        if comment == SENT_ID_MARKER:
            yield f"# sent_id = {row['sent_id']}"
        elif comment == TEXT_MARKER:
            yield f"# text = {row['text']}"
        else:
            yield comment if comment.startswith("#") else f"# {comment}"


def _add_other_row(row: Row, line: str) -> None:
    cells: Row = dict(zip(COLUMNS, line_body(line).split("\t"), strict=True))
    for name in _NULLABLE:
        cells[name] = _null(cells[name])
    if "-" in cells["id"]:
        row["mwt"].append({name: cells[name] for name in ("id", "form", "feats", "misc")})
    else:
        row["empty_nodes"].append({**cells, "head": _null(cells["head"])})


def _line(cells: Iterable[str | None]) -> str:
    return "\t".join(BLANK if cell is None else cell for cell in cells) + "\n"


def content_hash(rows: Iterable[Mapping[str, Any]]) -> str:
    """Identify rows by all that they hold: SHA-256."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, sort_keys=True).encode() + b"\n")
    return digest.hexdigest()
