"""Word vectors of the invented languages, all in one space, as vectors aligned across languages are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hf_xst.demo.concepts import unit_rows, world
from hf_xst.demo.draws import generator
from hf_xst.demo.lexicon import Key, Lexicon
from hf_xst.demo.settings import LanguageSettings


class WordVectors(NamedTuple):
    """Words with one vector each.

    Attributes:
        words: the words, roughly from frequent to rare.
        matrix: float32, shape (words, dimension).
    """

    words: list[str]
    matrix: NDArray[np.float32]


def word_vectors(settings: LanguageSettings, lexicon: Lexicon) -> WordVectors:
    """Build the vectors of all forms of a language.

    A form's vector is its concept's, plus what its features add, plus the language's offset, plus noise: one
    half of the noise (in variance) belongs to the lemma, since a translation means only nearly the same, the
    other to the form. A form that means several things gets the mean of them.

    Args:
        settings: the language.
        lexicon: its forms.

    Returns:
        One row for each form.
    """
    speech = world(settings.world)
    concepts = speech.concept_vectors(settings.dimension)
    features = speech.feature_vectors(settings.dimension)
    source = generator("vectors", settings.world, settings.name, settings.dimension)
    noise = settings.vector_noise / np.sqrt(2.0)
    offset = settings.language_noise * unit_rows(source, 1, settings.dimension)
    lemmas = concepts + noise * unit_rows(source, len(speech), settings.dimension)

    def sense_vector(key: Key) -> NDArray[np.float64]:
        concept, *expressed = key
        vector: NDArray[np.float64] = lemmas[concept]
        return sum((features[name] for name in expressed if name), vector)

    def rarity(form: str) -> tuple[int, int]:
        return min(
            (_rank(concept, speech.by_kind[speech.kind[concept]]), concept) for concept, *_ in senses[form]
        )

    senses = lexicon.senses
    words = sorted(senses, key=rarity)
    means = np.stack([np.mean([sense_vector(key) for key in senses[form]], axis=0) for form in words])
    matrix = means + offset + noise * unit_rows(source, len(words), settings.dimension)
    return WordVectors(words, matrix.astype(np.float32))


def _rank(concept: int, kind: range) -> int:
    return concept - kind.start
