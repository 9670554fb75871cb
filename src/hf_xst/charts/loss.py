"""Compute the training objectives: minus the log-probability of a chart, and distillation from the pool.

The former is equation 1 of Kurniawan et al. (2021); the latter, the cross-entropy against the pool, is
teacher-student learning (Wu et al. 2020).
"""

from __future__ import annotations

import torch
from torch import Tensor

from hf_xst.structures.base import Structure


def chart_loss(distribution: Structure, chart: Tensor, total: Tensor | None = None) -> Tensor:
    """Return log Z - log Z(chart) for each sentence.

    Args:
        distribution: the model's distribution over the structures of B sentences.
        chart: bool (B, G, C), the allowed candidates.
        total: the distribution's `total()`, if it is known.

    Returns:
        (B,) in nats, at least 0; infinite where the chart holds no structure.

    Raises:
        ValueError: the chart's shape is not that of the distribution's groups.
    """
    expected = tuple(distribution.valid.shape)
    if tuple(chart.shape) != expected:
        raise ValueError(f"the chart has shape {tuple(chart.shape)}; expected (B, G, C) = {expected}")
    # The difference is taken before rounding; sharp scores make both terms huge.
    return -distribution.log_mass(distribution.part_view(chart.bool()), total)


def soft_loss(distribution: Structure, log_probs: Tensor, total: Tensor | None = None) -> Tensor:
    """Return the cross-entropy of the distribution against a pool, for each sentence.

    The pool is the distribution over structures in which a structure's probability is in proportion to the
    product of its candidates' pooled probabilities. Its marginals are taken, not the pooled probabilities
    themselves: these were normalised group by group, so that no distribution over structures need have them,
    and a loss against them has no lower bound.

    Args:
        distribution: the model's distribution over the structures of B sentences.
        log_probs: (B, G, C), pooled log-probabilities; -inf where a candidate has none.
        total: the distribution's `total()`, if it is known.

    Returns:
        (B,) in nats, at least the pool's entropy; infinite where the pool has no structure. Candidates that
        the distribution cannot use do not count.

    Raises:
        ValueError: the shape is not that of the distribution's groups.
    """
    expected = tuple(distribution.valid.shape)
    if tuple(log_probs.shape) != expected:
        raise ValueError(
            f"the log-probabilities have shape {tuple(log_probs.shape)}; expected (B, G, C) = {expected}"
        )
    possible = distribution.valid & (distribution.group_view(distribution.scores.detach()) > -torch.inf)
    scores = torch.where(possible, log_probs.detach(), -torch.inf).to(distribution.scores.dtype)
    pool = distribution.with_scores(distribution.part_view(scores))
    marginals, pool_total = pool.marginals_and_total()
    losses = distribution.cross_entropy(pool.group_view(marginals), total)
    return torch.where(pool_total == -torch.inf, torch.inf, losses)
