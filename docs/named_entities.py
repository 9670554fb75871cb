"""Recognise named entities in a language without labels, on invented text.

`python docs/named_entities.py FOLDER` writes the data of `docs/named_entities.md` into a folder and runs the
commands of that page there, in about a minute on two cores.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import hf_xst_cli
from hf_xst.console import console
from hf_xst.demo import LanguageSettings, generate_language, source_languages, target_language
from hf_xst.demo.lexicon import Lexicon
from hf_xst.demo.world import world
from hf_xst.files import write_text

SECOND_NAME, NAMED_PERSON, NAMED_PLACE = 0.5, 0.4, 0.8
PARTS = {"train": (600, 1), "dev": (150, 2), "test": (500, 3)}
"""Number of sentences and seed of each split."""
SIZES = ["context_layers=1", "attention_heads=4", "key_size=16", "feed_forward_size=64"]
ENTITIES = ["--model", "column=ner_tags", "scheme=bio", *SIZES]
TRAINING = ["--task", "tagger", "--epochs", "12", "--batch-size", "16", "--learning-rate", "0.004"]


def entity_rows(settings: LanguageSettings, sentences: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield sentences of an invented language with names of persons and places in BIO labels.

    Persons have one name or two. The name of a place precedes the common noun in languages where possessors
    precede their noun (Doom Mountain), and follows it in others (Mount Doom): only the neighbours of a name
    show whether it begins a person or a place.
    """
    draw = random.Random(seed)
    lexicon, speech = Lexicon(settings), world(settings.world)
    names = [lexicon.forms[concept, "", ""] for concept in speech.by_kind["name"]]
    for row in generate_language(settings, sentences=sentences, seed=seed).sentences:
        words: list[str] = []
        labels: list[str] = []
        for word, tag in zip(row["words"], row["upos"], strict=True):
            kinds = {speech.kind[concept] for concept, *_ in lexicon.senses[word]}
            chance = draw.random()
            if tag == "PROPN" or ("noun.animate" in kinds and tag == "NOUN" and chance < NAMED_PERSON):
                first = word if tag == "PROPN" else draw.choice(names)
                span = [first, draw.choice(names)] if draw.random() < SECOND_NAME else [first]
                kind = "PER"
            elif "noun.place" in kinds and tag == "NOUN" and chance < NAMED_PLACE:
                name = draw.choice(names)
                span, kind = [name, word] if settings.genitive_first else [word, name], "LOC"
            else:
                span, kind = [word], ""
            words += span
            labels += [f"{'I' if index else 'B'}-{kind}" if kind else "O" for index in range(len(span))]
        yield {"sent_id": row["sent_id"], "words": words, "ner_tags": labels}


def write_language(
    folder: Path, settings: LanguageSettings, parts: Mapping[str, tuple[int, int]] = PARTS
) -> None:
    """Write a language's treebank as JSON lines, and its word vectors.

    Args:
        folder: Output folder.
        settings: The language.
        parts: Number of sentences and seed of each split.
    """
    for part, (sentences, seed) in parts.items():
        lines = (json.dumps(row, ensure_ascii=False) for row in entity_rows(settings, sentences, seed))
        write_text(folder / f"{settings.name}-{part}.jsonl", "".join(f"{line}\n" for line in lines))
    generate_language(settings, sentences=0, seed=0).write_vectors(folder / f"aligned.{settings.name}.vec")


def commands() -> Iterator[list[str]]:
    """Yield the commands, from training sources to predictions in the language without labels."""
    sources, target = [settings.name for settings in source_languages()], target_language().name
    for name in sources:
        treebank = f"train={name}-train.jsonl,dev={name}-dev.jsonl"
        yield [
            *("train-source", "--treebank", treebank, "--vectors", f"aligned.{name}.vec"),
            *("--output", f"models/{name}", *TRAINING, *ENTITIES),
        ]
    pooled = ["--sources", *(f"models/{name}" for name in sources), "--vectors", f"aligned.{target}.vec"]
    tested = ["--treebank", f"test={target}-test.jsonl", "--vectors", f"aligned.{target}.vec"]
    yield ["build-charts", *pooled, "--text", f"{target}-train.jsonl", "--output", "charts"]
    yield [
        *("transfer", "--charts", "charts", "--init-from", f"models/{sources[0]}"),
        *("--vectors", f"aligned.{target}.vec", "--output", "models/mine", "--epochs", "10"),
        *("--batch-size", "16", "--learning-rate", "0.002"),
    ]
    yield ["evaluate", "--model", f"models/{sources[0]}", *tested, "--output", f"models/{sources[0]}"]
    yield ["vote", *pooled, "--treebank", tested[1], "--output", "vote"]
    yield ["evaluate", "--model", "models/mine", *tested, "--output", "models/mine"]
    yield [
        *("predict", "--model", "models/mine", "--input", f"{target}-test.jsonl"),
        *("--vectors", f"aligned.{target}.vec", "--output", "predicted.conllu", "--confidence", "true"),
    ]


def main(folder: str) -> int:
    """Write the data into a folder and run all commands there."""
    path = Path(folder)
    for settings in (*source_languages(), target_language()):
        write_language(path, settings)
    os.chdir(path)
    for words in commands():
        console.print(f"$ hf-xst {shlex.join(words)}")
        code = hf_xst_cli.main(words)
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
