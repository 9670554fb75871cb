"""Run models over streams of sentences: in order, in blocks, in bounded memory."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Literal, TypeVar, get_type_hints

import torch
from huggingface_hub import snapshot_download
from transformers.utils import CONFIG_NAME

from hf_xst.data import ConlluSentence, WordVectors
from hf_xst.inference.confidence import Annotation, Decoding, decode_output
from hf_xst.models.cached_embeddings import share_encoders
from hf_xst.models.modeling import Row, StructuredModel
from hf_xst.models.running import BATCH_WORDS, GPU_BATCH_WORDS, in_batches, run_rows
from hf_xst.records import checked, option
from hf_xst.remote import download_if_exists, split_revision
from hf_xst.sources.loading import ready_model
from hf_xst.sources.word_checks import check_tags

Item = TypeVar("Item")
TooLong = Literal["skip", "error"]
BF16 = "Run models in bfloat16: faster where the processor supports it, with slightly different scores."
"""Help of an option. Structures are computed in single or double precision all the same."""
BLOCK = 2048
"""Sentences that are read ahead and sorted by length; at most as many results wait in memory."""
TAGGER_FOLDER = "tagger"
"""Folder of the tagger that is saved with a model."""
NO_TAGGER = "none"
"""Value of `--tagger` for the tags of the input."""


@dataclass(frozen=True, kw_only=True)
class AnnotationSettings:
    """How to annotate sentences; raises ValueError if a value is of another type or out of range."""

    decoding: Decoding = option(
        "The most probable structure, or the one with the highest expected number of correct parts.", "best"
    )
    confidence: bool = option(
        "Also write probabilities: per word in MISC (HeadProb, LabelProb, ArcProb, TagProb), per sentence as "
        "a comment.",
        False,
    )
    kbest: int = option("Also write the K most probable structures, as comments or in JSON.", 0)
    batch_words: int | None = option(
        f"Words per batch, padding included. Defaults to {BATCH_WORDS}, on a GPU to {GPU_BATCH_WORDS}."
    )
    bf16: bool = option(BF16, False)
    max_words: int = option(
        "Longest sentence to annotate; memory grows with its square, from about 1 GB for 1000 words.", 1000
    )
    too_long: TooLong = option(
        "Write longer sentences without annotation and with a comment, or stop.", "skip"
    )

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(AnnotationSettings).items():
            checked(kind, vars(self)[name], name)
        for name, minimum in (("kbest", 0), ("batch_words", 1), ("max_words", 1)):
            value = vars(self)[name]
            if value is not None and value < minimum:
                raise ValueError(f"{name} is {value}; expected at least {minimum}")


class Annotator:
    """Run models one after another; each reads the columns that earlier ones predict.

    Raises:
        ValueError: if a model knows none of the labels that the model before it predicts.
    """

    def __init__(self, models: Sequence[StructuredModel], settings: AnnotationSettings | None = None) -> None:
        self.models, self.settings = list(models), settings or AnnotationSettings()
        for before, model in pairwise(self.models):
            model.check_reads(before)
        by_name = {str(index): model for index, model in enumerate(self.models)}
        shared = share_encoders(by_name) if len(by_name) > 1 else {}
        self._embeddings = [shared.get(name) for name in by_name]

    def with_settings(self, settings: AnnotationSettings) -> Annotator:
        """Return an annotator with the same models and other settings."""
        twin = copy.copy(self)
        twin.settings = settings
        return twin

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the models predict."""
        return tuple(column for model in self.models for column in model.columns)

    @property
    def batch_words(self) -> int:
        """Words of a batch: as set, or the default for the device of the last model."""
        if self.settings.batch_words is not None:
            return self.settings.batch_words
        return BATCH_WORDS if self.models[-1].device.type == "cpu" else GPU_BATCH_WORDS

    def row(self, sentence: ConlluSentence) -> dict[str, Any]:
        """Return the columns of a sentence that the models read."""
        columns = sorted({column for model in self.models for column in model.input_columns} - {"words"})
        values = {column: sentence.column(column) for column in columns}
        return {"sent_id": sentence.identifier, "words": sentence.words, **values}

    def annotate_block(
        self,
        sentences: Sequence[ConlluSentence],
        advance: Callable[[int], None] = lambda steps: None,
        *,
        warns: bool = True,
    ) -> list[tuple[ConlluSentence, Annotation]]:
        """Annotate one block of a stream, see `read_blocks`; warn of unknown UPOS tags if `warns`.

        Raises:
            ValueError: a sentence is too long and `too_long` is "error", or the first model knows none of
                the UPOS tags.
        """
        rows = [self.row(sentence) for sentence in sentences]
        check_tags(self.models[0], (row.get("upos") for row in rows), warns=warns)
        return list(zip(sentences, self.annotate(rows, advance), strict=True))

    def annotate(
        self, rows: Sequence[Row], advance: Callable[[int], None] = lambda steps: None
    ) -> list[Annotation]:
        """Annotate rows; call `advance` with the number of sentences done."""
        reasons = [self._reason_to_skip(row) for row in rows]
        short = [row for row, reason in zip(rows, reasons, strict=True) if reason is None]
        results = in_batches(short, self._annotate_batch, self.batch_words, max(1, len(short)), advance)
        done = [next(results) if reason is None else Annotation(skipped=reason) for reason in reasons]
        advance(len(rows) - len(short))
        return done

    def _reason_to_skip(self, row: Row) -> str | None:
        limit = self.settings.max_words
        if len(row["words"]) <= limit:
            return None
        reason = f"{len(row['words'])} words, more than max_words={limit}"
        if self.settings.too_long == "error":
            raise ValueError(
                f"sentence {row.get('sent_id', '?')} has {reason}; raise --max-words (memory grows with the "
                "square of the length), or skip such sentences (--too-long skip)"
            )
        return reason

    def _annotate_batch(self, rows: list[Row]) -> list[Annotation]:
        settings, last = self.settings, len(self.models) - 1
        results = [Annotation()] * len(rows)
        try:
            for index, (model, embeddings) in enumerate(zip(self.models, self._embeddings, strict=True)):
                output = run_rows(model, rows, embeddings, bf16=settings.bf16)
                kbest = settings.kbest if index == last else 0
                decoded = decode_output(model, output, settings.decoding, settings.confidence, kbest)
                rows = [{**row, **each.columns} for row, each in zip(rows, decoded, strict=True)]
                results = [one.followed_by(other) for one, other in zip(results, decoded, strict=True)]
        except torch.cuda.OutOfMemoryError as error:
            longest = max(len(row["words"]) for row in rows)
            raise ValueError(
                f"the GPU ran out of memory on {len(rows)} sentences of up to {longest} words; lower "
                "--batch-words, or --max-words if it is a single sentence"
            ) from error
        return results


