"""Pools, charts, losses, weights and quality against values found by enumeration."""

from __future__ import annotations

import json
import math

import pytest
import torch

from helpers.chart_oracle import SPACES, build, entries, entries_of, mask_of, scores_of, sources_of
from hf_xst.charts import (
    chart_loss,
    chart_quality,
    combine_quality,
    learn_weights,
    log_opinion_pool,
    pool,
    pooled_chart,
    stacked_log_marginals,
    union_chart,
)
from hf_xst.structures import DependencyTreeCRF, LinearChainCRF
from hf_xst.structures.base import Structure

TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-5}


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_chart_loss_and_its_gradient(shared, space, dtype):
    seen = 0
    for case, expected in entries(shared, "chart_loss", space):
        structure = build(space, scores_of(case, space), dtype)
        structure.scores.requires_grad_()
        loss = chart_loss(structure, mask_of(case["chart"], structure))
        if expected["loss"] == "inf":
            assert loss.item() == math.inf
            continue
        tolerance = (1e-9 if dtype == torch.float64 else 1e-4) * max(1.0, abs(expected["loss"]))
        assert loss.item() == pytest.approx(expected["loss"], abs=tolerance)
        loss.sum().backward()
        torch.testing.assert_close(
            structure.scores.grad[0],
            torch.tensor(expected["loss_gradient"], dtype=dtype),
            rtol=0,
            atol=TOLERANCE[dtype],
        )
        seen += 1
    assert seen >= 3


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_union_charts(shared, space, dtype):
    for case, expected in entries(shared, "build", space):
        sources = sources_of(case, space, dtype)
        for part in expected["pptx"]:
            chart = union_chart(sources, part["sigma"])
            assert entries_of(chart, sources[0]) == sorted(part["chart"]), (case["id"], part["sigma"])
            restricted = sources[0].restricted_to(sources[0].part_view(chart))
            assert restricted.log_count().exp().item() == pytest.approx(part["n_structures"], rel=1e-5)


@pytest.mark.parametrize("floor", [0.0, 1e-9])
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_pools_and_their_charts(shared, space, dtype, floor):
    for case, expected in entries(shared, "build", space):
        if dtype == torch.float32 and case["id"].startswith("sharp"):
            continue  # marginals of 1e-40 are zero in float32: the pool at floor 0 is another one
        sources = sources_of(case, space, dtype)
        for part in expected["lop"]:
            wanted = part if floor == 0 else {**part, **part["with_1e-9_added"]}
            marginals = stacked_log_marginals(sources)
            pooled = log_opinion_pool(marginals, part["weights"], floor, valid=sources[0].valid).exp()
            torch.testing.assert_close(
                sources[0].part_view(pooled)[0],
                torch.tensor(wanted["pool"], dtype=dtype),
                rtol=0,
                atol=TOLERANCE[dtype],
            )
            for chart in wanted["charts"]:
                found = pooled_chart(sources, chart["sigma"], part["weights"], floor)
                assert entries_of(found, sources[0]) == sorted(chart["chart"]), (case["id"], chart["sigma"])


@pytest.mark.parametrize("space", SPACES)
def test_distance_of_the_pool_to_gold(shared, space):
    for case, expected in entries(shared, "build", space):
        sources = sources_of(case, space, torch.float64)
        gold = case["gold"]
        best = (
            torch.tensor([gold])
            if space == "chain"
            else (torch.tensor([gold["heads"]]), torch.tensor([gold["labels"]]))
        )
        candidates = sources[0].candidates(best)
        for part in expected["lop"]:
            pooled = sources[0].group_view(pool(sources, part["weights"]).scores)
            kl = -pooled.gather(-1, candidates[..., None])[0, :, 0]
            torch.testing.assert_close(
                kl, torch.tensor(part["kl"]["per_group"], dtype=kl.dtype), rtol=1e-9, atol=1e-9
            )


@pytest.mark.parametrize("space", SPACES)
def test_quality(shared, space):
    for case, expected in entries(shared, "quality", space):
        parts = []
        for sentence in case["sentences"]:
            n = sentence["n"]
            if space == "chain":
                structure: Structure = LinearChainCRF(torch.zeros(1, n - 1, case["n_tags"], case["n_tags"]))
                gold = torch.tensor([sentence["gold"]])
            else:
                structure = DependencyTreeCRF(torch.zeros(1, n + 1, n + 1, case["n_labels"]), **SPACES[space])
                gold = (torch.tensor([sentence["gold"]["heads"]]), torch.tensor([sentence["gold"]["labels"]]))
            parts.append(
                chart_quality(structure, mask_of(sentence["chart"], structure), structure.candidates(gold))
            )
        found = combine_quality(parts)
        if expected["precision"] is None:
            assert math.isnan(found["precision"])
        else:
            assert found["precision"] == pytest.approx(expected["precision"], abs=1e-12)
        assert found["recall"] == pytest.approx(expected["recall"], abs=1e-12)
        assert found["recall_numerator"] == expected["recall_numerator"]
        sizes = [part["n_structures"] for part in expected["per_sentence"]]
        torch.testing.assert_close(
            found["log_size"].exp(), torch.tensor(sizes, dtype=torch.float64), rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_learned_weights(shared, dtype):
    problems = json.loads(shared("oracles", "lop_weights.json").read_text())["problems"]
    for problem in problems:
        width = max(len(group["marginals"][0]) for group in problem["groups"])
        marginals = torch.zeros(problem["n_sources"], 1, len(problem["groups"]), width, dtype=torch.float64)
        for place, group in enumerate(problem["groups"]):
            for source, probabilities in enumerate(group["marginals"]):
                marginals[source, 0, place, : len(probabilities)] = torch.tensor(
                    probabilities, dtype=torch.float64
                )
        gold = torch.tensor([[group["gold"] for group in problem["groups"]]])
        weights = learn_weights(marginals.to(dtype).log(), gold)
        optimum = problem["results"]["optimum"]
        if optimum["unique"]:
            atol = 1e-6 if dtype == torch.float64 else 1e-3
            torch.testing.assert_close(
                weights, torch.tensor(optimum["weights"], dtype=dtype), rtol=0, atol=atol
            )
        pooled = log_opinion_pool(marginals.log(), weights.double())
        loss = -pooled.gather(-1, gold[..., None]).mean().item()
        assert loss == pytest.approx(optimum["mean_nll"], abs=1e-9 if dtype == torch.float64 else 1e-4)
