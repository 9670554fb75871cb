"""Tables of scores: every target and main method, beside the published ones."""

from __future__ import annotations

from collections.abc import Sequence

from hf_xst.experiments.published import published
from hf_xst.experiments.report.grid import Grid, Scores, less, papers_targets, published_score
from hf_xst.experiments.report.reading import (
    MAIN_METHODS,
    Block,
    Results,
    group_of,
    language_name,
    method_title,
)
from hf_xst.experiments.report.table import Cell, Column, Marks, Row, Table, row

PARTS_TITLES = {"test": "test files", "dev": "development files"}
METHODS_TOLD = (
    "Scores are means over seeds (their number in the column) and, where there are several, standard "
    "deviations; the paper's are over five seeds. PPTX: trained on the union of the sources' charts. Pooled: "
    "trained on charts of the logarithmic opinion pool. Pool as it stands: the pool's own best structures, "
    "without training. Learned weights were fitted on some development sentences, so that development scores "
    "with them are too good; test files had no part in it."
)


def full_table(results: Results, marks: Marks, block: Block, part: str) -> Table:
    """Return the paper's targets with the main methods, the published scores and the differences."""
    known = papers_targets(results, block, part)
    grid = Grid(results, block, part, list(MAIN_METHODS), known)
    compared = [method for method in MAIN_METHODS if method in published().methods]
    rows = [
        _beside(
            (marks.cell(target), language_name(target), grid.seeds(target)),
            grid.scores(target),
            {each: published_score(block, part, target, each) for each in compared},
            group_of(target),
        )
        for target in known
    ]
    rows += [
        _beside(
            (name, f"average of {len(targets)}", ""),
            {each: grid.average(targets, each) for each in MAIN_METHODS},
            {each: Cell(published().average(part, block.task, targets, each)) for each in compared},
            "averages",
        )
        for name, targets in grid.averages()
        if targets
    ]
    return Table(
        f"scores-{part}-{block.name}",
        f"{block.title}, {PARTS_TITLES[part]}",
        f"{block.metric}. Averages are over the targets that have a score by every method of ours in this "
        "table, the paper's over the same targets.",
        tuple(_full_columns(compared)),
        tuple(rows),
        marks.notes(known),
        folded=part == "dev",
    ).finished()


def other_table(results: Results, marks: Marks, block: Block) -> Table:
    """Return the targets not in the paper, with the main methods and the sources alone."""
    found = [target for target in results.targets(block, "test") if group_of(target) == "other"]
    direct = [f"ensemble/direct {code}" for code in results.sources(block)]
    grid = Grid(results, block, "test", [*MAIN_METHODS, *direct], found)
    columns = [
        *_first_columns(),
        *(Column(method_title(each), ranked=True) for each in MAIN_METHODS),
        *(Column(code, group="direct transfer from") for code in results.sources(block)),
    ]
    rows = [
        row(marks.cell(target), language_name(target), grid.seeds(target), *grid.scores(target).values())
        for target in found
    ]
    main = Grid(results, block, "test", list(MAIN_METHODS), found)
    if main.common:
        means = [main.average(main.common, each) for each in MAIN_METHODS]
        rows.append(
            row("all", f"average of {len(main.common)}", "", *means, *(None for _ in direct), summary=True)
        )
    return Table(
        f"other-targets-{block.name}",
        f"{block.title}, targets not in the paper",
        f"{block.metric}, test files. The average is over the targets that have a score by every method of "
        "the table, sources alone left out.",
        tuple(columns),
        tuple(rows),
        marks.notes(found),
    ).finished()


def _full_columns(compared: Sequence[str]) -> list[Column]:
    return [
        *_first_columns(),
        *(Column(method_title(each), group="ours", ranked=True) for each in MAIN_METHODS),
        *(Column(method_title(each), group="paper") for each in compared),
        *(Column(method_title(each), "+.1f", group="ours less paper") for each in compared),
    ]


def _first_columns() -> tuple[Column, ...]:
    return Column("target", ""), Column("language", ""), Column("seeds", "")


def _beside(first: Sequence[Cell | str], ours: Scores, theirs: Scores, section: str) -> Row:
    differences = [less(ours[method], cell) for method, cell in theirs.items()]
    summary = section == "averages"
    return row(*first, *ours.values(), *theirs.values(), *differences, section=section, summary=summary)
