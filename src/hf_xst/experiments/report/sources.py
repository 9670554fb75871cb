"""Tables of the sources: on their own languages, on targets without training, and chosen without labels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hf_xst.experiments.published import published
from hf_xst.experiments.report.grid import Grid, mean_of
from hf_xst.experiments.report.reading import (
    MAIN_METHODS,
    POOL,
    RECIPE,
    TRAINED_POOL,
    VOTE,
    Block,
    Results,
    method_title,
    score_of,
)
from hf_xst.experiments.report.table import Cell, Column, Marks, Table, row
from hf_xst.sources.agreement import MEASURES, rank_correlations

NLL = ("uniform", "learned", "published", "grouped")
BASES = (VOTE, POOL, TRAINED_POOL, RECIPE)


def source_table(results: Results, marks: Marks, block: Block) -> Table:
    """Return the source models' scores on their own languages (the paper's table of source models)."""
    columns = [
        Column("source", ""),
        Column("training sentences", ",.0f"),
        Column("updates", ",.0f"),
        Column("dev", group="ours"),
        Column("test", group="ours"),
        Column("test", group="paper"),
    ]
    rows = []
    for code, record in results.sources(block).items():
        found = record["result"]
        theirs = published().sources.get(block.task, {}).get(code)
        rows.append(
            row(
                marks.cell(code),
                found.get("train_sentences"),
                found.get("updates"),
                found.get("best_dev", score_of(found.get("dev"))),
                score_of(found.get("test")),
                theirs,
            )
        )
    return Table(
        f"sources-{block.name}",
        f"{block.title}: source models on their own languages",
        f"{block.metric}. Dev: the part that training stopped by.",
        tuple(columns),
        tuple(rows),
        marks.notes(results.sources(block)),
    ).finished()


def direct_table(results: Results, marks: Marks, block: Block, part: str = "test") -> Table:
    """Return direct transfer from every source."""
    codes = results.pooled_sources(block)
    methods = [f"ensemble/direct {code}" for code in codes]
    known = results.targets(block, part, methods)
    grid = Grid(results, block, part, methods, known)
    vote = Grid(results, block, part, [VOTE], known)
    columns = [
        Column("target", ""),
        *(Column(code, group="direct transfer from", ranked=True) for code in codes),
        Column("mean of sources"),
        Column("majority vote"),
    ]
    rows = []
    for target in known:
        scores = list(grid.scores(target).values())
        rows.append(row(marks.cell(target), *scores, mean_of(scores), vote.scores(target)[VOTE]))
    return Table(
        f"direct-{block.name}",
        f"{block.title}: direct transfer",
        f"{block.metric}, {part} files. Which source is best (bold) is known only with gold. "
        "A target is never transferred to from its own language.",
        tuple(columns),
        tuple(rows),
        marks.notes(known),
    ).finished()


def comparator_table(results: Results, marks: Marks, block: Block) -> Table:
    """Return the paper's other comparators beside the main ones."""
    beside = [
        f"ensemble/direct {code}"
        for code in results.sources(block)
        if code not in results.pooled_sources(block)
    ]
    others = [
        method
        for method in results.methods(block)
        if method not in MAIN_METHODS and not method.startswith(("ablation/", "ensemble/direct"))
    ]
    methods = [*BASES, *others, *beside]
    known = results.targets(block, "test", [*others, *beside])
    grid = Grid(results, block, "test", methods, known)
    columns = [
        Column("target", ""),
        Column("best source (oracle)"),
        *(Column(_comparator(each), ranked=True) for each in methods),
    ]
    rows = [
        row(marks.cell(target), _best_source(results, block, target), *grid.scores(target).values())
        for target in known
    ]
    common = grid.common
    if common:
        means = [grid.average(common, each) for each in methods]
        rows.append(row(f"average of {len(common)}", None, *means, summary=True, section="averages"))
    return Table(
        f"comparators-{block.name}",
        f"{block.title}: other ways to combine sources",
        f"{block.metric}, test files. The best source is known only with gold. The average is "
        "over the targets that have a score by every method of the table.",
        tuple(columns),
        tuple(rows),
        marks.notes(known),
    ).finished()


def _comparator(method: str) -> str:
    name = method_title(method)
    return name.removeprefix("direct ") if name.startswith("direct ") else name


