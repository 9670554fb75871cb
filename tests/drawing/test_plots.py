"""Figures: what they show, the same bytes for the same numbers, and nothing global touched."""

from __future__ import annotations

import math
import sys

import pytest

from hf_xst.drawing.plots import (
    COLOURS,
    EXAMPLE,
    ablation_lines,
    difference_bars,
    gain_scatter,
    pool_figure,
    save_figure,
)
from hf_xst.sources.statistics import pearson, regression_line

matplotlib = pytest.importorskip("matplotlib")

POINTS = {"fa": (4.0, 6.1), "ko": (6.5, -0.9), "hr": (2.5, 6.9), "it": (1.2, 2.8), "sv": (2.0, 3.0)}
BASELINE = {"fa": 53.0, "it": 78.4}
METHODS = {"PPTX": {"fa": 50.0, "it": 80.0}, "pool": {"fa": 55.5}}


def figures():
    return {
        "scatter": gain_scatter(POINTS, title="parsing"),
        "bars": difference_bars(BASELINE, METHODS, spread={"PPTX": {"fa": 0.5}}),
        "pool": pool_figure(title="an example"),
        "lines": ablation_lines({"it": {0.5: 70.0, 0.95: [72.0, 74.0]}}, reference={"majority": 71.0}),
    }


@pytest.mark.parametrize("name", ["scatter", "bars", "pool", "lines"])
def test_the_same_numbers_give_the_same_bytes(tmp_path, name):
    first = save_figure(figures()[name], tmp_path / "one" / name)
    second = save_figure(figures()[name], tmp_path / "two" / name)
    assert [path.name for path in first] == [f"{name}.svg", f"{name}.png"]
    for mine, other in zip(first, second, strict=True):
        assert mine.read_bytes() == other.read_bytes()
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == [f"{name}.png", f"{name}.svg"]


def test_the_scatter_has_points_names_line_band_and_r():
    (axes,) = gain_scatter(POINTS, seed=4).axes
    xs, ys = zip(*POINTS.values(), strict=True)
    (dots,) = [each for each in axes.collections if len(each.get_offsets()) == 5]
    assert dots.get_offsets().tolist() == [list(point) for point in POINTS.values()]
    assert [text.get_text() for text in axes.texts] == list(POINTS)
    line = regression_line(xs, ys, seed=4)
    drawn = next(each for each in axes.lines if len(each.get_xdata()) == len(line.x))
    assert drawn.get_ydata().tolist() == line.y.tolist()
    band = next(each for each in axes.collections if each is not dots).get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == pytest.approx((line.low.min(), line.high.max()))
    assert axes.get_title("right").startswith(f"r = {pearson(xs, ys).r:.2f}, p = ")


def test_two_points_have_no_line():
    (axes,) = gain_scatter({"a": (1.0, 2.0), "b": (2.0, 1.0)}).axes
    assert axes.get_title("right") == ""
    assert len(axes.lines) == 1  # zero
    (axes,) = gain_scatter({"a": (1.0, 2.0), "b": (2.0, 1.0)}, zero_line=False).axes
    assert not axes.lines


def test_bars_are_differences_with_the_baseline_below():
    (axes,) = difference_bars(BASELINE, METHODS).axes
    heights = [[bar.get_height() for bar in group] for group in axes.containers]
    assert [pytest.approx(group) for group in ([-3.0, 1.6], [2.5])] == heights
    assert [label.get_text() for label in axes.get_xticklabels()] == ["fa\n53.0", "it\n78.4"]
    with pytest.raises(ValueError, match="at least one language"):
        difference_bars({}, METHODS)


def test_bars_with_a_deviation_where_one_is_known():
    (axes,) = difference_bars(BASELINE, METHODS, spread={"PPTX": {"fa": 0.5, "it": math.nan}}).axes
    bars = [each for each in axes.containers if hasattr(each, "has_yerr") and each.has_yerr]
    (low, high), _ = bars[0].lines[2][0].get_segments()
    assert (low[1], high[1]) == pytest.approx((-3.5, -2.5))


def test_the_pool_is_the_papers_figure():
    """What both sources think possible is kept by the pool; what one of them excludes is not."""
    figure = pool_figure()
    filled = []
    for axes in figure.axes:
        colours = [matplotlib.colors.to_hex(bar.get_facecolor()).upper() for bar in axes.patches]
        filled.append({place for place, colour in enumerate(colours) if colour == COLOURS[1]})
    assert filled == [{0, 3, 4}, {1, 3, 4}, {3, 4}]
    heights = [bar.get_height() for bar in figure.axes[2].patches]
    raw = [math.sqrt(a * b) for a, b in zip(*EXAMPLE, strict=True)]
    assert heights == pytest.approx([value / sum(raw) for value in raw])
    assert heights[0] == pytest.approx(heights[1])
    assert heights[1] < heights[3]
    named = pool_figure([[0.5, 0.5], [1.0, 0.0]], sigma=0.9, weights=[3, 1], names=["a", "b"])
    assert [label.get_text() for label in named.axes[0].get_xticklabels()] == ["a", "b"]


def test_lines_show_means_at_even_distances():
    (axes,) = ablation_lines({"it": {0: 1.0, 1e-9: [2.0, 4.0]}, "fa": {1e-9: 5.0, "all": 6.0}}).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "1e-09", "all"]
    drawn = [each.lines[0] for each in axes.containers]
    assert [line.get_xdata().tolist() for line in drawn] == [[0, 1], [1, 2]]
    assert [line.get_ydata().tolist() for line in drawn] == [[1, 3], [5, 6]]
    with pytest.raises(ValueError, match="at least one value"):
        ablation_lines({"it": {}})


def test_numbers_stand_in_their_order_in_every_line():
    (axes,) = ablation_lines({"it": {0.95: 3.0, 0.5: 1.0}, "fa": {0.8: 5.0, 0.5: 4.0}}).axes
    assert [each.get_text() for each in axes.get_xticklabels()] == ["0.5", "0.8", "0.95"]
    assert [line.get_xdata().tolist() for line in axes.lines if len(line.get_xdata()) == 2] == [
        [0, 2],
        [0, 1],
    ]


def test_a_broken_figure_leaves_the_old_file(tmp_path):
    target = tmp_path / "figure.svg"
    target.write_text("old")
    figure = pool_figure(title="$\\nonsense{$")
    with pytest.raises(ValueError, match="nonsense"):
        save_figure(figure, tmp_path / "figure", ["svg"])
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["figure.svg"]


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"matplotlib is not installed.*hf_xst\[plots\]"):
        pool_figure()


def test_nothing_global_is_touched(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # so that importing it fails
    keys = [key for key in matplotlib.rcParams if key != "backend"]  # asking for it would choose one
    before = [matplotlib.rcParams[key] for key in keys]
    for name, figure in figures().items():
        save_figure(figure, tmp_path / name)
    assert [matplotlib.rcParams[key] for key in keys] == before
