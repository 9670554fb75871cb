"""Tables of charts and pools: size, quality, and distance to gold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hf_xst.experiments.published import published
from hf_xst.experiments.report.grid import less
from hf_xst.experiments.report.reading import TRAINED_POOL, UNION, VOTE, Block, Results
from hf_xst.experiments.report.table import SIZE, Cell, Column, Marks, Table, row
from hf_xst.sources.quality import SCOPES
from hf_xst.sources.statistics import pearson

KINDS = {"union": "PPTX", "pool": "pooled", "pool learned": "pooled, learned weights"}
TERMS = {"kl": "KL", "error": "error", "diversity": "diversity"}
QUALITY_CAPTION = (
    "Precision (P) and recall (R) in percent over all sentences of the development files (the test files "
    "where there are none), recall by membership in some structure of the chart; their differences, and that "
    "of the test scores, in points. Learned weights were fitted to some sentences of the same files."
)
MISPRINT = " Where the published recall of Persian tagging falls by 4.3, the paper prints a rise."
SCOPE_TITLES = {
    SCOPES[0]: "pairs at the sentence's ends counted, as published",
    SCOPES[1]: "without the pairs at the sentence's ends",
}


def size_table(results: Results, marks: Marks, block: Block) -> Table:
    """Return the median number of structures in charts, and the pooled ones' relative to the union's."""
    known = _measured(results, block)
    columns = [
        Column("target", ""),
        Column("PPTX", SIZE, group="ours"),
        Column("pooled", SIZE, group="ours"),
        Column("pooled/PPTX, %", ".2g", group="ours"),
        Column("learned weights/PPTX, %", ".2g", group="ours"),
        Column("PPTX", SIZE, group="paper"),
        Column("pooled/PPTX, %", ".2g", group="paper"),
    ]
    rows = []
    for target in known:
        charts = results.found(block, target, "analysis")["charts"]
        union, pool, learned = (charts.get(kind, {}).get("median_log_size") for kind in KINDS)
        size, ratio = published().chart_size.get(block.task, {}).get(target, (None, None))
        theirs = None if size is None else math.log(size)
        rows.append(
            row(marks.cell(target), union, pool, _ratio(pool, union), _ratio(learned, union), theirs, ratio)
        )
    return Table(
        f"chart-size-{block.name}",
        f"{block.title}: size of charts",
        "Median number of structures in a sentence's chart, counted exactly, and pooled charts' median in "
        "percent of the union's (PPTX). Ours on the development files (the test files where "
        "there are none), the paper's on the training files.",
        tuple(columns),
        tuple(rows),
        marks.notes(known),
    ).finished()


def quality_table(results: Results, marks: Marks, block: Block, scope: str) -> Table:
    """Return precision and recall of charts, the differences of pool and union, and the paper's figures."""
    known = _measured(results, block)
    ours = [*KINDS.values()]
    columns = [
        Column("target", ""),
        *(Column(which, group=kind) for kind in ours for which in "PR"),
        *(Column(which, "+.1f", group="pooled less PPTX") for which in ("P", "R", "score")),
        Column("pooled/PPTX, %", ".2g", group="size"),
        *(Column(which, group=f"paper {kind}") for kind in ours[:2] for which in "PR"),
        *(Column(which, "+.1f", group="paper pooled less PPTX") for which in ("P", "R", "score")),
    ]
    rows = [
        row(
            marks.cell(target),
            *_our_quality(results, block, target, scope),
            *_published_quality(block.task, target, scope),
        )
        for target in known
    ]
    named = "" if scope == SCOPES[0] else "-inside"
    return Table(
        f"chart-quality-{block.name}{named}",
        f"{block.title}: quality of charts" + (f", {SCOPE_TITLES[scope]}" if block.task == "tagger" else ""),
        QUALITY_CAPTION + (MISPRINT if block.task == "tagger" else ""),
        tuple(columns),
        tuple(rows),
        marks.notes(known),
    ).finished()


def distance_table(results: Results, marks: Marks, block: Block) -> Table:
    """Return the pool's distance to gold, split into error and diversity, beside the gain over the vote."""
    known = [target for target in _measured(results, block) if distance(results, block, target)]
    columns = [
        Column("target", ""),
        *(Column(title, ".2f", group="pooled") for title in TERMS.values()),
        *(Column(title, ".2f", group="learned weights") for title in TERMS.values()),
        Column("gain", "+.1f"),
    ]
    rows = []
    for target in known:
        pools = [distance(results, block, target, kind) for kind in ("pool", "pool learned")]
        terms = [pool.get(term) for pool in pools for term in TERMS]
        rows.append(row(marks.cell(target), *terms, gain(results, block, target)))
    return Table(
        f"distance-{block.name}",
        f"{block.title}: distance of the pool to gold",
        "KL(gold | pool) = error - diversity, nats per word, on the development files (the test files where "
        "there are none), to some sentences of which learned weights were fitted; gain: points of the model "
        "trained on pooled charts over majority vote, test files.",
        tuple(columns),
        tuple(rows),
        marks.notes(known),
    ).finished()


