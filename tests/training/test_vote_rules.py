"""Every rule of the ensemble, on models of every kind."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from helpers.small_models import KINDS, MARKS, gold, model_of, unlabelled
from hf_xst.charts import (
    GroupedWeights,
    infer_truth,
    linear_opinion_pool,
    log_opinion_pool,
    pool,
    stacked_log_marginals,
)
from hf_xst.commands.vote import RULES, combined
from hf_xst.models.running import predict_rows
from hf_xst.sources.pool import SourcePool, joint_names

ROWS = unlabelled(gold((3, 5, 1, 4, 2, 6)))
GROUPED = GroupedWeights(np.array([[0.5, 0.3, 0.0], [0.0, 1.0, -0.5], [-1.0, 0.0, 0.7]]))


def pool_of(kind: str, count: int = 3) -> SourcePool:
    models = {f"source{seed}": model_of(kind, seed) for seed in range(count)}
    return SourcePool(models, joint_names(list(models.values())))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", ["pool", "linear", "grouped"])
def test_pools_are_decoded_as_they_stand(kind, rule):
    sources, weights = pool_of(kind), [0.6, 0.3, 0.1]
    for row, found in zip(
        ROWS, combined(sources, ROWS, rule, weights, 1e-6, batch_words=7, grouped=GROUPED), strict=True
    ):
        distributions = sources.distributions([row])
        marginals, first = stacked_log_marginals(distributions), distributions[0]
        pooled = {
            "pool": lambda m, v: log_opinion_pool(m, weights, 1e-6, valid=v),
            "linear": lambda m, v: linear_opinion_pool(m, weights, valid=v),
            "grouped": lambda m, v: log_opinion_pool(m, GROUPED.weights(m), 1e-6, valid=v),
        }[rule](marginals, first.valid)
        best = first.with_scores(first.part_view(pooled)).best()
        lengths = torch.tensor([len(row["words"])])
        assert [found] == sources.sources[0].model.decode(best, lengths, sources.names)
        if rule == "pool":
            own = pool(distributions, weights, 1e-6).best()
            assert [found] == sources.sources[0].model.decode(own, lengths, sources.names)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "truth"])
def test_sources_that_are_one_give_its_own_structure(kind, rule):
    model = model_of(kind)
    twice = SourcePool({"one": model, "again": model}, model.names)
    grouped = GroupedWeights(np.zeros((2, 3)))
    found = combined(twice, ROWS, rule, grouped=grouped)
    if rule == "majority":
        assert found == list(predict_rows(model, ROWS))
    else:  # the structure of the most probable candidates, which here is that of each alone
        assert found == combined(SourcePool({"one": model}, model.names), ROWS, "pool")


@pytest.mark.parametrize("kind", ["groups", "tagger"])
def test_truth_is_inferred_over_all_words_of_the_data(kind):
    sources = pool_of(kind)
    (column,) = sources.sources[0].model.columns
    answers = [list(predict_rows(source.model, ROWS)) for source in sources.sources]
    flat = [[label for columns in rows for label in columns[column]] for rows in answers]
    names = sorted({label for labels in flat for label in labels})
    predictions = torch.tensor([[names.index(label) for label in labels] for labels in flat])
    expected = [names[index] for index in infer_truth(predictions, len(names)).argmax(1).tolist()]
    found = combined(sources, ROWS, "truth", batch_words=6)
    assert [len(columns[column]) for columns in found] == [len(row["words"]) for row in ROWS]
    assert [label for columns in found for label in columns[column]] == expected
    assert combined(sources, [], "truth") == []


def test_truth_is_for_one_label_a_word():
    with pytest.raises(ValueError, match=r"one label a word; these predict head and deprel.*use majority"):
        combined(pool_of("parser"), ROWS, "truth")


def test_rules_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="the rule is 'best'; expected one of majority, pool, linear"):
        combined(pool_of("groups"), ROWS, "best")
    with pytest.raises(ValueError, match="needs weights by group, which learn-weights --grouped finds"):
        combined(pool_of("groups"), ROWS, "grouped")


def test_truth_outvotes_sources_that_err_alike():
    """Two sources know the marks, three call one mark by another's name: the vote is wrong, truth is not."""
    rows = gold((6,) * 40)

    def trained(rename: dict[str, str], seed: int) -> torch.nn.Module:
        model = model_of("groups", seed)
        taught = [{**row, "mark": [rename.get(mark, mark) for mark in row["mark"]]} for row in rows]
        optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
        for _ in range(40):
            loss = model(**model.featurise(taught), labels=model.encode_gold(taught)).loss
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        return model

    wrong = {MARKS[0]: MARKS[1]}
    models = {f"s{seed}": trained({} if seed < 2 else wrong, seed) for seed in range(5)}
    sources = SourcePool(models, MARKS)

    def share(rule: str) -> float:
        pairs = [
            (mark, own)
            for row, found in zip(rows, combined(sources, rows, rule), strict=True)
            for mark, own in zip(row["mark"], found["mark"], strict=True)
        ]
        return sum(mark == own for mark, own in pairs) / len(pairs)

    assert share("truth") > share("majority") + 0.2