def _best_source(results: Results, block: Block, target: str) -> Cell:
    scores = [
        results.score(block, target, "test", f"ensemble/direct {code}")
        for code in results.pooled_sources(block)
    ]
    return Cell(max((cell.number for cell in scores if cell.number is not None), default=None))


def selection_table(results: Results, marks: Marks, block: Block) -> Table:
    """Return how well measures without labels order the sources by their direct transfer."""
    found = {target: correlations(results, block, target) for target in results.languages}
    known = [target for target, measures in found.items() if measures]
    columns = [
        Column("target", ""),
        Column("sources", ".0f"),
        *(Column(measure.replace("_", " "), ".2f", group="rank correlation by") for measure in MEASURES),
        Column("chosen", "", group="first by agreement"),
        Column("best", "", group="first by agreement"),
        Column("lost", ".1f", group="first by agreement"),
    ]
    rows = []
    for target in known:
        measures = found[target]
        first = measures["agreement"]
        rhos = [measures[measure]["rho"] for measure in MEASURES]
        rows.append(
            row(marks.cell(target), first["n"], *rhos, first["chosen"], first["best"], float(first["regret"]))
        )
    if known:
        means = [_mean([found[t][measure]["rho"] for t in known]) for measure in MEASURES]
        lost = _mean([found[t]["agreement"]["regret"] for t in known])
        rows.append(row(f"mean of {len(known)}", None, *means, None, None, lost, summary=True))
    return Table(
        f"selection-{block.name}",
        f"{block.title}: sources chosen without labels",
        "Spearman's rank correlation of measures that need no labels with direct-transfer scores on the test "
        "files, signed so that 1 is the true order; and the points lost by the source that agreement puts "
        "first. Means leave out targets without a correlation.",
        tuple(columns),
        tuple(rows),
        marks.notes(known),
    ).finished()


def correlations(results: Results, block: Block, target: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the rank correlations of a target's sources by measure.

    Nothing where not all sources were scored alone: among chosen ones the range of the measure, and with it
    every correlation, is cut.
    """
    measured = results.found(block, target, "selection").get("measures")
    measures = measured or results.found(block, target, "analysis").get("sources", {})
    scores = {
        each: results.score(block, target, "test", f"ensemble/direct {each}").number for each in measures
    }
    truth = {source: score for source, score in scores.items() if score is not None}
    usable = {source: measures[source] for source in truth if set(MEASURES) <= set(measures[source])}
    return rank_correlations(usable, truth) if usable and len(usable) == len(measures) else {}


def weight_table(results: Results, marks: Marks, block: Block) -> Table:
    """Return learned weights, exact and by the published procedure, and what they are worth."""
    known = results.targets_with(block, "weights")
    read = {target: learned_weights(results.found(block, target, "weights")) for target in known}
    codes = [c for c in results.sources(block) if any(c in found["learned"] for found in read.values())]
    columns = [
        Column("target", ""),
        Column("sentences", ".0f"),
        *(Column(code, ".2f", group="exact optimum") for code in codes),
        *(Column(code, ".2f", group="published procedure") for code in codes),
        *(Column(each, ".3f", group="NLL") for each in NLL),
    ]
    rows = [
        row(
            marks.cell(target),
            found["sentences"],
            *(found["learned"].get(code) for code in codes),
            *(found["published"].get(code) for code in codes),
            *(found["nll"].get(each) for each in NLL),
        )
        for target, found in read.items()
    ]
    return Table(
        f"weights-{block.name}",
        f"{block.title}: learned weights",
        "Weights of the sources in the pool, learned from few labelled sentences of the target: the optimum "
        "of the convex problem, and what the published stopping rule gives. NLL: negative log-likelihood of "
        "gold under the pool on the same sentences, nats per word; grouped: with weights by group.",
        tuple(columns),
        tuple(rows),
        marks.notes(known),
    ).finished()


def learned_weights(result: Mapping[str, Any]) -> dict[str, Any]:
    """Read a `weights` cell: `learned` and `published` weights by source, `sentences`, `nll` by weights."""
    found = result.get("optimum", result)
    return {
        "learned": found.get("learned", found.get("weights")) or {},
        "published": found.get("published") or {},
        "sentences": found.get("sentences"),
        "nll": found.get("nll") or {},
    }


def _mean(values: list[float]) -> float | None:
    finite = [value for value in values if math.isfinite(value)]
    return sum(finite) / len(finite) if finite else None
