"""Tables of how a study went: development scores by update, and time."""

from __future__ import annotations

from hf_xst.experiments.report.ablations import Series
from hf_xst.experiments.report.grid import mean_of
from hf_xst.experiments.report.reading import RECIPE, TRAINED_POOL, UNION, Block, Results, method_title
from hf_xst.experiments.report.table import Cell, Column, Marks, Table, row

CURVES = (UNION, TRAINED_POOL, "transferred/learned", RECIPE)


def curve_table(results: Results, marks: Marks, block: Block) -> Table:
    """Return development scores by update, a row for each trained target model."""
    curves = [(target, method, curve) for target, method, curve in results.curves(block) if curve]
    updates = sorted({update for _, _, curve in curves for update in curve})
    columns = [Column("target", ""), Column("method", ""), *(Column(str(update)) for update in updates)]
    rows = [
        row(marks.cell(target), method_title(method), *(curve.get(update) for update in updates))
        for target, method, curve in curves
    ]
    return Table(
        f"curves-{block.name}",
        f"{block.title}: development scores by update",
        f"{block.metric}, development files, mean over seeds; no model was chosen by them.",
        tuple(columns),
        tuple(rows),
        marks.notes([target for target, _, _ in curves]),
        folded=True,
    ).finished()


def mean_curves(results: Results, block: Block) -> Series:
    """Return the main methods' mean curves over the targets that have all of them."""
    curves = {(target, method): curve for target, method, curve in results.curves(block) if curve}
    methods = [method for method in CURVES if any(method == each for _, each in curves)]
    targets = [t for t in results.languages if methods and all((t, method) in curves for method in methods)]
    found: Series = {}
    for method in methods if targets else ():
        common = set.intersection(*(set(curves[target, method]) for target in targets))
        found[method_title(method)] = {
            update: sum(curves[target, method][update] for target in targets) / len(targets)
            for update in sorted(common)
        }
    return {title: curve for title, curve in found.items() if curve}


def time_table(results: Results) -> Table:
    """Return the time that the kinds of cells took."""
    seconds: dict[tuple[str, str, str], list[float]] = {}
    for name, record in results.records.items():
        encoder, task, first, *rest = name.split("/")
        kind = first if first == "source" else rest[0]
        seconds.setdefault((encoder, task, kind), []).append(float(record["seconds"]))
    columns = [
        Column("encoder", ""),
        Column("task", ""),
        Column("kind of cell", ""),
        Column("cells", ",.0f"),
        Column("minutes a cell", ",.1f"),
        Column("minutes", ",.1f"),
    ]
    rows = [
        row(*key, len(times), mean_of([Cell(each / 60) for each in times]), sum(times) / 60)
        for key, times in sorted(seconds.items())
    ]
    total = sum(sum(times) for times in seconds.values())
    rows.append(row("all", None, None, len(results.records), None, total / 60, summary=True))
    return Table(
        "time",
        "Time",
        "What each kind of cell took, summed up; cells that ran side by side count each.",
        tuple(columns),
        tuple(rows),
    ).finished()
