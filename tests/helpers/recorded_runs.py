"""Save models, charts and records of runs in folders, as the commands do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from helpers.small_models import charts, gold, model_of
from hf_xst.charts.chart import ChartSettings
from hf_xst.charts.dataset import ChartCounts, ChartInfo, ChartSource, chart_features
from hf_xst.models.modeling import StructuredModel

PARSER = "hf_xst_biaffine_parser"
TYPES = {"parser": PARSER, "tagger": "hf_xst_crf_tagger", "groups": "test_independent_groups"}


def save_model(folder: Path, kind: str = "parser", seed: int = 0, **changes: Any) -> StructuredModel:
    model = model_of(kind, seed, **changes)
    model.save_pretrained(folder)
    return model


def record_run(folder: Path, **config: Any) -> Path:
    """Record a training run with these options, by default without any training data."""
    (folder / "run").mkdir(parents=True, exist_ok=True)
    (folder / "run" / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    return folder


def save_charts(folder: Path, kind: str = "parser", lengths: tuple[int, ...] = (1, 3, 4, 2)) -> None:
    names, settings = model_of(kind, 1).names, ChartSettings(sigma=0.6)
    rows = charts(kind, gold(lengths), settings, names)
    rows = rows.cast(chart_features(rows.features))
    (folder / "data").mkdir(parents=True, exist_ok=True)
    rows.to_parquet(str(folder / "data" / "train-00000-of-00001.parquet"))
    groups = sum(len(row["offsets"]) - 1 for row in rows)
    kept = sum(len(row["candidates"]) for row in rows)
    ChartInfo(
        model_type=TYPES[kind],
        names=names,
        sources=[ChartSource(name, weights_sha256="0" * 64) for name in ("source1", "source2")],
        settings=settings,
        initial_model="source1",
        vectors={"name": "tiny", "sha256": "0" * 64},
        sentences="4 sentences kept",
        counts=ChartCounts(len(rows), groups, kept),
        versions={"hf_xst": "0.1.0", "torch": torch.__version__},
    ).save(folder)
