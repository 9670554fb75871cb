"""The concepts of a world: what its languages have words for, how often, and where their vectors lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hf_xst.demo.draws import Weighted, generator

KINDS: dict[str, tuple[str, int]] = {
    "noun.animate": ("NOUN", 60),
    "noun.thing": ("NOUN", 70),
    "noun.place": ("NOUN", 30),
    "name": ("PROPN", 20),
    "verb.intransitive": ("VERB", 30),
    "verb.transitive": ("VERB", 45),
    "verb.giving": ("VERB", 8),
    "verb.saying": ("VERB", 10),
    "adjective": ("ADJ", 45),
    "adverb": ("ADV", 20),
    "degree": ("ADV", 4),
    "numeral": ("NUM", 8),
    "pronoun": ("PRON", 6),
    "demonstrative": ("DET", 3),
    "definite": ("DET", 1),
    "indefinite": ("DET", 1),
    "adposition": ("ADP", 7),
    "modal": ("AUX", 3),
    "past": ("AUX", 1),
    "copula": ("AUX", 1),
    "complementizer": ("SCONJ", 1),
    "relativizer": ("SCONJ", 1),
    "subordinator": ("SCONJ", 4),
    "coordinator": ("CCONJ", 2),
    "negation": ("PART", 1),
    "question": ("PART", 1),
    "punctuation": ("PUNCT", 3),
}
"""Each kind of concept with its UPOS tag and how many there are."""

ADPOSITION_CASES = ("gen", "dat", "loc", "ins", "abl")
"""The cases that do the work of the first adpositions, in their order; the others have no case."""

PUNCTUATION = (".", "?", ",")
"""The forms of the kind "punctuation" in every language."""

UPOS_TAGS = tuple(sorted({upos for upos, _ in KINDS.values()}))
FEATURES = ("plur", "past", "acc", "gen", "dat", "loc", "ins", "abl")
"""What an inflected form may express beside its concept."""

_FREQUENCY_FALL = (
    0.8  # Zipf's exponent, a little flatter than in real text so that rare words are seen at all
)
_KIND_SHARE = 0.6  # how much of a concept's vector is its kind's
_UPOS_SHARE = 0.3
_FEATURE_SHARE = 0.35


@dataclass(frozen=True, slots=True)
class World:
    """The concepts that several languages share.

    Attributes:
        number: the world's number.
        kind: the kind of each concept.
        upos: the UPOS tag of each concept.
        by_kind: the concepts of each kind.
        weighted: the same with their frequencies.
    """

    number: int
    kind: tuple[str, ...]
    upos: tuple[str, ...]
    by_kind: dict[str, range]
    weighted: dict[str, Weighted] = field(repr=False)

    def __len__(self) -> int:
        return len(self.upos)

    def concept_vectors(self, dimension: int) -> NDArray[np.float64]:
        """Return one vector of length about 1 for each concept, with its kind's and tag's share in it.

        Args:
            dimension: the size of the vectors.

        Returns:
            Shape (concepts, dimension).
        """
        source = generator("concepts", self.number, dimension)
        own = unit_rows(source, len(self), dimension)
        kinds = dict(zip(self.by_kind, unit_rows(source, len(self.by_kind), dimension), strict=True))
        tags = dict(zip(UPOS_TAGS, unit_rows(source, len(UPOS_TAGS), dimension), strict=True))
        shared = [
            _KIND_SHARE * kinds[k] + _UPOS_SHARE * tags[t] for k, t in zip(self.kind, self.upos, strict=True)
        ]
        vectors: NDArray[np.float64] = own + np.stack(shared)
        return vectors

    def feature_vectors(self, dimension: int) -> dict[str, NDArray[np.float64]]:
        """Return what each feature of an inflected form adds to its vector, shape (dimension,) each."""
        rows = _FEATURE_SHARE * unit_rows(
            generator("features", self.number, dimension), len(FEATURES), dimension
        )
        return dict(zip(FEATURES, rows, strict=True))


@lru_cache(maxsize=8)
def world(number: int) -> World:
    """Return the world with that number; its concepts are the same in all worlds, their vectors are not."""
    kinds: list[str] = []
    tags: list[str] = []
    by_kind: dict[str, range] = {}
    for kind, (upos, count) in KINDS.items():
        by_kind[kind] = range(len(kinds), len(kinds) + count)
        kinds += [kind] * count
        tags += [upos] * count
    weighted = {kind: Weighted(ids, _frequencies(len(ids))) for kind, ids in by_kind.items()}
    return World(number, tuple(kinds), tuple(tags), by_kind, weighted)


def unit_rows(source: np.random.Generator, rows: int, dimension: int) -> NDArray[np.float64]:
    """Return random directions, shape (rows, dimension), each of length about 1."""
    directions: NDArray[np.float64] = source.standard_normal((rows, dimension)) / np.sqrt(dimension)
    return directions


def _frequencies(count: int) -> Sequence[float]:
    return [(rank + 3.0) ** -_FREQUENCY_FALL for rank in range(count)]
