"""Every rule of the ensemble, on models of every kind."""

from __future__ import annotations

import pytest
import torch

from helpers.small_models import KINDS, gold, model_of, unlabelled
from hf_xst.charts import linear_opinion_pool, log_opinion_pool, pool, stacked_log_marginals
from hf_xst.commands.vote import combine
from hf_xst.models.running import predict_rows
from hf_xst.sources.pool import SourcePool, joint_names

ROWS = unlabelled(gold((3, 5, 1, 4, 2, 6)))


def pool_of(kind: str, count: int = 3) -> SourcePool:
    models = {f"source{seed}": model_of(kind, seed) for seed in range(count)}
    return SourcePool(models, joint_names(list(models.values())))


def test_an_unknown_rule_is_rejected():
    with pytest.raises(ValueError, match="rule is 'union'"):
        combine(pool_of("tagger"), ROWS, "union")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", ["pool", "linear"])
def test_the_best_structure_of_the_pool_is_returned(kind, rule):
    sources, weights = pool_of(kind), [0.6, 0.3, 0.1]
    predictions = combine(sources, ROWS, rule, weights, 1e-6, batch_words=7)
    for row, predicted in zip(ROWS, predictions, strict=True):
        distributions = sources.distributions([row])
        marginals, first = stacked_log_marginals(distributions), distributions[0]
        pooled = {
            "pool": lambda m, v: log_opinion_pool(m, weights, 1e-6, valid=v),
            "linear": lambda m, v: linear_opinion_pool(m, weights, valid=v),
        }[rule](marginals, first.valid)
        best = first.with_scores(first.part_view(pooled)).best()
        lengths = torch.tensor([len(row["words"])])
        assert [predicted] == sources.kind.decode(best, lengths, sources.names)
        if rule == "pool":
            own = pool(distributions, weights, 1e-6).best()
            assert [predicted] == sources.kind.decode(own, lengths, sources.names)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", ["majority", "pool", "linear"])
def test_identical_sources_predict_their_own_structure(kind, rule):
    model = model_of(kind)
    twice = SourcePool({"one": model, "again": model}, model.names)
    found = list(combine(twice, ROWS, rule))
    if rule == "majority":
        assert found == list(predict_rows(model, ROWS))
    else:  # the structure of the most probable candidates, which here is that of each alone
        assert found == list(combine(SourcePool({"one": model}, model.names), ROWS, "pool"))


def obeys(row: dict[str, list]) -> bool:
    return all((head == 0) == (name == "root") for head, name in zip(row["head"], row["deprel"], strict=True))


@pytest.mark.parametrize("rule", ["majority", "pool", "linear"])
@pytest.mark.parametrize("seed", range(3))
def test_exactly_the_arc_from_head_0_is_root(rule, seed):
    names = [["amod", "root"], ["obj", "amod"], ["root", "obj", "amod"]]  # the second source has no root
    models = {f"source{i}": model_of("parser", seed + i, labels=labels) for i, labels in enumerate(names)}
    assert all(map(obeys, combine(SourcePool(models), ROWS, rule)))
    assert all(map(obeys, predict_rows(models["source0"], ROWS)))
    alone = SourcePool({"source1": models["source1"]})
    own = list(predict_rows(models["source1"], ROWS))
    assert list(combine(alone, ROWS, rule)) == own or rule != "majority"
