"""Figures of results, each a function from numbers to a `Figure`; needs the extra `plots`.

Figures are objects of their own and never touch matplotlib's global state, so they may be drawn anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from hf_xst.charts import log_opinion_pool, threshold
from hf_xst.extras import import_optional
from hf_xst.files import atomic_path
from hf_xst.numerics import safe_log
from hf_xst.sources.statistics import Regression, pearson, regression_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colours that people who do not tell red from green can tell apart (Okabe and Ito).
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo")
MARKERS = "os^Dv*P"
GREY = "#BBBBBB"
DPI = 150
# Two sources that each miss what the other likes best, and agree on the rest.
EXAMPLE = ((0.38, 0.01, 0.07, 0.27, 0.27), (0.01, 0.38, 0.07, 0.27, 0.27))


def gain_scatter(
    points: Mapping[str, tuple[float, float]],
    *,
    title: str = "",
    x_label: str = "KL(gold | pool), nats per word",
    y_label: str = "gain over majority vote, points",
    zero_line: bool = True,
    seed: int = 0,
) -> Figure:
    """Draw points by name with their regression line, its 95 % bootstrap band, r and p.

    With fewer than three points, or with all at one place, there is no line.

    Args:
        points: x and y by name, e.g. by language.
        title: of the figure.
        x_label: what x is.
        y_label: what y is.
        zero_line: whether to draw where y is 0, neither gain nor loss.
        seed: of the bootstrap.
    """
    figure, (axes,) = _figure(1, (5.0, 4.0))
    xs = [x for x, _ in points.values()]
    ys = [y for _, y in points.values()]
    r, p, n = pearson(xs, ys)
    if math.isfinite(r):
        _draw_line(axes, regression_line(xs, ys, seed=seed))
        axes.set_title(f"r = {r:.2f}, p = {p:.2g}, n = {n}", loc="right", fontsize=8)
    if zero_line:
        axes.axhline(0, color=GREY, linewidth=0.8, zorder=0)
    axes.scatter(xs, ys, color=COLOURS[0], s=18, zorder=3)
    for name, point in points.items():
        axes.annotate(name, point, xytext=(3, 3), textcoords="offset points", fontsize=8)
    axes.set_title(title, loc="left")
    axes.set(xlabel=x_label, ylabel=y_label)
    return figure


def _draw_line(axes: Axes, line: Regression) -> None:
    axes.fill_between(line.x, line.low, line.high, color=COLOURS[0], alpha=0.18, linewidth=0)
    axes.plot(line.x, line.y, color=COLOURS[0], linewidth=1.2)


def difference_bars(
    baseline: Mapping[str, float],
    methods: Mapping[str, Mapping[str, float]],
    *,
    spread: Mapping[str, Mapping[str, float]] | None = None,
    title: str = "",
    y_label: str = "difference to majority vote, points",
) -> Figure:
    """Draw each method's difference to a baseline by language; the baseline stands below each language.

    Args:
        baseline: its score by language, in the order of the bars.
        methods: scores by method and language; a language may be missing.
        spread: standard deviations likewise, drawn as error bars.
        title: of the figure.
        y_label: what the bars are.

    Raises:
        ValueError: there is no language or no method.
    """
    if not baseline or not methods:
        raise ValueError("bars need at least one language and one method")
    languages, width = list(baseline), 0.8 / len(methods)
    # Wide enough for the bars, and for the legend's line.
    inches = max(4.0, 0.7 + 0.5 * len(languages), sum(0.6 + 0.07 * len(name) for name in methods))
    figure, (axes,) = _figure(1, (inches, 3.2))
    for number, (method, scores) in enumerate(methods.items()):
        there = [place for place, language in enumerate(languages) if language in scores]
        offset = (number - (len(methods) - 1) / 2) * width
        deviations = [(spread or {}).get(method, {}).get(languages[place], math.nan) for place in there]
        axes.bar(
            [place + offset for place in there],
            [scores[languages[place]] - baseline[languages[place]] for place in there],
            width,
            yerr=None if np.isnan(deviations).all() else np.nan_to_num(deviations),
            error_kw={"linewidth": 0.8},
            label=method,
            **_fill(number),
        )
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xticks(
        range(len(languages)), [f"{name}\n{baseline[name]:.1f}" for name in languages], fontsize=8
    )
    axes.set(ylabel=y_label, title=title)
    figure.legend(loc="outside upper center", ncols=5, frameon=False, fontsize=8)
    return figure


def pool_figure(
    distributions: Sequence[Sequence[float]] = EXAMPLE,
    *,
    sigma: float = 0.7,
    weights: Sequence[float] | None = None,
    floor: float = 0.0,
    names: Sequence[str] | None = None,
    title: str = "",
) -> Figure:
    """Draw distributions over the candidates of one group, and their pool; what is kept is filled.

    Pool and selection are computed by `log_opinion_pool` and `threshold`, as charts are.

    Args:
        distributions: (S, C) probabilities of S sources.
        sigma: the mass that is kept.
        weights: of the pool, uniform if not given.
        floor: of the pool.
        names: of the candidates; their numbers if not given.
        title: of the figure.
    """
    logs = safe_log(torch.as_tensor(distributions, dtype=torch.float64))[:, None, None]
    pooled = log_opinion_pool(logs, weights, floor)
    panels = torch.cat([logs[:, 0, 0], pooled[0]])
    kept = threshold(panels[None], sigma, torch.ones_like(panels[None], dtype=torch.bool))[0]
    sources = len(logs)
    titles = [f"$p^{{({number + 1})}}$" for number in range(sources)] + [r"$\bar{p}$"]
    figure, all_axes = _figure(sources + 1, (1.9 * (sources + 1), 2.2))
    places = range(panels.shape[1])
    for axes, heading, logs_of, chosen in zip(all_axes, titles, panels, kept.tolist(), strict=True):
        colours = [COLOURS[1] if each else GREY for each in chosen]
        axes.bar(places, logs_of.exp().tolist(), color=colours, edgecolor="black", linewidth=0.6)
        axes.set_xticks(places, names or [str(place) for place in places])
        axes.set_title(heading)
        axes.set_ylim(0, 1.08 * float(panels.exp().max()))
    all_axes[0].set_ylabel("probability")
    figure.suptitle(title)
    return figure


def ablation_lines(
    series: Mapping[str, Mapping[str | float, float | Sequence[float]]],
    *,
    title: str = "",
    x_label: str = "",
    y_label: str = "score",
    reference: Mapping[str, float] | None = None,
) -> Figure:
    """Draw scores by the value of a setting, one line a name; values stand at even distances.

    Args:
        series: by name, a score or the scores of several seeds for each value; lines show means, bars
            standard deviations. Numbers stand in their order, other values as they are first met.
        title: of the figure.
        x_label: the setting's name.
        y_label: what the scores are.
        reference: further scores that are drawn as horizontal lines, e.g. majority vote.

    Raises:
        ValueError: there is no series, or one without values.
    """
    if not series or not all(series.values()):
        raise ValueError("lines need at least one series, and each at least one value")
    values = list(dict.fromkeys(value for scores in series.values() for value in scores))
    if all(isinstance(value, (int, float)) for value in values):
        values.sort()
    places = {value: place for place, value in enumerate(values)}
    figure, (axes,) = _figure(1, (4.6, 3.4))
    for number, (name, scores) in enumerate(series.items()):
        points = sorted(
            ((value, np.atleast_1d(np.asarray(score, dtype=np.float64))) for value, score in scores.items()),
            key=lambda point: places[point[0]],
        )
        bars = [float(seeds.std(ddof=1)) if len(seeds) > 1 else 0.0 for _, seeds in points]
        axes.errorbar(
            [places[value] for value, _ in points],
            [float(seeds.mean()) for _, seeds in points],
            yerr=bars if any(len(seeds) > 1 for _, seeds in points) else None,
            color=COLOURS[number % len(COLOURS)],
            marker=MARKERS[number % len(MARKERS)],
            markersize=4,
            linewidth=1.2,
            capsize=2,
            label=name,
        )
    for number, (name, value) in enumerate((reference or {}).items()):
        style = (":", "--", "-.")[number % 3]
        axes.axhline(value, color="black", linewidth=0.8, linestyle=style, label=name)
    axes.set_xticks(list(places.values()), [str(value) for value in places])
    axes.set(xlabel=x_label, ylabel=y_label, title=title)
    figure.legend(loc="outside upper center", ncols=5, frameon=False, fontsize=8)
    return figure


def save_figure(figure: Figure, path: str | Path, formats: Sequence[str] = ("svg", "png")) -> list[Path]:
    """Write a figure, whole or not at all; the same figure gives the same bytes.

    Args:
        figure: what the functions here return.
        path: of the files, without a suffix.
        formats: one file is written for each.

    Returns:
        The files' paths.
    """
    matplotlib = import_optional("matplotlib", "plots")
    # Dates and versions would differ from run to run; ids of SVG elements are hashed with a fixed salt.
    metadata: dict[str, dict[str, Any]] = {
        "svg": {"Date": None, "Creator": "hf_xst"},
        "png": {"Software": "hf_xst"},
    }
    written = []
    for kind in formats:
        target = Path(f"{path}.{kind}")
        with (
            atomic_path(target) as aside,
            matplotlib.rc_context({"svg.hashsalt": "hf_xst", "svg.fonttype": "none"}),
        ):
            figure.savefig(aside, format=kind, dpi=DPI, metadata=metadata.get(kind))
        written.append(target)
    return written


def _figure(panels: int, size: tuple[float, float]) -> tuple[Figure, list[Axes]]:
    """Make a figure with panels side by side."""
    kind: type[Figure] = import_optional("matplotlib.figure", "plots").Figure
    figure = kind(figsize=size, layout="constrained")
    axes: list[Axes] = list(figure.subplots(1, panels, sharey=True, squeeze=False)[0])
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _fill(number: int) -> dict[str, Any]:
    colour, hatch = COLOURS[number % len(COLOURS)], HATCHES[number % len(HATCHES)]
    return {"color": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0}
