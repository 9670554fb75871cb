"""Charts without structures are trained on the pool's best structure, counted, and reported by id."""

from __future__ import annotations

import pytest
import torch
from datasets import Dataset

from helpers.small_models import KINDS, arguments, charts, gold, losses_of, on_charts, without_last_group
from hf_xst.charts import chart_loss
from hf_xst.charts.dataset import structure_triples, to_mask
from hf_xst.training.collation import ChartUse


def with_empty(kind: str, indices: tuple[int, ...]) -> Dataset:
    rows = enumerate(charts(kind, gold((1, 2, 3, 4))))
    return Dataset.from_list([without_last_group(row) if index in indices else row for index, row in rows])


def losses_with_empty(kind, tmp_path, rows, use):
    """Return the trainer, its losses, the chart losses, and the losses of the pool's best structures."""
    trainer = on_charts(kind, arguments(tmp_path, max_steps=1), rows, use=use)
    batch = trainer.data_collator(list(rows))
    output = trainer.run_model(trainer.model, batch)
    distribution = trainer.model.distribution(output)
    of_charts = chart_loss(distribution, to_mask(batch["chart"], distribution.valid))
    best = to_mask(structure_triples(list(rows["pool_best"])), distribution.valid)
    return trainer, trainer.sentence_losses(output, batch), of_charts, chart_loss(distribution, best)


@pytest.mark.parametrize("kind", KINDS)
def test_empty_charts_fall_back_to_the_best_structure(tmp_path, kind):
    rows = with_empty(kind, (1, 3))
    trainer, losses, of_charts, of_best = losses_with_empty(kind, tmp_path, rows, ChartUse("none"))
    assert of_charts.isinf().tolist() == [False, True, False, True]
    torch.testing.assert_close(losses, torch.where(of_charts.isinf(), of_best, of_charts))
    losses.sum().backward()
    for parameter in trainer.model.parameters():
        assert parameter.grad is None or parameter.grad.isfinite().all()
    assert trainer.empty_sentences() == (2, ["s1", "s3"])


@pytest.mark.parametrize("soft", [0.5, 1.0])
def test_empty_pools_fall_back_to_the_best_structure(tmp_path, soft):
    rows = with_empty("tagger", (1, 3)).map(lambda row: {"log_probs": [-1.0] * len(row["candidates"])})
    use = ChartUse("pool", soft=soft)
    trainer, losses, of_charts, of_best = losses_with_empty("tagger", tmp_path, rows, use)
    assert losses.isfinite().all()
    for index in (1, 3):  # the best structure is the only one of the chart
        torch.testing.assert_close(losses[index], soft * of_best[index] + (1 - soft) * of_charts[index])
    assert trainer.empty_sentences() == (2, ["s1", "s3"])


def test_empty_charts_are_logged(tmp_path):
    rows = with_empty("parser", (1, 3))
    trainer = on_charts("parser", arguments(tmp_path, 2, num_train_epochs=2), rows, use=ChartUse("none"))
    trainer.train()
    assert losses_of(trainer, "empty_charts")[-1] == 4
    count, ids = trainer.empty_sentences()
    assert (count, sorted(ids)) == (4, ["s1", "s3"])
    assert all(parameter.isfinite().all() for parameter in trainer.model.parameters())


def test_sentence_without_any_structure_has_loss_zero(tmp_path):
    """It still counts as one of four sentences."""
    rows = with_empty("parser", (1,)).map(
        lambda row: {"pool_best": [-1] * len(row["pool_best"])} if row["sent_id"] == "s1" else row
    )
    trainer = on_charts("parser", arguments(tmp_path, max_steps=1), rows, use=ChartUse("none"))
    trainer.train()
    others = rows.select([0, 2, 3])
    expected = on_charts("parser", arguments(tmp_path, max_steps=1), others, use=ChartUse("none"))
    expected.train()
    for key in ("loss", "grad_norm"):
        assert losses_of(trainer, key)[0] == pytest.approx(losses_of(expected, key)[0] * 3 / 4, rel=1e-4)


def test_best_structures_of_sources_keep_charts_from_being_empty(tmp_path):
    trainer = on_charts("parser", arguments(tmp_path, max_steps=1), with_empty("parser", (1, 3)))
    trainer.train()
    assert trainer.empty_sentences() == (0, [])
