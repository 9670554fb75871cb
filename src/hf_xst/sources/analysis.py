"""Measure charts, pools and sources on sentences with gold, in one pass.

The distance of a pool from gold, which has all probability on one candidate, is minus the log-probability of
that candidate (Kurniawan et al. 2021, equations 12 and 13). It is the weighted average of the sources'
distances (error) minus the weighted average of the divergences from pool to source (diversity); the latter is
minus the log of the pool's normaliser (Heskes 1998). The paper divides the sum over all groups by the number
of words; the published code by the number of groups, which differs for sequences, whose boundary pairs count
too. Both are reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Self

import numpy as np
import torch
from datasets import Dataset
from torch import Tensor

from hf_xst.charts import chart_quality, combine_quality, log_opinion_pool, make_chart
from hf_xst.charts.chart import FLOOR, SIGMA, ChartSettings
from hf_xst.charts.pooling import floored, normalised_weights
from hf_xst.models.modeling import Row
from hf_xst.models.running import BATCH_WORDS
from hf_xst.numerics import logsumexp, safe_log
from hf_xst.sources.agreement import (
    count_words,
    mean_measures,
    rank_correlations,
    source_terms,
    sum_over_batches,
)
from hf_xst.sources.pool import SourcePool
from hf_xst.structures.base import Structure

SCOPES = ("with_boundaries", "without_boundaries")
"""Whether groups that a model adds at the ends of a sentence count (`StructuredModel.added_groups`)."""
TERMS = ("kl", "error", "diversity")
RATIOS = ("precision", "recall")


def standard_charts(
    sigma: float = SIGMA, floor: float = FLOOR, learned: Mapping[str, float] | None = None
) -> dict[str, ChartSettings]:
    """Return the charts that the paper compares: `union`, `pool` and, with weights, `pool learned`."""
    charts = {"union": ChartSettings("union", sigma, floor), "pool": ChartSettings("pool", sigma, floor)}
    if learned is not None:
        charts["pool learned"] = ChartSettings("pool", sigma, floor, learned)
    return charts


def describe(
    pool: SourcePool,
    rows: Dataset | Sequence[Row],
    charts: Mapping[str, ChartSettings],
    *,
    batch_words: int = BATCH_WORDS,
) -> dict[str, Any]:
    """Measure charts, pools and sources on prepared rows with gold, batch by batch.

    There is at least one kind of charts; the others are compared with the first.

    Returns:
        `sentences`, `words`; by name `charts` (settings, `median_log_size`, `empty_charts`, `precision` and
        `recall` by scope), `differences` from the first kind (`size_ratio`, `precision`, `recall`) and, for
        logarithmic pools, `distance` (`kl`, `error`, `diversity` by scope, per word and per group); `sources`
        (measures without labels and the share `right`), and `selection`, the rank correlation of each measure
        with that share. For scopes see `SCOPES`. Numbers that are not finite are None.

    Raises:
        ValueError: there is no sentence, rows have no gold, or weights do not fit the sources.
    """
    weights = {name: pool.weights(settings.weights) for name, settings in charts.items()}
    base, *others = charts

    def measure(batch: list[Row]) -> dict[str, Any]:
        sources, words = pool.read(batch), count_words(batch)
        space, added = sources.space, pool.kind.added_groups
        gold = pool.gold_candidates(batch, space)
        sigma, floor = charts[base].sigma, charts[base].floor
        compared = source_terms(pool.source_names, sources, words, gold, sigma=sigma, floor=floor)
        quality, distance = {}, {}
        softened = {each: sources.softened(each) for each in {one.temperature for one in charts.values()}}
        for name, settings in charts.items():
            soft = softened[settings.temperature]
            quality[name] = QualityTotals(added)
            quality[name].add(space, make_chart(soft, settings, weights[name]).allowed, gold)
            if settings.rule == "pool":
                distances = split_distance(
                    soft.log_marginals, gold, weights[name], settings.floor, valid=soft.valid
                )
                distance[name] = distance_terms(space, distances, gold, words, added)
        return {"sentences": len(batch), "quality": quality, "distance": distance, "compared": compared}

    totals = sum_over_batches(rows, measure, "measuring charts", batch_words)
    quality = {name: each.result() for name, each in totals["quality"].items()}
    settings = {name: asdict(each) for name, each in charts.items()}
    for each in settings.values():
        del each["keep_log_probs"]
    sources = mean_measures(totals["compared"])
    result = {
        "sentences": totals["sentences"],
        "words": totals["compared"]["words"],
        "charts": {name: settings[name] | each for name, each in quality.items()},
        "differences": {name: compare(quality[name], quality[base]) for name in others},
        "distance": {name: mean_distances(each) for name, each in totals["distance"].items()},
        "sources": sources,
        "selection": rank_correlations(sources, {name: each["right"] for name, each in sources.items()}),
    }
    return {key: finite(value) for key, value in result.items()}


def finite(value: Any) -> Any:
    """Replace numbers that JSON cannot represent by None, at any depth."""
    if isinstance(value, Mapping):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


class QualityTotals:
    """Size, precision and recall of one kind of chart over batches.

    `added` is the number of groups that the model adds at a sentence's start and end.
    """

    def __init__(self, added: tuple[int, int] = (0, 0)) -> None:
        self._added = added
        self._parts: dict[str, list[dict[str, Any]]] = {}

    def add(self, distribution: Structure, chart: Tensor, gold: Tensor) -> None:
        """Add a batch, given a chart, bool (B, G, C), and the right candidates (B, G).

        A gold candidate with an unknown label, -1, is in no structure and counts in denominators. The scores
        of the distribution do not matter.
        """
        for scope, counted in counted_groups(distribution, self._added).items():
            self._parts.setdefault(scope, []).append(_terms(distribution, chart, gold, counted))

    def __iadd__(self, other: Self) -> Self:
        """Add the charts of other sentences."""
        for scope, parts in other._parts.items():
            self._parts.setdefault(scope, []).extend(parts)
        return self

    def result(self) -> dict[str, Any]:
        """Return `median_log_size`, `empty_charts`, and `precision` and `recall` of both scopes."""
        totals = {scope: combine_quality(parts) for scope, parts in self._parts.items()}
        log_sizes = totals[SCOPES[0]]["log_size"].tolist()
        return {
            "median_log_size": median_log(log_sizes),
            "empty_charts": log_sizes.count(-math.inf),
            **by_scope({scope: {key: total[key] for key in RATIOS} for scope, total in totals.items()}),
        }


def _terms(distribution: Structure, chart: Tensor, gold: Tensor, counted: Tensor) -> dict[str, Any]:
    part = chart_quality(distribution, chart, gold.masked_fill(~counted, -1))
    unknown = (counted & (gold < 0)).sum(-1)
    if bool(unknown.any()):
        more = logsumexp(part["log_size"] + safe_log(unknown.double()), 0).item()
        part["log_precision_denominator"] = float(np.logaddexp(part["log_precision_denominator"], more))
        part["recall_denominator"] += int(unknown.sum())
    return part


def median_log(log_sizes: Iterable[float]) -> float:
    """Return the log of the median of numbers given by their logs."""
    ordered = sorted(log_sizes)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return low if low == high else float(np.logaddexp(low, high)) - math.log(2)


def compare(found: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """Compare two results of `QualityTotals`, as the paper's tables do.

    Returns:
        `size_ratio` of the median sizes, `log_size_ratio`, and by scope the differences of `precision` and
        `recall`; positive if `found` is higher.
    """
    both_empty = found["median_log_size"] == base["median_log_size"] == -math.inf
    ratio = math.nan if both_empty else found["median_log_size"] - base["median_log_size"]
    with np.errstate(over="ignore"):
        size_ratio = float(np.exp(ratio))
    differences = {scope: {key: found[scope][key] - base[scope][key] for key in RATIOS} for scope in SCOPES}
    return {"size_ratio": size_ratio, "log_size_ratio": ratio, **differences}


def size_text(log_size: float) -> str:
    """Format a number given by its log as in the paper's tables: 1.6e6; plain below a thousand."""
    if not math.isfinite(log_size):
        return "0" if log_size == -math.inf else "?"
    power = math.floor(log_size / math.log(10))
    if power < 3:
        return f"{math.exp(log_size):.3g}"
    mantissa = f"{math.exp(log_size - power * math.log(10)):.1f}"
    return f"1.0e{power + 1}" if mantissa == "10.0" else f"{mantissa}e{power}"


