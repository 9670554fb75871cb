"""Whole structures predicted by the Trainer: in order, trimmed, scored alike in every batch size (P22)."""

from __future__ import annotations

import pytest
import torch
from datasets import Dataset
from transformers import EarlyStoppingCallback

from helpers.small_models import KINDS, arguments, charts, gold, model_of, on_charts, supervised
from hf_xst.metrics import score
from hf_xst.models.running import Collator, in_batches, length_batches, predict_rows
from hf_xst.training.trainer import references

LENGTHS = (1, 9, 2, 5, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_batch_sizes_do_not_matter(tmp_path, kind):
    rows = gold(LENGTHS)
    expected = list(predict_rows(model_of(kind), rows))
    seen = []
    for size in (1, 2, 5):
        trainer = supervised(kind, arguments(tmp_path, size), None, eval_dataset=rows)
        metrics = trainer.evaluate()
        found = trainer.predict(rows)
        assert found.predictions == expected
        assert [len(next(iter(columns.values()))) for columns in found.predictions] == list(LENGTHS)
        assert found.label_ids is None
        seen.append({key: metrics[key] for key in metrics if not key.endswith(("runtime", "second"))})
        assert found.metrics["test_loss"] == metrics["eval_loss"]
    assert seen[0] == pytest.approx(seen[1])
    assert seen[0] == pytest.approx(seen[2])
    if kind == "groups":
        right = [
            truth == guess
            for row, found in zip(rows, expected, strict=True)
            for truth, guess in zip(row["mark"], found["mark"], strict=True)
        ]
        assert 0 < sum(right) < len(right) == 20
        assert seen[0]["eval_share"] == pytest.approx(100 * sum(right) / 20)
    else:
        scores = score(expected, rows, trainer.model.columns)
        assert scores["words"] == 20
        for name in {"parser": ("uas", "las", "las_punct"), "tagger": ("accuracy",)}[kind]:
            assert seen[0][f"eval_{name}"] == pytest.approx(scores[name])


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("parser", {"upos": [["PUNCT"], ["SYM", "PUNCT"]]}),
        ("parser", {"deprel": [["_"], ["root", "obj"]]}),
        ("tagger", {"upos": [["_"], ["_", "_"]]}),
    ],
)
def test_development_rows_that_cannot_be_scored_are_rejected_before_training(tmp_path, kind, changes):
    rows = gold((1, 2)).to_dict() | changes
    dev = Dataset.from_dict(rows, features=gold((1,)).features)
    settings = arguments(tmp_path, eval_strategy="epoch")
    trainer = supervised(kind, settings, gold(LENGTHS), eval_dataset=dev)
    with pytest.raises(ValueError, match="the development sentences cannot be scored: "):
        trainer.train()
    assert trainer.state.global_step == 0
    trainer.args.eval_strategy = "no"
    trainer.train()


@pytest.mark.parametrize("kind", ["parser", "tagger"])
def test_evaluation_loss_is_the_corpus_mean(tmp_path, kind):
    rows = gold(LENGTHS)
    model = model_of(kind).eval()
    batch = Collator(model)(list(rows))
    units = batch.pop("units")
    with torch.no_grad():
        mean = model(**batch).losses.sum() / units.sum()
    assert units.sum() == (20 if kind == "parser" else 5)
    trainer = supervised(kind, arguments(tmp_path, 2), None, eval_dataset=rows)
    assert trainer.evaluate()["eval_loss"] == pytest.approx(mean.item(), rel=1e-5)


def test_rows_without_gold_are_predicted_and_not_scored(tmp_path):
    rows = gold(LENGTHS).select_columns(["words", "upos"])
    trainer = supervised("parser", arguments(tmp_path, 2), None)
    found = trainer.predict(rows)
    assert found.predictions == list(predict_rows(model_of("parser"), rows))
    assert not any("las" in key or "loss" in key for key in found.metrics)


def test_an_empty_data_set_gives_nothing(tmp_path):
    trainer = supervised("parser", arguments(tmp_path, 2), None)
    assert trainer.predict(gold(LENGTHS).select([])).predictions == []


