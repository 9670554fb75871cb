"""Tables that sum scores up: averages, counts of gains, differences to majority vote, encoders."""

from __future__ import annotations

from hf_xst.experiments.published import published
from hf_xst.experiments.report.grid import (
    TRAINED,
    Grid,
    Scores,
    less,
    papers_targets,
    published_score,
    whole_groups,
)
from hf_xst.experiments.report.reading import (
    MAIN_METHODS,
    POOL,
    TRAINED_POOL,
    UNION,
    VOTE,
    Block,
    Results,
    group_of,
    method_title,
)
from hf_xst.experiments.report.table import Column, Marks, Table, row


def average_table(results: Results) -> Table:
    """Return every block's averages over the targets that all its main methods have."""
    compared = published().methods
    columns = [
        Column("encoder", ""),
        Column("task", ""),
        Column("group", ""),
        Column("targets", ".0f"),
        *(Column(method_title(each), group="ours", ranked=True) for each in MAIN_METHODS),
        *(Column(method_title(each), group="paper") for each in compared),
    ]
    rows = []
    for block in results.blocks:
        known = papers_targets(results, block, "test")
        grid = Grid(results, block, "test", list(MAIN_METHODS), known)
        for name, targets in grid.averages():
            ours = [grid.average(targets, each) for each in MAIN_METHODS]
            theirs = [published().average("test", block.task, targets, each) for each in compared]
            if targets:
                rows.append(row(block.encoder, block.task, name, len(targets), *ours, *theirs))
    return Table(
        "averages",
        "Averages",
        "LAS without punctuation (parser) and tag accuracy (tagger) in percent, test files, averaged over "
        "the targets that have a score by every method of ours; the paper's over the same targets.",
        tuple(columns),
        tuple(rows),
    ).finished()


def win_table(results: Results) -> Table:
    """Count the targets where a trained method beats majority vote, here and in the paper."""
    theirs = [method for method in published().methods if method in TRAINED]
    columns = [
        Column("encoder", ""),
        Column("task", ""),
        Column("group", ""),
        *(Column(method_title(each), "", group="ours") for each in TRAINED),
        *(Column(method_title(each), "", group="paper, same targets") for each in theirs),
    ]
    rows = []
    for block in results.blocks:
        every = [t for t in results.targets(block, "test", [VOTE]) if group_of(t) != "other"]
        for name, known in whole_groups(results, every):
            votes = {t: results.score(block, t, "test", VOTE) for t in known}
            ours = [
                _wins(votes, {t: results.score(block, t, "test", each) for t in known}) for each in TRAINED
            ]
            votes = {t: published_score(block, "test", t, VOTE) for t in known}
            paper = [
                _wins(votes, {t: published_score(block, "test", t, each) for t in known}) for each in theirs
            ]
            if any(ours):
                rows.append(row(block.encoder, block.task, name, *ours, *paper))
    return Table(
        "wins",
        "Targets on which one trained model beats majority vote",
        "Number of the paper's targets, of those that have both scores; test files, means over seeds.",
        tuple(columns),
        tuple(rows),
    ).finished()


def difference_table(results: Results, marks: Marks, block: Block) -> Table:
    """Return how far every trained method is above majority vote (the paper's third figure as numbers)."""
    known = results.targets(block, "test", [VOTE])
    theirs = [method for method in published().methods if method in TRAINED]
    columns = [
        Column("target", ""),
        Column("majority vote", group="ours"),
        *(Column(method_title(each), "+.1f", group="ours", ranked=True) for each in TRAINED),
        Column("majority vote", group="paper"),
        *(Column(method_title(each), "+.1f", group="paper") for each in theirs),
    ]
    rows = []
    for target in known:
        vote = results.score(block, target, "test", VOTE)
        published_vote = published_score(block, "test", target, VOTE)
        ours = [less(results.score(block, target, "test", each), vote, spread=True) for each in TRAINED]
        paper = [
            less(published_score(block, "test", target, each), published_vote, spread=True) for each in theirs
        ]
        rows.append(row(marks.cell(target), vote, *ours, published_vote, *paper))
    return Table(
        f"differences-{block.name}",
        f"{block.title}: difference to majority vote",
        f"{block.metric} of majority vote, and points above it of trained models; test files.",
        tuple(columns),
        tuple(rows),
        marks.notes(known),
        folded=True,
    ).finished()


def encoder_table(results: Results, task: str) -> Table:
    """Put the encoders of one task side by side."""
    blocks = [block for block in results.blocks if block.task == task]
    shown = (VOTE, UNION, TRAINED_POOL, POOL)
    targets = {block: set(results.targets(block, "test", shown)) for block in blocks}
    known = [t for t in results.languages if sum(t in found for found in targets.values()) > 1]
    columns = [Column("target", "")]
    columns += [Column(block.encoder, group=method_title(each)) for each in shown for block in blocks]
    rows = [
        row(target, *(results.score(block, target, "test", each) for each in shown for block in blocks))
        for target in known
    ]
    title = f"{blocks[0].title.partition(',')[0]}: the encoders beside each other" if blocks else task
    metric = blocks[0].metric.capitalize() if blocks else ""
    return Table(
        f"encoders-{task}",
        title,
        f"{metric}, test files, for the targets that several encoders have.",
        tuple(columns),
        tuple(rows),
    ).finished()


def _wins(base: Scores, scores: Scores) -> str | None:
    apart = [less(scores[target], cell).number for target, cell in base.items()]
    known = [number for number in apart if number is not None]
    return f"{sum(number > 0 for number in known)} of {len(known)}" if known else None
