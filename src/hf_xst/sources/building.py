"""Make charts from sources: all sources over a batch, pooled at once, written in shards, resumable."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from datasets import Dataset

from hf_xst.charts.chart import ChartSettings, make_chart
from hf_xst.charts.dataset import ROW_VERSION, ChartCounts, chart_features, to_ragged, words_hash
from hf_xst.charts.pooling import unsupported_groups
from hf_xst.console import progress
from hf_xst.data.layout import content_hash, rows_to_dataset
from hf_xst.files import atomic_path
from hf_xst.models.modeling import Row
from hf_xst.models.running import run_batches
from hf_xst.processes import alone, from_main, process_count, process_index, share
from hf_xst.records import from_mapping, read_json, write_json
from hf_xst.sources.pool import SourcePool

SHARD = 1000
BUILDING = "building.json"


class ChartMaker:
    """Make chart rows from sentences."""

    def __init__(self, pool: SourcePool, settings: ChartSettings) -> None:
        self.pool, self.settings = pool, settings
        self.weights = pool.weights(settings.weights)

    def __call__(self, rows: Sequence[Row]) -> tuple[list[dict[str, Any]], ChartCounts]:
        """Return a batch of rows with the columns of their charts, and counts."""
        sources = self.pool.read(rows).softened(self.settings.temperature)
        chart = make_chart(sources, self.settings, self.weights)
        groups = sources.space.group_lengths.tolist()
        source_best = sources.best.tolist()
        pool_best = sources.with_pooled(chart.pooled).best_candidates().tolist()
        kept = chart.kept.cpu()  # once, not for each sentence
        pooled = chart.pooled.cpu() if self.settings.keep_log_probs else [None] * len(rows)
        unsupported = 0
        if self.settings.rule == "pool":
            unsupported = int(unsupported_groups(sources.log_marginals, self.weights).sum())
        mass = self.pool.dropped_mass()
        counts = ChartCounts(len(rows), sum(groups), int(kept.sum()), unsupported, mass)
        return [
            {
                **row,
                **to_ragged(kept[index], groups[index], pooled[index]),
                "source_best": [candidates[index][: groups[index]] for candidates in source_best],
                "pool_best": pool_best[index][: groups[index]],
                "words_hash": words_hash(row["words"]),
                "format_version": ROW_VERSION,
            }
            for index, row in enumerate(rows)
        ], counts


def build_shards(
    rows: Dataset,
    make: ChartMaker,
    output: Path,
    identity: Mapping[str, Any],
    *,
    batch_words: int,
    shard_size: int = SHARD,
) -> ChartCounts:
    """Write charts for all rows as `data/train-*.parquet`; complete shards are kept.

    `identity` is everything that the charts depend on besides the sentences. Returned are the counts over all
    shards, including those of an earlier run.

    Raises:
        ValueError: the folder holds charts with another identity; the message lists the differences.
    """
    shards = max(1, -(-len(rows) // shard_size))
    content = {**identity, "shard_size": shard_size, "text": content_hash(rows)}
    from_main(lambda: _begin(output / "run" / BUILDING, json.loads(json.dumps(content))))
    files = [(output / "data" / f"train-{shard:05d}-of-{shards:05d}.parquet") for shard in range(shards)]
    counts_of = [output / "run" / "shards" / f"{file.stem}.json" for file in files]
    missing = from_main(
        lambda: [
            shard for shard in range(shards) if not (files[shard].exists() and counts_of[shard].exists())
        ]
    )
    features = chart_features(rows.features)
    with progress("making charts", len(rows)) as advance:
        advance((shards - len(missing)) * shard_size // process_count())

        def make_shard(shard: int) -> None:
            begin, end = shard * shard_size, min((shard + 1) * shard_size, len(rows))
            charts: dict[int, dict[str, Any]] = {}
            counts = ChartCounts()
            windows = run_batches(rows.select(range(begin, end)), make, batch_words, shard_size, advance)
            for batch, (made, counted) in chain.from_iterable(windows):
                charts.update(zip(batch, made, strict=True))
                counts += counted
            if process_index():  # only the main process writes what all have made together
                return
            with atomic_path(files[shard]) as aside:
                ordered = [charts[index] for index in range(end - begin)]
                rows_to_dataset(ordered, features).to_parquet(str(aside))
            write_json(counts_of[shard], counts)

        # Each process makes whole shards as long as there is one for each; they share those that remain.
        whole = len(missing) // process_count() * process_count()
        share(missing[:whole], alone()(make_shard))
        for shard in missing[whole:]:
            make_shard(shard)
    records = from_main(lambda: [read_json(path) for path in counts_of])
    counts = (from_mapping(ChartCounts, *each) for each in zip(records, map(str, counts_of), strict=True))
    return sum(counts, ChartCounts())


def _begin(path: Path, identity: dict[str, Any]) -> None:
    """Record what charts depend on, or check it if they were begun before."""
    if not path.exists():
        write_json(path, {"identity": identity})  # marks the folder as ours
        return
    begun = read_json(path).get("identity", {})
    differing = [key for key in {**begun, **identity} if begun.get(key) != identity.get(key)]
    if differing:
        raise ValueError(
            f"{path.parent.parent} holds charts that differ in: {', '.join(differing)}; choose another "
            "--output, or remove that folder to make them again"
        )
