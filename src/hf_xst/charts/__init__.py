"""The generic half: pooling, charts, loss, weights, quality. It sees groups of candidates, nothing else."""

from .chart import best_mask, pooled_chart, threshold, union_chart
from .loss import chart_loss, soft_loss
from .pooling import log_opinion_pool, pool, stacked_log_marginals
from .quality import chart_quality, combine_quality
from .weights import learn_weights

__all__ = [
    "best_mask",
    "chart_loss",
    "chart_quality",
    "combine_quality",
    "learn_weights",
    "log_opinion_pool",
    "pool",
    "pooled_chart",
    "soft_loss",
    "stacked_log_marginals",
    "threshold",
    "union_chart",
]
