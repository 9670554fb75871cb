"""Words of an invented language, their inflection, and word vectors in a space shared by all languages."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hf_xst.data import WordVectors
from hf_xst.demo.settings import LanguageSettings
from hf_xst.demo.world import PUNCTUATION, Draws, World, generator, unit_rows, world

Key = tuple[int, str, str]
"""A concept and up to two features ("" for no feature): the meaning of a form."""

NOUN_LIKE = ("noun.animate", "noun.thing", "noun.place")
VERB_LIKE = ("verb.intransitive", "verb.transitive", "verb.giving", "verb.saying", "modal", "past", "copula")

BORROWED_STEMS = {
    "verb.intransitive": "noun.animate",
    "verb.transitive": "noun.thing",
    "adverb": "adjective",
    "demonstrative": "pronoun",
    "modal": "verb.transitive",
    "complementizer": "demonstrative",
    "subordinator": "adposition",
}
"""Kinds whose concepts may share a stem with a concept of an earlier kind."""

_OPEN_KINDS = (*NOUN_LIKE, "name", *VERB_LIKE[:4], "adjective", "adverb")
_PROTO_CONSONANTS = "ptkbdgmnlrsvzhj"
_PROTO_VOWELS = "aeiou"
_TRIES = 20  # stems to try before adding a syllable


class Lexicon:
    """All forms of a language, by their meanings, and all meanings (`senses`) of each form."""

    def __init__(self, settings: LanguageSettings) -> None:
        self._settings = settings
        self._draws = Draws(generator("lexicon", settings.world, settings.name))
        speech = world(settings.world)
        stems = self._stems(speech)
        endings = self._endings()
        self.forms: dict[Key, str] = {}
        self.senses: dict[str, list[Key]] = {}
        for concept, stem in enumerate(stems):
            kind = speech.kind[concept]
            for features in self._paradigm(kind):
                form = stem + "".join(
                    endings[_ending_class(kind), feature] for feature in features if feature
                )
                self.forms[concept, *features] = form
                self.senses.setdefault(form, []).append((concept, *features))

    def _stems(self, speech: World) -> list[str]:
        """Return a stem per concept; all differ except borrowed ones."""
        settings = self._settings
        proto = Draws(generator("proto-language", speech.number))
        inherited = [next(_stems(proto, kind, _PROTO_CONSONANTS, _PROTO_VOWELS, 0.3)) for kind in speech.kind]
        sound_changes = self._sound_changes()
        stems: list[str] = []
        taken: set[str] = set()
        for concept, kind in enumerate(speech.kind):
            if kind == "punctuation":
                stems.append(PUNCTUATION[concept - speech.by_kind[kind].start])
                continue
            if kind in BORROWED_STEMS and self._draws.chance(settings.ambiguity):
                stems.append(stems[self._draws.pick(speech.by_kind[BORROWED_STEMS[kind]])])
                continue
            stem = inherited[concept].translate(sound_changes)
            if stem in taken or not self._draws.chance(settings.cognates):
                letters = (settings.consonants, settings.vowels)
                new = _stems(self._draws, kind, *letters, settings.closed_syllables)
                stem = next(each for each in new if each not in taken)
            taken.add(stem)
            stems.append(stem)
        return stems

    def _sound_changes(self) -> dict[int, str]:
        """Map each letter of the proto-language; letters that the language has mostly stay."""
        changes = {}
        for letter in _PROTO_CONSONANTS + _PROTO_VOWELS:
            new = self._settings.vowels if letter in _PROTO_VOWELS else self._settings.consonants
            other = self._draws.pick(new)
            changes[ord(letter)] = letter if letter in new and self._draws.chance(0.7) else other
        return changes

    def _endings(self) -> dict[tuple[str, str], str]:
        """Return an ending per word class and feature, all different within a class."""
        cases = self._settings.cases
        classes = {"noun": ("plur", *cases), "verb": ("past", "plur"), "adjective": ("plur",)}
        endings = {}
        for name, features in classes.items():
            taken: set[str] = set()
            for feature in features:
                ending = next(new for new in self._new_endings() if new not in taken)
                taken.add(ending)
                endings[name, feature] = ending
        return endings

    def _new_endings(self) -> Iterator[str]:
        while True:
            vowel = self._draws.pick(self._settings.vowels)
            consonant = self._draws.pick(self._settings.consonants)
            yield self._draws.pick((vowel + consonant, consonant + vowel, vowel))

    def _paradigm(self, kind: str) -> list[tuple[str, str]]:
        """Return the features of each form of a word."""
        settings = self._settings
        cases: tuple[str, ...] = ("", *settings.cases)
        if kind in NOUN_LIKE:
            return [(number, case) for case in cases for number in ("", "plur")]
        if kind in ("name", "pronoun"):
            return [("", case) for case in cases]
        if kind in VERB_LIKE:
            tenses = ("", "past") if settings.tense_suffix else ("",)
            numbers = ("", "plur") if settings.agreement else ("",)
            return [(tense, number) for tense in tenses for number in numbers]
        if kind == "adjective" and settings.adjective_agreement:
            return [("", ""), ("plur", "")]
        return [("", "")]


def _ending_class(kind: str) -> str:
    if kind in VERB_LIKE:
        return "verb"
    return "adjective" if kind == "adjective" else "noun"


def _stems(draws: Draws, kind: str, consonants: str, vowels: str, closed: float) -> Iterator[str]:
    """Yield stems endlessly: at least two syllables for content words, one for function words."""
    shortest = 2 if kind in _OPEN_KINDS else 1
    longest = shortest + 1 if kind in _OPEN_KINDS else 1
    while True:
        for _ in range(_TRIES):
            syllables = draws.pick(range(shortest, longest + 1))
            yield "".join(_syllable(draws, consonants, vowels, closed) for _ in range(syllables))
        longest += 1


def _syllable(draws: Draws, consonants: str, vowels: str, closed: float) -> str:
    open_part = draws.pick(consonants) + draws.pick(vowels)
    return open_part + draws.pick(consonants) if draws.chance(closed) else open_part


def word_vectors(settings: LanguageSettings, lexicon: Lexicon) -> WordVectors:
    """Build the float32 vectors of all forms of a language, roughly from frequent to rare.

    A form's vector is the sum of its concept, its features, the language's offset, and noise: half of it (in
    variance) of the lemma, since translations differ in meaning, half of the form. An ambiguous form gets the
    average of its meanings.
    """
    speech = world(settings.world)
    concepts = speech.concept_vectors(settings.dimension)
    features = speech.feature_vectors(settings.dimension)
    source = generator("vectors", settings.world, settings.name, settings.dimension)
    noise = settings.vector_noise / np.sqrt(2.0)
    offset = settings.language_noise * unit_rows(source, 1, settings.dimension)
    lemmas = concepts + noise * unit_rows(source, len(speech), settings.dimension)
    senses = lexicon.senses

    def sense_vector(key: Key) -> NDArray[np.float64]:
        concept, *expressed = key
        vector: NDArray[np.float64] = lemmas[concept]
        return sum((features[name] for name in expressed if name), vector)

    def rarity(form: str) -> tuple[int, int]:
        return min(
            (concept - speech.by_kind[speech.kind[concept]].start, concept) for concept, *_ in senses[form]
        )

    words = sorted(senses, key=rarity)
    means = np.stack([np.mean([sense_vector(key) for key in senses[form]], axis=0) for form in words])
    matrix = means + offset + noise * unit_rows(source, len(words), settings.dimension)
    return demo_vectors(words, matrix.astype(np.float32))


def demo_vectors(words: list[str], matrix: NDArray[np.float32]) -> WordVectors:
    """Return words and their vectors, (V, D), in the space that all invented languages share."""
    digest = hashlib.sha256("\n".join(words).encode() + matrix.tobytes()).hexdigest()
    return WordVectors(words, matrix, "demo", digest)
