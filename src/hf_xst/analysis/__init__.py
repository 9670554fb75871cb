"""What charts, pools and sources are worth, measured in one pass over a data set."""

from __future__ import annotations

from hf_xst.analysis.describe import describe, standard_charts
from hf_xst.analysis.divergence import split_distance
from hf_xst.analysis.quality import compare
from hf_xst.analysis.selection import rank_correlations
from hf_xst.analysis.statistics import (
    Correlation,
    Regression,
    Spread,
    mean_std,
    pearson,
    regression_line,
    spearman,
)
from hf_xst.training.selection import rank_sources, select_sources

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
