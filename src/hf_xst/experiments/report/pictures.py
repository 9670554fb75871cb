"""The report's plots: which there are, and their SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hf_xst.drawing.plots import ablation_lines, difference_bars, gain_scatter, pool_figure, save_figure
from hf_xst.experiments.report.ablations import Series, ablation_names, ablation_series
from hf_xst.experiments.report.charts import distance_points
from hf_xst.experiments.report.curves import mean_curves
from hf_xst.experiments.report.grid import TRAINED
from hf_xst.experiments.report.reading import VOTE, Results, method_title
from hf_xst.extras import import_optional

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEWEST_POINTS = 3


@dataclass(frozen=True)
class Picture:
    """A plot.

    Args:
        name: of its file.
        caption: what is to be seen.
        draw: makes the figure; needs the extra `plots`.
    """

    name: str
    caption: str
    draw: Callable[[], Figure]


def difference_pictures(results: Results) -> Iterator[Picture]:
    """Give bars of the trained methods' difference to majority vote (the paper's third figure)."""
    for block in results.blocks:
        base = {
            t: results.score(block, t, "test", VOTE).number for t in results.targets(block, "test", [VOTE])
        }
        baseline = {target: value for target, value in base.items() if value is not None}
        means: dict[str, dict[str, float]] = {}
        spread: dict[str, dict[str, float]] = {}
        for method in TRAINED:
            cells = {target: results.score(block, target, "test", method) for target in baseline}
            scores = {target: cell.number for target, cell in cells.items() if cell.number is not None}
            if scores:
                title = method_title(method)
                means[title] = scores
                spread[title] = {target: cell.std for target, cell in cells.items() if cell.std is not None}

        def draw(
            baseline: dict[str, float] = baseline,
            means: dict[str, dict[str, float]] = means,
            spread: dict[str, dict[str, float]] = spread,
        ) -> Figure:
            return difference_bars(baseline, means, spread=spread)

        if means:
            yield Picture(
                f"differences-{block.name}",
                f"{block.title}: difference to majority vote in points, test files; below each language the "
                f"score of majority vote ({block.metric}).",
                draw,
            )


def distance_pictures(results: Results) -> Iterator[Picture]:
    """Give scatters of the pool's distance to gold and the gain over majority vote (the fourth figure)."""
    for block in results.blocks:
        points = distance_points(results, block)

        def draw(points: dict[str, tuple[float, float]] = points) -> Figure:
            return gain_scatter(points)

        if len(points) >= FEWEST_POINTS:
            yield Picture(
                f"distance-{block.name}",
                f"{block.title}: distance of the pool to gold and gain over majority vote, by language, with "
                "regression line and its 95 % bootstrap band.",
                draw,
            )


def ablation_pictures(results: Results) -> Iterator[Picture]:
    """Give lines of scores by the value of each setting that was varied."""
    for block in results.blocks:
        for name in ablation_names(results, block):
            series = ablation_series(results, block, name)

            def draw(
                series: Series = series,
                name: str = name,
                label: str = block.metric,
            ) -> Figure:
                return ablation_lines(series, x_label=name, y_label=label)

            yield Picture(
                f"ablation-{name}-{block.name}", f"{block.title}: scores on the test files by {name}.", draw
            )


def curve_pictures(results: Results) -> Iterator[Picture]:
    """Give development curves, the mean over the targets that have all of them."""
    for block in results.blocks:
        curves = mean_curves(results, block)

        def draw(curves: Series = curves, label: str = block.metric) -> Figure:
            return ablation_lines(curves, x_label="updates", y_label=label)

        if curves:
            yield Picture(
                f"curves-{block.name}",
                f"{block.title}: development scores by update, mean over the targets that have all curves.",
                draw,
            )


def pool_picture() -> Picture:
    """Give two distributions, their pool, and what charts keep of each (the paper's second figure)."""
    return Picture(
        "pool",
        "Two distributions over the candidates of one word, and their logarithmic opinion pool; in colour: "
        "what a chart keeps at sigma = 0.7. The pool has little left for what either source all but "
        "excludes.",
        pool_figure,
    )


def draw_all(pictures: Iterable[Picture], folder: Path) -> tuple[dict[str, str], str]:
    """Write `folder/NAME.svg` for each picture.

    Returns:
        The SVG by name, and why there is none: empty unless matplotlib is missing.
    """
    try:
        import_optional("matplotlib", "plots")
    except ImportError as error:
        return {}, f"There are no plots: {error}."
    drawn = {}
    for picture in pictures:
        (path,) = save_figure(picture.draw(), folder / picture.name, formats=("svg",))
        drawn[picture.name] = path.read_text(encoding="utf-8")
    return drawn, ""
