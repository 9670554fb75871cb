"""Clauses and sentences: one grammar for all invented languages, spoken by each as its settings say."""

from __future__ import annotations

from typing import Any

from hf_xst.demo.concepts import PUNCTUATION, world
from hf_xst.demo.draws import Draws, Weighted
from hf_xst.demo.lexicon import Lexicon
from hf_xst.demo.order import Ranks, clause_ranks
from hf_xst.demo.phrases import DEEPEST, Phrases
from hf_xst.demo.settings import LanguageSettings
from hf_xst.demo.trees import Node, sentence_row

LONGEST = 22
"""The most words in a sentence."""

_VERBS = Weighted((0, 1, 2, 3), (0.3, 0.48, 0.1, 0.12))
_VERB_KINDS = ("verb.intransitive", "verb.transitive", "verb.giving", "verb.saying")
_NO_VERB = 0.15
_NOUN_PREDICATE = 0.4
_PAST = 0.4
_MODAL = 0.15
_NEGATION = 0.1
_ADVERB = 0.25
_OBLIQUE = 0.4
_OBLIQUE_OF_NOUN = 0.08
_RELATIVE_CLAUSE = 0.09
_ADVERBIAL_CLAUSE = 0.12
_SECOND_CLAUSE = 0.1
_QUESTION = 0.1
_MARKED = 0.85
_INANIMATE_SUBJECT = 0.2
_ANIMATE_OBJECT = 0.3
_FLIP = 0.1  # adverbs and obliques move more freely than the rest
_OBLIQUE_CASES = ("loc", "ins", "abl", "free")


