"""Which sentences are trained on together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from datasets import Dataset
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data import Sampler

from hf_xst.models.collation import FILLER


class Filled(TorchDataset[dict[str, Any]]):
    """A data set padded with rows that weigh nothing, so that every process gets full batches.

    Args:
        rows: the data set.
        multiple: its length is padded to a multiple of this.
    """

    def __init__(self, rows: Dataset, multiple: int) -> None:
        self.rows = rows
        self.length = -(-len(rows) // multiple) * multiple
        self.sampler: BucketSampler | None = None

    def set_epoch(self, epoch: int) -> None:
        """Tell the sampler, which accelerate does not reach when a run goes on within an epoch."""
        if self.sampler is not None:
            self.sampler.set_epoch(epoch)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> dict[str, Any]:
        filler = index >= len(self.rows)
        return {**self.rows[0 if filler else index], FILLER: filler}

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        return [self[index] for index in indices]


def sentence_lengths(rows: Dataset) -> list[int]:
    """Return the number of words of each row, as a transform set on the data set gives them."""
    if rows.format["type"] == "custom":  # the words may be a column that only the transform makes
        return [len(row["words"]) for row in rows]
    return [len(words) for words in rows["words"]]


class BucketSampler(Sampler[int]):
    """Shuffled batches of sentences of like length; the order depends on seed and epoch alone.

    A batch here is all that one update sees, however it is cut into accumulated micro-batches and processes:
    so every way of cutting makes the same updates.

    Args:
        lengths: words of each sentence.
        batch_size: sentences of an update; whole batches come from one bucket of ten lengths.
        seed: of the shuffling.
        fillers: rows after those with a length, which come last.
    """

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int, fillers: int = 0) -> None:
        self.lengths, self.batch_size, self.seed, self.fillers = list(lengths), batch_size, seed, fillers
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose order comes next."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.lengths) + self.fillers

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
        buckets: dict[int, list[int]] = {}
        for index in torch.randperm(len(self.lengths), generator=generator).tolist():
            buckets.setdefault(self.lengths[index] // 10, []).append(index)
        batches, left_over = [], []
        for _, bucket in sorted(buckets.items()):
            whole = len(bucket) // self.batch_size * self.batch_size
            batches += self._cut(bucket[:whole])
            left_over += bucket[whole:]
        tail = self._cut(left_over)
        batches += [batch for batch in tail if len(batch) == self.batch_size]
        for place in torch.randperm(len(batches), generator=generator).tolist():
            yield from batches[place]
        # A batch that is not full can only be the last one.
        yield from (index for batch in tail if len(batch) < self.batch_size for index in batch)
        yield from range(len(self.lengths), len(self))

    def _cut(self, indices: Sequence[int]) -> list[Sequence[int]]:
        return [indices[i : i + self.batch_size] for i in range(0, len(indices), self.batch_size)]
