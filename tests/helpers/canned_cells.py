"""Records of a made-up study, as `cells.read_records` gives them."""

from __future__ import annotations

import math
from typing import Any

Records = dict[str, dict[str, Any]]
ABOUT = {
    "title": "Canned & <made up>",
    "command": "hf-xst reproduce --config canned.yaml",
    "notes": "First paragraph.\n\nSecond one.",
    "marks": {"ar": "PUD_1 in place of PADT, 100 % test", "hi": "PUD_1 in place of PADT, 100 % test"},
    "source_marks": {"de": "no train file is here"},
    "stand_ins": ["ar", "hi"],
    "settings": "start: en\nabout: a < b",
}


def record(result: dict[str, Any], seconds: float = 30.0, **settings: Any) -> dict[str, Any]:
    """One cell's record."""
    return {"needs": [], "settings": settings, "seconds": seconds, "result": result}


def las(value: float) -> dict[str, float]:
    """A parser's scores."""
    return {"uas": value + 5, "las": value, "words": 100}


def ensemble(test: dict[str, float], dev: dict[str, float] | None = None) -> dict[str, Any]:
    """Result of an ensemble cell of a parser."""
    parts = {"test": test} | ({} if dev is None else {"dev": dev})
    scores: dict[str, Any] = {
        part: {method: las(value) for method, value in methods.items()} for part, methods in parts.items()
    }
    return {"data": {part: f"{part}=/somewhere/data/x.conllu" for part in parts}, **scores}


def trained(test: float, dev: float | None = None, curve: dict[int, float] | None = None) -> dict[str, Any]:
    """Result of a trained parser."""
    result: dict[str, Any] = {"test": las(test), "updates": 200, "sentences": 10, "empty_charts": 0}
    if dev is not None:
        result["dev"] = {"eval_las": dev, "eval_loss": 0.1}
    points = [{"update": update, "las": value, "loss": 0.5} for update, value in (curve or {}).items()]
    return result | {"curve": [{"update": 1, "loss": 2.0}, *points]}


def quality(precision: float, recall: float, size: float) -> dict[str, Any]:
    """One kind of chart of an analysis, both scopes alike but for the second's recall."""
    return {
        "rule": "pool",
        "median_log_size": math.log(size),
        "empty_charts": 0,
        "with_boundaries": {"precision": precision, "recall": recall},
        "without_boundaries": {"precision": precision, "recall": recall - 0.01},
    }


def analysis(union: dict[str, Any], pool: dict[str, Any], kl: float) -> dict[str, Any]:
    """Result of an analysis cell."""
    terms = {"kl": kl, "error": kl + 1.5, "diversity": 1.5}
    measures = {
        code: {"agreement": each, "divergence": 1 - each, "entropy": each, "chart_size": 2.0, "right": each}
        for code, each in {"en": 0.5, "de": 0.25, "fr": 0.75}.items()
    }
    return {
        "sentences": 10,
        "words": 100,
        "charts": {"union": union, "pool": pool},
        "distance": {"pool": {"with_boundaries": terms, "without_boundaries": terms}},
        "sources": measures,
    }


def scored(
    target: str, direct: list[float], vote: float, decoded: float, **trained_scores: list[float]
) -> Records:
    """The cells of a target: its ensemble, and a trained model for each method and seed."""
    test = dict(zip(("direct en", "direct de", "direct fr"), direct, strict=False))
    methods = test | {"majority": vote, "pool": decoded}
    found = {
        f"B/parser/{target}/ensemble": record(
            ensemble(methods, {name: value - 1 for name, value in methods.items()})
        )
    }
    for method, scores in trained_scores.items():
        for seed, score in enumerate(scores, 41):
            found[f"B/parser/{target}/transferred/{method}/{seed}"] = record(trained(score, score - 1))
    return found


def study() -> Records:
    """A study of one encoder: three sources, four targets of the paper and one more, some cells missing."""
    records: Records = {}
    for code, dev, test in (("de", 70.04, None), ("en", 80.0, 81.26), ("fr", 75.0, None)):
        result: dict[str, Any] = {"dev": {"eval_las": dev}, "best_dev": dev, "train_sentences": 4000}
        records[f"B/parser/source/{code}"] = record(
            result | ({} if test is None else {"test": las(test)}), given={}
        )
    records["B/parser/source/joint"] = record({"dev": {"eval_las": 82.0}}, given={"pool": False})
    records |= scored("it", [60, 50, 70], 75.0, 76.5, union=[74.0, 75.0, 76.0], pool=[77.0, 78.0, 79.0])
    records |= scored("fa", [40, 30, 35], 43.0, 44.0, union=[42.0, 42.0, 42.0], pool=[45.0, 46.0, 44.0])
    records |= scored("ar", [20, 25, 15], 30.0, 31.0, union=[29.0], pool=[32.0])
    records |= scored("hi", [10, 15, 5], 20.0, 21.0, union=[19.0])
    records |= scored("fo", [50, 45, 40], 55.0, 56.0, pool=[57.25])
    union, pool = quality(0.1, 0.9, 1e6), quality(0.25, 0.95, 1.5e3)
    for target, kl in (("it", 0.5), ("fa", 2.0), ("ar", 1.25)):
        records[f"B/parser/{target}/analysis"] = record(analysis(union, pool, kl))
    records["B/parser/it/weights"] = record(
        {
            "weights": {"en": 0.5, "de": 0.0, "fr": 0.5},
            "published": {"en": 0.34, "de": 0.32, "fr": 0.34},
            "sentences": 50,
            "nll": {"uniform": 1.5, "learned": 1.25, "published": 1.4375},
        }
    )
    for value, score in (("0.5", 76.0), ("0.95", 78.0), ("all", 77.0)):
        records[f"B/parser/it/ablation/sigma={value}/41"] = record(trained(score))
    records["B/parser/it/transferred/soft/41"] = record(trained(79.5, curve={100: 70.0, 200: 72.0}))
    records["B/parser/it/charts/pool"] = record({"counts": {"sentences": 10}}, seconds=90.0)
    return records
