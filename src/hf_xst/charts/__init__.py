"""The generic half: pooling, charts, loss, weights and quality. It sees groups of candidates only."""

from hf_xst.charts.chart import (
    ChartSettings,
    SourceDistributions,
    best_mask,
    make_chart,
    pool,
    pooled_chart,
    threshold,
    union_chart,
)
from hf_xst.charts.gold_groups import GoldGroups
from hf_xst.charts.loss import chart_loss, soft_loss
from hf_xst.charts.pooling import linear_opinion_pool, log_opinion_pool, stacked_log_marginals
from hf_xst.charts.quality import chart_quality, combine_quality
from hf_xst.charts.weights import learn_weights

__all__ = [
    "ChartSettings",
    "GoldGroups",
    "SourceDistributions",
    "best_mask",
    "chart_loss",
    "chart_quality",
    "combine_quality",
    "learn_weights",
    "linear_opinion_pool",
    "log_opinion_pool",
    "make_chart",
    "pool",
    "pooled_chart",
    "soft_loss",
    "stacked_log_marginals",
    "threshold",
    "union_chart",
]
