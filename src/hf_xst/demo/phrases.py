"""Words and noun phrases of an invented language."""

from __future__ import annotations

from hf_xst.demo.concepts import ADPOSITION_CASES, world
from hf_xst.demo.draws import Draws
from hf_xst.demo.lexicon import Lexicon
from hf_xst.demo.order import noun_ranks
from hf_xst.demo.settings import LanguageSettings
from hf_xst.demo.trees import Node

DEEPEST = 2  # no clause or second noun hangs below so many phrases
_PLURAL = 0.3
_PRONOUN = {"nsubj": 0.3, "obj": 0.12, "iobj": 0.3}
_NAME = 0.12
_ARTICLE = 0.55
_DEMONSTRATIVE = 0.12
_NUMERAL = 0.25  # of the plurals without a demonstrative
_ADJECTIVE = 0.3
_SECOND_ADJECTIVE = 0.15
_DEGREE = 0.15
_GENITIVE = 0.16
_COMPOUND = 0.06
_COORDINATION = 0.07


class Phrases:
    """Builds words and noun phrases by a language's settings."""

    def __init__(self, settings: LanguageSettings, lexicon: Lexicon, draws: Draws) -> None:
        self.settings = settings
        self.draws = draws
        self._forms = lexicon.forms
        self._world = world(settings.world)
        self._ranks = noun_ranks(settings)
        self._cases = frozenset(settings.cases)

    def word(self, kind: str, deprel: str, first: str = "", second: str = "") -> Node:
        """Return a word of the kind in the form that expresses the features, which the language must have."""
        return self.concept_word(self._world.weighted[kind].pick(self.draws), deprel, first, second)

    def concept_word(self, concept: int, deprel: str, first: str = "", second: str = "") -> Node:
        """Return the form of a concept that expresses the features, which the language must have."""
        return Node(self._forms[concept, first, second], self._world.upos[concept], deprel)

    def noun_phrase(self, kind: str, deprel: str, case: str = "", depth: int = 0) -> tuple[Node, str]:
        """Return a noun phrase, its role marked by the case's suffix, by its adposition or not at all.

        Args:
            kind: the kind of noun, unless a pronoun or a name takes its place.
            deprel: its relation.
            case: "", one of the cases, or `free` for an adposition that no case stands for.
            depth: how many phrases and clauses it is in already.

        Returns:
            Its head, and its number: "" or `plur`.
        """
        draws = self.draws
        suffix = case if case in self._cases else ""
        if draws.uniform() < _PRONOUN.get(deprel, 0.0):
            noun, number = self._pronoun(deprel, suffix)
        elif kind == "noun.animate" and draws.uniform() < _NAME:
            noun, number = self.word("name", deprel, "", suffix), ""
        else:
            number = "plur" if draws.uniform() < _PLURAL else ""
            noun = self.word(kind, deprel, number, suffix)
            self._modify(noun, number)
            if depth < DEEPEST:
                self._extend(noun, kind, suffix, depth)
        if case and not suffix and case != "acc" and deprel != "iobj":
            noun.attach(self._adposition(case), self._ranks["case"])
        return noun, number

    def attach_relative(self, noun: Node, clause: Node) -> None:
        """Hang a relative clause on a noun; now and then it leaves for the end of the sentence."""
        clause.moved = self.draws.uniform() < self.settings.extraposition
        noun.attach(clause, self._ranks["acl"])

    def attach_oblique(self, noun: Node, part: Node) -> None:
        """Hang an adpositional phrase on a noun."""
        noun.attach(part, self._ranks["nmod"])

    def adjective(self, deprel: str, number: str) -> Node:
        """Return an adjective, sometimes with an adverb of degree."""
        agreement = number if self.settings.adjective_agreement else ""
        adjective = self.word("adjective", deprel, agreement)
        if self.draws.uniform() < _DEGREE:
            adjective.attach(self.word("degree", "advmod"), -1)
        return adjective

    def _pronoun(self, deprel: str, suffix: str) -> tuple[Node, str]:
        concepts = self._world.by_kind["pronoun"]
        concept = self._world.weighted["pronoun"].pick(self.draws)
        number = "plur" if concept - concepts.start >= len(concepts) // 2 else ""
        return self.concept_word(concept, deprel, "", suffix), number

    def _adposition(self, case: str) -> Node:
        concepts = self._world.by_kind["adposition"]
        if case in ADPOSITION_CASES:
            return self.concept_word(concepts[ADPOSITION_CASES.index(case)], "case")
        return self.concept_word(self.draws.pick(concepts[len(ADPOSITION_CASES) :]), "case")

    def _place(self, noun: Node, part: Node, slot: str) -> None:
        rank = self._ranks[slot]
        noun.attach(part, -rank if self.draws.uniform() < self.settings.order_noise else rank)

    def _modify(self, noun: Node, number: str) -> None:
        """Add determiner, numeral and adjectives."""
        uniform = self.draws.uniform
        if uniform() < _DEMONSTRATIVE:
            noun.attach(self.word("demonstrative", "det"), self._ranks["det"])
        elif number and uniform() < _NUMERAL:
            self._place(noun, self.word("numeral", "nummod"), "nummod")
        elif self.settings.articles and uniform() < _ARTICLE:
            kind = "indefinite" if not number and uniform() < 0.4 else "definite"
            noun.attach(self.word(kind, "det"), self._ranks["det"])
        if uniform() < _ADJECTIVE:
            self._place(noun, self.adjective("amod", number), "amod")
            if uniform() < _SECOND_ADJECTIVE:
                self._place(noun, self.adjective("amod", number), "amod")

    def _extend(self, noun: Node, kind: str, suffix: str, depth: int) -> None:
        """Add what makes two nouns of one: a possessor, a compound's part, a conjunct."""
        uniform = self.draws.uniform
        if uniform() < _GENITIVE:
            owner = "noun.animate" if uniform() < 0.6 else "noun.thing"
            self._place(noun, self.noun_phrase(owner, "nmod", "gen", depth + 1)[0], "genitive")
        elif uniform() < _COMPOUND:
            noun.attach(self.word("noun.thing", "compound"), self._ranks["compound"])
        if uniform() < _COORDINATION:
            other = self.word(kind, "conj", "plur" if uniform() < _PLURAL else "", suffix)
            self._modify(other, "")
            other.attach(self.word("coordinator", "cc"), self._ranks["cc"])
            noun.attach(other, self._ranks["conj"])
