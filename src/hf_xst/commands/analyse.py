"""Measure charts, pools and sources on sentences with gold annotation."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from hf_xst.charts.chart import SIGMA
from hf_xst.commands.options import LabelledArguments, takes_options
from hf_xst.commands.presets import length_limits
from hf_xst.commands.runs import RunFolder
from hf_xst.commands.sentences import annotate, gold_rows, read_word_vectors, source_pool
from hf_xst.console import print_table, say
from hf_xst.drawing.markup import BLUE
from hf_xst.extras import import_optional
from hf_xst.files import atomic_path, write_text
from hf_xst.records import option
from hf_xst.sources.agreement import MEASURES, read_weights
from hf_xst.sources.analysis import SCOPES, describe, size_text, standard_charts
from hf_xst.sources.loading import load_sources
from hf_xst.sources.word_checks import check_text

RESULT, PREFIX = "analysis.json", "analyse-"


@dataclass(frozen=True, kw_only=True)
class AnalyseArguments(LabelledArguments):
    """Measure charts, pools and sources on sentences with gold annotation."""

    split: str = option("Split of the treebank.", "dev")
    sigma: float = option("Probability mass to keep of each group of candidates.", SIGMA)
    weights: str | None = option("YAML file with a weight for each source by name; also measures that pool.")
    plots: bool = option("Plot the agreement of the sources against their accuracy.", True)


@takes_options(AnalyseArguments)
def analyse(arguments: AnalyseArguments) -> dict[str, Any]:
    """Print the measures of `describe` as tables, write them to OUTPUT/analysis.json, and return them.

    Raises:
        ValueError: sources, weights or sentences do not fit together.
    """
    files = (RESULT, "sources.svg", "sources.png")
    folder = RunFolder(arguments.output, arguments, *files, alone=False, prefix=PREFIX)
    learned = read_weights(arguments.weights) if arguments.weights else None
    charts = standard_charts(arguments.sigma, arguments.floor, learned)
    vectors = read_word_vectors(arguments)
    models = load_sources(arguments.sources, vectors, arguments)
    pool = source_pool(arguments, models)
    model = pool.kind
    if arguments.tagger is not None and model.columns == ("upos",):
        raise ValueError("--tagger would replace the gold that charts are measured against; leave it out")
    limits = length_limits(model, arguments.max_length)
    gold, note = gold_rows(arguments.treebank, arguments.split, arguments.data, model.columns, **limits)
    rows = annotate(gold, arguments.tagger, vectors)
    check_text(models, rows)
    result = {"data": note, **describe(pool, rows, charts, batch_words=arguments.batch_words)}
    folder.begin()
    if not folder.is_main:
        return result
    write_text(folder.path / RESULT, json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    for table in (chart_table(result), distance_table(result), source_table(result)):
        print_table(table)
    if arguments.plots:
        plot_sources(result, folder.path)
    return result


def chart_table(result: Mapping[str, Any]) -> Table:
    """Tabulate size and quality of each kind of chart, with the size relative to the first kind."""
    table = _table(
        f"charts of {result['sentences']} sentences",
        ("charts", "groups"),
        ("median size", "ratio %", "precision %", "recall %"),
    )
    for name, chart in result["charts"].items():
        ratio = result["differences"].get(name, {}).get("size_ratio")
        log_size = chart["median_log_size"]
        sizes = [size_text(-math.inf if log_size is None else log_size), _format(ratio, ".2g", 100)]
        for scope, groups in _scopes(chart).items():
            quality = [_format(chart[scope][key], ".1f", 100) for key in ("precision", "recall")]
            table.add_row(name, groups, *sizes, *quality)
    return table


def distance_table(result: Mapping[str, Any]) -> Table:
    """Tabulate the distance of each pool from gold, in nats per word."""
    terms = ("kl", "error", "diversity")
    table = _table("distance to gold, nats per word", ("pool of", "groups"), ("KL", *terms[1:]))
    for name, distance in result["distance"].items():
        for scope, groups in _scopes(distance).items():
            table.add_row(name, groups, *(_format(distance[scope][key]) for key in terms))
    return table


def source_table(result: Mapping[str, Any]) -> Table:
    """Tabulate the label-free measures of each source, and the rank correlation of each with accuracy."""
    table = _table("sources, best agreement first", ("source",), (*MEASURES, "right"))
    table.caption = "last line: rank correlation with `right`"
    for name, measures in sorted(result["sources"].items(), key=lambda item: -(item[1]["agreement"] or 0.0)):
        right = _format(measures["right"], ".1f", 100)
        table.add_row(name, *(_format(measures[key]) for key in MEASURES), right)
    table.add_row("ρ", *(_format(result["selection"][key]["rho"]) for key in MEASURES), "")
    return table


def plot_sources(result: Mapping[str, Any], folder: Path) -> None:
    """Plot the accuracy of the sources by their agreement, if the extra `plots` is installed.

    Equal results give equal bytes.
    """
    points = {
        name: (measures["agreement"], 100 * measures["right"])
        for name, measures in result["sources"].items()
        if measures["agreement"] is not None
    }
    if not points:
        return
    try:
        matplotlib = import_optional("matplotlib", "plots")
        figure = import_optional("matplotlib.figure", "plots").Figure((5.0, 4.0), layout="constrained")
    except ImportError as error:
        say(f"skipped the plot: {error}", "yellow")
        return
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.scatter([x for x, _ in points.values()], [y for _, y in points.values()], color=BLUE, s=18)
    for name, point in points.items():
        axes.annotate(name, point, xytext=(3, 3), textcoords="offset points", fontsize=8)
    axes.set_title("source ranking without labels", loc="left")
    rho = _format(result["selection"]["agreement"]["rho"], ".2f")
    axes.set_title(f"rank correlation {rho}", loc="right", fontsize=8)
    axes.set(xlabel="agreement with the pool of the others", ylabel="correct candidates, %")
    # Dates and versions would differ from run to run; ids of SVG elements are hashed with a fixed salt.
    metadata = {"svg": {"Date": None, "Creator": "hf_xst"}, "png": {"Software": "hf_xst"}}
    settings = {"svg.hashsalt": "hf_xst", "svg.fonttype": "none"}
    for kind, facts in metadata.items():
        with atomic_path(folder / f"sources.{kind}") as temporary, matplotlib.rc_context(settings):
            figure.savefig(temporary, format=kind, dpi=150, metadata=facts)


def _table(title: str, names: Sequence[str], numbers: Sequence[str]) -> Table:
    table = Table(*names, title=title)
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table


def _scopes(measures: Mapping[str, Any]) -> dict[str, str]:
    """Return the names of both scopes, or of one if they are equal because no group was added."""
    if measures[SCOPES[0]] == measures[SCOPES[1]]:
        return {SCOPES[0]: "all"}
    return {scope: scope.replace("_", " ") for scope in SCOPES}


def _format(value: float | None, spec: str = ".3f", scale: float = 1.0) -> str:
    return "" if value is None else f"{scale * value:{spec}}"
