"""Statistics of results: correlations, a regression line with its bootstrap band, mean and deviation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

Array = npt.NDArray[np.float64]
# Two points always lie on a line, so less than this many tell nothing about a correlation.
FEWEST = 3
# Up to so many points all orders are tried: 5,040 of them.
_MOST_EXACT = 7


class Correlation(NamedTuple):
    """A correlation coefficient, its two-sided p-value, and the number of points; NaN where there is none."""

    r: float
    p: float
    n: int


class Spread(NamedTuple):
    """Mean and sample standard deviation (NaN for a single value) of n values."""

    mean: float
    std: float
    n: int


@dataclass(frozen=True)
class Regression:
    """A least-squares line and the band in which most resampled lines lie.

    Args:
        slope: of the line.
        intercept: of the line.
        x: (M,), where line and band are given.
        y: (M,), the line.
        low: (M,), the lower end of the band.
        high: (M,), the upper end.
    """

    slope: float
    intercept: float
    x: Array
    y: Array
    low: Array
    high: Array


def pearson(x: Sequence[float], y: Sequence[float]) -> Correlation:
    """Return the linear correlation of two lists; NaN for fewer than three points or constant lists.

    Raises:
        ValueError: the lists differ in length, or hold a number that is not finite.
    """
    return _correlation(stats.pearsonr, x, y)


def spearman(x: Sequence[float], y: Sequence[float]) -> Correlation:
    """Return the correlation of ranks; see `pearson`.

    For few points p is exact, over all orders of them: there the usual approximation is far off.
    """
    found = _correlation(stats.spearmanr, x, y)
    if not FEWEST <= found.n <= _MOST_EXACT or math.isnan(found.r):
        return found
    first, second = (stats.rankdata(values) for values in _points(x, y))
    away = first - first.mean()
    orders = second[np.array(list(permutations(range(found.n))))] - second.mean()
    observed = abs(away @ (second - second.mean()))
    return found._replace(p=float((np.abs(orders @ away) >= observed - 1e-9).mean()))


def _correlation(measure: Any, x: Sequence[float], y: Sequence[float]) -> Correlation:
    first, second = _points(x, y)
    if len(first) < FEWEST or np.ptp(first) == 0 or np.ptp(second) == 0:
        return Correlation(math.nan, math.nan, len(first))
    found = measure(first, second)
    return Correlation(float(found.statistic), float(found.pvalue), len(first))


def regression_line(
    x: Sequence[float],
    y: Sequence[float],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    points: int = 100,
) -> Regression:
    """Fit a line by least squares, and its band by the bootstrap over points.

    Pairs are drawn with replacement, a line is fitted to each draw, and the band holds the middle `level` of
    these lines at every place. A draw of one point alone, repeated, fits no line and does not count.

    Args:
        x: places.
        y: values.
        level: share of the resampled lines within the band.
        resamples: how many draws.
        seed: of the draws.
        points: how many places, evenly spaced from the smallest to the largest x.

    Raises:
        ValueError: there are fewer than three points, or all lie at one place.
    """
    first, second = _points(x, y)
    if len(first) < FEWEST or np.ptp(first) == 0:
        raise ValueError(
            f"a line needs at least {FEWEST} points at two places or more, found {len(first)} at "
            f"{len(set(first.tolist()))}"
        )
    chosen = np.random.default_rng(seed).integers(len(first), size=(resamples, len(first)))
    chosen = chosen[np.ptp(first[chosen], axis=1) > 0]
    grid = np.linspace(first.min(), first.max(), points)
    slopes, intercepts = _lines(first[chosen], second[chosen])
    lines = slopes[:, None] * grid + intercepts[:, None]
    outside = (1 - level) / 2
    low, high = np.quantile(lines, [outside, 1 - outside], axis=0)
    slope, intercept = (float(value[0]) for value in _lines(first[None], second[None]))
    return Regression(slope, intercept, grid, slope * grid + intercept, low, high)


def _lines(x: Array, y: Array) -> tuple[Array, Array]:
    """Fit a line to each row of (R, N) points: slopes and intercepts, (R,) each."""
    centre, level = x.mean(1), y.mean(1)
    away = x - centre[:, None]
    slopes = (away * (y - level[:, None])).sum(1) / (away**2).sum(1)
    return slopes, level - slopes * centre


def mean_std(values: Sequence[float]) -> Spread:
    """Return mean and sample standard deviation.

    Raises:
        ValueError: there is no value.
    """
    if not len(values):
        raise ValueError("the mean of no value was asked for")
    given = np.asarray(values, dtype=np.float64)
    std = float(given.std(ddof=1)) if len(given) > 1 else math.nan
    return Spread(float(given.mean()), std, len(given))


def _points(x: Sequence[float], y: Sequence[float]) -> tuple[Array, Array]:
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"expected two lists of one length, found shapes {first.shape} and {second.shape}")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError(f"expected finite numbers, found {first.tolist()} and {second.tolist()}")
    return first, second
