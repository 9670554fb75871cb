"""Random trees for tests: single-rooted, of any shape."""

from __future__ import annotations

import numpy as np


def random_heads(source: np.random.Generator, words: int) -> list[int]:
    """Return heads (from 1; 0 for the root) in which exactly one word hangs on the root."""
    order = (source.permutation(words) + 1).tolist()
    heads = [0] * words
    for position, word in enumerate(order[1:], start=1):
        heads[word - 1] = order[int(source.integers(position))]
    return heads
