"""Fine-tune a stock token classifier of transformers on the UPOS tags of a treebank."""

from __future__ import annotations

import argparse
import json
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset
from transformers import (
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    Trainer,
    TrainingArguments,
)

from hf_xst.commands.sentences import split_of
from hf_xst.data import prepare


def main(given: argparse.Namespace) -> None:
    """Train, score on the development split, and save."""
    splits = {"train": given.split, "dev": given.dev_split}
    rows = {
        name: prepare(split_of(given.treebank, split, []), gold=False)[0] for name, split in splits.items()
    }
    tags = sorted(set(chain.from_iterable(rows["train"]["upos"])) - {"_"})
    index = {tag: number for number, tag in enumerate(tags)}
    tokenizer = AutoTokenizer.from_pretrained(given.encoder)
    model = AutoModelForTokenClassification.from_pretrained(
        given.encoder,
        num_hidden_layers=given.encoder_layers,
        id2label=dict(enumerate(tags)),
        label2id=index,
    )

    def encode(row: dict[str, Any]) -> dict[str, Any]:
        """Label the first piece of each word."""
        encoded = tokenizer(row["words"], is_split_into_words=True, truncation=True, max_length=256)
        words = encoded.word_ids()
        labels = [
            tags.index(row["upos"][word])
            if word not in (None, before) and row["upos"][word] in tags
            else -100
            for before, word in zip([None, *words[:-1]], words, strict=True)
        ]
        return {**encoded, "labels": labels}

    def accuracy(evaluated: Any) -> dict[str, float]:
        known, predicted = evaluated.label_ids != -100, evaluated.predictions.argmax(-1)
        return {"accuracy": 100 * float(np.mean((predicted == evaluated.label_ids)[known]))}

    encoded: dict[str, Dataset] = {
        name: split.map(encode, remove_columns=split.column_names) for name, split in rows.items()
    }
    arguments = TrainingArguments(
        output_dir=f"{given.output}/run",
        seed=given.seed,
        max_steps=given.max_steps,
        per_device_train_batch_size=given.batch_size,
        per_device_eval_batch_size=64,
        learning_rate=given.learning_rate,
        save_strategy="no",
        report_to="none",
    )
    trainer = Trainer(
        model,
        arguments,
        DataCollatorForTokenClassification(tokenizer),
        encoded["train"],
        encoded["dev"],
        processing_class=tokenizer,
        compute_metrics=accuracy,
    )
    trainer.train()
    dev = trainer.evaluate()
    trainer.save_model(given.output)
    results = {"dev": dev, "best_dev": dev["eval_accuracy"], "updates": given.max_steps}
    results |= {f"{name}_sentences": len(split) for name, split in rows.items()}
    content = json.dumps(results, indent=1) + "\n"
    Path(given.output, "run", "results.json").write_text(content, encoding="utf-8")


def parse_arguments() -> argparse.Namespace:
    """Parse the command line; the flags are those of `hf-xst train-source`."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("output", "treebank", "split", "dev-split", "encoder"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--encoder-layers", type=int, default=6)
    parser.add_argument("--max-steps", type=int, default=400)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    return parser.parse_args()


if __name__ == "__main__":
    main(parse_arguments())
