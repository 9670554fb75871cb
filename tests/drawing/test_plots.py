"""Plots: their content, the same bytes for the same numbers, and no half files."""

from __future__ import annotations

import sys

import pytest

from hf_xst.drawing.plots import save_figure, scatter

pytest.importorskip("matplotlib")

POINTS = {"fa": (4.0, 6.1), "ko": (6.5, -0.9), "hr": (2.5, 6.9)}


def draw(title="parsing"):
    return scatter(POINTS, title=title, x_label="x", y_label="y", note="rho = 0.5")


def test_equal_numbers_give_equal_bytes(tmp_path):
    first = save_figure(draw(), tmp_path / "one" / "figure")
    second = save_figure(draw(), tmp_path / "two" / "figure")
    assert [path.name for path in first] == ["figure.svg", "figure.png"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert len(list((tmp_path / "one").iterdir())) == 2


def test_a_scatter_plot_has_all_points_with_their_names():
    (axes,) = draw().axes
    (dots,) = axes.collections
    assert dots.get_offsets().tolist() == [list(point) for point in POINTS.values()]
    assert [text.get_text() for text in axes.texts] == list(POINTS)
    assert (axes.get_title("left"), axes.get_title("right")) == ("parsing", "rho = 0.5")


def test_failed_save_leaves_the_old_file(tmp_path):
    target = tmp_path / "figure.svg"
    target.write_text("old")
    with pytest.raises(ValueError, match="nonsense"):
        save_figure(draw("$\\nonsense{$"), tmp_path / "figure", ["svg"])
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["figure.svg"]


def test_missing_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"matplotlib is not installed.*hf_xst\[plots\]"):
        draw()
