"""Concepts shared by several languages, with frequencies and vectors; and reproducible random draws."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Item = TypeVar("Item")

_COUNTS = {
    "NOUN": {"noun.animate": 60, "noun.thing": 70, "noun.place": 30},
    "PROPN": {"name": 20},
    "VERB": {"verb.intransitive": 30, "verb.transitive": 45, "verb.giving": 8, "verb.saying": 10},
    "ADJ": {"adjective": 45},
    "ADV": {"adverb": 20, "degree": 4},
    "NUM": {"numeral": 8},
    "PRON": {"pronoun": 6},
    "DET": {"demonstrative": 3, "definite": 1, "indefinite": 1},
    "ADP": {"adposition": 7},
    "AUX": {"modal": 3, "past": 1, "copula": 1},
    "SCONJ": {"complementizer": 1, "relativizer": 1, "subordinator": 4},
    "CCONJ": {"coordinator": 2},
    "PART": {"negation": 1, "question": 1},
    "PUNCT": {"punctuation": 3},
}
KINDS = {kind: (upos, count) for upos, kinds in _COUNTS.items() for kind, count in kinds.items()}
"""UPOS tag and number of concepts of each kind."""
UPOS_TAGS = tuple(sorted(_COUNTS))
ADPOSITION_CASES = ("gen", "dat", "loc", "ins", "abl")
"""The cases that replace the first adpositions, in order; the other adpositions have no case."""
PUNCTUATION = (".", "?", ",")
"""Forms of the kind "punctuation" in every language."""
FEATURES = ("plur", "past", "acc", "gen", "dat", "loc", "ins", "abl")
"""Features that an inflected form may express."""

_ZIPF_EXPONENT = 0.8  # a little flatter than in real text, so that small treebanks contain rare words
_KIND_WEIGHT, _UPOS_WEIGHT, _FEATURE_WEIGHT = 0.6, 0.3, 0.35  # in word vectors
_BLOCK = 4096  # numbers per call: a call into NumPy costs as much as dozens of numbers


def generator(*keys: int | str) -> np.random.Generator:
    """Return a generator seeded by numbers and names, the same in every process and on every platform.

    Names enter by their CRC-32 because `hash` changes from process to process.
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
        """Return one of several equally likely items."""
        return items[int(self.uniform() * len(items))]


def _uniforms(source: np.random.Generator) -> Iterator[float]:
    while True:
        yield from source.random(_BLOCK).tolist()


class Weighted:
    """Items with unequal probabilities."""

    def __init__(self, items: Sequence[int], weights: Sequence[float]) -> None:
        sums = list(accumulate(weights))
        self._items = list(items)
        self._bounds = [bound / sums[-1] for bound in sums[:-1]]

    def pick(self, draws: Draws) -> int:
        """Return one item by its weight."""
        return self._items[bisect_right(self._bounds, draws.uniform())]


@dataclass(frozen=True, slots=True)
class World:
    """The concepts that several languages share.

    Attributes:
        number: Number of the world.
        kind: Kind of each concept.
        upos: UPOS tag of each concept.
        by_kind: Concepts of each kind.
        weighted: The same with their frequencies.
    """

    number: int
    kind: tuple[str, ...]
    upos: tuple[str, ...]
    by_kind: dict[str, range]
    weighted: dict[str, Weighted] = field(repr=False)

    def __len__(self) -> int:
        return len(self.upos)

    def concept_vectors(self, dimension: int) -> NDArray[np.float64]:
        """Return a vector for each concept, shape (concepts, dimension), of length about 1.

        Concepts of one kind, and of one UPOS tag, have a component in common.
        """
        source = generator("concepts", self.number, dimension)
        vectors = unit_rows(source, len(self), dimension)
        kinds = dict(zip(self.by_kind, unit_rows(source, len(self.by_kind), dimension), strict=True))
        tags = dict(zip(UPOS_TAGS, unit_rows(source, len(UPOS_TAGS), dimension), strict=True))
        common = [
            _KIND_WEIGHT * kinds[kind] + _UPOS_WEIGHT * tags[upos]
            for kind, upos in zip(self.kind, self.upos, strict=True)
        ]
        total: NDArray[np.float64] = vectors + np.stack(common)
        return total

    def feature_vectors(self, dimension: int) -> dict[str, NDArray[np.float64]]:
        """Return what each feature adds to the vector of an inflected form, shape (dimension,) each."""
        source = generator("features", self.number, dimension)
        rows = _FEATURE_WEIGHT * unit_rows(source, len(FEATURES), dimension)
        return dict(zip(FEATURES, rows, strict=True))


@lru_cache(maxsize=8)
def world(number: int) -> World:
    """Return a world by its number; all worlds have the same concepts, with different vectors."""
    kinds: list[str] = []
    by_kind: dict[str, range] = {}
    for kind, (_, count) in KINDS.items():
        by_kind[kind] = range(len(kinds), len(kinds) + count)
        kinds += [kind] * count
    weighted = {
        kind: Weighted(ids, [(rank + 3.0) ** -_ZIPF_EXPONENT for rank in range(len(ids))])
        for kind, ids in by_kind.items()
    }
    return World(number, tuple(kinds), tuple(KINDS[kind][0] for kind in kinds), by_kind, weighted)


def unit_rows(source: np.random.Generator, rows: int, dimension: int) -> NDArray[np.float64]:
    """Return random directions, shape (rows, dimension), each of length about 1."""
    directions: NDArray[np.float64] = source.standard_normal((rows, dimension)) / np.sqrt(dimension)
    return directions
