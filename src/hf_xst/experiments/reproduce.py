"""Run a study and write its report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from hf_xst.commands.options import option, required
from hf_xst.console import console
from hf_xst.experiments.cells import Graph, read_records
from hf_xst.experiments.lock import alone_in, began
from hf_xst.experiments.report import write_report
from hf_xst.experiments.report.job import about_study, read_cells
from hf_xst.experiments.study import Study, read_study
from hf_xst.experiments.workers import FailedCellsError, run_side_by_side

# The kinds of cells that the report's tables are made of.
TABLES: dict[str, tuple[str, ...]] = {
    "averages": ("ensemble", "transferred"),
    "wins": ("ensemble", "transferred"),
    "scores": ("ensemble", "transferred"),
    "other-targets": ("ensemble", "transferred"),
    "differences": ("ensemble", "transferred"),
    "comparators": ("ensemble", "transferred"),
    "ablation": ("ensemble", "transferred"),
    "sources": ("source",),
    "direct": ("ensemble",),
    "selection": ("selection", "ensemble"),
    "chart-size": ("analysis",),
    "chart-quality": ("analysis",),
    "distance": ("analysis", "ensemble", "transferred"),
    "correlation": ("analysis", "ensemble", "transferred"),
    "weights": ("weights",),
    "curves": ("transferred",),
}


@dataclass(kw_only=True)
class ReproduceArguments:
    """Run an experiment of many cells, resumable, and write its table."""

    config: str = required("The study: a YAML file such as configs/small.yaml.")
    data: str = option("Folder below which the study's files lie; by default HF_XST_SHARED, else ../shared.")
    output: str = option("Folder of cells, models and the report; by default runs/NAME of the configuration.")
    only: list[str] = option(
        "Run only cells with these name parts, e.g. B parser/id, or of these tables of the report, e.g. "
        "chart-size, and what they need.",
        [],
    )
    jobs: int = option("Cells made at the same time, each in a process of its own.", 1)
    status: bool = option("Show what is done and what is left, and stop.", False)
    known: str | None = option(
        "Results made elsewhere (a report's results.json): cells that are the same are not made again, only "
        "models that others need."
    )
    report: str | None = option("Write the report into this folder instead of OUTPUT/report.")


def load_study(config: str, data: str | None) -> Study:
    """Read a study whose files lie in a data folder.

    Raises:
        ValueError: the configuration cannot be used, see `read_study`, or there is no data folder.
    """
    root = Path(data or os.environ.get("HF_XST_SHARED") or "../shared")
    if not root.is_dir():
        raise ValueError(f"there is no data folder {root}; give it with --data, or set HF_XST_SHARED")
    return read_study(Path(config), root)


@dataclass(frozen=True)
class GraphOf:
    """Builds the graph of a study's cells, here and in other processes; see `load_study`."""

    config: str
    data: str | None
    folder: Path

    def __call__(self) -> Graph:
        """Build it."""
        return Graph(load_study(self.config, self.data).cells(), self.folder)


def reproduce(arguments: ReproduceArguments) -> None:
    """Run the study's cells that are not there yet and write the report.

    Args:
        arguments: see the class.

    Raises:
        ValueError: the configuration or the data folder cannot be used, no cell is chosen, or another run
            is at work in OUTPUT.
        FailedCellsError: cells failed (with `--jobs`); the others were made.
    """
    study = load_study(arguments.config, arguments.data)
    folder = Path(arguments.output or Path("runs") / Path(arguments.config).stem)
    make = GraphOf(arguments.config, arguments.data, folder)
    graph = make()
    only = cells_of_tables(arguments.only)
    if not graph.chosen(only):
        raise ValueError(
            f"{' or '.join(arguments.only)}: found neither a cell whose name has these parts nor a "
            f"table; names are such as {', '.join(list(graph.cells)[:: max(1, len(graph.cells) // 4)])}; "
            f"tables are {', '.join(TABLES)}"
        )
    known = {} if arguments.known is None else read_cells(Path(arguments.known))[0]
    if arguments.status:
        graph.restore(known, write=False)
        show_status(graph, only)
        return
    try:
        with alone_in(folder):
            if arguments.known is not None:
                console.print(f"{graph.restore(known)} results of {arguments.known} are taken over")
            if arguments.jobs > 1:
                run_side_by_side(graph, make, arguments.jobs, only)
            else:
                graph.run(only)
    except FailedCellsError:
        _report(arguments, study, graph)
        raise
    _report(arguments, study, graph)


def cells_of_tables(only: Sequence[str]) -> list[str]:
    """Put the kinds of cells in place of tables' names; other words stay as they are."""
    return [kind for word in only for kind in TABLES.get(word, (word,))]


def _report(arguments: ReproduceArguments, study: Study, graph: Graph) -> None:
    folder = Path(arguments.report or graph.folder / "report")
    path = write_report(graph.records(), folder, about_study(Path(arguments.config)), study.data)
    console.print(f"report: {path}")


def show_status(graph: Graph, only: Any) -> None:
    """Print how far a study is, and how long the rest will take as far as cells of the same kind tell."""
    found = graph.status(only, began(graph.folder))
    table = Table("cells", "number", "names")
    for kind, names in found.items():
        table.add_row(kind, str(len(names)), ", ".join(names[:4]) + (" ..." if len(names) > 4 else ""))
    console.print(table)
    console.print(time_to_go(graph, only))


def time_to_go(graph: Graph, only: Sequence[str] = ()) -> str:
    """Estimate the time to go, one cell after the other, from the mean time of cells of the same kind."""
    times: dict[str, list[float]] = {}
    for name, record in {**graph.taken, **read_records(graph.folder)}.items():
        times.setdefault(kind_of_cell(name), []).append(record["seconds"])
    known = {kind: sum(seconds) / len(seconds) for kind, seconds in times.items()}
    left = graph.to_make(only)
    unknown = sum(kind_of_cell(name) not in known for name in left)
    seconds = sum(known.get(kind_of_cell(name), 0.0) for name in left)
    text = f"{len(left)} cells to make, about {seconds / 60:.0f} minutes one after the other"
    return text + (f", not counting {unknown} cells of kinds that none was made of" if unknown else "")


def kind_of_cell(name: str) -> str:
    """Name what cells of like cost have in common: encoder, task, and what they make."""
    encoder, task, *rest = name.split("/")
    return "/".join((encoder, task, rest[0] if rest[0] == "source" else rest[1]))
