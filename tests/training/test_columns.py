"""The collator receives all columns, with any training arguments (P21)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from datasets import Dataset
from transformers import TrainingArguments

from helpers.small_models import arguments, charts, gold, model_of, on_charts, supervised, unlabelled
from hf_xst import ChartTrainer, SupervisedTrainer
from hf_xst.training.batches import sentence_lengths

EXTRA = {"comment": ["any"] * 4, "weight": [0.5] * 4, "nested": [{"a": [1]}] * 4}


def with_extra(rows: Dataset) -> Dataset:
    for name, column in EXTRA.items():
        rows = rows.add_column(name, column)
    return rows


def trained(trainer: Any) -> torch.Tensor:
    """Train for two updates and return the parameters."""
    trainer.train()
    assert trainer.state.global_step == 2
    return torch.cat([parameter.detach().flatten() for parameter in trainer.model.parameters()])


def test_default_arguments_keep_extra_columns(tmp_path):
    settings = TrainingArguments(
        output_dir=str(tmp_path), max_steps=2, use_cpu=True, report_to="none", save_strategy="no"
    )
    assert settings.remove_unused_columns
    rows = with_extra(gold())
    trained(SupervisedTrainer(model_of("parser"), settings, rows, eval_dataset=rows))
    assert settings.remove_unused_columns  # the caller's object is unchanged
    trained(ChartTrainer(model_of("parser"), settings, with_extra(charts("parser", gold()))))


@pytest.mark.parametrize("remove", [True, False])
@pytest.mark.parametrize("make", [supervised, on_charts])
def test_explicit_arguments_make_no_difference(tmp_path, make, remove):
    rows = gold() if make is supervised else charts("groups", gold())
    expected = trained(make("groups", arguments(tmp_path, max_steps=2), rows))
    settings = {"remove_unused_columns": remove, "train_sampling_strategy": "group_by_length"}
    trainer = make("groups", arguments(tmp_path, max_steps=2, **settings), with_extra(rows))
    assert torch.equal(trained(trainer), expected)


def test_transform_may_create_the_columns(tmp_path):
    rows = gold()
    raw = Dataset.from_dict({"line": [" ".join(row["words"]) for row in rows], "marks": list(rows["mark"])})

    def parse(batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
        return {"words": [line.split(" ") for line in batch["line"]], "mark": batch["marks"]}

    raw.set_transform(parse)
    assert sentence_lengths(raw) == [1, 1, 3, 3]
    plain = supervised("groups", arguments(tmp_path, 2, max_steps=2), rows)
    trainer = supervised(
        "groups",
        arguments(tmp_path, 2, max_steps=2),
        raw,
        eval_dataset=raw,
        compute_metrics=lambda results: {"rows": len(results.label_ids)},
    )
    assert torch.equal(trained(trainer), trained(plain))
    assert trainer.evaluate()["eval_rows"] == 4
    assert trainer.predict(raw).predictions == plain.predict(rows).predictions


@pytest.mark.parametrize("column", ["words", "mark"])
def test_missing_column_is_named(tmp_path, column):
    trainer = supervised("groups", arguments(tmp_path), gold().remove_columns([column]))
    with pytest.raises(ValueError, match=f"no column {column}; they have sent_id.* Required are words, mark"):
        trainer.train()


def test_sentences_without_charts_are_rejected(tmp_path):
    trainer = on_charts("groups", arguments(tmp_path), unlabelled(gold()))
    with pytest.raises(ValueError, match="no column candidates, offsets, source_best, pool_best, words_hash"):
        trainer.train()


@pytest.mark.parametrize("rows", [None, gold().select([])])
def test_empty_data_is_rejected(tmp_path, rows):
    with pytest.raises(ValueError, match="no training sentences"):
        supervised("groups", arguments(tmp_path), rows).train()


@pytest.mark.parametrize("setting", ["bf16_full_eval", "fp16_full_eval"])
def test_evaluation_in_half_precision_is_rejected(tmp_path, setting):
    with pytest.raises(ValueError, match=r"full_eval.*bf16=True"):
        supervised("groups", arguments(tmp_path, **{setting: True}), gold())


def test_model_init_creates_the_model(tmp_path):
    settings = arguments(tmp_path, max_steps=2)
    trainer = SupervisedTrainer(None, settings, gold(), model_init=lambda: model_of("groups"))
    assert torch.equal(trained(trainer), trained(supervised("groups", settings, gold())))
