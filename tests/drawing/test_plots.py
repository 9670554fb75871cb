"""Plots: their content, the same bytes for the same numbers, and no change of global state."""

from __future__ import annotations

import math
import sys

import pytest

from hf_xst.drawing.plots import EXAMPLE, ORANGE, gain_scatter, pool_figure, save_figure
from hf_xst.sources.statistics import pearson, regression_line

matplotlib = pytest.importorskip("matplotlib")

POINTS = {"fa": (4.0, 6.1), "ko": (6.5, -0.9), "hr": (2.5, 6.9), "it": (1.2, 2.8), "sv": (2.0, 3.0)}


def scatter(points=POINTS, **settings):
    return gain_scatter(points, title="parsing", x_label="x", y_label="y", **settings)


@pytest.mark.parametrize("draw", [scatter, pool_figure])
def test_equal_numbers_give_equal_bytes(tmp_path, draw):
    first = save_figure(draw(), tmp_path / "one" / "figure")
    second = save_figure(draw(), tmp_path / "two" / "figure")
    assert [path.name for path in first] == ["figure.svg", "figure.png"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert len(list((tmp_path / "one").iterdir())) == 2


def test_scatter_has_points_names_line_band_and_r():
    (axes,) = scatter(seed=4).axes
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
    (axes,) = scatter({"a": (1.0, 2.0), "b": (2.0, 1.0)}).axes
    assert axes.get_title("right") == ""
    assert not axes.lines


def test_pool_figure_matches_the_paper():
    """The pool keeps what both sources allow and drops what one of them excludes."""
    figure = pool_figure()
    kept = []
    for axes in figure.axes:
        colours = [matplotlib.colors.to_hex(bar.get_facecolor()).upper() for bar in axes.patches]
        kept.append({index for index, colour in enumerate(colours) if colour == ORANGE})
    assert kept == [{0, 3, 4}, {1, 3, 4}, {3, 4}]
    heights = [bar.get_height() for bar in figure.axes[2].patches]
    raw = [math.sqrt(a * b) for a, b in zip(*EXAMPLE, strict=True)]
    assert heights == pytest.approx([value / sum(raw) for value in raw])
    assert heights[0] == pytest.approx(heights[1])
    assert heights[1] < heights[3]
    named = pool_figure([[0.5, 0.5], [1.0, 0.0]], sigma=0.9, weights=[3, 1], names=["a", "b"])
    assert [label.get_text() for label in named.axes[0].get_xticklabels()] == ["a", "b"]


def test_failed_save_leaves_the_old_file(tmp_path):
    target = tmp_path / "figure.svg"
    target.write_text("old")
    figure = pool_figure(title="$\\nonsense{$")
    with pytest.raises(ValueError, match="nonsense"):
        save_figure(figure, tmp_path / "figure", ["svg"])
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["figure.svg"]


def test_missing_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"matplotlib is not installed.*hf_xst\[plots\]"):
        pool_figure()


def test_global_state_is_unchanged(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it would fail
    keys = [key for key in matplotlib.rcParams if key != "backend"]  # reading it would select a backend
    before = [matplotlib.rcParams[key] for key in keys]
    for figure in (scatter(), pool_figure()):
        save_figure(figure, tmp_path / "figure")
    assert [matplotlib.rcParams[key] for key in keys] == before
