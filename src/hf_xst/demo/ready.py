"""Small source models of the invented languages, trained in seconds where they are needed, and kept."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset
from huggingface_hub import constants
from transformers import TrainingArguments, set_seed

from hf_xst.console import progress, say
from hf_xst.data import ConlluSentence, WordVectors
from hf_xst.demo.defaults import source_languages, target_language
from hf_xst.demo.languages import generate_language
from hf_xst.demo.settings import LanguageSettings
from hf_xst.models.kinds import KINDS
from hf_xst.models.modeling import StructuredModel
from hf_xst.sources.pool import load_model
from hf_xst.training.log_lines import without_lines
from hf_xst.training.supervised import SupervisedTrainer

SENTENCES, EPOCHS, SEED = 240, 6, 1
_SHARED: dict[str, Any] = {
    "context_layers": 1,
    "attention_heads": 4,
    "key_size": 16,
    "feed_forward_size": 64,
}
SIZES: dict[str, dict[str, Any]] = {
    "parser": {**_SHARED, "arc_size": 64, "label_size": 32, "upos_size": 16},
    "tagger": _SHARED,
}
# The same language as the target, but for its words: it is written in a script that runs from right to left.
_MIRRORED = {"name": "Lardus", "consonants": "בגדהזחטכלמנסעפצקרשת", "vowels": "אוי"}
_TOLD_LENGTHS = range(4, 15)
EXAMPLES = 8


@dataclass(frozen=True)
class ReadySources:
    """Models that know the words of both target languages, and sentences to try them on.

    Attributes:
        models: task -> language -> source model.
        sentences: annotated sentences of the target languages, which the models have not seen.
    """

    models: dict[str, dict[str, StructuredModel]]
    sentences: list[ConlluSentence]


def target_languages() -> tuple[LanguageSettings, LanguageSettings]:
    """Return the target language, and its twin whose script runs from right to left."""
    return target_language(), target_language(**_MIRRORED)


def ready_sources(
    folder: str | os.PathLike[str] | None = None, *, sentences: int = SENTENCES, epochs: int = EPOCHS
) -> ReadySources:
    """Give a parser and a tagger of each source language: those in the folder, or newly trained ones.

    Args:
        folder: where models are kept; by default `hf_xst` in the cache of the Hub's client (HF_HOME).
        sentences: training sentences of each language.
        epochs: passes over them.
    """
    home = Path(constants.HF_HOME) / "hf_xst" if folder is None else Path(folder)
    place = home / f"demo-{_recipe_digest(sentences, epochs)}"
    vectors = target_vectors()
    todo = [(task, settings) for task in KINDS for settings in source_languages()]
    models: dict[str, dict[str, StructuredModel]] = {task: {} for task in KINDS}
    if not all((place / task / settings.name).is_dir() for task, settings in todo):
        say(f"training {len(todo)} small models of invented languages (under a minute; kept in {place})")
    with progress("training small models", len(todo), "models") as advance:
        for task, settings in todo:
            made = place / task / settings.name
            if not made.is_dir():
                _save(_trained(task, settings, vectors, sentences, epochs), made)
            models[task][settings.name] = load_model(str(made)).train(False)
            advance(1)
    _share_words([model for of_task in models.values() for model in of_task.values()])
    return ReadySources(models, example_sentences())


def target_vectors() -> WordVectors:
    """Return the vectors of both target languages as one table."""
    found: dict[str, Any] = {}
    for settings in target_languages():
        language = generate_language(settings, sentences=0, seed=SEED).vectors
        for word, vector in zip(language.words, language.matrix, strict=True):
            found.setdefault(word, vector)
    return _vectors(list(found), np.stack(list(found.values())))


def _vectors(words: list[str], matrix: Any) -> WordVectors:
    digest = hashlib.sha256("\n".join(words).encode() + matrix.tobytes()).hexdigest()
    return WordVectors(words, matrix, "demo", digest)


def example_sentences(number: int = EXAMPLES) -> list[ConlluSentence]:
    """Return annotated sentences of either target language in turn."""
    found = []
    for settings in target_languages():
        language = generate_language(settings, sentences=10 * number, seed=10 * SEED + 5)
        chosen = [row for row in language.sentences if len(row["words"]) in _TOLD_LENGTHS][:number]
        found.append([_sentence(row) for row in chosen])
    return [sentence for pair in zip(*found, strict=True) for sentence in pair]


def _sentence(row: dict[str, Any]) -> ConlluSentence:
    columns = {name: [str(value) for value in row[name]] for name in ("upos", "head", "deprel")}
    return ConlluSentence.from_words(row["words"], sent_id=row["sent_id"], columns=columns)


def _recipe_digest(sentences: int, epochs: int) -> str:
    languages = [asdict(settings) for settings in (*source_languages(), *target_languages())]
    recipe = [version("hf_xst"), sentences, epochs, SEED, SIZES, languages]
    return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:16]


def _trained(
    task: str, settings: LanguageSettings, vectors: WordVectors, sentences: int, epochs: int
) -> StructuredModel:
    """Train a model on its language and give it the target languages' words."""
    language = generate_language(settings, sentences=sentences, seed=10 * SEED)
    rows = Dataset.from_list(language.sentences)
    model_class, config_class = KINDS[task]
    set_seed(SEED)
    model = model_class.from_vectors(
        config_class(**model_class.settings_from_rows(rows), **SIZES[task]),
        _vectors(language.vectors.words, language.vectors.matrix),
    )
    with tempfile.TemporaryDirectory() as scratch:
        arguments = TrainingArguments(
            output_dir=scratch,
            per_device_train_batch_size=16,
            num_train_epochs=epochs,
            learning_rate=4e-3,
            lr_scheduler_type="constant",
            max_grad_norm=0.0,
            seed=SEED,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
        )
        trainer = SupervisedTrainer(model, arguments, rows)
        without_lines(trainer)  # one bar for all models says enough
        trainer.train()
    model.replace_word_vectors(vectors)
    return model


def _save(model: StructuredModel, place: Path) -> None:
    """Save a model so that its folder is whole or absent, also if another process makes the same one."""
    place.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        model.save_pretrained(aside)
        if not place.exists():
            aside.rename(place)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _share_words(models: list[StructuredModel]) -> None:
    """Let all models hold one table of words; it is the same in all of them."""
    for model in models[1:]:
        model.encoder.words = models[0].encoder.words
