"""The generic half: pooling, charts, loss, weights, quality. It sees groups of candidates, nothing else."""

from .chart import best_mask, pooled_chart, threshold, union_chart
from .gold_groups import GoldGroups
from .grouped_weights import GroupedWeights, learn_grouped_weights
from .linear import linear_opinion_pool
from .loss import chart_loss, soft_loss
from .pooling import log_opinion_pool, pool, stacked_log_marginals
from .published_weights import published_weights
from .quality import chart_quality, combine_quality
from .truth import infer_truth
from .weights import learn_weights

__all__ = [
    "GoldGroups",
    "GroupedWeights",
    "best_mask",
    "chart_loss",
    "chart_quality",
    "combine_quality",
    "infer_truth",
    "learn_grouped_weights",
    "learn_weights",
    "linear_opinion_pool",
    "log_opinion_pool",
    "pool",
    "pooled_chart",
    "published_weights",
    "soft_loss",
    "stacked_log_marginals",
    "threshold",
    "union_chart",
]
