"""One update is one exact mean, however its sentences are cut into micro-batches (P20)."""

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
    parameters,
    supervised,
)
from hf_xst.charts import chart_loss
from hf_xst.charts.dataset import to_mask
from hf_xst.models.collation import FILLER, Collator
from hf_xst.training.batches import BucketSampler, Filled
from hf_xst.training.collation import ChartCollator

CUTS = [(4, 1), (2, 2), (1, 4)]


def trained(how, kind, rows, tmp_path, batch, accumulation, **changes):
    trainer = how(kind, arguments(tmp_path, batch, accumulation, **changes), rows)
    trainer.train()
    return trainer


@pytest.mark.parametrize("kind", KINDS)
def test_a_supervised_update_is_the_mean_over_all_units(tmp_path, kind):
    rows = gold((1, 1, 3, 3))
    model = model_of(kind).train()
    batch = Collator(model)(list(rows))
    output = model(**{key: value for key, value in batch.items() if key != "units"})
    mean = output.losses.sum() / {"groups": 8, "parser": 8, "tagger": 4}[kind]  # words, words, sentences
    mean.backward()
    for cut in CUTS:
        trainer = trained(supervised, kind, rows, tmp_path, *cut)
        assert losses_of(trainer) == pytest.approx([mean.item()], rel=1e-5)
        norm = torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm().item()
        assert losses_of(trainer, "grad_norm") == pytest.approx([norm], rel=1e-4)
        for name, before in parameters(model).items():
            gradient = model.get_parameter(name).grad
            moved = before if gradient is None else before - 0.1 * gradient
            torch.testing.assert_close(
                trainer.model.get_parameter(name).detach(), moved, rtol=1e-4, atol=1e-6
            )


@pytest.mark.parametrize("kind", KINDS)
def test_an_update_on_charts_is_the_mean_over_all_sentences(tmp_path, kind):
    rows = charts(kind, gold((1, 1, 3, 3)))
    model = model_of(kind).train()
    batch = ChartCollator(model, model.names)(list(rows))
    output = model(
        **{key: batch[key] for key in batch if key not in ("units", "chart", "fallback", "sent_ids")}
    )
    distribution = model.distribution(output)
    mean = chart_loss(distribution, to_mask(batch["chart"], distribution.valid)).sum() / 4
    assert mean > 0.1
    mean.backward()
    for cut in CUTS:
        trainer = trained(on_charts, kind, rows, tmp_path, *cut)
        assert losses_of(trainer) == pytest.approx([mean.item()], rel=1e-4)
        for name, before in parameters(model).items():
            gradient = model.get_parameter(name).grad
            moved = before if gradient is None else before - 0.1 * gradient
            torch.testing.assert_close(
                trainer.model.get_parameter(name).detach(), moved, rtol=1e-4, atol=1e-5
            )


@pytest.mark.parametrize("how", [supervised, on_charts])
def test_all_updates_of_several_epochs_are_the_same_in_every_cut(tmp_path, how):
    rows = gold((2, 14, 3, 1, 12, 5, 13, 4, 2, 11))  # two buckets; the last update has two sentences
    rows = rows if how is supervised else charts("groups", rows)
    whole = trained(how, "groups", rows, tmp_path, 4, 1, num_train_epochs=3, max_grad_norm=0.5)
    assert whole.state.global_step == 9
    for cut in CUTS[1:]:
        other = trained(how, "groups", rows, tmp_path, *cut, num_train_epochs=3, max_grad_norm=0.5)
        assert losses_of(other) == pytest.approx(losses_of(whole), rel=1e-4)
        assert_same(other.model, whole.model)


def test_worked_number_per_word_mean_is_total_over_total(tmp_path, monkeypatch):
    rows = gold((1, 1, 3, 3))
    by_name = {"s0": 1.0, "s1": 3.0, "s2": 3.0, "s3": 3.0}  # words' losses 1, 3 and six times 1
    trainer = supervised("groups", arguments(tmp_path, 2, 2), rows)
    words = {tuple(row["words"]): by_name[row["sent_id"]] for row in rows}
    assert len(words) == 4
    places = [words[tuple(row["words"])] for row in rows]
    order = iter([])

    def losses(output, inputs):
        return torch.stack([output.scores[i].sum() * 0 + next(order) for i in range(len(inputs["units"]))])

    sampled = list(trainer._get_train_sampler())
    order = iter([places[index] for index in sampled])
    monkeypatch.setattr(trainer, "sentence_losses", losses)
    trainer.train()
    assert losses_of(trainer) == pytest.approx([(1 + 3 + 6) / 8])


def test_a_filler_weighs_nothing_even_if_its_loss_is_infinite(tmp_path, monkeypatch):
    rows = gold((2, 3))
    trainer = supervised("groups", arguments(tmp_path, 4), rows)
    filled = Filled(rows, 4)
    assert [filled[index][FILLER] for index in range(len(filled))] == [False, False, True, True]
    batch = trainer.data_collator([filled[index] for index in range(4)])
    assert batch["units"].tolist() == [2, 3, 0, 0]
    assert trainer._get_num_items_in_batch([batch, batch], torch.device("cpu")) == 10
    expected = trainer.compute_loss(trainer.model, trainer.data_collator(list(rows)))
    usual = trainer.sentence_losses

    def infinite(output, inputs):
        return torch.where(inputs["units"] > 0, usual(output, inputs), torch.inf)

    monkeypatch.setattr(trainer, "sentence_losses", infinite)
    loss = trainer.compute_loss(trainer.model, batch)
    torch.testing.assert_close(loss, expected)


@pytest.mark.parametrize("size", [1, 3, 4, 50])
def test_sampler_draws_every_sentence_once_and_only_the_last_batch_is_short(size):
    lengths = [1 + (7 * place) % 29 for place in range(23)]
    sampler = BucketSampler(lengths, size, seed=5, fillers=2)
    orders = []
    for epoch in (0, 1):
        sampler.set_epoch(epoch)
        drawn = list(sampler)
        assert sorted(drawn) == list(range(25))
        assert drawn[-2:] == [23, 24]
        assert drawn == list(sampler)
        orders.append(drawn)
        batches = [drawn[start : start + size] for start in range(0, 23 - size, size)]
        alike = [len({lengths[index] // 10 for index in batch}) == 1 for batch in batches]
        assert sum(not whole for whole in alike) <= 3  # what the buckets leave over is mixed
    assert orders[0] != orders[1]
    assert list(BucketSampler(lengths, size, seed=6)) != orders[0][:-2]
