"""The folder of charts: shards as a data set, and where they come from; here or on the Hub."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from datasets import Dataset, load_dataset
from huggingface_hub import snapshot_download

from hf_xst.charts.storage import FORMAT_VERSION
from hf_xst.files import write_text
from hf_xst.remote import HUB_ERRORS, located, reason
from hf_xst.training.runs import CHARTS

PROVENANCE = CHARTS
DATA = "data"
SHARDS = "train-*.parquet"


def write_provenance(folder: Path, provenance: Mapping[str, Any]) -> None:
    """Write down what charts were made from."""
    write_text(folder / PROVENANCE, json.dumps(provenance, indent=1, ensure_ascii=False) + "\n")


def shards_in(folder: Path) -> list[Path]:
    """Return the files of charts in a folder, in order."""
    return sorted((folder / DATA).glob(SHARDS))


def load_charts(path: str, revision: str | None = None) -> tuple[Dataset, dict[str, Any]]:
    """Load charts and their provenance from a folder or the Hub.

    Args:
        path: a folder, or a data set's id with or without `@REVISION`.
        revision: the revision, if it is not part of the id.

    Raises:
        ValueError: there are no charts, some are missing, or their format is newer than this package.
    """
    rows, place = _local_charts(Path(path) if Path(path).is_dir() else _fetched(path, revision), path)
    provenance: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    if provenance["format_version"] > FORMAT_VERSION:
        raise ValueError(
            f"{path} has format {provenance['format_version']}, this package reads formats up to "
            f"{FORMAT_VERSION}; update it"
        )
    expected = provenance["counts"]["sentences"]
    if len(rows) != expected:
        raise ValueError(
            f"{path} holds charts of {len(rows)} sentences, but {expected} were made; files are missing or "
            "of another run: copy the folder again, or repeat the command that made it"
        )
    return rows, provenance


def _local_charts(folder: Path, name: str) -> tuple[Dataset, Path]:
    place = folder / PROVENANCE
    files = [str(path) for path in shards_in(folder)]
    if not place.exists() or not files:
        lacking = PROVENANCE if not place.exists() else f"{DATA}/{SHARDS}"
        raise ValueError(
            f"{name} has no {lacking}: build-charts has not ended there (repeat it), or it holds no charts"
        )
    return load_dataset("parquet", data_files={"train": files}, split="train"), place


def _fetched(path: str, revision: str | None) -> Path:
    """Bring a data set's charts from the Hub, or from the cache if the Hub is out of reach."""
    name, revision = located(path, revision)
    wanted = [PROVENANCE, f"{DATA}/{SHARDS}"]
    try:
        return Path(snapshot_download(name, repo_type="dataset", revision=revision, allow_patterns=wanted))
    except HUB_ERRORS as error:
        why = reason(error, name, "dataset", revision)
        raise ValueError(
            f"no charts {path}: it is neither a folder on this machine nor within reach on the Hub: {why}"
        ) from error
