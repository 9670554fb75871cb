"""Settings of invented languages, and the five languages of the demo.

The target shares each trait with two or three of the four sources, in ever new combinations: no single source
resembles it, but together they cover most of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

WordOrder = Literal["SVO", "SOV", "VSO", "VOS", "OVS", "OSV"]
Case = Literal["acc", "gen", "dat", "loc", "ins", "abl"]

WORD_ORDERS: tuple[WordOrder, ...] = get_args(WordOrder)


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageSettings:
    """Typology, sound and difficulty of an invented language.

    Languages with the same `world` share concepts and the space of word vectors. Words and vectors follow
    from the settings alone; the seed of `generate_language` selects the sentences. Fields called `..._first`
    place a dependent before its head.

    Attributes:
        name: Name of the language; it also seeds the generation of words.
        word_order: Usual order of subject, verb and object.
        adposition_first: Prepositions if true, postpositions if false.
        subordinator_first: Subordinators at the start of their clause, not at its end.
        question_particle: Position of the particle of yes/no questions.
        articles: Whether there are a definite and an indefinite article.
        copula: Whether non-verbal predicates take a copula.
        cases: Roles marked by a suffix; other roles are marked by adpositions or unmarked.
        tense_suffix: Past tense is a suffix of the verb, not an auxiliary.
        agreement: Verbs agree in number with their subject.
        adjective_agreement: Adjectives agree in number with their noun.
        consonants: Letters that may open or close a syllable.
        vowels: Letters in the middle of a syllable.
        closed_syllables: Proportion of syllables that end in a consonant.
        order_noise: Probability that a clause or phrase departs from the usual order.
        extraposition: Probability that a relative clause moves to the end (non-projective).
        pro_drop: Probability that a subject pronoun is omitted.
        cognates: Proportion of stems derived from the world's proto-language.
        ambiguity: Proportion of verbs, adverbs and function words that share their stem with another concept.
        vector_noise: Length of a word vector's random component; a concept's vector has length about 1.
        language_noise: Length of the offset common to all vectors of the language.
        dimension: Size of the word vectors.
        world: Number of the world whose concepts the language expresses.
    """

    name: str
    word_order: WordOrder = "SVO"
    adposition_first: bool = True
    adjective_first: bool = True
    numeral_first: bool = True
    determiner_first: bool = True
    genitive_first: bool = False
    relative_first: bool = False
    auxiliary_first: bool = True
    negation_first: bool = True
    adverb_first: bool = False
    oblique_first: bool = False
    clause_first: bool = False
    subordinator_first: bool = True
    question_particle: Literal["first", "last", "none"] = "none"
    articles: bool = True
    copula: bool = True
    cases: tuple[Case, ...] = ()
    tense_suffix: bool = True
    agreement: bool = True
    adjective_agreement: bool = False
    consonants: str = "ptkbdgmnlrs"
    vowels: str = "aeiou"
    closed_syllables: float = 0.3
    order_noise: float = 0.1
    extraposition: float = 0.0
    pro_drop: float = 0.0
    cognates: float = 0.3
    ambiguity: float = 0.25
    vector_noise: float = 0.6
    language_noise: float = 0.3
    dimension: int = 32
    world: int = 0


def _order(before: str = "", after: str = "") -> dict[str, Any]:
    """Place kinds of dependents, separated by spaces, before or after their heads."""
    sides = {**dict.fromkeys(before.split(), True), **dict.fromkeys(after.split(), False)}
    return {f"{kind}_first": is_first for kind, is_first in sides.items()}


_TARGET = LanguageSettings(
    name="Sudral",
    **_order(before="genitive adverb oblique clause", after="adposition auxiliary"),
    word_order="SOV",
    question_particle="last",
    articles=False,
    cases=("acc", "gen", "loc"),
    adjective_agreement=True,
    consonants="ptkbdgmnlrszšžčvh",
    vowels="aeiouy",
    pro_drop=0.3,
    order_noise=0.12,
)

_SOURCES = (
    LanguageSettings(
        name="Belori",
        **_order(before="genitive adverb oblique clause", after="auxiliary"),
        question_particle="last",
        cases=("acc",),
        adjective_agreement=True,
        consonants="ptkbdgmnlrsfvhw",
        closed_syllables=0.45,
        order_noise=0.05,
    ),
    LanguageSettings(
        name="Kasuni",
        **_order(
            before="genitive relative adverb oblique clause",
            after="adposition adjective determiner numeral auxiliary negation subordinator",
        ),
        word_order="SOV",
        question_particle="last",
        articles=False,
        cases=("acc", "gen", "dat"),
        agreement=False,
        consonants="ptkgmnrsyhw",
        vowels="aiueo",
        closed_syllables=0.1,
        pro_drop=0.4,
    ),
    LanguageSettings(
        name="Mirtash",
        **_order(after="auxiliary"),
        word_order="SOV",
        question_particle="first",
        articles=False,
        cases=("acc", "dat", "loc"),
        adjective_agreement=True,
        consonants="ptkbdgqmnlrsšxzč",
        vowels="aeioöü",
        closed_syllables=0.5,
        pro_drop=0.2,
        order_noise=0.2,
    ),
    LanguageSettings(
        name="Ulwedd",
        **_order(before="genitive oblique clause", after="adposition adjective"),
        word_order="VSO",
        question_particle="first",
        copula=False,
        cases=("gen", "loc"),
        tense_suffix=False,
        consonants="ptcbdgmnlrfhðw",
        vowels="aeiouâ",
        closed_syllables=0.35,
    ),
)


def source_languages(**changes: Any) -> tuple[LanguageSettings, ...]:
    """Return the settings of the four source languages, with changes to fields in all of them."""
    return tuple(replace(settings, **changes) for settings in _SOURCES)


def target_language(**changes: Any) -> LanguageSettings:
    """Return the settings of the target language, with changes as in `source_languages`."""
    return replace(_TARGET, **changes)
