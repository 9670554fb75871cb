"""Files turned into data sets once, and found again by what the files hold."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import datasets.config
from datasets import Dataset, Features
from datasets.arrow_writer import ArrowWriter

from hf_xst.files import atomic_path, sha256_of

_ROWS_AT_ONCE = 1000
_LAYOUT_VERSION = (
    1  # raised whenever the same file would give other rows, so that old cache files are not found
)


def cached_dataset(
    path: str | os.PathLike[str],
    rows: Callable[[], Iterable[dict[str, Any]]],
    features: Features,
    *,
    kind: str,
    cache_dir: str | os.PathLike[str] | None = None,
) -> Dataset:
    """Give the rows of a file as a memory-mapped data set, built at most once for the same bytes and name.

    An edited file has other bytes, so it is built anew. Rows are streamed to the cache: memory does not grow
    with the file, and a build that fails leaves nothing behind.

    Args:
        path: the file.
        rows: reads the file.
        features: the schema, never inferred from the rows.
        kind: the reader, a folder of the cache.
        cache_dir: the cache, by default a folder within the cache of `datasets`.
    """
    root = Path(datasets.config.HF_DATASETS_CACHE if cache_dir is None else cache_dir)
    seed = f"{_LAYOUT_VERSION} {Path(path).name} {sha256_of(path)} {features}"
    built = root / "hf_xst" / kind / hashlib.sha256(seed.encode()).hexdigest()[:32] / "rows.arrow"
    if not built.exists():
        with atomic_path(built) as aside:
            _write(rows(), features, aside)
    return Dataset.from_file(str(built))


def _write(rows: Iterable[dict[str, Any]], features: Features, path: Path) -> None:
    stream = iter(rows)
    with ArrowWriter(features=features, path=str(path)) as writer:
        while batch := list(islice(stream, _ROWS_AT_ONCE)):
            writer.write_batch({name: [row[name] for row in batch] for name in features})
        writer.finalize()
