"""Collate rows into batches, and run models over streams of sentences in batches of similar length."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from hf_xst.models.modeling import Row, StructuredModel, StructuredOutput, evaluating
from hf_xst.processes import share

Result = TypeVar("Result")
WINDOW = 2048
"""Sentences that are sorted by length together; at most as many results wait in memory."""
BATCH_WORDS = 2000
GPU_BATCH_WORDS = 8000
"""Small batches leave a GPU idle."""
PAIRS_PER_WORD = 60
"""Bound on the pairs of words of a batch (the size of its largest tensor, before labels), for each word."""
FILLER = "filler"
"""Column that is true for rows that only pad the last batch; they get weight 0."""


class EmbeddingSource(Protocol):
    """Anything that returns the word embeddings of a batch of sentences."""

    def batch(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Return the embeddings of a batch, (B, N, D), zeros as padding."""


class Collator:
    """Turn rows into the arguments of `model.forward` and the weights of the loss.

    With embeddings of a frozen encoder, words are not encoded again. With `gold`, `labels` and `units` are
    added if the rows have the model's gold columns.
    """

    def __init__(
        self, model: StructuredModel, embeddings: EmbeddingSource | None = None, *, gold: bool = True
    ) -> None:
        self.model, self.embeddings, self.gold = model, embeddings, gold

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that a training row must have."""
        return ("words", *self.model.columns) if self.gold else ("words",)

    def __call__(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Return `lengths` (B,), the word tensors and, with gold, `labels` (B, N, ...) and `units` (B,)."""
        batch: dict[str, Any] = self.model.featurise(rows, words=self.embeddings is None)
        if self.embeddings is not None:
            batch["word_states"] = self.embeddings.batch([row["words"] for row in rows])
        if self.gold and all(column in rows[0] for column in self.model.columns):
            batch["labels"] = self.model.encode_gold(rows)
            batch["units"] = self.model.units(batch["labels"]) * row_units(rows)
        return batch


def row_units(rows: Sequence[Row]) -> Tensor:
    """Return the weight of each row, 0 for fillers: (B,)."""
    return torch.tensor([0 if row.get(FILLER, False) else 1 for row in rows])


def length_batches(lengths: Sequence[int], batch_words: int = BATCH_WORDS) -> Iterator[list[int]]:
    """Yield the indices of sentences in batches of similar length, longest first; each index once.

    A batch has at most `batch_words` words, padding included. Pairs of words are limited in proportion, so
    long sentences come in smaller batches.
    """
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    start = 0
    while start < len(order):
        longest = max(1, lengths[order[start]])
        size = max(1, min(batch_words // longest, PAIRS_PER_WORD * batch_words // longest**2))
        yield order[start : start + size]
        start += size


def run_batches(
    rows: Iterable[Row],
    run: Callable[[list[Row]], Result],
    batch_words: int = BATCH_WORDS,
    window: int = WINDOW,
    advance: Callable[[int], None] = lambda sentences: None,
) -> Iterator[list[tuple[list[int], Result]]]:
    """Apply `run` to batches of similar length (`length_batches`); several processes share the batches.

    For each `window` of rows, which are read lazily, the batches (indices in the window) are yielded with
    their results. `advance` is called with the number of sentences of each batch.
    """

    def run_and_count(batch: list[Row]) -> Result:
        result = run(batch)
        advance(len(batch))
        return result

    stream = iter(rows)
    while block := list(islice(stream, window)):
        batches = list(length_batches([len(row["words"]) for row in block], batch_words))
        results = share([[block[index] for index in batch] for batch in batches], run_and_count)
        yield list(zip(batches, results, strict=True))


def in_batches(
    rows: Iterable[Row],
    run: Callable[[list[Row]], Sequence[Result]],
    batch_words: int = BATCH_WORDS,
    window: int = WINDOW,
    advance: Callable[[int], None] = lambda sentences: None,
) -> Iterator[Result]:
    """Apply `run`, which returns one result per row, to batches; yield the results in the order of the rows.

    See `run_batches` for the arguments.
    """
    for batches in run_batches(rows, run, batch_words, window, advance):
        results: dict[int, Result] = {}
        for batch, found in batches:
            results.update(zip(batch, found, strict=True))
        yield from (results[index] for index in range(len(results)))


@torch.no_grad()
def run_rows(
    model: StructuredModel,
    rows: Sequence[Row],
    embeddings: EmbeddingSource | None = None,
    *,
    bf16: bool = False,
) -> StructuredOutput:
    """Run a model in evaluation mode on one batch of rows, without gold; in bfloat16 where that is safe."""
    with evaluating(model), torch.autocast(model.device.type, torch.bfloat16, enabled=bf16):
        batch = Collator(model, embeddings, gold=False)(rows)
        output: StructuredOutput = model(**{key: value.to(model.device) for key, value in batch.items()})
    return output


def predict_rows(
    model: StructuredModel,
    rows: Iterable[Row],
    *,
    batch_words: int = BATCH_WORDS,
    embeddings: EmbeddingSource | None = None,
) -> Iterator[dict[str, list[Any]]]:
    """Yield the best structure of each prepared row as the model's columns, in order.

    Memory does not grow with the number of rows; see `Collator` and `length_batches` for the rest.
    """

    def run(batch: list[Row]) -> list[dict[str, list[Any]]]:
        output = run_rows(model, batch, embeddings)
        return model.decode(model.distribution(output).best(), output.lengths)

    return in_batches(rows, run, batch_words)
