"""Annotate sentences with a model, as a stream."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import tee
from pathlib import Path
from typing import Any

from hf_xst.console import progress
from hf_xst.data import ConlluSentence, WordVectors, iterate_unlabelled, write_conllu
from hf_xst.models.base import StructuredModel

from ..arguments import PredictArguments
from ..inference import predict_rows
from ..sentences import annotated, load_annotator, read_word_vectors
from ..sources import ready_model

ANNOTATOR_FOLDER = "tagger"


def predict(arguments: PredictArguments) -> None:
    """Write the input with the model's columns filled in; everything else stays as it was.

    Args:
        arguments: see the class.

    Raises:
        ValueError: the model reads tags, the input has none, and no tagger is at hand.
    """
    vectors = read_word_vectors(arguments)
    model = ready_model(arguments.model, arguments.revision, vectors)
    annotator = _annotator(arguments, model, vectors)
    source = sys.stdin.buffer if arguments.input == "-" else arguments.input
    form = "conllu" if arguments.input == "-" and arguments.format is None else arguments.format
    sentences = iterate_unlabelled(source, format=form)
    target: Any = sys.stdout if arguments.output == "-" else arguments.output
    with progress("predicting", None) as advance:
        found = predicted_sentences(model, sentences, annotator, arguments.batch_words)
        write_conllu(_counted(found, advance), target)


def predicted_sentences(
    model: StructuredModel,
    sentences: Iterator[ConlluSentence],
    annotator: StructuredModel | None = None,
    batch_words: int = 2000,
) -> Iterator[ConlluSentence]:
    """Give sentences with the columns that the model (and the annotator before it) predicts.

    Args:
        model: the model.
        sentences: any sentences; old annotation in the predicted columns does not matter.
        annotator: a model whose columns the first one reads.
        batch_words: see `hf_xst.training.inference`.
    """
    kept, read = tee(sentences)
    rows: Iterator[Any] = map(_row, read)
    shown: tuple[str, ...] = model.columns
    if annotator is not None:
        rows = annotated(rows, annotator, batch_words)
        shown = (*annotator.columns, *shown)
    rows, remembered = tee(rows)
    results = predict_rows(model, rows, batch_words=batch_words)
    for sentence, row, columns in zip(kept, remembered, results, strict=True):
        merged = {**row, **columns}
        yield sentence.replaced({column: merged[column] for column in shown})


def _row(sentence: ConlluSentence) -> dict[str, Any]:
    return {"sent_id": sentence.identifier, "words": sentence.words, "upos": sentence.column("upos")}


def _annotator(
    arguments: PredictArguments, model: StructuredModel, vectors: WordVectors | None
) -> StructuredModel | None:
    if arguments.tagger is not None:
        return load_annotator(arguments.tagger, vectors)
    beside = Path(arguments.model) / ANNOTATOR_FOLDER
    if len(model.input_columns) > 1 and beside.is_dir():
        return load_annotator(str(beside), vectors)
    return None


def _counted(sentences: Iterator[ConlluSentence], advance: Callable[[int], None]) -> Iterator[ConlluSentence]:
    for sentence in sentences:
        advance(1)
        yield sentence
