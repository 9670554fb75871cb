"""Training objectives: minus the log-probability of a chart, and distillation.

The former is equation 1 of Kurniawan et al. (2021); the latter, the cross-entropy against pooled marginals
themselves, is teacher-student learning as of Wu et al. (2020).
"""

from __future__ import annotations

import torch
from torch import Tensor

from hf_xst.structures.base import Structure


def chart_loss(distribution: Structure, chart: Tensor) -> Tensor:
    """Return log Z - log Z(chart) for each sentence.

    Args:
        distribution: the model's distribution over the structures of B sentences.
        chart: bool (B, G, C), the allowed candidates.

    Returns:
        (B,) in nats, at least 0; infinite where the chart holds no structure.

    Raises:
        ValueError: the chart's shape is not that of the distribution's groups.
    """
    expected = tuple(distribution.valid.shape)
    if tuple(chart.shape) != expected:
        raise ValueError(f"the chart has shape {tuple(chart.shape)}; expected (B, G, C) = {expected}")
    # The difference is taken before rounding; sharp scores make both terms huge.
    return -distribution.log_mass(distribution.part_view(chart.bool()))


def soft_loss(distribution: Structure, marginals: Tensor) -> Tensor:
    """Return the cross-entropy of the distribution against pooled marginals, for each sentence.

    Candidates that the distribution cannot use do not count; what is left of a group is normalised.

    Args:
        distribution: the model's distribution over the structures of B sentences.
        marginals: (B, G, C), not negative; groups without any mass have no say.

    Returns:
        (B,) in nats. It is at least the entropy of the best such distribution, not 0.

    Raises:
        ValueError: the shape is not that of the distribution's groups.
    """
    possible = distribution.valid & (distribution.group_view(distribution.scores.detach()) > -torch.inf)
    if tuple(marginals.shape) != tuple(possible.shape):
        raise ValueError(
            f"the marginals have shape {tuple(marginals.shape)}; expected (B, G, C) = {tuple(possible.shape)}"
        )
    kept = torch.where(possible, marginals.double(), 0.0)
    total = kept.sum(-1, keepdim=True)
    return distribution.cross_entropy(kept / total.masked_fill(total == 0, 1.0))
