"""The words of an invented language: stems, endings, and forms that serve two parts of speech."""

from __future__ import annotations

from collections.abc import Iterator

from hf_xst.demo.concepts import PUNCTUATION, World, world
from hf_xst.demo.draws import Draws, generator
from hf_xst.demo.settings import LanguageSettings

Key = tuple[int, str, str]
"""A concept and up to two features of `FEATURES`, "" where there is none: what a form expresses."""

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
"""Kinds whose concepts may share the stem of another kind's, which comes earlier among the world's kinds."""

_OPEN_KINDS = (*NOUN_LIKE, "name", *VERB_LIKE[:4], "adjective", "adverb")
_PROTO_CONSONANTS = "ptkbdgmnlrsvzhj"
_PROTO_VOWELS = "aeiou"
_TRIES = 20  # after so many taken stems of one length the next one is a syllable longer


class Lexicon:
    """All forms of a language.

    Attributes:
        forms: what each form expresses -> the form.
        senses: the form -> all that it may express.
    """

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
        """Return one stem for each concept, no two alike but the borrowed ones and the marks."""
        inherited = _proto_stems(speech)
        sound_changes = self._sound_changes()
        stems: list[str] = []
        taken: set[str] = set()
        for concept, kind in enumerate(speech.kind):
            if kind == "punctuation":
                stems.append(PUNCTUATION[concept - speech.by_kind[kind].start])
                continue
            if kind in BORROWED_STEMS and self._draws.chance(self._settings.ambiguity):
                stems.append(stems[self._draws.pick(speech.by_kind[BORROWED_STEMS[kind]])])
                continue
            stem = inherited[concept].translate(sound_changes)
            if stem in taken or not self._draws.chance(self._settings.cognates):
                stem = next(new for new in self._new_stems(kind) if new not in taken)
            taken.add(stem)
            stems.append(stem)
        return stems

    def _sound_changes(self) -> dict[int, str]:
        """Return what becomes of each letter of the proto-language; shared ones mostly stay."""
        changes = {}
        own_letters = (self._settings.consonants, self._settings.vowels)
        for old, own in zip((_PROTO_CONSONANTS, _PROTO_VOWELS), own_letters, strict=True):
            for letter in old:
                other = self._draws.pick(own)
                changes[ord(letter)] = letter if letter in own and self._draws.chance(0.7) else other
        return changes

    def _new_stems(self, kind: str) -> Iterator[str]:
        draws, settings = self._draws, self._settings
        yield from _stems_of(draws, kind, settings.consonants, settings.vowels, settings.closed_syllables)

    def _endings(self) -> dict[tuple[str, str], str]:
        """Return an ending for each class of words and feature; within a class no two are alike."""
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
            vowel, consonant = (
                self._draws.pick(self._settings.vowels),
                self._draws.pick(self._settings.consonants),
            )
            yield self._draws.pick((vowel + consonant, consonant + vowel, vowel))

    def _paradigm(self, kind: str) -> list[tuple[str, str]]:
        """Return the features of each form that a word of the kind has."""
        settings = self._settings
        cases: tuple[str, ...] = ("", *settings.cases)
        if kind in NOUN_LIKE:
            return [(number, case) for case in cases for number in ("", "plur")]
        if kind in ("name", "pronoun"):
            return [("", case) for case in cases]
        if kind in VERB_LIKE:
            tenses = ("", "past") if settings.tense_suffix else ("",)
            return [
                (tense, number)
                for tense in tenses
                for number in (("", "plur") if settings.agreement else ("",))
            ]
        if kind == "adjective" and settings.adjective_agreement:
            return [("", ""), ("plur", "")]
        return [("", "")]


def _ending_class(kind: str) -> str:
    if kind in VERB_LIKE:
        return "verb"
    return "adjective" if kind == "adjective" else "noun"


def _proto_stems(speech: World) -> list[str]:
    draws = Draws(generator("proto-language", speech.number))
    return [next(_stems_of(draws, kind, _PROTO_CONSONANTS, _PROTO_VOWELS, 0.3)) for kind in speech.kind]


def _stems_of(draws: Draws, kind: str, consonants: str, vowels: str, closed: float) -> Iterator[str]:
    """Yield stems without end: content words have two syllables or more, function words one or more."""
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