def correlation_table(results: Results) -> Table:
    """Return the correlation over languages of the pool's distance, and its parts, with the gain."""
    columns = [
        Column("encoder", ""),
        Column("task", ""),
        Column("of the gain with", ""),
        Column("r", ".2f", group="ours"),
        Column("p", ".2g", group="ours"),
        Column("languages", ".0f", group="ours"),
        Column("r", ".2f", group="paper"),
        Column("p", ".2g", group="paper"),
    ]
    rows = []
    for block in results.blocks:
        for term, title in TERMS.items():
            points = distance_points(results, block, term)
            r, p, n = pearson([x for x, _ in points.values()], [y for _, y in points.values()])
            theirs = published().correlation.get(block.task, (None, None)) if term == "kl" else (None, None)
            if points:
                rows.append(row(block.encoder, block.task, title, r, p, n, *theirs))
    return Table(
        "correlation",
        "Does a pool closer to gold gain more?",
        "Pearson's r, over languages, of the pool's distance to gold and its parts (nats per word) with the "
        "gain over majority vote (points), two-sided p; from three languages on.",
        tuple(columns),
        tuple(rows),
    ).finished()


def distance_points(results: Results, block: Block, term: str = "kl") -> dict[str, tuple[float, float]]:
    """Return distance and gain by target, for targets that have both."""
    points = {}
    for target in _measured(results, block):
        x = distance(results, block, target).get(term)
        y = gain(results, block, target).number
        if x is not None and y is not None:
            points[target] = (float(x), y)
    return points


def distance(results: Results, block: Block, target: str, kind: str = "pool") -> Mapping[str, Any]:
    """Return the distance of a pool to gold a word, with its parts; empty if it was not measured."""
    found: Mapping[str, Any] = results.found(block, target, "analysis").get("distance", {})
    terms: Mapping[str, Any] = found.get(kind, {}).get(SCOPES[0], {})
    return terms


def gain(results: Results, block: Block, target: str) -> Cell:
    """Return the gain of the model that was trained on pooled charts over majority vote."""
    vote = results.score(block, target, "test", VOTE)
    return less(results.score(block, target, "test", TRAINED_POOL), vote)


def _measured(results: Results, block: Block) -> list[str]:
    return [
        t
        for t in results.targets_with(block, "analysis")
        if results.found(block, t, "analysis").get("charts")
    ]


def _our_quality(results: Results, block: Block, target: str, scope: str) -> list[Cell]:
    charts = results.found(block, target, "analysis")["charts"]
    union, pool, learned = (_quality(charts.get(kind, {}).get(scope, {})) for kind in KINDS)
    gains = [less(mine, theirs) for mine, theirs in zip(pool, union, strict=True)]
    trained, base = (results.score(block, target, "test", method) for method in (TRAINED_POOL, UNION))
    sizes = (charts.get(kind, {}).get("median_log_size") for kind in ("pool", "union"))
    return [*union, *pool, *learned, *gains, less(trained, base), Cell(_ratio(*sizes))]


def _quality(found: Mapping[str, Any]) -> list[Cell]:
    values = (found.get(which) for which in ("precision", "recall"))
    return [Cell(None if value is None else 100 * value) for value in values]


def _published_quality(task: str, target: str, scope: str) -> list[Cell]:
    quality = published().chart_quality.get(task, {}).get(target)
    if quality is None or scope != SCOPES[0]:
        return [Cell()] * 7
    union, pool = ([Cell(value) for value in pair] for pair in quality)
    trained, base = (published().score("test", task, target, method) for method in (TRAINED_POOL, UNION))
    gains = [less(mine, theirs) for mine, theirs in zip(pool, union, strict=True)]
    score = less(Cell(trained[0] if trained else None), Cell(base[0] if base else None))
    return [*union, *pool, *gains, score]


def _ratio(log_size: float | None, log_base: float | None) -> float | None:
    """Return a size in percent of another, both given by their logs; None where it is no number."""
    if log_size is None or log_base is None:
        return None
    apart = log_size - log_base
    return 100 * math.exp(apart) if apart < 700 else None
