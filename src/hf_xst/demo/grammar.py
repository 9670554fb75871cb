"""Clauses and sentences: one grammar for all invented languages, controlled by their settings."""

from __future__ import annotations

from typing import Any

from hf_xst.demo.lexicon import Lexicon
from hf_xst.demo.phrases import DEEPEST, Node, Phrases, Ranks, clause_ranks, sentence_row
from hf_xst.demo.settings import WORD_ORDERS, LanguageSettings
from hf_xst.demo.world import PUNCTUATION, Draws, Weighted

LONGEST = 22
"""Maximum number of words in a sentence."""

_VERB_KINDS = ("verb.intransitive", "verb.transitive", "verb.giving", "verb.saying")
_OBLIQUE_CASES = ("loc", "ins", "abl", "free")
# Probabilities.
_VERBS = Weighted((0, 1, 2, 3), (0.3, 0.48, 0.1, 0.12))
_NO_VERB, _NOUN_PREDICATE, _PAST, _MODAL = 0.15, 0.4, 0.4, 0.15
_NEGATION, _ADVERB, _OBLIQUE, _OBLIQUE_OF_NOUN = 0.1, 0.25, 0.4, 0.08
_RELATIVE_CLAUSE, _ADVERBIAL_CLAUSE, _SECOND_CLAUSE = 0.09, 0.12, 0.1
_QUESTION, _MARKED = 0.1, 0.85
_INANIMATE_SUBJECT, _ANIMATE_OBJECT = 0.2, 0.3
_FLIP = 0.1  # adverbs and obliques move more freely than other dependents


