"""The training objective: minus the log-probability of a chart (Kurniawan et al. 2021, equation 1)."""

from __future__ import annotations

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
