"""Statistics against textbook formulas and slow loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_xst.sources.statistics import mean_std, pearson, regression_line, spearman

law = settings(deadline=None, max_examples=60)
numbers = st.floats(-100, 100, allow_nan=False).map(lambda value: round(value, 2))
points = st.lists(st.tuples(numbers, numbers), min_size=3, max_size=12)


@law
@given(points)
def test_pearson_is_the_cosine_of_the_centred_lists(pairs):
    x, y = (np.array(each) for each in zip(*pairs, strict=True))
    r, p, n = pearson(x, y)
    assert n == len(pairs)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert math.isnan(r)
        assert math.isnan(p)
        return
    a, b = x - x.mean(), y - y.mean()
    assert r == pytest.approx(a @ b / math.sqrt((a @ a) * (b @ b)), abs=1e-9)
    assert 0 <= p <= 1


def test_p_is_that_of_the_t_distribution():
    """r = -0.45 over 18 languages is what the paper reports, with p = 0.06."""
    rng = np.random.default_rng(0)
    x, noise = rng.standard_normal((2, 18))
    x -= x.mean()
    noise -= noise.mean()
    noise -= x * (x @ noise) / (x @ x)
    y = -0.45 * x / np.linalg.norm(x) + math.sqrt(1 - 0.45**2) * noise / np.linalg.norm(noise)
    r, p, _ = pearson(x, y)
    assert r == pytest.approx(-0.45)
    assert round(p, 2) == 0.06


def test_spearman_sees_the_order_alone():
    x = [1.0, 2.0, 3.0, 4.0, 5.0]
    assert spearman(x, [math.exp(value) for value in x]).r == pytest.approx(1)
    assert spearman(x, [-(value**3) for value in x]).r == pytest.approx(-1)
    # One pair of neighbours exchanged: 1 - 6 * 2 / (5 * 24).
    assert spearman(x, [1, 2, 4, 3, 5]).r == pytest.approx(0.9)


@pytest.mark.parametrize(("y", "p"), [([1, 2, 3], 1 / 3), ([1, 2, 3, 4, 5], 1 / 60), ([3, 1, 2], 1.0)])
def test_p_of_few_ranks_counts_all_orders(y, p):
    assert spearman(range(len(y)), y).p == pytest.approx(p)


def test_too_few_or_constant_points_correlate_not():
    for x, y in (([1.0, 2.0], [1.0, 2.0]), ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]), ([], [])):
        assert math.isnan(pearson(x, y).r)
        assert math.isnan(spearman(x, y).p)
    with pytest.raises(ValueError, match="two lists of one length"):
        pearson([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="expected finite numbers"):
        spearman([1.0, math.inf, 2.0], [1.0, 2.0, 3.0])


def test_the_line_and_its_band_are_those_of_a_slow_loop():
    rng = np.random.default_rng(3)
    x, noise = rng.standard_normal((2, 9))
    y = 2 - 0.5 * x + noise
    line = regression_line(x, y, resamples=300, seed=11, points=7)
    slope, intercept = np.polyfit(x, y, 1)
    assert (line.slope, line.intercept) == pytest.approx((slope, intercept))
    assert line.y == pytest.approx(np.polyval([slope, intercept], line.x))
    draws = np.random.default_rng(11).integers(9, size=(300, 9))
    lines = [np.polyval(np.polyfit(x[draw], y[draw], 1), line.x) for draw in draws if len(set(draw)) > 1]
    assert line.low == pytest.approx(np.quantile(lines, 0.025, axis=0))
    assert line.high == pytest.approx(np.quantile(lines, 0.975, axis=0))
    assert (line.low < line.y).all()
    assert (line.y < line.high).all()
    again = regression_line(x, y, resamples=300, seed=11, points=7)
    assert (again.low == line.low).all()
    assert (regression_line(x, y, resamples=300, seed=12, points=7).low != line.low).any()


def test_points_on_a_line_leave_no_band_and_draws_of_one_point_do_not_count():
    line = regression_line([0.0, 0.0, 1.0], [1.0, 1.0, 3.0], resamples=200)
    assert (line.slope, line.intercept) == pytest.approx((2, 1))
    assert line.high - line.low == pytest.approx(np.zeros(100), abs=1e-9)
    with pytest.raises(ValueError, match="found 3 at 1"):
        regression_line([1.0, 1.0, 1.0], [1.0, 2.0, 3.0])


def test_mean_and_sample_deviation():
    assert mean_std([1.0, 2.0, 4.0]) == pytest.approx((7 / 3, math.sqrt(7 / 3), 3))
    alone = mean_std([5.0])
    assert alone.mean == 5
    assert math.isnan(alone.std)
    with pytest.raises(ValueError, match="no value"):
        mean_std([])
