"""Models that annotate sentences one after another: in order, in blocks, in bounded memory."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import torch
from huggingface_hub import snapshot_download
from transformers.utils import CONFIG_NAME

from hf_xst.data import ConlluSentence, WordVectors
from hf_xst.inference.confidence import Columns, Finding, Ranked, Reading, findings
from hf_xst.models.cached_states import shared_encoders
from hf_xst.models.modeling import Row, StructuredModel
from hf_xst.models.running import BATCH_WORDS, GPU_BATCH_WORDS, in_batches, run_rows
from hf_xst.remote import download_if_exists
from hf_xst.sources.pool import ready_model, weights_digest

Item = TypeVar("Item")
TooLong = Literal["skip", "error"]
# Sentences that are read ahead and sorted by length, and whose results wait in memory.
BLOCK = 2048
# Words of a sentence: with 40 labels and confidences 1000 words take 1 GB, and twice as many four times that.
MAX_WORDS = 1000
ANNOTATOR_FOLDER = "tagger"


@dataclass(frozen=True)
class Annotation:
    """What all models together say about a sentence.

    Attributes:
        columns: by the name of the column one value a word.
        log_probs: by the name of a whole structure its log-probability; only with confidence.
        probabilities: by the part of the words' claims one probability a word; only with confidence.
        ranked: the most probable structures of the last model, if they are wanted.
        left_out: why the sentence was not annotated, or None; then all else is empty.
    """

    columns: Columns = field(default_factory=dict)
    log_probs: dict[str, float] = field(default_factory=dict)
    probabilities: dict[str, list[float]] = field(default_factory=dict)
    ranked: tuple[Ranked, ...] = ()
    left_out: str | None = None


Annotated = tuple[ConlluSentence, Annotation]
Form = Callable[[Sequence[Annotated], ConlluSentence | None], str]
"""Writes annotated sentences, given the sentence before them in the file, if there is one."""


@dataclass(frozen=True)
class AnnotationSettings:
    """How sentences are annotated.

    Args:
        reading: what is wanted of each model; the k best only of the last one.
        batch_words: words of a batch, padding included; by default what suits the device.
        max_words: the longest sentence that is annotated.
        too_long: leave longer sentences out ("skip"), or raise an error ("error").

    Raises:
        ValueError: a value is out of range.
    """

    reading: Reading = field(default_factory=Reading)
    batch_words: int | None = None
    max_words: int = MAX_WORDS
    too_long: TooLong = "skip"

    def __post_init__(self) -> None:
        for name, value in (("batch_words", self.batch_words), ("max_words", self.max_words)):
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}; expected at least 1")
        if self.too_long not in get_args(TooLong):
            raise ValueError(f"too_long is {self.too_long!r}; expected {' or '.join(get_args(TooLong))}")


class Annotator:
    """Models one after another; each reads the columns that those before it predict.

    Args:
        models: in their order, on their devices.
        settings: how they are used.

    Raises:
        ValueError: a model knows none of the values that the one before it gives.
    """

    def __init__(self, models: Sequence[StructuredModel], settings: AnnotationSettings | None = None) -> None:
        self.models, self.settings = list(models), settings or AnnotationSettings()
        for before, model in pairwise(self.models):
            model.check_reads(before)
        names = [str(place) for place in range(len(self.models))]
        shared = shared_encoders(dict(zip(names, self.models, strict=True))) if len(names) > 1 else {}
        self._states = [shared.get(name) for name in names]

    def with_settings(self, settings: AnnotationSettings) -> Annotator:
        """Return the same models used otherwise."""
        twin = copy.copy(self)
        twin.settings = settings
        return twin

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the models predict."""
        return tuple(column for model in self.models for column in model.columns)

    def row(self, sentence: ConlluSentence) -> dict[str, Any]:
        """Return the columns of a sentence that the models read."""
        wanted = {column for model in self.models for column in model.input_columns} - {"words"}
        given = {column: sentence.column(column) for column in sorted(wanted)}
        return {"sent_id": sentence.identifier, "words": sentence.words, **given}

    def blocks(
        self,
        items: Iterable[Item],
        row_of: Callable[[Item], Row],
        advance: Callable[[int], None] = lambda steps: None,
    ) -> Iterator[list[tuple[Item, Annotation]]]:
        """Annotate a stream, block by block.

        How sentences meet in batches depends on their block alone, so the results of a block are the same,
        to the last bit, whether the blocks before it are annotated as well or not.

        Args:
            items: what holds a sentence, read as it is needed.
            row_of: gives an item's row.
            advance: is told how many sentences are done.

        Raises:
            ValueError: a sentence is too long, and that is an error.
        """
        stream = iter(items)
        while block := list(islice(stream, BLOCK)):
            yield list(zip(block, self.annotate([row_of(item) for item in block], advance), strict=True))

    def annotate(
        self, rows: Sequence[Row], advance: Callable[[int], None] = lambda steps: None
    ) -> list[Annotation]:
        """Annotate the rows of a block; see `blocks`."""
        reasons = [self._reason(row) for row in rows]
        short = [row for row, reason in zip(rows, reasons, strict=True) if reason is None]

        def run(batch: list[Row]) -> list[Annotation]:
            try:
                found = self._annotated(batch)
            except torch.cuda.OutOfMemoryError as error:
                longest = max(len(row["words"]) for row in batch)
                raise ValueError(
                    f"the GPU has not enough memory for {len(batch)} sentences of up to {longest} words at "
                    "once; lower --batch-words, or --max-words where it is a single sentence"
                ) from error
            advance(len(batch))
            return found

        found = in_batches(short, run, self.batch_words, window=max(1, len(short)))
        done = [next(found) if reason is None else Annotation(left_out=reason) for reason in reasons]
        advance(len(rows) - len(short))
        return done

    @property
    def batch_words(self) -> int:
        """Words of a batch: as set, or what suits the device of the last model."""
        if self.settings.batch_words is not None:
            return self.settings.batch_words
        return BATCH_WORDS if self.models[-1].device.type == "cpu" else GPU_BATCH_WORDS

    def _reason(self, row: Row) -> str | None:
        """Say why a sentence must be left out, if it must."""
        limit = self.settings.max_words
        if len(row["words"]) <= limit:
            return None
        reason = f"{len(row['words'])} words, more than max_words={limit}"
        if self.settings.too_long == "error":
            raise ValueError(
                f"sentence {row.get('sent_id', '?')} has {reason}; raise --max-words if there is memory for "
                "it (it grows with the square of the length), or leave such sentences out (--too-long skip)"
            )
        return reason

    def _annotated(self, batch: list[Row]) -> list[Annotation]:
        rows: list[Row] = batch
        by_model: list[list[Finding]] = []
        for place, (model, states) in enumerate(zip(self.models, self._states, strict=True)):
            is_last = place == len(self.models) - 1
            reading = self.settings.reading
            output = run_rows(model, rows, states)
            found = findings(model, output, reading if is_last else reading.without_ranks())
            rows = [{**row, **each.columns} for row, each in zip(rows, found, strict=True)]
            by_model.append(found)
        return [self._joined(each) for each in zip(*by_model, strict=True)]

    def _joined(self, found: Sequence[Finding]) -> Annotation:
        joined = Annotation(ranked=found[-1].ranked)
        for model, each in zip(self.models, found, strict=True):
            joined.columns.update(each.columns)
            joined.probabilities.update(each.probabilities)
            if each.log_prob is not None:
                joined.log_probs[model.whole] = each.log_prob
        return joined