def test_development_sentences_of_chart_training_are_plain_rows(tmp_path):
    dev = gold(LENGTHS, seed=3)
    settings = arguments(tmp_path, 2, eval_strategy="steps", eval_steps=1, max_steps=2)
    trainer = on_charts("parser", settings, charts("parser", gold()), eval_dataset=dev)
    trainer.train()
    curve = [entry["eval_las"] for entry in trainer.state.log_history if "eval_las" in entry]
    assert len(curve) == 2
    expected = score(list(predict_rows(trainer.model, dev)), dev, ("head", "deprel"))
    assert curve[-1] == pytest.approx(expected["las"])
    assert trainer.predict(dev).predictions == list(predict_rows(trainer.model, dev))


def test_gold_tags_define_punctuation_even_if_tags_are_predicted(tmp_path):
    rows = [{**row, "upos": ["PUNCT"] * len(row["words"]), "gold_upos": row["upos"]} for row in gold(LENGTHS)]
    assert [row["upos"] for row in references(rows)] == list(gold(LENGTHS)["upos"])
    assert references(list(gold())) == list(gold())
    trainer = supervised("parser", arguments(tmp_path), None, eval_dataset=Dataset.from_list(rows))
    metrics = trainer.evaluate()
    assert metrics["eval_las"] == metrics["eval_las_punct"]


def test_best_model_early_stopping_and_plateau(tmp_path):
    curve = iter([1.0, 3.0, 2.0, 3.0, 2.0, 2.0, 9.0])
    settings = arguments(
        tmp_path,
        num_train_epochs=7,
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_strategy="epoch",
        load_best_model_at_end=True,
        metric_for_best_model="share",
        greater_is_better=True,
        lr_scheduler_type="reduce_lr_on_plateau",
        lr_scheduler_kwargs={"mode": "max", "factor": 0.5, "patience": 1, "threshold": 0.0},
    )
    seen = []

    def measure(found):
        seen.append({name: value.clone() for name, value in trainer.model.state_dict().items()})
        return {"share": next(curve)}

    trainer = supervised(
        "groups",
        settings,
        gold(),
        eval_dataset=gold(seed=1),
        compute_metrics=measure,
        callbacks=[EarlyStoppingCallback(4)],
    )
    trainer.train()
    assert len(seen) == 6  # four in a row were no better than the second
    assert trainer.state.best_metric == 3.0
    for name, value in trainer.model.state_dict().items():
        assert torch.equal(value, seen[1][name])
    rates = [entry["learning_rate"] for entry in trainer.state.log_history if "learning_rate" in entry]
    assert rates == pytest.approx([0.1, 0.1, 0.1, 0.1, 0.05, 0.05])


def test_low_precision_training_stays_close(tmp_path):
    for how, rows in ((supervised, gold(LENGTHS)), (on_charts, charts("parser", gold(LENGTHS)))):
        losses = []
        for bf16 in (False, True):
            trainer = how(
                "parser", arguments(tmp_path, 5, bf16=bf16, num_train_epochs=2), rows, eval_dataset=gold()
            )
            trainer.train()
            losses.append([entry["loss"] for entry in trainer.state.log_history if "loss" in entry])
            assert trainer.evaluate()["eval_uas"] >= 0
        assert losses[0] == pytest.approx(losses[1], rel=0.05)
        assert losses[0] != losses[1]


@pytest.mark.parametrize("limit", [1, 7, 2000])
def test_batches_hold_each_sentence_once_and_like_lengths(limit):
    lengths = [3, 1, 400, 2, 2, 5, 1]
    batches = list(length_batches(lengths, limit))
    assert sorted(index for batch in batches for index in batch) == list(range(7))
    assert all(max(lengths[i] for i in batch) * len(batch) <= limit for batch in batches if len(batch) > 1)
    assert [max(lengths[i] for i in batch) for batch in batches] == sorted(
        (max(lengths[i] for i in batch) for batch in batches), reverse=True
    )


def test_results_come_in_the_order_of_the_rows_and_rows_are_read_when_needed():
    read = []

    def rows():
        for number in range(10):
            read.append(number)
            yield {"words": ["x"] * (1 + number * 7 % 5), "name": number}

    results = in_batches(rows(), lambda batch: [row["name"] for row in batch], batch_words=4, window=3)
    assert next(results) == 0
    assert read == [0, 1, 2]
    assert list(results) == list(range(1, 10))
