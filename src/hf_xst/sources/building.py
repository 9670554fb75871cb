"""Making charts: all sources over a batch, pooled at once, written in shards, resumable."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from datasets import Dataset

from hf_xst.charts.dataset import FORMAT_VERSION, ChartSettings, chart_features, to_ragged, words_hash
from hf_xst.charts.pooling import unsupported_groups
from hf_xst.console import progress
from hf_xst.data.layout import content_hash, rows_to_dataset
from hf_xst.files import atomic_path, write_text
from hf_xst.models.modeling import Row
from hf_xst.models.running import in_batches
from hf_xst.sources.opinions import SourceBatch
from hf_xst.sources.pool import SourcePool

SHARD = 1000
STATE_FILE = "run/building.json"


@dataclass
class BuildCounts:
    """What was met while charts were made; adds up over shards."""

    sentences: int = 0
    groups: int = 0
    kept: int = 0
    without_support: int = 0
    dropped_mass: dict[str, float] = field(default_factory=dict)

    def add(self, other: Mapping[str, Any]) -> None:
        """Add another shard's counts."""
        self.sentences += other["sentences"]
        self.groups += other["groups"]
        self.kept += other["kept"]
        self.without_support += other["without_support"]
        for name, mass in other["dropped_mass"].items():
            self.dropped_mass[name] = self.dropped_mass.get(name, 0.0) + mass


class ChartMaker:
    """Make chart rows out of sentences.

    Args:
        pool: the sources.
        settings: the rule and its parameters.
    """

    def __init__(self, pool: SourcePool, settings: ChartSettings) -> None:
        self.pool, self.settings = pool, settings
        self.weights = pool.weights(settings.weights)
        self.counts = BuildCounts()

    def __call__(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """Return the chart columns of a batch of rows."""
        batch = SourceBatch.read(self.pool, rows).softened(self.settings.temperature)
        first = batch.sources[0]
        pooled = batch.pooled(self.settings, self.weights)
        kept = batch.allowed(self.settings, self.weights)
        if self.settings.rule == "pool":
            self.counts.without_support += int(unsupported_groups(batch.log_marginals, self.weights).sum())
        pool_best = first.with_scores(first.part_view(pooled)).best_candidates()
        groups = first.group_lengths.tolist()
        stored = pooled if self.settings.keep_log_probs else None
        self.counts.sentences += len(rows)
        self.counts.groups += sum(groups)
        self.counts.kept += int(kept.sum())
        return [
            {
                **row,
                **to_ragged(kept[place], groups[place], None if stored is None else stored[place]),
                "source_best": [candidates[place, : groups[place]].tolist() for candidates in batch.best],
                "pool_best": pool_best[place, : groups[place]].tolist(),
                "words_hash": words_hash(row["words"]),
                "format_version": FORMAT_VERSION,
            }
            for place, row in enumerate(rows)
        ]

    def take_counts(self) -> dict[str, Any]:
        """Return the counts since the last call."""
        counts, self.counts = self.counts, BuildCounts()
        for source in self.pool.sources:
            if source.relabelling.dropped:
                counts.dropped_mass[source.name] = source.dropped_mass
                source.dropped_mass = 0.0
        return asdict(counts)


def build_shards(
    rows: Dataset,
    make: ChartMaker,
    output: Path,
    identity: Mapping[str, Any],
    *,
    batch_words: int,
    shard_size: int = SHARD,
) -> BuildCounts:
    """Write charts for all rows as `data/train-*.parquet`; what is already there is kept.

    Args:
        rows: sentences in the prepared layout, without gold.
        make: makes the chart rows of a batch.
        output: the charts' folder.
        identity: all that the charts depend on beside the sentences; a folder begun with another identity is
            refused.
        batch_words: see `length_batches`.
        shard_size: sentences of a shard.

    Returns:
        Counts over all shards, also those that a former run wrote.

    Raises:
        ValueError: the folder holds (part of) charts made otherwise; the message says what differs.
    """
    shards = max(1, -(-len(rows) // shard_size))
    content = {**identity, "shard_size": shard_size, "text": content_hash(rows)}
    state = _begun_state(output / STATE_FILE, json.loads(json.dumps(content)))
    features = chart_features(rows.features)
    make.take_counts()
    with progress("making charts", len(rows)) as advance:
        for shard in range(shards):
            name = f"train-{shard:05d}-of-{shards:05d}.parquet"
            part = range(shard * shard_size, min((shard + 1) * shard_size, len(rows)))
            if name not in state["shards"] or not (output / "data" / name).exists():
                made = list(in_batches((rows[i] for i in part), _advancing(make, advance), batch_words))
                with atomic_path(output / "data" / name) as aside:
                    rows_to_dataset(made, features).to_parquet(str(aside))
                state["shards"][name] = make.take_counts()
                write_text(output / STATE_FILE, json.dumps(state))
            else:
                advance(len(part))
    counts = BuildCounts()
    for shard_counts in state["shards"].values():
        counts.add(shard_counts)
    return counts


def _advancing(
    make: Callable[[list[Row]], list[dict[str, Any]]], advance: Callable[[int], None]
) -> Callable[[list[Row]], list[dict[str, Any]]]:
    def run(batch: list[Row]) -> list[dict[str, Any]]:
        made = make(batch)
        advance(len(batch))
        return made

    return run


def _begun_state(path: Path, identity: dict[str, Any]) -> dict[str, Any]:
    if not path.exists():
        return {"identity": identity, "shards": {}}
    state: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    begun = state["identity"]
    differing = [key for key in {**begun, **identity} if begun.get(key) != identity.get(key)]
    if differing:
        raise ValueError(
            f"{path.parent.parent} holds charts that differ in: {', '.join(differing)}; "
            "choose another --output, or remove that folder to make them anew"
        )
    return state
