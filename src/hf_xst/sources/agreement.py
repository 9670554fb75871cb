"""Rank and weight sources without labels.

Each measure compares a source with the pool of all the others, or looks at its own confidence. Sources that
suit a language tend to agree with each other; those that do not err in different ways.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import yaml
from datasets import Dataset
from scipy import stats
from torch import Tensor

from hf_xst.charts import log_opinion_pool
from hf_xst.charts.chart import FLOOR, SIGMA, SourceDistributions, candidates_mask
from hf_xst.charts.pooling import floored
from hf_xst.console import progress
from hf_xst.files import write_text
from hf_xst.models.configuration import check_names
from hf_xst.models.modeling import Row
from hf_xst.models.running import BATCH_WORDS, run_batches
from hf_xst.records import checked
from hf_xst.sources.pool import SourcePool

Measure = Literal["agreement", "divergence", "entropy", "chart_size"]
MEASURES: dict[str, int] = {"agreement": 1, "divergence": -1, "entropy": -1, "chart_size": -1}
"""Measures without labels, and whether a higher (1) or lower (-1) value ranks a source higher."""
SELECTION_SENTENCES = 300
"""Sentences on which sources are compared."""
AGREEMENT_POWER = 4
"""Pool weights are proportional to this power of the agreement: outlier sources get small weights."""
EXACT_POINTS = 7
"""Up to this many points, rank correlations get an exact p-value, over all orders."""


def add_totals(totals: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Add values by name, also in nested mappings; what is missing in `totals` is taken over."""
    for name, value in more.items():
        if isinstance(value, Mapping):
            add_totals(totals.setdefault(name, {}), value)
        elif name in totals:
            totals[name] += value
        else:
            totals[name] = value


def source_terms(
    names: Sequence[str],
    batch: SourceDistributions,
    words: int,
    gold: Tensor | None = None,
    *,
    sigma: float = SIGMA,
    floor: float = FLOOR,
) -> dict[str, Any]:
    """Sum the measures of each source over a batch of `words` words; see `mean_measures`.

    `sigma` is the mass that a source's own chart keeps, `floor` is added to marginals before the logarithm.
    With gold (B, G), groups in which a source is right are counted too.
    """
    inside = batch.valid.any(-1)
    groups = int(inside.sum())
    space = batch.space.with_scores(torch.zeros_like(batch.space.scores))
    log_probs = floored(batch.log_marginals, floor, batch.valid) if len(names) > 1 else None
    sources: dict[str, dict[str, float]] = {}
    for index, (name, best, kept) in enumerate(zip(names, batch.best, batch.kept(sigma), strict=True)):
        allowed = kept | candidates_mask(best, batch.valid)
        size = space.restricted_to(space.part_view(allowed)).log_partition()
        size = size.masked_fill((inside & (best < 0)).any(-1), -math.inf)  # empty space
        sources[name] = {
            "entropy": float(batch.entropy[index].sum(dtype=torch.float64)),
            "chart_size": float(size[size > -torch.inf].sum(dtype=torch.float64)),
        }
        if gold is not None:
            sources[name]["right"] = int(((best == gold) & (gold >= 0)).sum())
        if log_probs is not None:
            others = [other for other in range(len(names)) if other != index]
            pooled = log_opinion_pool(log_probs[others], valid=batch.valid)
            probs = pooled.exp()
            agreed = probs.gather(-1, best.clamp(min=0)[..., None])[..., 0].masked_fill(best < 0, 0)
            divergence = torch.where(probs > 0, probs * (pooled - log_probs[index]), 0.0)
            sources[name]["agreement"] = float(agreed[inside].sum(dtype=torch.float64))
            sources[name]["divergence"] = float(divergence.sum(dtype=torch.float64))
    return {"words": words, "groups": groups, "judged": 0 if gold is None else groups, "sources": sources}


