"""From what a command was told to prepared rows."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

from datasets import Dataset

from hf_xst.commands.options import TextArguments, VectorArguments
from hf_xst.data import (
    WordVectors,
    load_treebank,
    prepare,
    prepared_features,
    read_unlabelled,
    read_vectors,
    treebank_files,
)
from hf_xst.data.folders import canonical_split
from hf_xst.data.layout import content_hash
from hf_xst.data.sentence import BLANK
from hf_xst.inference.annotation import load_annotator as load_annotator
from hf_xst.inference.annotation import model_identity
from hf_xst.models.running import WINDOW, predict_rows
from hf_xst.training.trainer import GOLD

_ALWAYS = frozenset(prepared_features(gold=False))
_SPLIT = re.compile(r"(?P<name>\w+)(?:\[(?P<start>\d*%?):(?P<end>\d*%?)\])?")


def split_of(treebank: str, split: str, data: Sequence[str]) -> Dataset:
    """Load a part of a treebank; `dev[:500]` or `train[90%:]` takes a stretch of it.

    Raises:
        ValueError: the part is not there, holds no sentence, or is written in another form.
    """
    found = _parsed(split)
    rows = load_treebank(treebank, splits=[found["name"]], data_roots=list(data))
    dataset: Dataset = rows[next(iter(rows))]
    total = len(dataset)
    start, end = _place(found["start"], total, 0), _place(found["end"], total, total)
    if start >= end:
        raise ValueError(f"{treebank} {split} holds no sentence: the whole part has {total}")
    return dataset if (start, end) == (0, total) else dataset.select(range(start, end))


def has_split(treebank: str, split: str, data: Sequence[str]) -> bool:
    """Say whether a treebank has a part, without reading sentences where that can be told from file names."""
    name = canonical_split(_parsed(split)["name"])
    files = treebank_files(treebank, data_roots=list(data))
    return name in (load_treebank(treebank) if files is None else files)


def _parsed(split: str) -> re.Match[str]:
    found = _SPLIT.fullmatch(split)
    if found is None:
        raise ValueError(f"cannot read the split {split!r}; expected e.g. dev, dev[:500] or train[90%:]")
    return found


def _place(text: str | None, total: int, default: int) -> int:
    if not text:
        return default
    if text.endswith("%"):
        return min(total, total * int(text[:-1]) // 100)
    return min(int(text), total)


def needs_structure(columns: Sequence[str] | None) -> bool:
    """Say whether gold for these columns is more than labels of words."""
    return columns is None or bool(set(columns) & (set(prepared_features(gold=True)) - _ALWAYS))


def other_labels(columns: Sequence[str] | None) -> list[str]:
    """Return those of the columns that prepared rows have on request alone."""
    return [column for column in columns or () if column not in prepared_features(gold=True)]


def labelled_rows(rows: Dataset, columns: Sequence[str], *, all_words: bool = False) -> tuple[Dataset, str]:
    """Leave out sentences without labels, from which nothing is learned, or by which nothing can be scored.

    Args:
        rows: prepared rows.
        columns: those that are wanted; where they are more than labels of words, all rows are kept.
        all_words: leave out sentences that lack the label of any word, instead of those that have none.

    Returns:
        The other rows, and what to add to a note about them: empty if there was none.
    """
    if needs_structure(columns):
        return rows, ""  # judged when they were prepared
    wanted = [rows[column] for column in columns]
    enough = all if all_words else any
    places = [
        place
        for place, labels in enumerate(zip(*wanted, strict=True))
        if all(enough(label != BLANK for label in each) for each in labels)
    ]
    if len(places) == len(rows):
        return rows, ""
    lacking = "have words without a label" if all_words else "have no label"
    left_out = f", {len(rows) - len(places)} of them left out because they {lacking}"
    return rows.select(places), left_out


def gold_rows(
    treebank: str,
    split: str,
    data: Sequence[str],
    columns: Sequence[str] | None = None,
    *,
    faulty: Any = "error",
    **limits: Any,
) -> tuple[Dataset, str]:
    """Load prepared rows with gold, and what the preparation reports.

    Args:
        treebank: see the commands.
        split: the part, as for `split_of`.
        data: folders of treebanks.
        columns: the columns that matter; gold of others is neither read nor judged. All of them by default.
        faulty: see `hf_xst.data.prepare`.
        limits: length limits of `hf_xst.data.prepare`.

    Raises:
        ValueError: the part is not there, or no sentence of it is left.
    """
    whole = split_of(treebank, split, data)
    structure, labels = needs_structure(columns), other_labels(columns)
    dataset, report = prepare(whole, gold=structure, labels=labels, faulty=faulty, **limits)
    return some(dataset, f"{treebank} {split}: {report}")


def unlabelled_rows(arguments: TextArguments, **limits: Any) -> tuple[Dataset, str]:
    """Load prepared rows without gold from `--text` or `--treebank`, and what the preparation reports.

    Raises:
        ValueError: neither or both are given, or no sentence is left.
    """
    if (arguments.text is None) == (arguments.treebank is None):
        raise ValueError("give either --treebank (with --split) or --text, to say which sentences are meant")
    if arguments.text is not None:
        source, name = read_unlabelled(arguments.text), arguments.text
    else:
        assert arguments.treebank is not None
        source = split_of(arguments.treebank, arguments.split, arguments.data)
        name = f"{arguments.treebank} {arguments.split}"
    dataset, report = prepare(source, gold=False, **limits)
    return some(dataset, f"{name}: {report}")


def some(dataset: Dataset, note: str) -> tuple[Dataset, str]:
    """Return what is given, unless no sentence is left.

    Raises:
        ValueError: there is none; the note says what became of them.
    """
    if not len(dataset):
        raise ValueError(f"no sentence is left to work on: {note}")
    return dataset, note


def read_word_vectors(arguments: VectorArguments) -> WordVectors | None:
    """Read the vectors that a command names, if it does."""
    if arguments.vectors is None:
        return None
    if arguments.vector_rows is not None and arguments.vector_rows < 1:
        raise ValueError(f"vector_rows is {arguments.vector_rows}; expected at least 1")
    return read_vectors(arguments.vectors, limit=arguments.vector_rows)


def annotate(
    dataset: Dataset, annotator: str | None, vectors: WordVectors | None, *, keep_gold: bool = False
) -> Dataset:
    """Annotate a data set by a model given by folder or Hub id, if one is given.

    The result is streamed to the cache of `datasets`, and found there again.

    Args:
        dataset: prepared rows.
        annotator: the model.
        vectors: word vectors, if the model reads by vectors.
        keep_gold: keep what is replaced in a column of its own, for scores that depend on it.
    """
    if annotator is None:
        return dataset
    model = load_annotator(annotator, vectors)
    about = [*model_identity(model, vectors), content_hash(dataset), keep_gold, dataset.column_names]
    identity = json.dumps(about)
    kept = {GOLD + column: dataset.features[column] for column in model.columns if keep_gold}

    def predict(batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
        rows = [dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True)]
        found = list(predict_rows(model, rows))
        gold = {name: batch[name.removeprefix(GOLD)] for name in kept}
        return gold | {column: [columns[column] for columns in found] for column in model.columns}

    return dataset.map(
        predict,
        batched=True,
        batch_size=WINDOW,
        features=type(dataset.features)({**dataset.features, **kept}),
        new_fingerprint=hashlib.sha256(identity.encode()).hexdigest()[:32],
        desc="annotating",
    )
