"""Random rows, tiny models of every kind, and trainers over them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset, Features, List, Value
from transformers import TrainingArguments

from helpers.group_model import GroupConfig, GroupModel
from hf_xst import (
    BiaffineParser,
    BiaffineParserConfig,
    ChartTrainer,
    CrfTagger,
    CrfTaggerConfig,
    SupervisedTrainer,
)
from hf_xst.charts.chart import ChartSettings
from hf_xst.data import WordVectors
from hf_xst.models.modeling import StructuredModel
from hf_xst.sources.building import ChartMaker
from hf_xst.sources.pool import SourcePool

WORDS = [f"w{number}" for number in range(12)]
UPOS = ["NOUN", "VERB", "ADJ"]
RELATIONS = ["amod", "obj", "root"]
MARKS = ["cold", "dry", "warm"]
KINDS = ("groups", "parser", "tagger")
FEATURES = Features(
    {
        "sent_id": Value("string"),
        "words": List(Value("string")),
        "upos": List(Value("string")),
        "head": List(Value("int32")),
        "deprel": List(Value("string")),
        "mark": List(Value("string")),
    }
)


def sentence(length: int, draw: random.Random, name: str) -> dict[str, Any]:
    """Return a random sentence, in whose tree words depend on the root word or an earlier word."""
    words = [draw.randrange(len(WORDS)) for _ in range(length)]
    root, head = draw.randrange(length), []
    for index in range(length):
        earlier = 0 if index in (0, root) else draw.randrange(index) + 1
        head.append(0 if index == root else root + 1 if index < root else earlier)
    return {
        "sent_id": name,
        "words": [WORDS[word] for word in words],
        "upos": [UPOS[word % 3] for word in words],
        "head": head,
        "deprel": ["root" if index == root else RELATIONS[word % 2] for index, word in enumerate(words)],
        "mark": [MARKS[word * 7 % 3] for word in words],
    }


def gold(lengths: Sequence[int] = (1, 1, 3, 3), seed: int = 0) -> Dataset:
    draw = random.Random(seed)
    rows = [sentence(length, draw, f"s{index}") for index, length in enumerate(lengths)]
    return Dataset.from_list(rows, features=FEATURES)


def vectors(size: int = 8, words: Sequence[str] = WORDS, seed: int = 0, name: str = "tiny") -> WordVectors:
    matrix = np.random.default_rng(seed).standard_normal((len(words), size)).astype(np.float32)
    return WordVectors(list(words), matrix, name, sha256=f"{seed:064d}")


def model_of(kind: str, seed: int = 0, **changes: Any) -> StructuredModel:
    """Return a model without dropout, whose parameters are large enough to reveal errors."""
    settings: dict[str, Any] = {
        "context_layers": 1,
        "attention_heads": 2,
        "key_size": 4,
        "feed_forward_size": 8,
        "max_distance": 3,
        "context_dropout": 0.0,
        "word_dropout": 0.0,
        "output_dropout": 0.0,
    }
    torch.manual_seed(seed)
    model: StructuredModel
    if kind == "parser":
        sizes = {"labels": RELATIONS, "upos_names": UPOS, "upos_size": 4, "arc_size": 6, "label_size": 5}
        model = BiaffineParser.from_vectors(BiaffineParserConfig(**(settings | sizes | changes)), vectors())
    elif kind == "tagger":
        model = CrfTagger.from_vectors(CrfTaggerConfig(**(settings | {"labels": UPOS} | changes)), vectors())
    else:
        model = GroupModel.from_vectors(GroupConfig(**(settings | {"labels": MARKS} | changes)), vectors())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape) / max(1, parameter.shape[-1]) ** 0.5)
    return model


def unlabelled(rows: Dataset) -> Dataset:
    return rows.select_columns(["sent_id", "words", "upos"])


def charts(
    kind: str,
    rows: Dataset,
    settings: ChartSettings | None = None,
    names: Sequence[str] | None = None,
    sources: int = 2,
) -> Dataset:
    models = {f"source{seed}": model_of(kind, seed) for seed in range(1, sources + 1)}
    make = ChartMaker(
        SourcePool(models, names or models["source1"].names), settings or ChartSettings(sigma=0.6)
    )
    return Dataset.from_list([chart for row in unlabelled(rows) for chart in make([row])[0]])


def without_last_group(row: dict[str, Any]) -> dict[str, Any]:
    """Return a chart row without candidates in its last group, so that it allows no structure."""
    *offsets, _ = row["offsets"]
    return {**row, "candidates": row["candidates"][: offsets[-1]], "offsets": [*offsets, offsets[-1]]}


def arguments(output: Path, batch: int = 4, accumulation: int = 1, **changes: Any) -> TrainingArguments:
    """Return arguments for one quiet epoch of plain gradient descent."""
    settings: dict[str, Any] = {
        "output_dir": str(output),
        "per_device_train_batch_size": batch,
        "per_device_eval_batch_size": batch,
        "gradient_accumulation_steps": accumulation,
        "num_train_epochs": 1,
        "learning_rate": 0.1,
        "optim": "sgd",
        "lr_scheduler_type": "constant",
        "max_grad_norm": 0.0,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": True,
    }
    return TrainingArguments(**(settings | changes))


def supervised(kind: str, settings: TrainingArguments, rows: Dataset, **changes: Any) -> SupervisedTrainer:
    return SupervisedTrainer(model_of(kind), settings, rows, **changes)


def on_charts(kind: str, settings: TrainingArguments, rows: Dataset, **changes: Any) -> ChartTrainer:
    return ChartTrainer(model_of(kind), settings, rows, **changes)


def parameters(model: StructuredModel) -> dict[str, torch.Tensor]:
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def assert_same(first: StructuredModel, second: StructuredModel, *, exactly: bool = False) -> None:
    expected = second.state_dict()
    tolerance = {"rtol": 0.0, "atol": 0.0} if exactly else {"rtol": 1e-5, "atol": 1e-6}
    torch.testing.assert_close(dict(first.state_dict()), dict(expected), **tolerance)


def losses_of(trainer: SupervisedTrainer | ChartTrainer, key: str = "loss") -> list[float]:
    return [entry[key] for entry in trainer.state.log_history if key in entry]