def read_blocks(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Yield consecutive items in lists of `BLOCK`, which are read lazily.

    Batches never cross blocks, so the results of a block do not depend, to the last bit, on whether the
    blocks before it are annotated as well.
    """
    stream = iter(items)
    while block := list(islice(stream, BLOCK)):
        yield block


def load_tagger(path: str, vectors: WordVectors | None = None) -> StructuredModel:
    """Load a tagger of UPOS tags for another model; raise ValueError if it is missing or another model."""
    return check_tagger(ready_model(path, vectors=vectors), f"--tagger {path}")


def check_tagger(model: StructuredModel, name: str) -> StructuredModel:
    """Return a model of the column that other models read; raise ValueError if it predicts something else."""
    if model.columns != (model.annotation_column,):
        raise ValueError(
            f"{name} predicts {' and '.join(model.columns)}; expected a tagger of UPOS tags "
            f"({model.annotation_column})"
        )
    return model


def choose_tagger(name: str | None, model: StructuredModel, place: str) -> str | None:
    """Return the place of the tagger to run before a model, or None for the tags of the input.

    By default this is the tagger saved with the model at `place`, if the model reads tags.
    """
    if name is None and model.annotation_column in model.input_columns:
        name = find_tagger(*split_revision(place))
    return None if name == NO_TAGGER else name


def find_tagger(path: str, revision: str | None = None) -> str | None:
    """Return the folder of the tagger saved with a model (a folder, or on the Hub), or None.

    Raises:
        ValueError: if the Hub is unreachable and the cache does not know whether there is a tagger.
    """
    if Path(path).is_dir():
        folder = Path(path) / TAGGER_FOLDER
        return str(folder) if (folder / CONFIG_NAME).is_file() else None
    try:
        config = download_if_exists(path, f"{TAGGER_FOLDER}/{CONFIG_NAME}", revision)
    except ValueError as error:
        raise ValueError(
            f"{error}. The file would belong to the tagger saved with the model: choose a tagger (--tagger), "
            "or use the tags of the input (--tagger none; in a pipeline tagger=False)"
        ) from error
    if config is None:
        return None
    patterns = [f"{TAGGER_FOLDER}/*{suffix}" for suffix in (".json", ".safetensors")]
    snapshot = snapshot_download(path, revision=revision, allow_patterns=patterns)
    return str(Path(snapshot) / TAGGER_FOLDER)
