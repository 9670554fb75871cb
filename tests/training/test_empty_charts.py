"""A chart that holds no structure: recognised, reported by name, and harmless to its batch mates."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from datasets import Dataset

from helpers.small_models import arguments, charts, gold, losses_of, on_charts
from hf_xst.charts import chart_loss
from hf_xst.charts.dataset import structure_triples, to_mask
from hf_xst.training.collation import ChartUse


def with_empty(kind: str, emptied: tuple[int, ...], *, fallback: bool = True) -> Dataset:
    """Take every candidate away from the last group of some sentences."""
    changed: list[dict[str, Any]] = []
    for place, row in enumerate(charts(kind, gold((1, 2, 3, 4)))):
        if place in emptied:
            *offsets, _ = row["offsets"]
            row |= {"candidates": row["candidates"][: offsets[-1]], "offsets": [*offsets, offsets[-1]]}
            if not fallback:
                row |= {"pool_best": [-1] * len(row["pool_best"])}
        changed.append(row)
    return Dataset.from_list(changed)


@pytest.mark.parametrize("kind", ["groups", "parser", "tagger"])
def test_the_pools_best_structure_stands_in(tmp_path, kind):
    rows = with_empty(kind, (1, 3))
    trainer = on_charts(kind, arguments(tmp_path, max_steps=1), rows, use=ChartUse("none"))
    batch = trainer.data_collator(list(rows))
    output = trainer.run_model(trainer.model, batch)
    distribution = trainer.model.distribution(output)
    alone = chart_loss(distribution, to_mask(batch["chart"], distribution.valid))
    assert alone.isinf().tolist() == [False, True, False, True]
    best = chart_loss(distribution, to_mask(structure_triples(list(rows["pool_best"])), distribution.valid))
    losses = trainer.sentence_losses(output, batch)
    torch.testing.assert_close(losses, torch.where(alone.isinf(), best, alone))
    losses.sum().backward()
    for parameter in trainer.model.parameters():
        assert parameter.grad is None or parameter.grad.isfinite().all()
    assert trainer.empty_charts == 2
    assert trainer.empty_sentences() == (2, ["s1", "s3"])


@pytest.mark.parametrize("soft", [0.5, 1.0])
def test_the_pools_best_structure_stands_in_for_a_pool_without_structures(tmp_path, soft):
    rows = with_empty("tagger", (1, 3)).map(lambda row: {"log_probs": [-1.0] * len(row["candidates"])})
    use = ChartUse("pool", soft=soft)
    trainer = on_charts("tagger", arguments(tmp_path, max_steps=1), rows, use=use)
    batch = trainer.data_collator(list(rows))
    output = trainer.run_model(trainer.model, batch)
    distribution = trainer.model.distribution(output)
    best = chart_loss(distribution, to_mask(structure_triples(list(rows["pool_best"])), distribution.valid))
    losses = trainer.sentence_losses(output, batch)
    assert losses.isfinite().all()
    chart = chart_loss(distribution, to_mask(batch["chart"], distribution.valid))
    for place in (1, 3):  # the best structure is in the chart, which holds it alone
        expected = soft * best[place] + (1 - soft) * chart[place]
        torch.testing.assert_close(losses[place], expected)
    assert trainer.empty_sentences() == (2, ["s1", "s3"])


def test_they_are_counted_in_the_log(tmp_path):
    rows = with_empty("parser", (1, 3))
    trainer = on_charts("parser", arguments(tmp_path, 2, num_train_epochs=2), rows, use=ChartUse("none"))
    trainer.train()
    assert losses_of(trainer, "empty_charts")[-1] == 4
    times, names = trainer.empty_sentences()
    assert times == 4
    assert sorted(names) == ["s1", "s3"]
    assert all(parameter.isfinite().all() for parameter in trainer.model.parameters())


def test_batch_mates_train_as_if_alone(tmp_path):
    """With no structure to stand in either, the sentence adds nothing but still counts as one of four."""
    rows = with_empty("parser", (1,), fallback=False)
    trainer = on_charts("parser", arguments(tmp_path, max_steps=1), rows, use=ChartUse("none"))
    trainer.train()
    whole = on_charts(
        "parser", arguments(tmp_path, max_steps=1), rows.select([0, 2, 3]), use=ChartUse("none")
    )
    whole.train()
    assert losses_of(trainer)[0] == pytest.approx(losses_of(whole)[0] * 3 / 4, rel=1e-5)
    assert losses_of(trainer, "grad_norm")[0] == pytest.approx(
        losses_of(whole, "grad_norm")[0] * 3 / 4, rel=1e-4
    )


def test_the_sources_best_structures_keep_a_chart_from_being_empty(tmp_path):
    trainer = on_charts("parser", arguments(tmp_path, max_steps=1), with_empty("parser", (1, 3)))
    trainer.train()
    assert trainer.empty_charts == 0
