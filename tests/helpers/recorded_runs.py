"""Models and charts in folders, as the commands write them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from helpers.small_models import charts, gold, model_of
from hf_xst.charts.dataset import FORMAT_VERSION, ChartSettings
from hf_xst.models.modeling import StructuredModel

PARSER = "hf_xst_biaffine_parser"
TYPES = {"parser": PARSER, "tagger": "hf_xst_crf_tagger", "groups": "test_independent_groups"}


def save_model(folder: Path, kind: str = "parser", seed: int = 0, **changes: Any) -> StructuredModel:
    model = model_of(kind, seed, **changes)
    model.save_pretrained(folder)
    return model


def record_run(folder: Path, **config: Any) -> Path:
    """Let a model have been made by a run that has read this, by default nothing."""
    (folder / "run").mkdir(parents=True, exist_ok=True)
    (folder / "run" / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    return folder


def save_charts(folder: Path, kind: str = "parser", lengths: tuple[int, ...] = (1, 3, 4, 2)) -> None:
    names = model_of(kind, 1).names
    rows = charts(kind, gold(lengths), ChartSettings(sigma=0.6), names)
    (folder / "data").mkdir(parents=True, exist_ok=True)
    rows.to_parquet(str(folder / "data" / "train-00000-of-00001.parquet"))
    provenance = {
        "format_version": FORMAT_VERSION,
        "model_type": TYPES[kind],
        "names": names,
        "labels": "start",
        "start": "source1",
        "sources": [
            {
                "name": name,
                "id": None,
                "revision": None,
                "weights_sha256": "0" * 64,
                "labels_not_in_charts": [],
            }
            for name in ("source1", "source2")
        ],
        "vectors": {"name": "tiny", "sha256": "0" * 64},
        "annotated_by_model": False,
        **asdict(ChartSettings(sigma=0.6)),
        "sentences": "4 sentences kept",
        "counts": {
            "sentences": len(rows),
            "groups": sum(len(row["offsets"]) - 1 for row in rows),
            "kept": sum(len(row["candidates"]) for row in rows),
            "without_support": 0,
            "dropped_mass": {},
        },
        "versions": {"hf_xst": "0.1.0", "torch": torch.__version__},
    }
    (folder / "provenance.json").write_text(json.dumps(provenance), encoding="utf-8")
