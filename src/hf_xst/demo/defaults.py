"""Five invented languages: four whose treebanks train the sources, and one without a treebank.

The target shares each of its traits with two or three of the sources, never with the same ones: no single
source is a good model of it, all of them together know most of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hf_xst.demo.settings import LanguageSettings

_TARGET = LanguageSettings(
    name="Sudral",
    word_order="SOV",
    adposition_first=False,
    adjective_first=True,
    genitive_first=True,
    relative_first=False,
    auxiliary_first=False,
    negation_first=True,
    adverb_first=True,
    oblique_first=True,
    clause_first=True,
    subordinator_first=True,
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
        word_order="SVO",
        adposition_first=True,
        adjective_first=True,
        genitive_first=True,
        auxiliary_first=False,
        adverb_first=True,
        oblique_first=True,
        clause_first=True,
        question_particle="last",
        articles=True,
        cases=("acc",),
        adjective_agreement=True,
        consonants="ptkbdgmnlrsfvhw",
        vowels="aeiou",
        closed_syllables=0.45,
        order_noise=0.05,
    ),
    LanguageSettings(
        name="Kasuni",
        word_order="SOV",
        adposition_first=False,
        adjective_first=False,
        determiner_first=False,
        numeral_first=False,
        genitive_first=True,
        relative_first=True,
        auxiliary_first=False,
        negation_first=False,
        adverb_first=True,
        oblique_first=True,
        clause_first=True,
        subordinator_first=False,
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
        word_order="SOV",
        adposition_first=True,
        adjective_first=True,
        determiner_first=True,
        genitive_first=False,
        auxiliary_first=False,
        negation_first=True,
        adverb_first=False,
        oblique_first=False,
        clause_first=False,
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
        word_order="VSO",
        adposition_first=False,
        adjective_first=False,
        numeral_first=True,
        genitive_first=True,
        auxiliary_first=True,
        negation_first=True,
        adverb_first=False,
        oblique_first=True,
        clause_first=True,
        question_particle="first",
        articles=True,
        copula=False,
        cases=("gen", "loc"),
        tense_suffix=False,
        consonants="ptcbdgmnlrfhðw",
        vowels="aeiouâ",
        closed_syllables=0.35,
    ),
)


def source_languages(**changes: Any) -> tuple[LanguageSettings, ...]:
    """Return the settings of the four source languages.

    Args:
        changes: fields of `LanguageSettings` to set in all of them, such as `world` or `vector_noise`.
    """
    return tuple(replace(settings, **changes) for settings in _SOURCES)


def target_language(**changes: Any) -> LanguageSettings:
    """Return the settings of the target language.

    Args:
        changes: fields of `LanguageSettings` to set, such as `world` or `vector_noise`.
    """
    return replace(_TARGET, **changes)
