"""Columns of a chart data set that a person can read, beside the compact indices."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from datasets import Dataset, Features, List, Value, load_dataset

from hf_xst.charts.dataset import shards_in
from hf_xst.files import atomic_path
from hf_xst.models.kinds import model_class


def with_readable_columns(rows: Dataset, provenance: Mapping[str, Any]) -> Dataset:
    """Add what is allowed by name, for each word a list of strings; the indices stay.

    What is allowed is what was kept of the pool, and each source's best structure.

    Args:
        rows: chart rows, see `hf_xst.charts.dataset`.
        provenance: says the alphabet and the type of the models.

    Raises:
        ValueError: the type of models is unknown.
    """
    names, kind = provenance["names"], model_class(provenance["model_type"])

    def spell(row: dict[str, Any]) -> dict[str, Any]:
        return {**kind.readable_candidates(row["words"], allowed_candidates(row), names)}

    added = dict.fromkeys(kind.readable_candidates([], [], names), List(List(Value("string"))))
    features = Features({**{key: rows.features[key] for key in rows.features if key not in added}, **added})
    return rows.remove_columns([key for key in added if key in rows.features]).map(spell, features=features)


def allowed_candidates(row: Mapping[str, Any]) -> list[list[int]]:
    """Give each group's candidates in a chart row, each source's best among them, ascending."""
    offsets, candidates = row["offsets"], row["candidates"]
    bests = row["source_best"]
    return [
        sorted({*candidates[start:end], *(best[group] for best in bests if best[group] >= 0)})
        for group, (start, end) in enumerate(pairwise(offsets))
    ]


def spell_out(folder: Path, provenance: Mapping[str, Any]) -> None:
    """Replace the files of charts in a folder by ones with readable columns."""
    for file in shards_in(folder):
        rows = load_dataset("parquet", data_files={"train": [str(file)]}, split="train")
        with atomic_path(file) as aside:
            with_readable_columns(rows, provenance).to_parquet(str(aside))
