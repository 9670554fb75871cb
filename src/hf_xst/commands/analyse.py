"""The command `hf-xst analyse`: what charts, pools and sources are worth on sentences with gold."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from hf_xst.commands.options import OutputArguments, SentenceArguments, VectorArguments, option, required
from hf_xst.commands.presets import chart_limits
from hf_xst.commands.runs import RunFolder
from hf_xst.commands.sentences import annotate, gold_rows, read_word_vectors
from hf_xst.console import console, say
from hf_xst.drawing.plots import gain_scatter, save_figure
from hf_xst.files import write_text
from hf_xst.sources.agreement import MEASURES, read_weights
from hf_xst.sources.description import describe, standard_charts
from hf_xst.sources.pool import SourcePool, SourceSpec, load_sources
from hf_xst.sources.quality import SCOPES, size_text

RESULT = "analysis.json"


@dataclass(kw_only=True)
class AnalyseArguments(OutputArguments, SentenceArguments, VectorArguments):
    """Measure charts, pools and sources on sentences with gold."""

    sources: list[str] = required("Source models: NAME=PATH_OR_ID[@REVISION] ...")
    split: str = option("Which part of the treebank.", "dev")
    sigma: float = option("Probability mass that charts keep of each group of candidates.", 0.95)
    floor: float = option("Added to every marginal probability before the logarithm.", 1e-9)
    weights: str | None = option("YAML file with a weight for each source by name: also measure that pool.")
    max_length: int | None = option(
        "Longest sentence, added tokens counted; without it 30 (parser) or 60 (tagger), as for charts."
    )
    batch_words: int = option("Words of a batch, padding included.", 2000)
    plots: bool = option("Draw the sources' agreement beside how often they are right.", True)


def analyse(arguments: AnalyseArguments) -> dict[str, Any]:
    """Measure, print tables, and write OUTPUT/analysis.json.

    Args:
        arguments: see the class.

    Returns:
        What `describe` returns, with `data`, what the preparation of the sentences reported.

    Raises:
        ValueError: the sources, their weights or the sentences do not fit.
    """
    if arguments.treebank is None:
        raise ValueError("give --treebank: charts are measured against gold annotation")
    learned = read_weights(arguments.weights) if arguments.weights else None
    charts = standard_charts(arguments.sigma, arguments.floor, learned)
    specs = SourceSpec.parse_all(arguments.sources)
    vectors = read_word_vectors(arguments)
    models = load_sources(specs, vectors)
    pool = SourcePool(models)
    model = next(iter(models.values()))
    columns = model.columns
    if arguments.tagger is not None and columns == (model.annotation_column,):
        raise ValueError("--tagger would replace the gold that charts are measured against; leave it out")
    limits = chart_limits(model, arguments.max_length)
    gold, note = gold_rows(arguments.treebank, arguments.split, arguments.data, columns, **limits)
    say(note)
    rows = annotate(gold, arguments.tagger, vectors)
    found = {"data": note, **describe(pool, rows, charts, batch_words=arguments.batch_words)}
    folder = RunFolder(arguments.output, arguments, prefix="analyse-")
    folder.begin()
    write_text(folder.path / RESULT, json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    for table in (chart_table(found), distance_table(found), source_table(found)):
        console.print(table)
    if arguments.plots:
        draw(found, folder.path)
    return found


def chart_table(found: Mapping[str, Any]) -> Table:
    """Show size and quality of each kind of chart, the size beside that of the first kind."""
    table = Table("charts", "groups", title=f"charts of {found['sentences']} sentences")
    for title in ("median size", "ratio %", "precision %", "recall %"):
        table.add_column(title, justify="right")
    for name, chart in found["charts"].items():
        ratio = found["differences"].get(name, {}).get("size_ratio")
        log_size = chart["median_log_size"]
        sizes = [size_text(-math.inf if log_size is None else log_size), _ratio(ratio)]
        for scope, groups in _scopes(chart).items():
            quality = [_percent(chart[scope][key]) for key in ("precision", "recall")]
            table.add_row(name, groups, *sizes, *quality)
    return table


def distance_table(found: Mapping[str, Any]) -> Table:
    """Show how far each pool is from gold, in nats per word."""
    table = Table("pool of", "groups", title="distance to gold, nats per word")
    for title in ("KL", "error", "diversity"):
        table.add_column(title, justify="right")
    for name, distance in found["distance"].items():
        for scope, groups in _scopes(distance).items():
            split = [_number(distance[scope][key]) for key in ("kl", "error", "diversity")]
            table.add_row(name, groups, *split)
    return table


def _scopes(measured: Mapping[str, Any]) -> dict[str, str]:
    """Both scopes and what to call them, or one where they are alike because no group is added."""
    if measured[SCOPES[0]] == measured[SCOPES[1]]:
        return {SCOPES[0]: "all"}
    return {scope: scope.replace("_", " ") for scope in SCOPES}


def source_table(found: Mapping[str, Any]) -> Table:
    """Show the label-free measures of each source, and how well each of them orders the sources."""
    table = Table(
        title="sources, the best by agreement first", caption="last line: rank correlation with `right`"
    )
    table.add_column("source")
    for title in (*MEASURES, "right"):
        table.add_column(title, justify="right")
    order = sorted(found["sources"].items(), key=lambda item: -(item[1]["agreement"] or 0.0))
    for name, measures in order:
        table.add_row(name, *(_number(measures[key]) for key in MEASURES), _percent(measures["right"]))
    table.add_row("ρ", *(_number(found["selection"][key]["rho"]) for key in MEASURES), "")
    return table


def draw(found: Mapping[str, Any], folder: Path) -> list[Path]:
    """Draw the sources by agreement and by how often they are right, if the extra `plots` is installed.

    Returns:
        The files written; none where the extra is missing, which is told.
    """
    points = {
        name: (measures["agreement"], 100 * measures["right"])
        for name, measures in found["sources"].items()
        if measures["agreement"] is not None
    }
    if not points:
        return []
    try:
        figure = gain_scatter(
            points,
            title="choosing sources without labels",
            x_label="agreement with the pool of the others",
            y_label="candidates right, %",
            zero_line=False,
        )
        return save_figure(figure, folder / "sources")
    except ImportError as error:
        say(f"no plot was drawn: {error}", "yellow")
        return []


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2g}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
