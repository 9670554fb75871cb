"""Where the parts of a phrase or clause stand: a number for each, below 0 before the head, above 0 after it.

Places around a noun lie within 100 steps, those around a predicate beyond: a noun that is predicate keeps
its own modifiers next to it.
"""

from __future__ import annotations

from typing import Literal

from hf_xst.demo.settings import WORD_ORDERS, LanguageSettings, WordOrder

Ranks = dict[str, int]


def noun_ranks(settings: LanguageSettings) -> Ranks:
    """Return the places around a noun."""
    return {
        "case": _side(settings.adposition_first, 90),
        "acl": _side(settings.relative_first, 80),
        "nmod": _side(not settings.adposition_first, 70),
        "det": _side(settings.determiner_first, 60),
        "nummod": _side(settings.numeral_first, 50),
        "amod": _side(settings.adjective_first, 40),
        "genitive": _side(settings.genitive_first, 30),
        "compound": _side(settings.genitive_first, 10),
        "conj": 95,
        "cc": -99,
    }


def clause_ranks(settings: LanguageSettings) -> tuple[Ranks, list[Ranks]]:
    """Return the places around a predicate: by the language's usual order, and by each order there is."""
    return _clause_ranks(settings, settings.word_order), [
        _clause_ranks(settings, order) for order in WORD_ORDERS
    ]


def _clause_ranks(settings: LanguageSettings, order: WordOrder) -> Ranks:
    thing = _argument(order, "O")
    return {
        "nsubj": _argument(order, "S"),
        "obj": thing,
        "iobj": thing - 1,
        "ccomp": _side(thing < 0, 125 if thing < 0 else 170),
        "obl": _side(settings.oblique_first, 145),
        "advmod": _side(settings.adverb_first, 115),
        "aux": _side(settings.auxiliary_first, 110),
        "negation": _side(settings.negation_first, 105),
        "advcl": _side(settings.clause_first, 180),
        "conj": 190,
        "mark": _side(settings.subordinator_first, 195),
        "question": _side(settings.question_particle == "first", 196),
        "comma": 198,
        "cc": -197,
    }


def _argument(order: WordOrder, part: Literal["S", "O"]) -> int:
    """Return the place of subject or object: the one further from the verb is 20 steps further out."""
    distance = order.index(part) - order.index("V")
    return _side(distance < 0, 110 + 20 * abs(distance))


def _side(first: bool, distance: int) -> int:
    return -distance if first else distance
