"""Named entities for a language that has no labels: invented text, the commands, and what they reach.

`python docs/named_entities.py FOLDER` writes the data of `docs/named_entities.md` into a folder and runs its
commands there, which takes about a minute on two cores.
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
"""Sentences of each part of a treebank, and their seed."""
SIZES = ["context_layers=1", "attention_heads=4", "key_size=16", "feed_forward_size=64"]
ENTITIES = ["--model", "column=ner_tags", "scheme=bio", *SIZES]
TRAINING = ["--task", "tagger", "--epochs", "12", "--batch-size", "16", "--learning-rate", "0.004"]


def entity_rows(settings: LanguageSettings, sentences: int, seed: int) -> Iterator[dict[str, Any]]:
    """Give sentences of an invented language with the names of persons and places labelled in BIO.

    Persons have one name or two. A place's name stands beside the word for what it is, before it where
    possessors stand before their noun (Doom Mountain), else behind it (Mount Doom): whether a name begins a
    person or a place is told by its neighbours alone.

    Args:
        settings: the language.
        sentences: how many.
        seed: which ones.
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
                found = [first, draw.choice(names)] if draw.random() < SECOND_NAME else [first]
                kind = "PER"
            elif "noun.place" in kinds and tag == "NOUN" and chance < NAMED_PLACE:
                name = draw.choice(names)
                found, kind = [name, word] if settings.genitive_first else [word, name], "LOC"
            else:
                found, kind = [word], ""
            words += found
            labels += [f"{'I' if place else 'B'}-{kind}" if kind else "O" for place in range(len(found))]
        yield {"sent_id": row["sent_id"], "words": words, "ner_tags": labels}


def write_language(
    folder: Path, settings: LanguageSettings, parts: Mapping[str, tuple[int, int]] = PARTS
) -> None:
    """Write a language's treebank as JSON lines, and its vectors.

    Args:
        folder: where to.
        settings: the language.
        parts: by name of the part how many sentences, and their seed.
    """
    for part, (sentences, seed) in parts.items():
        lines = (json.dumps(row, ensure_ascii=False) for row in entity_rows(settings, sentences, seed))
        write_text(folder / f"{settings.name}-{part}.jsonl", "".join(f"{line}\n" for line in lines))
    generate_language(settings, sentences=0, seed=0).write_vectors(folder / f"aligned.{settings.name}.vec")


def commands() -> Iterator[list[str]]:
    """Give the commands, from the labelled languages to predictions in the one without labels."""
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
        *("transfer", "--charts", "charts", "--start", f"models/{sources[0]}"),
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
    place = Path(folder)
    for settings in (*source_languages(), target_language()):
        write_language(place, settings)
    os.chdir(place)
    for words in commands():
        console.print(f"$ hf-xst {shlex.join(words)}")
        code = hf_xst_cli.main(words)
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
