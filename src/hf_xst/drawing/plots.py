"""Plot results with matplotlib (extra `plots`), without touching its global state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_xst.extras import import_optional
from hf_xst.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE = "#0072B2"  # of Okabe and Ito, distinguishable with any kind of colour vision
DPI = 150


def scatter(
    points: Mapping[str, tuple[float, float]], *, title: str, x_label: str, y_label: str, note: str = ""
) -> Figure:
    """Plot named points.

    Args:
        points: x and y by name, e.g. by source.
        title: of the figure.
        x_label: of the x axis.
        y_label: of the y axis.
        note: shown at the upper right, e.g. a correlation.
    """
    figure: Figure = import_optional("matplotlib.figure", "plots").Figure(
        figsize=(5.0, 4.0), layout="constrained"
    )
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.scatter([x for x, _ in points.values()], [y for _, y in points.values()], color=BLUE, s=18)
    for name, point in points.items():
        axes.annotate(name, point, xytext=(3, 3), textcoords="offset points", fontsize=8)
    axes.set_title(title, loc="left")
    axes.set_title(note, loc="right", fontsize=8)
    axes.set(xlabel=x_label, ylabel=y_label)
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