def mean_measures(totals: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return the measures of each source, given sums of `source_terms`.

    `agreement`, the probability that the pool of the others gives to the source's best candidates, and
    `divergence`, the Kullback-Leibler divergence of that pool from the source, are averages over groups (NaN
    for a single source); `entropy` of the source and `chart_size`, the log of the number of structures in its
    own chart, are in nats per word; with gold, `right` is the share of groups whose best candidate is right.
    """
    measures = {}
    groups, words = max(1, totals["groups"]), max(1, totals["words"])
    for name, sums in totals["sources"].items():
        measures[name] = {
            "agreement": sums.get("agreement", math.nan) / groups,
            "divergence": sums.get("divergence", math.nan) / groups,
            "entropy": sums["entropy"] / words,
            "chart_size": sums["chart_size"] / words,
        }
        if totals["judged"]:
            measures[name]["right"] = sums["right"] / totals["judged"]
    return measures


def sum_over_batches(
    rows: Dataset | Sequence[Row],
    measure: Callable[[list[Row]], Mapping[str, Any]],
    task: str,
    batch_words: int,
) -> dict[str, Any]:
    """Add up what `measure` returns for each batch of similar length, see `add_totals`, under a progress bar.

    Several processes share the batches; memory stays constant. An empty input raises ValueError.
    """
    if not len(rows):
        raise ValueError(f"{task} requires sentences; the input is empty")
    totals: dict[str, Any] = {}
    with progress(task, len(rows)) as advance:
        for batches in run_batches(rows, measure, batch_words, advance=advance):
            for _, measured in batches:
                add_totals(totals, measured)
    return totals


def count_words(rows: Sequence[Row]) -> int:
    """Return the number of words of some rows."""
    return sum(len(row["words"]) for row in rows)


def measure_sources(
    pool: SourcePool,
    rows: Dataset | Sequence[Row],
    *,
    sigma: float = SIGMA,
    floor: float = FLOOR,
    batch_words: int = BATCH_WORDS,
) -> dict[str, dict[str, float]]:
    """Compute the measures of `mean_measures` on prepared rows; raise ValueError if there is no sentence."""

    def measure(batch: list[Row]) -> dict[str, Any]:
        return source_terms(pool.source_names, pool.read(batch), count_words(batch), sigma=sigma, floor=floor)

    return mean_measures(sum_over_batches(rows, measure, "comparing sources", batch_words))


def rank_sources(measures: Mapping[str, Mapping[str, float | None]], measure: str = "agreement") -> list[str]:
    """Rank sources by one of `MEASURES` (ValueError for any other), best first; ties keep their order."""
    checked(Measure, measure, "measure")

    def rank(name: str) -> float:
        value = measures[name][measure]
        return -math.inf if value is None or math.isnan(value) else MEASURES[measure] * value

    return sorted(measures, key=rank, reverse=True)


def select_sources(
    pool: SourcePool, rows: Dataset | Sequence[Row], count: int, measure: str = "agreement", **settings: Any
) -> list[str]:
    """Return the names of the `count` sources that rank highest on unlabelled sentences, best first.

    Raises:
        ValueError: the measure is unknown, there are fewer sources, or there is no sentence.
    """
    names = pool.source_names
    if not 1 <= count <= len(names):
        raise ValueError(f"cannot select {count} of {len(names)} sources: {', '.join(names)}")
    checked(Measure, measure, "measure")  # before the work
    return rank_sources(measure_sources(pool, rows, **settings), measure)[:count]


def agreement_weights(measures: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return pool weights proportional to the agreement of each source to the power `AGREEMENT_POWER`.

    They sum to 1 up to rounding to six digits, so that machines that differ in the last bit of a sum agree;
    they are equal if no source agrees with any other.
    """
    powers = {name: max(each["agreement"], 0.0) ** AGREEMENT_POWER for name, each in measures.items()}
    total = sum(powers.values())
    if math.isnan(total) or total <= 0:
        return dict.fromkeys(measures, 1 / len(measures))
    return {name: round(power / total, 6) for name, power in powers.items()}


def read_weights(path: str) -> dict[str, float]:
    """Read a YAML file with one `NAME: WEIGHT` per line; raise ValueError if it has another form."""
    # Nodes are read as text: YAML itself takes a source called `no` for a truth value.
    try:
        root: Any = yaml.compose(Path(path).read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
        for key, value in root.value if isinstance(root, yaml.MappingNode) else ():
            if key.value == "weights" and isinstance(value, yaml.MappingNode):
                root = value
        if not isinstance(root, yaml.MappingNode):
            raise ValueError("found no such line")
        check_names("it", [key.value for key, _ in root.value])
        return {key.value: float(value.value) for key, value in root.value}
    except (yaml.YAMLError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: expected YAML with one NAME: WEIGHT per line ({error})") from error


def write_weights(path: str | Path, weights: Mapping[str, float]) -> None:
    """Write a file for `read_weights`."""
    write_text(path, yaml.safe_dump(dict(weights), sort_keys=False, allow_unicode=True))


def rank_correlations(
    measures: Mapping[str, Mapping[str, float | None]], truth: Mapping[str, float]
) -> dict[str, dict[str, Any]]:
    """Compare the ranking by each measure, see `mean_measures`, with that by true scores, higher is better.

    Returns:
        By measure: Spearman's `rho`, signed so that 1 is the true order, its `p` and number `n` of sources;
        the source `chosen` first, the truly `best` one, and the `regret`, the score lost by that choice.
    """
    best = max(measures, key=lambda name: truth[name])
    table = {}
    for measure, sign in MEASURES.items():
        values = {name: measures[name][measure] for name in measures}
        usable = {name: v * sign for name, v in values.items() if v is not None and math.isfinite(v)}
        rho, p = spearman(list(usable.values()), [truth[name] for name in usable])
        chosen = rank_sources(measures, measure)[0]
        table[measure] = {
            "rho": rho,
            "p": p,
            "n": len(usable),
            "chosen": chosen,
            "best": best,
            "regret": truth[best] - truth[chosen],
        }
    return table


def spearman(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Return the rank correlation and its two-sided p-value; NaN for under three points or constant lists.

    For few points p is exact, over all orders; the usual approximation is far off there.
    """
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan, math.nan
    result = stats.spearmanr(x, y)
    if len(x) > EXACT_POINTS:
        return float(result.statistic), float(result.pvalue)
    first, second = (ranks - ranks.mean() for ranks in (stats.rankdata(x), stats.rankdata(y)))
    orders = second[np.array(list(permutations(range(len(x)))))]
    exact = float((np.abs(orders @ first) >= abs(first @ second) - 1e-9).mean())
    return float(result.statistic), exact
