"""Generate invented languages: annotated sentences, word vectors, and both as files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hf_xst.data import ConlluSentence, WordVectors, write_conllu
from hf_xst.demo.grammar import Grammar
from hf_xst.demo.lexicon import Lexicon, word_vectors
from hf_xst.demo.settings import LanguageSettings, source_languages, target_language
from hf_xst.demo.world import Draws, generator
from hf_xst.files import atomic_path

TARGET = "target"
"""Name of the target language's files."""


@dataclass(frozen=True, slots=True)
class InventedLanguage:
    """A language with annotated sentences, and a vector for each of its forms, also for those in no sentence.

    Sentences are rows with `sent_id`, `words`, `upos`, `head` (from 1; 0 for the root) and `deprel`.
    """

    settings: LanguageSettings
    sentences: list[dict[str, Any]]
    vectors: WordVectors

    def write_vectors(self, path: str | os.PathLike[str]) -> None:
        """Write the vectors as `.vec` text: a line with count and dimension, then a line for each word."""
        with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as stream:
            stream.write(f"{len(self.vectors.words)} {self.vectors.matrix.shape[1]}\n")
            for word, row in zip(self.vectors.words, self.vectors.matrix.tolist(), strict=True):
                stream.write(f"{word} {' '.join(format(value, '.6g') for value in row)}\n")


def generate_language(settings: LanguageSettings, *, sentences: int, seed: int) -> InventedLanguage:
    """Generate sentences and word vectors of a language.

    Words and vectors follow from the settings alone: another seed gives other sentences of the same language,
    and a longer run begins with the sentences of a shorter one.
    """
    lexicon = Lexicon(settings)
    grammar = Grammar(settings, lexicon, Draws(generator("sentences", settings.world, settings.name, seed)))
    rows = [
        {"sent_id": f"{settings.name.lower()}-{seed}-{number}", **grammar.sentence()}
        for number in range(1, sentences + 1)
    ]
    return InventedLanguage(settings, rows, word_vectors(settings, lexicon))


def write_languages(folder: Path, sentences: int, seed: int, *, test: int = 200) -> None:
    """Write treebanks `NAME-SPLIT.conllu` and word vectors `demo.NAME.vec` of the five languages.

    Each has 100 development sentences. Only the target, called `TARGET`, has test sentences; its training
    sentences have no trees.
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
            write_conllu(map(as_sentence, rows), folder / f"{name}-{split}.conllu")
        language.write_vectors(folder / f"demo.{name}.vec")


def as_sentence(row: Mapping[str, Any]) -> ConlluSentence:
    """Turn a row with `sent_id`, `words`, `upos` and possibly a tree into a sentence with its text."""
    glued = [tag == "PUNCT" for tag in (*row["upos"][1:], "")]
    text = "".join(word if tight else f"{word} " for word, tight in zip(row["words"], glued, strict=True))
    columns = {name: list(map(str, row[name])) for name in ("upos", "head", "deprel") if name in row}
    columns["misc"] = ["SpaceAfter=No" if tight else "_" for tight in glued]
    return ConlluSentence.from_words(row["words"], sent_id=row["sent_id"], text=text, columns=columns)
