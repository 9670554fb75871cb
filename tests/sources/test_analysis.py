"""One pass over gold sentences, for every kind of structure, against the functions it consists of."""

from __future__ import annotations

import json
import math

import pytest
import torch

from helpers.small_models import KINDS, gold, model_of, unlabelled
from hf_xst.charts import chart_quality, log_opinion_pool, pooled_chart, stacked_log_marginals, union_chart
from hf_xst.charts.chart import ChartSettings, SourceDistributions, make_chart
from hf_xst.charts.dataset import from_ragged, structure_triples, to_mask
from hf_xst.sources.analysis import counted_groups, describe, standard_charts
from hf_xst.sources.building import ChartMaker
from hf_xst.sources.pool import SourcePool, joint_names

LENGTHS = (3, 1, 5, 4, 2, 4)
WEIGHTS = {"m0": 0.2, "m1": 0.5, "m2": 0.3}


def pool_of(kind, count=3):
    models = {f"m{seed}": model_of(kind, seed) for seed in range(count)}
    return SourcePool(models, joint_names(list(models.values())))


@pytest.mark.parametrize("kind", KINDS)
def test_results_match_the_tensor_functions(kind):
    pool, rows = pool_of(kind), gold((4, 4, 4), seed=3)
    found = describe(pool, rows, standard_charts(0.6, 1e-6, WEIGHTS))
    sources = pool.distributions(list(rows))
    candidates = pool.gold_candidates(list(rows), sources[0])
    charts = {
        "union": union_chart(sources, 0.6),
        "pool": pooled_chart(sources, 0.6, None, 1e-6),
        "pool learned": pooled_chart(sources, 0.6, [0.2, 0.5, 0.3], 1e-6),
    }
    assert list(found["charts"]) == list(charts)
    for name, chart in charts.items():
        quality = chart_quality(sources[0], chart, candidates)
        mine = found["charts"][name]
        for key in ("precision", "recall"):
            assert mine["with_boundaries"][key] == pytest.approx(quality[key])
        assert mine["median_log_size"] == pytest.approx(quality["log_size"].median().item())
    pooled = log_opinion_pool(
        stacked_log_marginals(sources), None, 1e-6, valid=SourceDistributions(sources).valid
    )
    nll = -pooled.gather(-1, candidates[..., None])[..., 0]
    distance = found["distance"]["pool"]["with_boundaries"]
    assert distance["per_group"]["kl"] == pytest.approx(nll.mean().item(), rel=1e-5)
    assert distance["kl"] == pytest.approx(nll.sum().item() / 12, rel=1e-5)
    assert distance["kl"] == pytest.approx(distance["error"] - distance["diversity"], rel=1e-5)
    assert found["differences"]["pool"]["size_ratio"] == pytest.approx(
        math.exp(found["charts"]["pool"]["median_log_size"] - found["charts"]["union"]["median_log_size"])
    )
    assert (found["sentences"], found["words"]) == (3, 12)
    right = {name: each["right"] for name, each in found["sources"].items()}
    for source, own in zip(sources, right.values(), strict=True):
        assert own == pytest.approx((source.best_candidates() == candidates).double().mean().item())


@pytest.mark.parametrize("kind", KINDS)
def test_batches_do_not_matter(kind):
    pool, rows = pool_of(kind), gold(LENGTHS)
    charts = standard_charts(0.7)
    assert flat(describe(pool, rows, charts, batch_words=1)) == pytest.approx(
        flat(describe(pool, rows, charts)), rel=1e-5, abs=1e-7
    )


def flat(value, name=""):
    """Numbers of a nested mapping by their path."""
    if isinstance(value, dict):
        return {path: n for key, inner in value.items() for path, n in flat(inner, f"{name}/{key}").items()}
    return {name: value} if isinstance(value, int | float) else {}


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_tagger_adds_groups(kind):
    pool, rows = pool_of(kind), gold(LENGTHS)
    distribution = pool.distributions(list(rows))[0]
    scopes = counted_groups(distribution, pool.kind.added_groups)
    counted = {scope: mask.sum(-1).tolist() for scope, mask in scopes.items()}
    found = describe(pool, rows, standard_charts())["charts"]["union"]
    if kind == "tagger":
        assert counted["with_boundaries"] == [n + 1 for n in LENGTHS]
        assert counted["without_boundaries"] == [n - 1 for n in LENGTHS]
        assert found["without_boundaries"] != found["with_boundaries"]
    else:
        assert counted == {"with_boundaries": list(LENGTHS)}
        assert found["without_boundaries"] == found["with_boundaries"]


@pytest.mark.parametrize("temperature", [1.0, 2.5])
@pytest.mark.parametrize("rule", ["pool", "union"])
@pytest.mark.parametrize("kind", KINDS)
def test_charts_are_those_that_build_charts_writes(kind, rule, temperature):
    pool, rows = pool_of(kind), list(unlabelled(gold((4, 2, 3))))
    settings = ChartSettings(rule, 0.6, 1e-6, WEIGHTS, temperature=temperature)
    batch = SourceDistributions(pool.distributions(rows)).softened(temperature)
    mine = make_chart(batch, settings, pool.weights(WEIGHTS)).allowed
    stored, _ = ChartMaker(pool, settings)(rows)
    triples = [from_ragged(stored)]
    triples += [structure_triples([row["source_best"][s] for row in stored]) for s in range(3)]
    assert torch.equal(mine, to_mask(torch.cat(triples), mine))


def test_labels_that_no_source_knows_are_never_right():
    pool, rows = pool_of("groups"), gold((3, 3)).to_list()
    everything = {"all": ChartSettings(sigma=1.0)}
    whole = describe(pool, rows, everything)["charts"]["all"]["with_boundaries"]
    assert whole == pytest.approx({"precision": 1 / 3, "recall": 1.0})  # three marks, all of them allowed
    rows[0]["mark"][1] = "unheard"
    found = describe(pool, rows, everything)
    assert found["charts"]["all"]["with_boundaries"] == pytest.approx({"precision": 5 / 18, "recall": 5 / 6})
    assert (found["distance"]["all"]["unknown_gold"], found["distance"]["all"]["impossible"]) == (1, 0)


def test_a_single_source_and_numbers_that_json_does_not_know():
    found = describe(pool_of("tagger", 1), gold(LENGTHS), {"pool": ChartSettings(floor=0.0)})
    assert found["sources"]["m0"]["agreement"] is None
    assert found["selection"]["agreement"]["rho"] is None
    assert found["distance"]["pool"]["with_boundaries"]["diversity"] == pytest.approx(0, abs=1e-6)
    assert found["differences"] == {}
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(
    ("rows", "charts", "message"),
    [
        ([], standard_charts(), "measuring charts requires sentences"),
        ([{"sent_id": "s9", "words": ["w1"]}], standard_charts(), "sentence s9 has no column mark"),
        (
            [{"words": ["w1"], "mark": ["dry"]}],
            {"pool": ChartSettings(weights={"m0": 1.0})},
            "expected weights for exactly m0, m1, m2",
        ),
    ],
)
def test_errors_teach(rows, charts, message):
    with pytest.raises(ValueError, match=message):
        describe(pool_of("groups"), rows, charts)
