"""From what a command was told to prepared rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from datasets import Dataset

from hf_xst.data import WordVectors, load_treebank, prepare, read_unlabelled, read_vectors
from hf_xst.models.base import Row, StructuredModel

from .arguments import SentenceArguments, VectorArguments
from .inference import predict_rows
from .sources import load_model

_SPLIT = re.compile(r"(?P<name>\w+)(?:\[(?P<start>\d*%?):(?P<end>\d*%?)\])?")


def split_of(treebank: str, split: str, data: Sequence[str]) -> Dataset:
    """Load a part of a treebank; `dev[:500]` or `train[90%:]` takes a stretch of it.

    Raises:
        ValueError: the part is not there or is written in another form.
    """
    found = _SPLIT.fullmatch(split)
    if found is None:
        raise ValueError(f"cannot read the split {split!r}; expected e.g. dev, dev[:500] or train[90%:]")
    rows = load_treebank(treebank, splits=[found["name"]], data_roots=list(data))
    dataset: Dataset = rows[next(iter(rows))]
    total = len(dataset)
    start, end = _place(found["start"], total, 0), _place(found["end"], total, total)
    return dataset if (start, end) == (0, total) else dataset.select(range(start, end))


def _place(text: str | None, total: int, default: int) -> int:
    if not text:
        return default
    if text.endswith("%"):
        return total * int(text[:-1]) // 100
    return min(int(text), total)


def gold_rows(
    treebank: str, split: str, data: Sequence[str], *, faulty: Any = "error", **limits: Any
) -> tuple[Dataset, str]:
    """Load prepared rows with gold, and what the preparation reports."""
    dataset, report = prepare(split_of(treebank, split, data), gold=True, faulty=faulty, **limits)
    return dataset, f"{treebank} {split}: {report}"


def unlabelled_rows(arguments: SentenceArguments, **limits: Any) -> tuple[Dataset, str]:
    """Load prepared rows without gold from `--text` or `--treebank`, and what the preparation reports.

    Raises:
        ValueError: neither or both are given.
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
    return dataset, f"{name}: {report}"


def read_word_vectors(arguments: VectorArguments) -> WordVectors | None:
    """Read the vectors that a command names, if it does."""
    if arguments.vectors is None:
        return None
    return read_vectors(arguments.vectors, limit=arguments.vector_rows)


def annotated(rows: Iterable[Row], annotator: StructuredModel, batch_words: int = 2000) -> Iterator[dict[str, Any]]:
    """Put another model's predictions in the place of the columns that it predicts, row by row."""
    stream = iter(rows)
    while block := list(islice(stream, 2048)):
        for row, columns in zip(block, predict_rows(annotator, block, batch_words=batch_words), strict=True):
            yield {**row, **columns}


def annotate(dataset: Dataset, annotator: str | None, vectors: WordVectors | None) -> Dataset:
    """Annotate a data set by a model given by folder or Hub id, if one is given."""
    if annotator is None:
        return dataset
    model = load_model(annotator, vectors=vectors)
    return Dataset.from_list(list(annotated(dataset, model)), features=dataset.features)
