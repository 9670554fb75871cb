"""Plot results with matplotlib (extra `plots`), without touching its global state."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from hf_xst.charts import log_opinion_pool, threshold
from hf_xst.extras import import_optional
from hf_xst.files import atomic_path
from hf_xst.numerics import safe_log
from hf_xst.sources.statistics import pearson, regression_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Two colours of Okabe and Ito, distinguishable with any kind of colour vision.
BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#BBBBBB"
DPI = 150
# Two sources that each exclude the other's preferred candidate and agree on the rest.
EXAMPLE = ((0.38, 0.01, 0.07, 0.27, 0.27), (0.01, 0.38, 0.07, 0.27, 0.27))


def gain_scatter(
    points: Mapping[str, tuple[float, float]], *, title: str, x_label: str, y_label: str, seed: int = 0
) -> Figure:
    """Plot named points with their regression line, its 95 % bootstrap band, r and p.

    Fewer than three points, or points with one x, have no line.

    Args:
        points: x and y by name, e.g. by source.
        title: of the figure.
        x_label: of the x axis.
        y_label: of the y axis.
        seed: of the bootstrap.
    """
    figure, (axes,) = _figure(1, (5.0, 4.0))
    xs, ys = [x for x, _ in points.values()], [y for _, y in points.values()]
    r, p, n = pearson(xs, ys)
    if math.isfinite(r):
        line = regression_line(xs, ys, seed=seed)
        axes.fill_between(line.x, line.low, line.high, color=BLUE, alpha=0.18, linewidth=0)
        axes.plot(line.x, line.y, color=BLUE, linewidth=1.2)
        axes.set_title(f"r = {r:.2f}, p = {p:.2g}, n = {n}", loc="right", fontsize=8)
    axes.scatter(xs, ys, color=BLUE, s=18, zorder=3)
    for name, point in points.items():
        axes.annotate(name, point, xytext=(3, 3), textcoords="offset points", fontsize=8)
    axes.set_title(title, loc="left")
    axes.set(xlabel=x_label, ylabel=y_label)
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
    """Plot distributions over the candidates of one group, and their pool; kept candidates are filled.

    Pool and selection come from `log_opinion_pool` and `threshold`, as charts do.

    Args:
        distributions: (S, C) probabilities of S sources.
        sigma: the mass to keep.
        weights: of the pool; defaults to uniform.
        floor: of the pool.
        names: of the candidates; defaults to their numbers.
        title: of the figure.
    """
    logs = safe_log(torch.as_tensor(distributions, dtype=torch.float64))[:, None, None]
    panels = torch.cat([logs[:, 0, 0], log_opinion_pool(logs, weights, floor)[0]])
    kept = threshold(panels[None], sigma, torch.ones_like(panels[None], dtype=torch.bool))[0]
    titles = [f"$p^{{({number + 1})}}$" for number in range(len(logs))] + [r"$\bar{p}$"]
    figure, all_axes = _figure(len(panels), (1.9 * len(panels), 2.2))
    positions = range(panels.shape[1])
    for axes, heading, log_probs, mask in zip(all_axes, titles, panels, kept.tolist(), strict=True):
        colours = [ORANGE if is_kept else GREY for is_kept in mask]
        axes.bar(positions, log_probs.exp().tolist(), color=colours, edgecolor="black", linewidth=0.6)
        axes.set_xticks(positions, names or [str(position) for position in positions])
        axes.set_title(heading)
        axes.set_ylim(0, 1.08 * float(panels.exp().max()))
    all_axes[0].set_ylabel("probability")
    figure.suptitle(title)
    return figure


def save_figure(figure: Figure, path: str | Path, formats: Sequence[str] = ("svg", "png")) -> list[Path]:
    """Write a figure atomically; equal figures give equal bytes.

    Args:
        figure: the figure.
        path: of the files, without a suffix.
        formats: one file is written for each.

    Returns:
        The paths of the files.
    """
    matplotlib = import_optional("matplotlib", "plots")
    # Dates and versions would differ from run to run; ids of SVG elements are hashed with a fixed salt.
    metadata: dict[str, dict[str, Any]] = {
        "svg": {"Date": None, "Creator": "hf_xst"},
        "png": {"Software": "hf_xst"},
    }
    paths = [Path(f"{path}.{kind}") for kind in formats]
    for kind, target in zip(formats, paths, strict=True):
        settings = {"svg.hashsalt": "hf_xst", "svg.fonttype": "none"}
        with atomic_path(target) as temporary, matplotlib.rc_context(settings):
            figure.savefig(temporary, format=kind, dpi=DPI, metadata=metadata.get(kind))
    return paths


def _figure(panels: int, size: tuple[float, float]) -> tuple[Figure, list[Axes]]:
    """Create a figure with panels side by side."""
    figure: Figure = import_optional("matplotlib.figure", "plots").Figure(figsize=size, layout="constrained")
    axes: list[Axes] = list(figure.subplots(1, panels, sharey=True, squeeze=False)[0])
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes
