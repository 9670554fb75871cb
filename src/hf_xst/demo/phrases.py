"""Words and noun phrases of an invented language, and the order of their parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Literal

from hf_xst.demo.lexicon import Lexicon
from hf_xst.demo.settings import LanguageSettings, WordOrder
from hf_xst.demo.world import ADPOSITION_CASES, Draws, world

Ranks = dict[str, int]
"""Position of each kind of dependent: below 0 before the head, above 0 after it.

Ranks around a noun lie within 100, those around a predicate beyond, so that the modifiers of a predicate noun
stay next to it.
"""

DEEPEST = 2  # deepest phrase that may contain a clause or a second noun
# Probabilities.
_PLURAL, _NAME, _PRONOUN = 0.3, 0.12, {"nsubj": 0.3, "obj": 0.12, "iobj": 0.3}
_ARTICLE, _DEMONSTRATIVE = 0.55, 0.12
_NUMERAL = 0.25  # of the plurals without a demonstrative
_ADJECTIVE, _SECOND_ADJECTIVE, _DEGREE = 0.3, 0.15, 0.15
_GENITIVE, _COMPOUND, _COORDINATION = 0.16, 0.06, 0.07


@dataclass(slots=True, eq=False)
class Node:
    """A word with its dependents.

    Attributes:
        dependents: Dependents with their ranks, see `Ranks`.
        moved: Whether the subtree moves to the end of the sentence.
        position: Position in the sentence from 1, set when the tree is complete.
    """

    form: str
    upos: str
    deprel: str = "root"
    head: Node | None = None
    dependents: list[tuple[int, Node]] = field(default_factory=list)
    moved: bool = False
    position: int = 0

    def attach(self, dependent: Node, rank: int) -> None:
        """Make a word depend on this one."""
        dependent.head = self
        self.dependents.append((rank, dependent))


def sentence_row(root: Node, final: Node) -> dict[str, Any]:
    """Return a tree as a row with `words`, `upos`, `head` (from 1; 0 for the root) and `deprel`.

    The final punctuation follows all that has moved to the end.
    """
    nodes: list[Node] = []
    moved: list[Node] = []
    _emit(root, nodes, moved)
    for subtree in moved:  # grows during the loop if a moved subtree contains another one
        _emit(subtree, nodes, moved)
    root.attach(final, 99)
    nodes.append(final)
    for position, node in enumerate(nodes, start=1):
        node.position = position
    return {
        "words": [node.form for node in nodes],
        "upos": [node.upos for node in nodes],
        "head": [0 if node.head is None else node.head.position for node in nodes],
        "deprel": [node.deprel for node in nodes],
    }


def _emit(node: Node, nodes: list[Node], moved: list[Node]) -> None:
    node.dependents.sort(key=itemgetter(0))
    before = [dependent for rank, dependent in node.dependents if rank < 0]
    after = [dependent for rank, dependent in node.dependents if rank > 0]
    for each in (*before, node, *after):
        if each is node:
            nodes.append(node)
        elif each.moved:
            moved.append(each)
        else:
            _emit(each, nodes, moved)


def noun_ranks(settings: LanguageSettings) -> Ranks:
    """Return the ranks around a noun."""
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


def clause_ranks(settings: LanguageSettings, order: WordOrder) -> Ranks:
    """Return the ranks around a predicate in a word order."""
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


def _argument(order: WordOrder, role: Literal["S", "O"]) -> int:
    """Return the rank of subject or object: the one further from the verb is 20 steps further out."""
    distance = order.index(role) - order.index("V")
    return _side(distance < 0, 110 + 20 * abs(distance))


def _side(first: bool, distance: int) -> int:
    return -distance if first else distance


class Phrases:
    """Generates words and noun phrases of a language."""

    def __init__(self, settings: LanguageSettings, lexicon: Lexicon, draws: Draws) -> None:
        self._settings = settings
        self._draws = draws
        self._uniform = draws.uniform
        self._forms = lexicon.forms
        self._world = world(settings.world)
        self._noun_ranks = noun_ranks(settings)
        self._cases = frozenset(settings.cases)

    def _word(self, kind: str, deprel: str, first: str = "", second: str = "") -> Node:
        """Return a random word of a kind in the form with the features, which the language must have."""
        return self._concept_word(self._world.weighted[kind].pick(self._draws), deprel, first, second)

    def _concept_word(self, concept: int, deprel: str, first: str = "", second: str = "") -> Node:
        """Return the form of a concept with the features, which the language must have."""
        return Node(self._forms[concept, first, second], self._world.upos[concept], deprel)

    def _noun_phrase(self, kind: str, deprel: str, case: str = "", depth: int = 0) -> tuple[Node, str]:
        """Return the head and number ("" or `plur`) of a noun phrase, with its case suffix or adposition.

        A pronoun or a name may replace the noun. The case is "", one of the cases, or `free` (an adposition
        without a case); `depth` counts the phrases and clauses around the noun phrase.
        """
        suffix = case if case in self._cases else ""
        if self._uniform() < _PRONOUN.get(deprel, 0.0):
            noun, number = self._pronoun(deprel, suffix)
        elif kind == "noun.animate" and self._uniform() < _NAME:
            noun, number = self._word("name", deprel, "", suffix), ""
        else:
            number = "plur" if self._uniform() < _PLURAL else ""
            noun = self._word(kind, deprel, number, suffix)
            self._modify(noun, number)
            if depth < DEEPEST:
                self._extend(noun, kind, suffix, depth)
        if case and not suffix and case != "acc" and deprel != "iobj":
            noun.attach(self._adposition(case), self._noun_ranks["case"])
        return noun, number

    def _adjective(self, deprel: str, number: str) -> Node:
        """Return an adjective, sometimes with an adverb of degree."""
        agreement = number if self._settings.adjective_agreement else ""
        adjective = self._word("adjective", deprel, agreement)
        if self._uniform() < _DEGREE:
            adjective.attach(self._word("degree", "advmod"), -1)
        return adjective

    def _pronoun(self, deprel: str, suffix: str) -> tuple[Node, str]:
        concepts = self._world.by_kind["pronoun"]
        concept = self._world.weighted["pronoun"].pick(self._draws)
        number = "plur" if concept - concepts.start >= len(concepts) // 2 else ""
        return self._concept_word(concept, deprel, "", suffix), number

    def _adposition(self, case: str) -> Node:
        concepts = self._world.by_kind["adposition"]
        if case in ADPOSITION_CASES:
            return self._concept_word(concepts[ADPOSITION_CASES.index(case)], "case")
        return self._concept_word(self._draws.pick(concepts[len(ADPOSITION_CASES) :]), "case")

    def _place(self, noun: Node, dependent: Node, slot: str) -> None:
        rank = self._noun_ranks[slot]
        noun.attach(dependent, -rank if self._uniform() < self._settings.order_noise else rank)

    def _modify(self, noun: Node, number: str) -> None:
        """Add determiner, numeral and adjectives."""
        if self._uniform() < _DEMONSTRATIVE:
            noun.attach(self._word("demonstrative", "det"), self._noun_ranks["det"])
        elif number and self._uniform() < _NUMERAL:
            self._place(noun, self._word("numeral", "nummod"), "nummod")
        elif self._settings.articles and self._uniform() < _ARTICLE:
            kind = "indefinite" if not number and self._uniform() < 0.4 else "definite"
            noun.attach(self._word(kind, "det"), self._noun_ranks["det"])
        if self._uniform() < _ADJECTIVE:
            self._place(noun, self._adjective("amod", number), "amod")
            if self._uniform() < _SECOND_ADJECTIVE:
                self._place(noun, self._adjective("amod", number), "amod")

    def _extend(self, noun: Node, kind: str, suffix: str, depth: int) -> None:
        """Add a second noun: a possessor, a compound modifier, a conjunct."""
        if self._uniform() < _GENITIVE:
            owner = "noun.animate" if self._uniform() < 0.6 else "noun.thing"
            self._place(noun, self._noun_phrase(owner, "nmod", "gen", depth + 1)[0], "genitive")
        elif self._uniform() < _COMPOUND:
            noun.attach(self._word("noun.thing", "compound"), self._noun_ranks["compound"])
        if self._uniform() < _COORDINATION:
            other = self._word(kind, "conj", "plur" if self._uniform() < _PLURAL else "", suffix)
            self._modify(other, "")
            other.attach(self._word("coordinator", "cc"), self._noun_ranks["cc"])
            noun.attach(other, self._noun_ranks["conj"])
