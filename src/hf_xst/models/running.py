"""Running models over sentences: batches of like length, results in order, memory that does not grow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

import torch

from hf_xst.models.cached_states import WordStates
from hf_xst.models.collation import Collator
from hf_xst.models.modeling import Row, StructuredModel, StructuredOutput

Result = TypeVar("Result")
# Sentences that are sorted by length at a time; results wait in memory for at most so many.
WINDOW = 2048
BATCH_WORDS = 2000
# On a GPU small batches spend their time on starting its work.
GPU_BATCH_WORDS = 8000
# Entries of the largest tensor of a batch (words squared a sentence, before labels) for each of its words.
PAIRS_OF_A_WORD = 60


def length_batches(lengths: Sequence[int], batch_words: int = BATCH_WORDS) -> Iterator[list[int]]:
    """Cut sentences into batches of like length.

    Args:
        lengths: words of each sentence.
        batch_words: words of a batch, padding included; pairs of words are limited in proportion, so that
            long sentences come in small batches.

    Yields:
        Indices of a batch's sentences, longest sentences first; each index once.
    """
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    start = 0
    while start < len(order):
        longest = max(1, lengths[order[start]])
        size = max(1, min(batch_words // longest, PAIRS_OF_A_WORD * batch_words // longest**2))
        yield order[start : start + size]
        start += size


def in_batches(
    rows: Iterable[Row],
    run: Callable[[list[Row]], Sequence[Result]],
    batch_words: int = BATCH_WORDS,
    window: int = WINDOW,
) -> Iterator[Result]:
    """Apply `run` to batches of like length and give its results in the order of the rows.

    Args:
        rows: sentences, read as they are needed.
        run: takes the rows of a batch, returns one result a row.
        batch_words: see `length_batches`.
        window: rows read ahead.
    """
    stream = iter(rows)
    while block := list(islice(stream, window)):
        results: dict[int, Result] = {}
        for batch in length_batches([len(row["words"]) for row in block], batch_words):
            results.update(zip(batch, run([block[index] for index in batch]), strict=True))
        yield from (results[index] for index in range(len(block)))


@torch.no_grad()
def run_rows(
    model: StructuredModel, rows: Sequence[Row], states: WordStates | None = None
) -> StructuredOutput:
    """Run a model in evaluation mode on one batch of rows, without gold."""
    model.train(False)
    batch = Collator(model, states, gold=False)(rows)
    output: StructuredOutput = model(**{key: value.to(model.device) for key, value in batch.items()})
    return output


def predict_rows(
    model: StructuredModel,
    rows: Iterable[Row],
    *,
    batch_words: int = BATCH_WORDS,
    states: WordStates | None = None,
) -> Iterator[dict[str, list[Any]]]:
    """Give each row's best structure as the model's columns, in order.

    Args:
        model: a structured model.
        rows: prepared rows; memory does not grow with their number.
        batch_words: see `length_batches`.
        states: ready states of a frozen encoder.
    """

    def run(batch: list[Row]) -> list[dict[str, list[Any]]]:
        output = run_rows(model, batch, states)
        assert output.lengths is not None
        return model.decode(model.distribution(output).best(), output.lengths)

    return in_batches(rows, run, batch_words)
