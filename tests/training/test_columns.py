"""The data's columns reach the collator whatever the Trainer's arguments say (P21)."""

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


def final(trainer: Any) -> torch.Tensor:
    trainer.train()
    assert trainer.state.global_step == 2
    return torch.cat([parameter.detach().flatten() for parameter in trainer.model.parameters()])


def test_default_arguments_and_extra_columns(tmp_path):
    given = TrainingArguments(
        output_dir=str(tmp_path), max_steps=2, use_cpu=True, report_to="none", save_strategy="no"
    )
    assert given.remove_unused_columns
    rows = with_extra(gold())
    final(SupervisedTrainer(model_of("parser"), given, rows, eval_dataset=rows))
    assert given.remove_unused_columns  # the caller's own arguments stay as they were
    final(ChartTrainer(model_of("parser"), given, with_extra(charts("parser", gold()))))


@pytest.mark.parametrize("remove", [True, False])
def test_explicit_settings_make_no_difference(tmp_path, remove):
    settings = {"max_steps": 2, "remove_unused_columns": remove, "train_sampling_strategy": "group_by_length"}
    plain = final(supervised("groups", arguments(tmp_path, max_steps=2), gold()))
    assert torch.equal(
        final(supervised("groups", arguments(tmp_path, **settings), with_extra(gold()))), plain
    )
    plain = final(on_charts("groups", arguments(tmp_path, max_steps=2), charts("groups", gold())))
    rows = with_extra(charts("groups", gold()))
    assert torch.equal(final(on_charts("groups", arguments(tmp_path, **settings), rows)), plain)


def test_a_transform_may_make_the_columns(tmp_path):
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
        compute_metrics=lambda found: {"rows": len(found.label_ids)},
    )
    assert torch.equal(final(trainer), final(plain))
    assert trainer.evaluate()["eval_rows"] == 4
    assert trainer.predict(raw).predictions == plain.predict(rows).predictions


@pytest.mark.parametrize("column", ["words", "mark"])
def test_a_missing_column_is_named_at_once(tmp_path, column):
    trainer = supervised("groups", arguments(tmp_path), gold().remove_columns([column]))
    with pytest.raises(ValueError, match=f"no column {column}; they have sent_id.* Needed are words, mark"):
        trainer.train()


def test_plain_sentences_are_no_charts(tmp_path):
    trainer = on_charts("groups", arguments(tmp_path), unlabelled(gold()))
    with pytest.raises(ValueError, match="no column candidates, offsets, source_best, pool_best, words_hash"):
        trainer.train()


@pytest.mark.parametrize("rows", [None, gold().select([])])
def test_no_sentences_are_refused(tmp_path, rows):
    with pytest.raises(ValueError, match="no training sentences"):
        supervised("groups", arguments(tmp_path), rows).train()


@pytest.mark.parametrize("setting", ["bf16_full_eval", "fp16_full_eval"])
def test_rounding_the_model_for_evaluation_is_refused(tmp_path, setting):
    with pytest.raises(ValueError, match=r"full_eval.*bf16=True"):
        supervised("groups", arguments(tmp_path, **{setting: True}), gold())


def test_a_model_may_be_made_by_model_init(tmp_path):
    given = arguments(tmp_path, max_steps=2)
    trainer = SupervisedTrainer(None, given, gold(), model_init=lambda: model_of("groups"))
    assert torch.equal(final(trainer), final(supervised("groups", given, gold())))
