"""One update is one exact mean, however its sentences are divided into micro-batches (P20)."""

from __future__ import annotations

import pytest
import torch

from helpers.small_models import (
    KINDS,
    arguments,
    assert_same,
    charts,
    gold,
    losses_of,
    model_of,
    on_charts,
    supervised,
)
from hf_xst.charts import chart_loss
from hf_xst.charts.dataset import to_mask
from hf_xst.models.running import FILLER, Collator
from hf_xst.training.batches import BucketSampler, PaddedDataset
from hf_xst.training.collation import ChartCollator

DIVISIONS = [(4, 1), (2, 2), (1, 4)]


def trained(make, kind, rows, tmp_path, division, **changes):
    trainer = make(kind, arguments(tmp_path, *division, **changes), rows)
    trainer.train()
    return trainer


def assert_one_step(trainer, model, loss):
    """Check a trainer's only update of 0.1 against the gradient of a loss."""
    loss.backward()
    assert losses_of(trainer) == pytest.approx([loss.item()], rel=1e-4)
    norm = torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm().item()
    assert losses_of(trainer, "grad_norm") == pytest.approx([norm], rel=1e-4)
    for name, parameter in model.named_parameters():
        expected = parameter.detach()
        if parameter.grad is not None:
            expected = expected - 0.1 * parameter.grad
        actual = trainer.model.get_parameter(name).detach()
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("division", DIVISIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_supervised_update_is_mean_over_units(tmp_path, kind, division):
    rows, model = gold((1, 1, 3, 3)), model_of(kind).train()
    batch = Collator(model)(list(rows))
    output = model(**{key: value for key, value in batch.items() if key != "units"})
    mean = output.losses.sum() / {"groups": 8, "parser": 8, "tagger": 4}[kind]  # words, words, sentences
    assert_one_step(trained(supervised, kind, rows, tmp_path, division), model, mean)


@pytest.mark.parametrize("division", DIVISIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_chart_update_is_mean_over_sentences(tmp_path, kind, division):
    rows, model = charts(kind, gold((1, 1, 3, 3))), model_of(kind).train()
    batch = ChartCollator(model, model.names)(list(rows))
    only_for_loss = ("units", "chart", "fallback", "sent_ids")
    output = model(**{key: value for key, value in batch.items() if key not in only_for_loss})
    distribution = model.distribution(output)
    mean = chart_loss(distribution, to_mask(batch["chart"], distribution.valid)).sum() / 4
    assert mean > 0.1
    assert_one_step(trained(on_charts, kind, rows, tmp_path, division), model, mean)


@pytest.mark.parametrize("make", [supervised, on_charts])
def test_updates_of_several_epochs_do_not_depend_on_the_division(tmp_path, make):
    rows = gold((2, 14, 3, 1, 12, 5, 13, 4, 2, 11))  # two buckets; the last update has two sentences
    rows = rows if make is supervised else charts("groups", rows)
    first, *others = (
        trained(make, "groups", rows, tmp_path, division, num_train_epochs=3, max_grad_norm=0.5)
        for division in DIVISIONS
    )
    assert first.state.global_step == 9
    for other in others:
        assert losses_of(other) == pytest.approx(losses_of(first), rel=1e-4)
        assert_same(other.model, first.model)


def test_micro_batches_contribute_by_words(tmp_path, monkeypatch):
    """Sentences of 1, 1, 3 and 3 words with losses 1, 3, 3 and 3 have mean (1 + 3 + 3 + 3) / 8."""
    rows = gold((1, 1, 3, 3))
    trainer = supervised("groups", arguments(tmp_path, 2, 2), rows)
    order = iter([(1.0, 3.0, 3.0, 3.0)[index] for index in trainer._get_train_sampler()])

    def losses(output, inputs):
        return torch.stack([scores.sum() * 0 + next(order) for scores in output.scores])

    monkeypatch.setattr(trainer, "sentence_losses", losses)
    trainer.train()
    assert losses_of(trainer) == pytest.approx([10 / 8])


def test_fillers_have_weight_0_even_with_infinite_loss(tmp_path, monkeypatch):
    rows = gold((2, 3))
    trainer = supervised("groups", arguments(tmp_path, 4), rows)
    padded = PaddedDataset(rows, 4)
    assert [row[FILLER] for row in padded.__getitems__(range(len(padded)))] == [False, False, True, True]
    batch = trainer.data_collator(padded.__getitems__(range(4)))
    assert batch["units"].tolist() == [2, 3, 0, 0]
    assert trainer._get_num_items_in_batch([batch, batch], torch.device("cpu")) == 10
    expected = trainer.compute_loss(trainer.model, trainer.data_collator(list(rows)))
    sentence_losses = trainer.sentence_losses

    def infinite(output, inputs):
        return torch.where(inputs["units"] > 0, sentence_losses(output, inputs), torch.inf)

    monkeypatch.setattr(trainer, "sentence_losses", infinite)
    torch.testing.assert_close(trainer.compute_loss(trainer.model, batch), expected)


@pytest.mark.parametrize("size", [1, 3, 4, 50])
def test_sampler_covers_all_sentences_and_only_the_last_batch_is_short(size):
    lengths = [1 + (7 * index) % 29 for index in range(23)]
    sampler = BucketSampler(lengths, size, seed=5, fillers=2)
    orders = []
    for epoch in (0, 1):
        sampler.set_epoch(epoch)
        order = list(sampler)
        assert sorted(order) == list(range(25))
        assert order[-2:] == [23, 24]
        assert order == list(sampler)
        orders.append(order)
        batches = [order[start : start + size] for start in range(0, 23 - size, size)]
        mixed = [len({lengths[index] // 10 for index in batch}) > 1 for batch in batches]
        assert sum(mixed) <= 3  # the remainders of the buckets
    assert orders[0] != orders[1]
    assert list(BucketSampler(lengths, size, seed=6)) != orders[0][:-2]