def load_annotator(path: str, vectors: WordVectors | None = None) -> StructuredModel:
    """Load a model whose predictions stand in for an input column of another model.

    Raises:
        ValueError: there is no model, or it predicts something else.
    """
    return checked_annotator(ready_model(path, vectors=vectors), f"--tagger {path}")


def checked_annotator(model: StructuredModel, name: str) -> StructuredModel:
    """Return a model that predicts the column which other models read.

    Raises:
        ValueError: it predicts something else.
    """
    if model.columns != (model.annotation_column,):
        raise ValueError(
            f"{name} predicts {' and '.join(model.columns)}; expected a model of coarse tags "
            f"({model.annotation_column})"
        )
    return model


def model_identity(model: StructuredModel, vectors: WordVectors | None) -> list[str | None]:
    """Name all that a model's predictions depend on.

    Args:
        model: the model.
        vectors: word vectors that it was given.
    """
    return [weights_digest(model), str(model.config), None if vectors is None else vectors.sha256]


def annotator_beside(path: str, revision: str | None = None) -> str | None:
    """Find the folder of the tagger that was saved with a model, or None.

    Args:
        path: the model's folder, or its id on the Hub, from where the tagger is fetched.
        revision: the revision on the Hub.

    Raises:
        ValueError: it cannot be told, because the Hub is out of reach.
    """
    folder = Path(path)
    if folder.is_dir():
        beside = folder / ANNOTATOR_FOLDER
        return str(beside) if (beside / CONFIG_NAME).is_file() else None
    config = f"{ANNOTATOR_FOLDER}/{CONFIG_NAME}"
    try:
        found = download_if_exists(path, config, revision)
    except ValueError as problem:
        raise ValueError(
            f"{problem}. It would be of the tagger that goes with the model: name one (--tagger), or say "
            "that the text has its tags (--tagger none; in a pipeline tagger=False)"
        ) from problem
    if found is None:
        return None
    fetched = snapshot_download(path, revision=revision, allow_patterns=f"{ANNOTATOR_FOLDER}/*")
    return str(Path(fetched) / ANNOTATOR_FOLDER)
