"""One pass over gold sentences that measures charts, pools and sources at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from datasets import Dataset
from torch import Tensor

from hf_xst.charts.dataset import ChartSettings
from hf_xst.models.modeling import Row
from hf_xst.models.running import BATCH_WORDS
from hf_xst.sources.agreement import SourceMeasures, rank_correlations
from hf_xst.sources.divergence import DistanceTotals, split_distance
from hf_xst.sources.opinions import SourceBatch, for_each_batch
from hf_xst.sources.pool import SourcePool
from hf_xst.sources.quality import QualityTotals, compare


def standard_charts(
    sigma: float = 0.95, floor: float = 1e-9, learned: Mapping[str, float] | None = None
) -> dict[str, ChartSettings]:
    """Name the charts that the paper compares: `union`, `pool` and, with weights, `pool learned`."""
    charts = {
        "union": ChartSettings("union", sigma, floor),
        "pool": ChartSettings("pool", sigma, floor),
    }
    if learned is not None:
        charts["pool learned"] = ChartSettings("pool", sigma, floor, learned)
    return charts


def describe(
    pool: SourcePool,
    rows: Dataset | Sequence[Row],
    charts: Mapping[str, ChartSettings] | None = None,
    *,
    batch_words: int = BATCH_WORDS,
) -> dict[str, Any]:
    """Measure charts, pools and sources on sentences with gold, batch by batch.

    Args:
        pool: the sources; its alphabet is that of the charts.
        rows: prepared rows with gold.
        charts: the kinds of charts to measure, by name; `standard_charts()` by default. The first one is what
            the others are compared with.
        batch_words: see `hf_xst.models.running`.

    Returns:
        `sentences`, `words`; by name `charts` (settings, `median_log_size`, `empty_charts`, `precision` and
        `recall` by scope), `differences` from the first kind (`size_ratio`, `precision`, `recall`) and, for
        pools, `distance` (`kl`, `error`, `diversity` by scope, a word and a group); `sources` (label-free
        measures and the share `right`), and `selection`, how well each of the measures orders the sources by
        that share. The scopes are `with_boundaries` and `without_boundaries`: whether groups that the model
        adds at the ends of sentences count. Numbers that are not finite are None.

    Raises:
        ValueError: there is no sentence, rows hold no gold, or weights do not fit the sources.
    """
    description = Description(pool, standard_charts() if charts is None else charts)
    for_each_batch(rows, description.add, "measuring charts", batch_words)
    return description.result()


class Description:
    """The measures of `describe`, added up over batches.

    Args:
        pool: the sources.
        charts: the kinds of charts by name, at least one.

    Raises:
        ValueError: there is no kind of chart, or weights do not fit the sources.
    """

    def __init__(self, pool: SourcePool, charts: Mapping[str, ChartSettings]) -> None:
        if not charts:
            raise ValueError("no kind of chart is named, so there is nothing to measure")
        added = pool.sources[0].model.added_groups
        first = next(iter(charts.values()))
        self.pool, self.charts = pool, dict(charts)
        self.weights = {name: pool.weights(settings.weights) for name, settings in charts.items()}
        self.quality = {name: QualityTotals(added) for name in charts}
        self.distance = {name: DistanceTotals(added) for name, each in charts.items() if each.rule == "pool"}
        self.sources = SourceMeasures([source.name for source in pool.sources], first.sigma, first.floor)
        self.sentences = self.words = 0

    def add(self, rows: Sequence[Row]) -> None:
        """Measure a batch of rows with gold."""
        batch = SourceBatch.read(self.pool, rows)
        gold = self.pool.gold_candidates(rows, batch.sources[0])
        self.sentences += len(rows)
        self.words += batch.words
        self.sources.add(batch, gold)
        for temperature in sorted({settings.temperature for settings in self.charts.values()}):
            softened = batch.softened(temperature)
            for name, settings in self.charts.items():
                if settings.temperature == temperature:
                    self._measure(name, softened, gold)

    def _measure(self, name: str, batch: SourceBatch, gold: Tensor) -> None:
        settings, weights, space = self.charts[name], self.weights[name], batch.sources[0]
        self.quality[name].add(space, batch.chart(settings, weights), gold)
        if name in self.distance:
            found = split_distance(batch.log_marginals, gold, weights, settings.floor, valid=batch.valid)
            self.distance[name].add(space, found, gold, batch.words)

    def result(self) -> dict[str, Any]:
        """Return what `describe` returns."""
        quality = {name: totals.result() for name, totals in self.quality.items()}
        base, *others = quality
        sources = self.sources.result()
        found = {
            "sentences": self.sentences,
            "words": self.words,
            "charts": {name: _settings(self.charts[name]) | found for name, found in quality.items()},
            "differences": {name: compare(quality[name], quality[base]) for name in others},
            "distance": {name: totals.result() for name, totals in self.distance.items()},
            "sources": sources,
            "selection": rank_correlations(sources, {name: each["right"] for name, each in sources.items()}),
        }
        return {key: finite(value) for key, value in found.items()}


def _settings(settings: ChartSettings) -> dict[str, Any]:
    return {
        "rule": settings.rule,
        "sigma": settings.sigma,
        "floor": settings.floor,
        "temperature": settings.temperature,
        "weights": None if settings.weights is None else dict(settings.weights),
    }


def finite(value: Any) -> Any:
    """Replace numbers that JSON does not know by None, at any depth."""
    if isinstance(value, Mapping):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
