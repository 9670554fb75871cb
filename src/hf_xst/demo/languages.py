"""Invented languages, ready to train on: annotated sentences, word vectors, and both as files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hf_xst.demo.draws import Draws, generator
from hf_xst.demo.grammar import Grammar
from hf_xst.demo.lexicon import Lexicon
from hf_xst.demo.settings import LanguageSettings
from hf_xst.demo.vectors import WordVectors, word_vectors
from hf_xst.files import atomic_path


@dataclass(frozen=True, slots=True)
class InventedLanguage:
    """A language with its sentences.

    Attributes:
        settings: what it is like.
        sentences: rows with `sent_id`, `words`, `upos`, `head` (from 1; 0 for the root) and `deprel`.
        vectors: a vector for each form of the language, whether or not a sentence has it.
    """

    settings: LanguageSettings
    sentences: list[dict[str, Any]]
    vectors: WordVectors

    def write_conllu(self, path: str | os.PathLike[str]) -> None:
        """Write all sentences as CoNLL-U."""
        write_conllu(path, self.sentences)

    def write_vectors(self, path: str | os.PathLike[str]) -> None:
        """Write the vectors as `.vec` text: a line with count and dimension, then a line for each word."""
        with atomic_path(path) as aside, aside.open("w", encoding="utf-8", newline="\n") as stream:
            stream.write(f"{len(self.vectors.words)} {self.vectors.matrix.shape[1]}\n")
            for word, row in zip(self.vectors.words, self.vectors.matrix.tolist(), strict=True):
                stream.write(f"{word} {' '.join(format(value, '.6g') for value in row)}\n")


def generate_language(settings: LanguageSettings, *, sentences: int, seed: int) -> InventedLanguage:
    """Invent a language and let it speak.

    Words and vectors follow from the settings alone, so that calls with other seeds give more sentences of
    the same language; the first sentences of a longer call are those of a shorter one.

    Args:
        settings: the language.
        sentences: how many sentences.
        seed: which sentences; 0 or more.

    Returns:
        The language.

    Raises:
        ValueError: `sentences` or `seed` is negative.
    """
    if sentences < 0 or seed < 0:
        raise ValueError(f"sentences is {sentences} and seed {seed}; expected 0 or more for both.")
    lexicon = Lexicon(settings)
    grammar = Grammar(settings, lexicon, Draws(generator("sentences", settings.world, settings.name, seed)))
    rows = [
        {"sent_id": f"{settings.name.lower()}-{seed}-{number}", **grammar.sentence()}
        for number in range(1, sentences + 1)
    ]
    return InventedLanguage(settings, rows, word_vectors(settings, lexicon))


def write_conllu(path: str | os.PathLike[str], sentences: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as CoNLL-U, with `sent_id` and `text`; columns that the rows do not have are `_`."""
    with atomic_path(path) as aside, aside.open("w", encoding="utf-8", newline="\n") as stream:
        for row in sentences:
            stream.write(_conllu_block(row))


def _conllu_block(row: Mapping[str, Any]) -> str:
    glued = [tag == "PUNCT" for tag in (*row["upos"][1:], "")]
    text = "".join(word if tight else f"{word} " for word, tight in zip(row["words"], glued, strict=True))
    lines = [f"# sent_id = {row['sent_id']}", f"# text = {text.rstrip()}"]
    columns = zip(row["words"], row["upos"], row["head"], row["deprel"], glued, strict=True)
    for position, (word, tag, head, relation, tight) in enumerate(columns, start=1):
        spacing = "SpaceAfter=No" if tight else "_"
        lines.append(f"{position}\t{word}\t_\t{tag}\t_\t_\t{head}\t{relation}\t_\t{spacing}")
    return "\n".join(lines) + "\n\n"
