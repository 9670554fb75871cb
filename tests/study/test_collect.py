"""Collect the results of jobs as scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from collect import collect

SOURCE = {
    "dev": {"eval_las": 80.0, "eval_uas": 85.0, "eval_loss": 1.5, "eval_runtime": 9.0, "epoch": 3.0},
    "best_dev": 81.0,
    "train_sentences": 900,
    "dev_sentences": 100,
    "updates": 1000,
}
MODEL = {"sentences": 60, "l2": 0.5, "empty_charts": 2, "dev": {"eval_accuracy": 70.0}}
LOG = [
    {"step": 10, "loss": 2.0, "learning_rate": 0.1},
    {"step": 20, "eval_accuracy": 65.0},
    {"step": 40, "eval_accuracy": 70.0},
]
COUNTS = {"sentences": 50, "groups": 500, "kept": 800, "without_support": 0, "dropped_mass": {"fr": 1.5}}
CHARTS = {"counts": COUNTS, "sentences": "50 of 60 sentences kept, 10 over 30 tokens"}
SCOPES = {
    scope: {"precision": 0.4, "recall": 0.9, "kl": 1.0, "error": 1.5, "diversity": 0.5}
    for scope in ("with_boundaries", "without_boundaries")
}
ANALYSIS = {
    "data": "dev=fo-dev.conllu dev: 81 of 100 sentences kept",
    "sentences": 81,
    "words": 900,
    "charts": {"union": {"median_log_size": 25.0, "empty_charts": 0, **SCOPES}},
    "distance": {"pool learned": {**SCOPES, "unknown_gold": 3, "impossible": 0}},
    "sources": {"en": {"agreement": 0.5, "entropy": None, "right": 0.7}},
}
WEIGHTS = {
    "weights": {"en": 0.25, "de": 0.75},
    "nll": {"uniform": 1.5, "learned": 1.25, "alone": {"en": 2.0, "de": 1.75}},
    "sentences": 50,
    "words": 600,
    "groups": 650,
    "left_out": 1,
}
OTHER = {
    "published": {"en": 0.5, "de": 0.5},
    "published_updates": 1,
    "grouped": {"en": {"bias": 0.5, "negative_entropy": 0.1, "log_top": 0.2}},
    "nll": {"published": 1.5, "grouped": 1.0},
}
ENSEMBLES = [{"method": "vote", "split": "test", "metric": "las", "value": 60.0}]


@pytest.fixture
def results(tmp_path) -> list[Path]:
    target = "frozen/tagger/targets/fo"
    files: dict[str, Any] = {
        "frozen/parser/sources/en/run/results.json": SOURCE,
        "frozen/parser/sources/en/run/scores.json": {"las": 79.0, "uas_punct": 83.0, "words": 5000},
        f"{target}/weights/run/results.json": WEIGHTS,
        f"{target}/weights/other_weights.json": OTHER,
        f"{target}/analysis/analysis.json": ANALYSIS,
        f"{target}/ensembles.json": ENSEMBLES,
        f"{target}/charts/wide/provenance.json": CHARTS,
        f"{target}/models/pptx:trial=1/7/run/results.json": MODEL,
        f"{target}/models/pptx:trial=1/7/run/scores.json": [
            {"method": "direct:pptx:trial=1", "split": "test", "metric": "accuracy", "value": 71.0},
            {"method": "data", "split": "test", "metric": "words", "value": 5},
        ],
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(content))
    (tmp_path / target / "models/pptx:trial=1/7/run/log.json").write_text(json.dumps(LOG))
    for name in ("ensembles", "analysis", "weights", "models/pptx:trial=1/7/transfer", "charts/wide/build"):
        (tmp_path / target / f"{name}.tsv").write_text("s\th:m:s\n12.34\t0:00:12\n")
    return [tmp_path / name for name in files]


def test_every_kind_of_result_becomes_scores(results):
    rows = collect(results, "toy", 42, ["fo"])
    found = {
        (row["task"], row["target"], row["method"], row["seed"], row["split"], row["metric"]): row["value"]
        for row in rows
    }
    assert len(found) == len(rows)
    assert all((row["study"], row["encoder"]) == ("toy", "frozen") for row in rows)
    expected = {
        ("parser", "en", "source", 42, "dev", "las"): 80.0,
        ("parser", "en", "source", 42, "dev", "best_las"): 81.0,
        ("parser", "en", "source", 42, "dev", "loss"): 1.5,
        ("parser", "en", "source", 42, "", "updates"): 1000,
        ("parser", "en", "source", 42, "test", "uas_punct"): 83.0,
        ("tagger", "fo", "pptx:trial=1", 7, "", "train_sentences"): 60,
        ("tagger", "fo", "pptx:trial=1", 7, "", "empty_charts"): 2,
        ("tagger", "fo", "pptx:trial=1", 7, "", "learning_rate"): 0.1,
        ("tagger", "fo", "pptx:trial=1", 7, "", "l2"): 0.5,
        ("tagger", "fo", "pptx:trial=1", 7, "", "seconds"): 12.3,
        ("tagger", "fo", "pptx:trial=1", 7, "dev", "accuracy"): 70.0,
        ("tagger", "fo", "pptx:trial=1", 7, "dev", "accuracy@20"): 65.0,
        ("tagger", "fo", "pptx:trial=1", 7, "test", "accuracy"): 71.0,
        ("tagger", "fo", "charts:wide", None, "text", "sentences"): 50,
        ("tagger", "fo", "charts:wide", None, "text", "text_sentences"): 60,
        ("tagger", "fo", "charts:wide", None, "text", "dropped_mass:fr"): 1.5,
        ("tagger", "fo", "charts:wide", None, "", "seconds"): 12.3,
        ("tagger", "fo", "ensembles", None, "", "seconds"): 12.3,
        ("tagger", "fo", "vote", None, "test", "las"): 60.0,
        ("tagger", "fo", "data", None, "test", "stand_in"): 1,
        ("tagger", "fo", "analysis", None, "", "seconds"): 12.3,
        ("tagger", "fo", "analysis", None, "dev", "words"): 900,
        ("tagger", "fo", "union", None, "dev", "median_log_size"): 25.0,
        ("tagger", "fo", "union", None, "dev", "recall_inside"): 0.9,
        ("tagger", "fo", "pool-learned", None, "dev", "kl"): 1.0,
        ("tagger", "fo", "pool-learned", None, "dev", "unknown_gold"): 3,
        ("tagger", "fo", "direct:en", None, "dev", "right"): 0.7,
        ("tagger", "fo", "direct:de", None, "dev", "nll"): 1.75,
        ("tagger", "fo", "pool-learned", None, "dev", "weight:de"): 0.75,
        ("tagger", "fo", "pool-learned", None, "dev", "labelled_words"): 600,
        ("tagger", "fo", "pool", None, "dev", "nll"): 1.5,
        ("tagger", "fo", "pool-published", None, "dev", "updates"): 1,
        ("tagger", "fo", "pool-grouped", None, "dev", "log_top:en"): 0.2,
        ("tagger", "fo", "pool-grouped", None, "dev", "nll"): 1.0,
    }
    assert {key: found.get(key) for key in expected} == expected
    left_out = {"empty_charts", "without_support", "impossible", "entropy"}
    assert not [row for row in rows if row["metric"] in left_out and row["method"] != "pptx:trial=1"]


def test_intervals_are_of_methods_of_the_study(tmp_path):
    """Studies share folders: models of the others are there too."""
    folder = tmp_path / "frozen/tagger/targets/fo"

    def write(path: Path, method: str, right: list[int]) -> Path:
        counts = {"right_by_sentence": right, "scored_by_sentence": [9, 9]}
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [{"method": method, "split": "test", "metric": name, "value": v} for name, v in counts.items()]
        path.write_text(json.dumps(rows))
        return path

    paths = [write(folder / "ensembles.json", "vote", [5, 6])]
    seeds = {method: (9, 10) for method in ("recommended", "paper-pool")}
    models = {
        (method, seed): write(folder / f"models/{method}/{seed}/run/scores.json", "model", [seed - 2] * 2)
        for method in seeds
        for seed in seeds[method]
    }
    paths += [models["recommended", seed] for seed in (9, 10)]
    rows = collect(paths, "toy", 9, [])
    assert {row["method"] for row in rows} == {"recommended"}
    high = next(row["value"] for row in rows if row["metric"] == "over:vote:high")
    assert high == pytest.approx(100 * 2 / 9, abs=0.01)  # of seed 9


def test_other_files_are_rejected(tmp_path):
    with pytest.raises(ValueError, match="is not a result of a study"):
        collect([tmp_path / "run" / "results.json"], "toy", 42, [])
