"""The generic half: pooling, charts, loss, weights, quality. It sees groups of candidates, nothing else."""

from hf_xst.charts.chart import best_mask, pooled_chart, threshold, union_chart
from hf_xst.charts.gold_groups import GoldGroups
from hf_xst.charts.grouped_weights import GroupedWeights, learn_grouped_weights
from hf_xst.charts.loss import chart_loss, soft_loss
from hf_xst.charts.pooling import linear_opinion_pool, log_opinion_pool, pool, stacked_log_marginals
from hf_xst.charts.published_weights import published_weights
from hf_xst.charts.quality import chart_quality, combine_quality
from hf_xst.charts.truth import infer_truth
from hf_xst.charts.weights import learn_weights

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