class Grammar:
    """Speaks a language: every call of `sentence` gives another sentence."""

    def __init__(self, settings: LanguageSettings, lexicon: Lexicon, draws: Draws) -> None:
        self._settings = settings
        self._draws = draws
        self._phrases = Phrases(settings, lexicon, draws)
        self._usual_ranks, self._all_ranks = clause_ranks(settings)
        self._marks = world(settings.world).by_kind["punctuation"]

    def sentence(self) -> dict[str, Any]:
        """Return a sentence of at most `LONGEST` words as a row with words, upos, head and deprel."""
        while True:
            row = self._sentence()
            if len(row["words"]) <= LONGEST:
                return row

    def _sentence(self) -> dict[str, Any]:
        uniform = self._draws.uniform
        ranks = self._ranks()
        root = self._clause("root", ranks, depth=0)
        question = uniform() < _QUESTION
        if question and self._settings.question_particle != "none":
            root.attach(self._phrases.word("question", "advmod"), ranks["question"])
        if uniform() < _ADVERBIAL_CLAUSE:
            self._add_adverbial_clause(root, ranks)
        elif uniform() < _SECOND_CLAUSE:
            inner = self._ranks()
            second = self._clause("conj", inner, depth=1)
            second.attach(self._phrases.word("coordinator", "cc"), inner["cc"])
            second.attach(self._mark(","), -inner["comma"])
            root.attach(second, ranks["conj"])
        return sentence_row(root, self._mark("?" if question else "."))

    def _add_adverbial_clause(self, root: Node, ranks: Ranks) -> None:
        inner = self._ranks()
        clause = self._clause("advcl", inner, depth=1)
        clause.attach(self._phrases.word("subordinator", "mark"), inner["mark"])
        side = ranks["advcl"]
        clause.attach(self._mark(","), inner["comma"] if side < 0 else -inner["comma"])
        root.attach(clause, side)

    def _mark(self, form: str) -> Node:
        return self._phrases.concept_word(self._marks[PUNCTUATION.index(form)], "punct")

    def _ranks(self) -> Ranks:
        """Return the places in the next clause: the usual ones, or now and then any."""
        if self._draws.uniform() < self._settings.order_noise:
            return self._draws.pick(self._all_ranks)
        return self._usual_ranks

    def _clause(self, deprel: str, ranks: Ranks, depth: int) -> Node:
        """Return a clause; a relative one (`acl`) has no subject."""
        subject, number = (None, "") if deprel == "acl" else self._subject(depth)
        if self._draws.uniform() < _NO_VERB and deprel != "acl":
            predicate = self._no_verb(deprel, number, ranks, depth)
        else:
            predicate = self._verb(deprel, number, ranks, depth)
        if subject is not None:
            predicate.attach(subject, ranks["nsubj"])
        self._add_adjuncts(predicate, ranks, depth)
        return predicate

    def _subject(self, depth: int) -> tuple[Node | None, str]:
        kind = "noun.thing" if self._draws.uniform() < _INANIMATE_SUBJECT else "noun.animate"
        subject, number = self._noun_phrase(kind, "nsubj", "", depth)
        if subject.upos == "PRON" and self._draws.uniform() < self._settings.pro_drop:
            return None, number
        return subject, number

    def _noun_phrase(self, kind: str, deprel: str, case: str, depth: int) -> tuple[Node, str]:
        """Return a noun phrase, sometimes with a relative clause or an adpositional phrase."""
        noun, number = self._phrases.noun_phrase(kind, deprel, case, depth)
        if noun.upos != "NOUN" or depth >= DEEPEST:
            return noun, number
        uniform = self._draws.uniform
        if uniform() < _RELATIVE_CLAUSE:
            ranks = self._ranks()
            clause = self._clause("acl", ranks, depth + 1)
            if uniform() < _MARKED:
                clause.attach(self._phrases.word("relativizer", "mark"), ranks["mark"])
            self._phrases.attach_relative(noun, clause)
        elif uniform() < _OBLIQUE_OF_NOUN:
            self._phrases.attach_oblique(noun, self._oblique("nmod", depth + 1))
        return noun, number

    def _oblique(self, deprel: str, depth: int) -> Node:
        case = self._draws.pick(_OBLIQUE_CASES)
        kind = "noun.place" if case in ("loc", "abl") and self._draws.uniform() < 0.7 else "noun.thing"
        return self._noun_phrase(kind, deprel, case, depth)[0]

    def _verb(self, deprel: str, number: str, ranks: Ranks, depth: int) -> Node:
        """Return a verb with its auxiliary and all objects."""
        choice = _VERBS.pick(self._draws)
        kind = _VERB_KINDS[choice if choice < 3 or depth < DEEPEST else 1]
        tense, agreement = self._finite_features(number)
        auxiliary = self._auxiliary(tense)
        if auxiliary is None:
            verb = self._phrases.word(kind, deprel, tense if self._settings.tense_suffix else "", agreement)
        else:
            verb = self._phrases.word(kind, deprel)
            verb.attach(self._phrases.word(auxiliary, "aux", "", agreement), ranks["aux"])
        if kind == "verb.saying":
            self._add_complement(verb, ranks, depth)
        elif kind != "verb.intransitive":
            patient = "noun.animate" if self._draws.uniform() < _ANIMATE_OBJECT else "noun.thing"
            verb.attach(self._noun_phrase(patient, "obj", "acc", depth + 1)[0], ranks["obj"])
            if kind == "verb.giving":
                verb.attach(
                    self._phrases.noun_phrase("noun.animate", "iobj", "dat", DEEPEST)[0], ranks["iobj"]
                )
        return verb

    def _finite_features(self, number: str) -> tuple[str, str]:
        tense = "past" if self._draws.uniform() < _PAST else ""
        return tense, number if self._settings.agreement else ""

    def _auxiliary(self, tense: str) -> str | None:
        if self._draws.uniform() < _MODAL:
            return "modal"
        return "past" if tense and not self._settings.tense_suffix else None

    def _add_complement(self, verb: Node, ranks: Ranks, depth: int) -> None:
        inner = self._ranks()
        clause = self._clause("ccomp", inner, depth + 1)
        if self._draws.uniform() < _MARKED:
            clause.attach(self._phrases.word("complementizer", "mark"), inner["mark"])
        verb.attach(clause, ranks["ccomp"])

    def _no_verb(self, deprel: str, number: str, ranks: Ranks, depth: int) -> Node:
        """Return an adjective or noun as predicate, with the copula of languages that have one."""
        if self._draws.uniform() < _NOUN_PREDICATE:
            predicate = self._phrases.noun_phrase("noun.animate", deprel, "", max(depth, 1))[0]
        else:
            predicate = self._phrases.adjective(deprel, number)
        if self._settings.copula:
            tense, agreement = self._finite_features(number)
            inflected = tense if self._settings.tense_suffix else ""
            predicate.attach(self._phrases.word("copula", "cop", inflected, agreement), ranks["aux"])
        return predicate

    def _add_adjuncts(self, predicate: Node, ranks: Ranks, depth: int) -> None:
        """Add negation, adverb and oblique."""
        uniform = self._draws.uniform
        if uniform() < _NEGATION:
            predicate.attach(self._phrases.word("negation", "advmod"), ranks["negation"])
        if uniform() < _ADVERB:
            predicate.attach(self._phrases.word("adverb", "advmod"), self._flipped(ranks["advmod"]))
        if uniform() < _OBLIQUE:
            predicate.attach(self._oblique("obl", depth + 1), self._flipped(ranks["obl"]))

    def _flipped(self, rank: int) -> int:
        return -rank if self._draws.uniform() < self._settings.order_noise + _FLIP else rank
