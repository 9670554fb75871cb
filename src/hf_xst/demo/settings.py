"""What sets one invented language apart from another."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

WordOrder = Literal["SVO", "SOV", "VSO", "VOS", "OVS", "OSV"]
Case = Literal["acc", "gen", "dat", "loc", "ins", "abl"]

WORD_ORDERS: tuple[WordOrder, ...] = ("SVO", "SOV", "VSO", "VOS", "OVS", "OSV")
CASES: tuple[Case, ...] = ("acc", "gen", "dat", "loc", "ins", "abl")
RATES = ("closed_syllables", "order_noise", "extraposition", "pro_drop", "cognates", "ambiguity")
AMOUNTS = ("vector_noise", "language_noise")


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageSettings:
    """Typology, sound and difficulty of an invented language.

    Two settings with the same `world` share their concepts and the space of their vectors. A language's
    words and vectors follow from its settings alone; the seed of `generate_language` picks the sentences.

    Attributes:
        name: the language's name; it also decides how its words come out.
        word_order: the usual order of subject, verb and object.
        adposition_first: prepositions if true, postpositions if false.
        adjective_first: adjectives before their noun.
        numeral_first: numerals before their noun.
        determiner_first: determiners before their noun.
        genitive_first: possessors before their noun.
        relative_first: relative clauses before their noun.
        auxiliary_first: auxiliaries and copulas before the verb or predicate.
        negation_first: the negation before the verb.
        adverb_first: adverbs before the verb.
        oblique_first: obliques before the verb.
        clause_first: subordinate adverbial clauses before the main clause.
        subordinator_first: conjunctions at the start of their clause, else at its end.
        question_particle: where the particle of a yes/no question stands, if there is one.
        articles: a definite and an indefinite article.
        copula: a predicate that is no verb takes a copula.
        cases: roles marked by a suffix; the others are marked by adpositions or not at all.
        tense_suffix: past tense is a suffix on the verb, else an auxiliary.
        agreement: verbs agree in number with their subject.
        adjective_agreement: adjectives agree in number with their noun.
        consonants: the letters that may open or close a syllable.
        vowels: the letters in a syllable's middle.
        closed_syllables: the share of syllables that end in a consonant.
        order_noise: how often a clause or phrase departs from the usual order.
        extraposition: how often a relative clause moves to the end, which makes a tree non-projective.
        pro_drop: how often a pronoun that would be subject is left out.
        cognates: the share of stems taken from the world's proto-language.
        ambiguity: the share of verbs, adverbs and function words whose stem has another meaning too.
        vector_noise: the length of a word vector's own random part; a concept's vector has length about 1.
        language_noise: the length of the offset that all vectors of the language share.
        dimension: the size of the word vectors.
        world: which world of concepts the language speaks of.

    Raises:
        ValueError: a value is out of its range.
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

    def __post_init__(self) -> None:
        self._check_ranges()
        if self.word_order not in WORD_ORDERS:
            raise ValueError(f"word_order is {self.word_order!r}; expected one of {', '.join(WORD_ORDERS)}.")
        if unknown := set(self.cases) - set(CASES):
            raise ValueError(f"cases holds {sorted(unknown)}; expected some of {', '.join(CASES)}.")
        if self.question_particle not in ("first", "last", "none"):
            raise ValueError(
                f"question_particle is {self.question_particle!r}; expected first, last or none."
            )
        if len(set(self.consonants)) < 6 or len(set(self.vowels)) < 3:
            raise ValueError(
                f"{self.name} has the consonants {self.consonants!r} and the vowels {self.vowels!r}; give at "
                "least 6 and 3 different letters, or its words run out."
            )

    def _check_ranges(self) -> None:
        if not self.name or any(not letter.isprintable() or letter.isspace() for letter in self.name):
            raise ValueError(f"name is {self.name!r}; expected a word without spaces.")
        values = asdict(self)
        for rate in RATES:
            if not 0.0 <= values[rate] <= 1.0:
                raise ValueError(f"{rate} is {values[rate]}; expected a share from 0 to 1.")
        for amount in AMOUNTS:
            if not 0.0 <= values[amount] < float("inf"):
                raise ValueError(f"{amount} is {values[amount]}; expected 0 or more.")
        if self.dimension < 1 or self.world < 0:
            raise ValueError(
                f"dimension is {self.dimension} and world {self.world}; expected 1 or more and 0 or more."
            )
