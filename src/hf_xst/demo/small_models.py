"""Small source models of the invented languages, trained in seconds on first use and cached."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset
from huggingface_hub import constants
from transformers import TrainingArguments, set_seed

from hf_xst.console import progress, say
from hf_xst.data import ConlluSentence, WordVectors
from hf_xst.demo.languages import as_sentence, generate_language
from hf_xst.demo.lexicon import demo_vectors
from hf_xst.demo.settings import LanguageSettings, source_languages, target_language
from hf_xst.models.kinds import KINDS
from hf_xst.models.modeling import StructuredModel
from hf_xst.sources.loading import load_model
from hf_xst.training.progress import LogLines
from hf_xst.training.trainer import SupervisedTrainer

SENTENCES, EPOCHS, SEED = 240, 6, 1
SIZES: dict[str, dict[str, Any]] = {
    "tagger": {"context_layers": 1, "attention_heads": 4, "key_size": 16, "feed_forward_size": 64},
}
SIZES["parser"] = {**SIZES["tagger"], "arc_size": 64, "label_size": 32, "upos_size": 16}
# The grammar of the target language with words in a script that runs from right to left.
_MIRRORED = {"name": "Lardus", "consonants": "בגדהזחטכלמנסעפצקרשת", "vowels": "אוי"}
_EXAMPLE_LENGTHS = range(4, 15)


def size_options(task: str) -> list[str]:
    """Return small sizes as values of `train-source --model`."""
    return [f"{name}={value}" for name, value in SIZES[task].items()]


def target_languages() -> tuple[LanguageSettings, LanguageSettings]:
    """Return the target language, and its twin in a right-to-left script."""
    return target_language(), target_language(**_MIRRORED)


def small_sources(
    folder: str | os.PathLike[str] | None = None, *, sentences: int = SENTENCES, epochs: int = EPOCHS
) -> dict[str, dict[str, StructuredModel]]:
    """Load a parser and a tagger of each source language, training those that are not cached.

    The models, by task and language, know the words of both target languages. The cache folder defaults to
    `hf_xst` in HF_HOME; `sentences` is the number of training sentences per language.
    """
    home = Path(constants.HF_HOME) / "hf_xst" if folder is None else Path(folder)
    cache = home / f"demo-{_cache_key(sentences, epochs)}"
    vectors = target_vectors()
    jobs = [(task, settings) for task in KINDS for settings in source_languages()]
    models: dict[str, dict[str, StructuredModel]] = {task: {} for task in KINDS}
    if not all((cache / task / settings.name).is_dir() for task, settings in jobs):
        say(f"training {len(jobs)} small models of invented languages (under a minute; cached in {cache})")
    with progress("training small models", len(jobs), "models") as advance:
        for task, settings in jobs:
            path = cache / task / settings.name
            if not path.is_dir():
                _save(_train(task, settings, vectors, sentences, epochs), path)
            models[task][settings.name] = load_model(str(path)).train(False)
            advance(1)
    first, *others = [model for by_language in models.values() for model in by_language.values()]
    for model in others:  # one table of word vectors for all
        model.encoder.words = first.encoder.words
    return models


def target_vectors() -> WordVectors:
    """Return the vectors of both target languages as one table."""
    rows: dict[str, Any] = {}
    for settings in target_languages():
        vectors = generate_language(settings, sentences=0, seed=SEED).vectors
        for word, vector in zip(vectors.words, vectors.matrix, strict=True):
            rows.setdefault(word, vector)
    return demo_vectors(list(rows), np.stack(list(rows.values())))


def example_sentences(number: int = 8) -> list[ConlluSentence]:
    """Return annotated sentences of the target languages in turn, `number` of each."""
    examples = []
    for settings in target_languages():
        rows = generate_language(settings, sentences=10 * number, seed=10 * SEED + 5).sentences
        examples.append([row for row in rows if len(row["words"]) in _EXAMPLE_LENGTHS][:number])
    return [as_sentence(row) for pair in zip(*examples, strict=True) for row in pair]


def _cache_key(sentences: int, epochs: int) -> str:
    languages = [asdict(settings) for settings in (*source_languages(), *target_languages())]
    inputs = [version("hf_xst"), sentences, epochs, SEED, SIZES, languages]
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:16]


def _train(
    task: str, settings: LanguageSettings, vectors: WordVectors, sentences: int, epochs: int
) -> StructuredModel:
    """Train a model on its language, then replace its words by those of the target languages."""
    language = generate_language(settings, sentences=sentences, seed=10 * SEED)
    rows = Dataset.from_list(language.sentences)
    model_class = KINDS[task]
    config_class: Any = model_class.config_class
    set_seed(SEED)
    config = config_class(**model_class.settings_from_rows(rows), **SIZES[task])
    model = model_class.from_vectors(config, language.vectors)
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
            disable_tqdm=True,
        )
        trainer = SupervisedTrainer(model, arguments, rows)
        trainer.pop_callback(LogLines)  # one progress bar for all models is enough
        trainer.train()
    model.replace_word_vectors(vectors)
    return model


def _save(model: StructuredModel, path: Path) -> None:
    """Save a model atomically, also if another process saves the same one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        model.save_pretrained(temporary)
        if not path.exists():
            temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
