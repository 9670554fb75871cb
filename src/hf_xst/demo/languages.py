"""Invented languages, ready to train on: annotated sentences, word vectors, and both as files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hf_xst.demo.grammar import Grammar
from hf_xst.demo.lexicon import Lexicon, WordVectors, word_vectors
from hf_xst.demo.settings import LanguageSettings, source_languages, target_language
from hf_xst.demo.world import Draws, generator
from hf_xst.files import atomic_path

TARGET = "target"
"""Name of the target language's files."""


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


def write_languages(folder: Path, sentences: int, seed: int, *, test: int = 200) -> None:
    """Write treebanks and word vectors of the five languages.

    Files are `NAME-SPLIT.conllu` and `demo.NAME.vec`; the target is called `TARGET`, and its training text
    has no gold trees.

    Args:
        folder: Output folder.
        sentences: Training sentences per language; each also has 100 development sentences.
        seed: See `generate_language`.
        test: Test sentences of the target.
    """
    sizes = {"train": sentences, "dev": 100}
    languages = {settings.name: (settings, sizes) for settings in source_languages()}
    for name, (settings, splits) in (
        languages | {TARGET: (target_language(), {**sizes, "test": test})}
    ).items():
        for index, (split, size) in enumerate(splits.items()):
            language = generate_language(settings, sentences=size, seed=10 * seed + index)
            rows = language.sentences
            if (name, split) == (TARGET, "train"):
                rows = [{column: row[column] for column in ("sent_id", "words", "upos")} for row in rows]
            write_conllu(folder / f"{name}-{split}.conllu", rows)
        language.write_vectors(folder / f"demo.{name}.vec")


def write_conllu(path: str | os.PathLike[str], sentences: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as CoNLL-U, with `sent_id` and `text`; missing columns become `_`."""
    with atomic_path(path) as aside, aside.open("w", encoding="utf-8", newline="\n") as stream:
        for row in sentences:
            stream.write(_conllu_block(row))


def _conllu_block(row: Mapping[str, Any]) -> str:
    glued = [tag == "PUNCT" for tag in (*row["upos"][1:], "")]
    text = "".join(word if tight else f"{word} " for word, tight in zip(row["words"], glued, strict=True))
    lines = [f"# sent_id = {row['sent_id']}", f"# text = {text.rstrip()}"]
    blank = ["_"] * len(glued)
    tree = (row.get(column, blank) for column in ("head", "deprel"))
    columns = zip(row["words"], row["upos"], *tree, glued, strict=True)
    for position, (word, tag, head, relation, tight) in enumerate(columns, start=1):
        spacing = "SpaceAfter=No" if tight else "_"
        lines.append(f"{position}\t{word}\t_\t{tag}\t_\t_\t{head}\t{relation}\t_\t{spacing}")
    return "\n".join(lines) + "\n\n"
