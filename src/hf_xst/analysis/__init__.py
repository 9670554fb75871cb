"""What charts, pools and sources are worth, measured in one pass over a data set."""

from __future__ import annotations

from hf_xst.training.selection import rank_sources, select_sources

from .describe import describe, standard_charts
from .divergence import split_distance
from .quality import compare
from .selection import rank_correlations
from .statistics import Correlation, Regression, Spread, mean_std, pearson, regression_line, spearman

__all__ = [
    "Correlation",
    "Regression",
    "Spread",
    "compare",
    "describe",
    "mean_std",
    "pearson",
    "rank_correlations",
    "rank_sources",
    "regression_line",
    "select_sources",
    "spearman",
    "split_distance",
    "standard_charts",
]