def counted_groups(distribution: Structure, added: tuple[int, int]) -> dict[str, Tensor]:
    """Mark the groups that count in each scope: bool (B, G) by name; one scope only if no group is added."""
    inside = distribution.valid.any(-1)
    scopes = {SCOPES[0]: inside}
    if any(added):
        group = torch.arange(inside.shape[1], device=inside.device)
        end = (distribution.group_lengths.to(inside.device) - added[1])[:, None]
        scopes[SCOPES[1]] = inside & (group >= added[0]) & (group < end)
    return scopes


def by_scope(found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return both scopes, which are the same if no group is added."""
    return {scope: found.get(scope, found[SCOPES[0]]) for scope in SCOPES}


def split_distance(
    log_marginals: Tensor,
    gold: Tensor,
    weights: Tensor | Sequence[float] | None = None,
    floor: float = 0.0,
    *,
    valid: Tensor | None = None,
) -> dict[str, Tensor]:
    """Return `kl`, `error` and `diversity` of every group; kl = error - diversity wherever both are finite.

    The floor is added to the sources. At floor 0 the error is infinite where a source of positive weight
    excludes gold, and the diversity where these sources share no support (there the pool is uniform over
    their best candidates, see `log_opinion_pool`).

    Args:
        log_marginals: (S, B, G, C), log-probabilities of S sources.
        gold: (B, G), index of the right candidate, -1 for none.
        weights: (S,), uniform by default.
        floor: see `log_opinion_pool`.
        valid: bool (B, G, C); defaults to what any source supports.

    Returns:
        (B, G) each, in nats, at least 0; 0 where there is no gold.
    """
    possible = (log_marginals > -torch.inf).any(0) if valid is None else valid
    place, known = gold.clamp(min=0)[..., None], gold >= 0
    pooled = log_opinion_pool(log_marginals, weights, floor, valid=possible)
    shares = normalised_weights(weights, log_marginals.shape[0], log_marginals)
    mixed = torch.zeros_like(pooled)
    for share, source in zip(shares, floored(log_marginals, floor, possible), strict=True):
        if share > 0:  # zero times minus infinity is NaN
            mixed = mixed + share * source
    found = {
        "kl": -pooled.gather(-1, place)[..., 0],
        "error": -mixed.gather(-1, place)[..., 0],
        "diversity": -logsumexp(mixed, -1),
    }
    return {name: value.clamp(min=0).masked_fill(~known, 0) for name, value in found.items()}


def distance_terms(
    distribution: Structure,
    distances: Mapping[str, Tensor],
    gold: Tensor,
    words: int,
    added: tuple[int, int] = (0, 0),
) -> dict[str, Any]:
    """Sum the results of `split_distance` over a batch of `words` words; see `mean_distances`.

    Groups whose gold label (B, G) is unknown are left out and counted. `added` is as in `QualityTotals`.
    """
    scopes: dict[str, dict[str, float]] = {}
    for scope, counted in counted_groups(distribution, added).items():
        known = counted & (gold >= 0)
        scopes[scope] = {"groups": int(counted.sum()), "known": int(known.sum())}
        scopes[scope] |= {term: float(distances[term].double()[known].sum()) for term in TERMS}
    return {"words": words, "impossible": int((distances["kl"] == torch.inf).sum()), "scopes": scopes}


def mean_distances(totals: Mapping[str, Any]) -> dict[str, Any]:
    """Return by scope `kl`, `error`, `diversity` per word, and per group under `per_group`.

    `totals` are sums of `distance_terms`. The averages over groups with known gold stand for the others.
    `impossible` counts groups in which the pool gives gold no probability, `unknown_gold` those with an
    unknown gold label.
    """
    found: dict[str, dict[str, Any]] = {}
    for scope, sums in totals["scopes"].items():
        means = {term: _ratio(sums[term], sums["known"]) for term in TERMS}
        groups = _ratio(sums["groups"], totals["words"])
        found[scope] = {term: mean * groups for term, mean in means.items()} | {"per_group": means}
    total = totals["scopes"][SCOPES[0]]
    unknown = total["groups"] - total["known"]
    return {**by_scope(found), "impossible": totals["impossible"], "unknown_gold": unknown}


def _ratio(part: float, whole: int) -> float:
    return part / whole if whole else math.nan
