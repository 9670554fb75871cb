"""What random searches have found, beside the values that the paper chose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from hf_xst.commands.presets import PUBLISHED
from hf_xst.experiments.report.reading import TASKS
from hf_xst.experiments.report.table import Column, Table, row

Search = Mapping[str, Any]
CHARTS = {"union": "PPTX", "pool": "pooled", "learned": "pooled, learned weights"}


def search_table(searches: Sequence[Search]) -> Table:
    """Return the best step size and pull of each search, and how much they matter.

    Args:
        searches: what `hf-xst search` has written to `trials.json`.
    """
    columns = [
        Column("task", ""),
        Column("charts", ""),
        Column("trials", ".0f"),
        Column("step", ".1e", group="ours"),
        Column("pull", ".1e", group="ours"),
        *(Column(each, group="score") for each in ("best", "second", "median", "worst")),
        Column("step", ".1e", group="paper"),
        Column("pull", ".1e", group="paper"),
    ]
    rows = []
    for search in sorted(searches, key=lambda each: (str(each["model_type"]), [*CHARTS].index(each["rule"]))):
        scores = sorted((float(trial["score"]) for trial in search["trials"]), reverse=True)
        values, theirs = search["best"]["values"], PUBLISHED.get(search["model_type"])
        rows.append(
            row(
                task_of(search["model_type"]),
                CHARTS[search["rule"]],
                len(scores),
                values.get("learning_rate"),  # one of them may have been kept where it was
                values.get("l2"),
                scores[0],
                scores[1] if len(scores) > 1 else None,
                median(scores),
                scores[-1],
                None if theirs is None else theirs.learning_rate[search["rule"]],
                None if theirs is None else theirs.l2[search["rule"]],
            )
        )
    places = {f"{search['treebank']} {search['split']}" for search in searches}
    return Table(
        "search",
        "Random search of step size and pull",
        f"Scores on {', '.join(sorted(places))} of models trained with values drawn from the published "
        "distributions. The paper's values were chosen on Arabic.",
        tuple(columns),
        tuple(rows),
    ).finished()


def task_of(model_type: str) -> str:
    """Name the task of a type of models, or else the type."""
    return next((title for task, title in TASKS.items() if model_type.endswith(task)), model_type)
