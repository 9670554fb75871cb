"""Sample batches of similar sentence length, the same ones for any accumulation and number of processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from datasets import Dataset
from torch import Tensor
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data import Sampler

from hf_xst.models.running import FILLER

BUCKET_WIDTH = 10


class PaddedDataset(TorchDataset[dict[str, Any]]):
    """Pad a data set with rows of weight 0 to a multiple, so that every process gets full batches."""

    def __init__(self, rows: Dataset, multiple: int) -> None:
        self.rows = rows
        self.length = -(-len(rows) // multiple) * multiple
        self.sampler: BucketSampler | None = None

    def set_epoch(self, epoch: int) -> None:
        """Pass the epoch to the sampler, which accelerate does not reach when resuming within an epoch."""
        if self.sampler is not None:
            self.sampler.set_epoch(epoch)

    def __len__(self) -> int:
        return self.length

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        fillers = [index >= len(self.rows) for index in indices]
        rows = self.rows.__getitems__(
            [0 if filler else index for index, filler in zip(indices, fillers, strict=True)]
        )
        return [{**row, FILLER: filler} for row, filler in zip(rows, fillers, strict=True)]


def sentence_lengths(rows: Dataset) -> list[int]:
    """Return the number of words of each row, after any transform set on the data set."""
    if rows.format["type"] == "custom":  # the transform may create the column
        return [len(row["words"]) for row in rows]
    batches = rows.select_columns("words").with_format("arrow").iter(1000)
    return [
        length for words in batches for length in words["words"].combine_chunks().value_lengths().to_pylist()
    ]


class BucketSampler(Sampler[int]):
    """Shuffle batches of sentences of similar length; the order depends on seed and epoch only.

    A batch is what one update sees, before it is divided into accumulated micro-batches and among processes.
    So the updates do not depend on this division. `fillers` rows follow those with a length, and come last.
    """

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int, fillers: int = 0) -> None:
        self.lengths = torch.tensor(lengths)
        self.batch_size, self.seed, self.fillers = batch_size, seed, fillers
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Select the order of an epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.lengths) + self.fillers

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
        order = torch.randperm(len(self.lengths), generator=generator)
        bucket_of = self.lengths[order] // BUCKET_WIDTH
        order = order[bucket_of.argsort(stable=True)]
        batches: list[Tensor] = []
        remainders: list[Tensor] = []
        for bucket in order.tensor_split(bucket_of.bincount().cumsum(0)[:-1]):
            *full, rest = self._split(bucket)
            batches += full
            remainders.append(rest)
        *full, rest = self._split(torch.cat(remainders))
        batches += full
        for index in torch.randperm(len(batches), generator=generator).tolist():
            yield from batches[index].tolist()
        yield from rest.tolist()  # only the last batch may be incomplete
        yield from range(len(self.lengths), len(self))

    def _split(self, indices: Tensor) -> Sequence[Tensor]:
        """Return the full batches and the rest, which may be empty."""
        return indices.tensor_split(list(range(self.batch_size, len(indices) + 1, self.batch_size)))