class Grammar(Phrases):
    """Generates sentences of a language."""

    def __init__(self, settings: LanguageSettings, lexicon: Lexicon, draws: Draws) -> None:
        super().__init__(settings, lexicon, draws)
        self._usual_ranks = clause_ranks(settings, settings.word_order)
        self._all_ranks = [clause_ranks(settings, order) for order in WORD_ORDERS]

    def sentence(self) -> dict[str, Any]:
        """Return the next sentence, at most `LONGEST` words, as a row with words, upos, head and deprel."""
        while True:
            row = self._sentence()
            if len(row["words"]) <= LONGEST:
                return row

    def _sentence(self) -> dict[str, Any]:
        ranks = self._ranks()
        root = self._clause("root", ranks, depth=0)
        question = self._uniform() < _QUESTION
        if question and self._settings.question_particle != "none":
            root.attach(self._word("question", "advmod"), ranks["question"])
        if self._uniform() < _ADVERBIAL_CLAUSE:
            self._add_adverbial_clause(root, ranks)
        elif self._uniform() < _SECOND_CLAUSE:
            inner = self._ranks()
            second = self._clause("conj", inner, depth=1)
            second.attach(self._word("coordinator", "cc"), inner["cc"])
            second.attach(self._mark(","), -inner["comma"])
            root.attach(second, ranks["conj"])
        return sentence_row(root, self._mark("?" if question else "."))

    def _add_adverbial_clause(self, root: Node, ranks: Ranks) -> None:
        inner = self._ranks()
        clause = self._clause("advcl", inner, depth=1)
        clause.attach(self._word("subordinator", "mark"), inner["mark"])
        side = ranks["advcl"]
        clause.attach(self._mark(","), inner["comma"] if side < 0 else -inner["comma"])
        root.attach(clause, side)

    def _mark(self, form: str) -> Node:
        return self._concept_word(self._world.by_kind["punctuation"][PUNCTUATION.index(form)], "punct")

    def _ranks(self) -> Ranks:
        """Return the ranks of the next clause: usually the default ones, sometimes any."""
        if self._uniform() < self._settings.order_noise:
            return self._draws.pick(self._all_ranks)
        return self._usual_ranks

    def _clause(self, deprel: str, ranks: Ranks, depth: int) -> Node:
        """Return a clause; a relative one (`acl`) has no subject."""
        subject, number = (None, "") if deprel == "acl" else self._subject(depth)
        if self._uniform() < _NO_VERB and deprel != "acl":
            predicate = self._no_verb(deprel, number, ranks, depth)
        else:
            predicate = self._verb(deprel, number, ranks, depth)
        if subject is not None:
            predicate.attach(subject, ranks["nsubj"])
        self._add_adjuncts(predicate, ranks, depth)
        return predicate

    def _subject(self, depth: int) -> tuple[Node | None, str]:
        kind = "noun.thing" if self._uniform() < _INANIMATE_SUBJECT else "noun.animate"
        subject, number = self._full_noun_phrase(kind, "nsubj", "", depth)
        if subject.upos == "PRON" and self._uniform() < self._settings.pro_drop:
            return None, number
        return subject, number

    def _full_noun_phrase(self, kind: str, deprel: str, case: str, depth: int) -> tuple[Node, str]:
        """Return a noun phrase, sometimes with a relative clause or an adpositional phrase."""
        noun, number = self._noun_phrase(kind, deprel, case, depth)
        if noun.upos != "NOUN" or depth >= DEEPEST:
            return noun, number
        if self._uniform() < _RELATIVE_CLAUSE:
            ranks = self._ranks()
            clause = self._clause("acl", ranks, depth + 1)
            if self._uniform() < _MARKED:
                clause.attach(self._word("relativizer", "mark"), ranks["mark"])
            clause.moved = self._uniform() < self._settings.extraposition
            noun.attach(clause, self._noun_ranks["acl"])
        elif self._uniform() < _OBLIQUE_OF_NOUN:
            noun.attach(self._oblique("nmod", depth + 1), self._noun_ranks["nmod"])
        return noun, number

    def _oblique(self, deprel: str, depth: int) -> Node:
        case = self._draws.pick(_OBLIQUE_CASES)
        kind = "noun.place" if case in ("loc", "abl") and self._uniform() < 0.7 else "noun.thing"
        return self._full_noun_phrase(kind, deprel, case, depth)[0]

    def _verb(self, deprel: str, number: str, ranks: Ranks, depth: int) -> Node:
        """Return a verb with its auxiliary and objects."""
        choice = _VERBS.pick(self._draws)
        kind = _VERB_KINDS[choice if choice < 3 or depth < DEEPEST else 1]
        tense, agreement = self._finite_features(number)
        auxiliary = self._auxiliary(tense)
        if auxiliary is None:
            verb = self._word(kind, deprel, tense if self._settings.tense_suffix else "", agreement)
        else:
            verb = self._word(kind, deprel)
            verb.attach(self._word(auxiliary, "aux", "", agreement), ranks["aux"])
        if kind == "verb.saying":
            self._add_complement(verb, ranks, depth)
        elif kind != "verb.intransitive":
            patient = "noun.animate" if self._uniform() < _ANIMATE_OBJECT else "noun.thing"
            verb.attach(self._full_noun_phrase(patient, "obj", "acc", depth + 1)[0], ranks["obj"])
            if kind == "verb.giving":
                verb.attach(self._noun_phrase("noun.animate", "iobj", "dat", DEEPEST)[0], ranks["iobj"])
        return verb

    def _finite_features(self, number: str) -> tuple[str, str]:
        tense = "past" if self._uniform() < _PAST else ""
        return tense, number if self._settings.agreement else ""

    def _auxiliary(self, tense: str) -> str | None:
        if self._uniform() < _MODAL:
            return "modal"
        return "past" if tense and not self._settings.tense_suffix else None

    def _add_complement(self, verb: Node, ranks: Ranks, depth: int) -> None:
        inner = self._ranks()
        clause = self._clause("ccomp", inner, depth + 1)
        if self._uniform() < _MARKED:
            clause.attach(self._word("complementizer", "mark"), inner["mark"])
        verb.attach(clause, ranks["ccomp"])

    def _no_verb(self, deprel: str, number: str, ranks: Ranks, depth: int) -> Node:
        """Return an adjective or noun as predicate, with a copula if the language has one."""
        if self._uniform() < _NOUN_PREDICATE:
            predicate = self._noun_phrase("noun.animate", deprel, "", max(depth, 1))[0]
        else:
            predicate = self._adjective(deprel, number)
        if self._settings.copula:
            tense, agreement = self._finite_features(number)
            inflected = tense if self._settings.tense_suffix else ""
            predicate.attach(self._word("copula", "cop", inflected, agreement), ranks["aux"])
        return predicate

    def _add_adjuncts(self, predicate: Node, ranks: Ranks, depth: int) -> None:
        """Add negation, adverb and oblique."""
        if self._uniform() < _NEGATION:
            predicate.attach(self._word("negation", "advmod"), ranks["negation"])
        if self._uniform() < _ADVERB:
            predicate.attach(self._word("adverb", "advmod"), self._flipped(ranks["advmod"]))
        if self._uniform() < _OBLIQUE:
            predicate.attach(self._oblique("obl", depth + 1), self._flipped(ranks["obl"]))

    def _flipped(self, rank: int) -> int:
        return -rank if self._uniform() < self._settings.order_noise + _FLIP else rank
