"""Cheap random draws, the same in every process and on every platform."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TypeVar

import numpy as np

Item = TypeVar("Item")

_BLOCK = 4096  # a call into NumPy costs as much as dozens of numbers: they are drawn in blocks


def generator(*keys: int | str) -> np.random.Generator:
    """Return the generator that belongs to a sequence of numbers and names.

    Names enter by their CRC-32, which, unlike `hash`, does not change from process to process.
    """
    return np.random.default_rng([zlib.crc32(key.encode()) if isinstance(key, str) else key for key in keys])


class Draws:
    """A stream of uniform numbers and the choices made with them."""

    def __init__(self, source: np.random.Generator) -> None:
        self.uniform = _uniforms(source).__next__

    def chance(self, probability: float) -> bool:
        """Return true with the given probability."""
        return self.uniform() < probability

    def pick(self, items: Sequence[Item]) -> Item:
        """Return one item, all being equally likely."""
        return items[int(self.uniform() * len(items))]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """Return the items in random order."""
        rest = list(items)
        return [rest.pop(int(self.uniform() * len(rest))) for _ in items]


class Weighted:
    """Items with unequal chances."""

    def __init__(self, items: Sequence[int], weights: Sequence[float]) -> None:
        sums = list(accumulate(weights))
        self._items = list(items)
        self._bounds = [bound / sums[-1] for bound in sums[:-1]]

    def pick(self, draws: Draws) -> int:
        """Return one item by its weight."""
        return self._items[bisect_right(self._bounds, draws.uniform())]


def _uniforms(source: np.random.Generator) -> Iterator[float]:
    while True:
        yield from source.random(_BLOCK).tolist()
