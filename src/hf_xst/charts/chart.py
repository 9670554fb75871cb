"""Charts: the candidates that stay allowed (Kurniawan et al. 2021, equations 3 to 6)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from hf_xst.charts.pooling import log_opinion_pool, possible_candidates, stacked_log_marginals
from hf_xst.structures.base import Structure


def threshold(log_probs: Tensor, sigma: float, valid: Tensor) -> Tensor:
    """Keep the fewest candidates of each group, likeliest first, whose probabilities sum to sigma or more.

    Candidates of probability zero are not needed for the sum; a group that has valid candidates keeps at
    least one. Ties go to the lower index.

    Args:
        log_probs: (B, G, C).
        sigma: the mass to be covered, in (0, 1].
        valid: bool (B, G, C), candidates that may be kept.

    Returns:
        bool (B, G, C).

    Raises:
        ValueError: sigma lies outside (0, 1], or a valid candidate's log-probability is NaN.
    """
    if not 0 < sigma <= 1:
        raise ValueError(f"sigma is {sigma}; expected a probability in (0, 1]")
    masked = torch.where(valid, log_probs, -torch.inf).double()
    if bool(masked.isnan().any()):
        raise ValueError("a valid candidate's log-probability is NaN")
    # Valid candidates of probability zero sort before invalid ones, so that the one kept is a valid one.
    keys = torch.where(valid, masked.clamp(min=torch.finfo(torch.float64).min), -torch.inf)
    order = keys.sort(dim=-1, descending=True, stable=True).indices
    sorted_probs = masked.gather(-1, order).exp()
    before = sorted_probs.cumsum(-1) - sorted_probs
    needed = (before < sigma) & (sorted_probs > 0)
    needed[..., 0] = True
    return torch.zeros_like(valid).scatter(-1, order, needed) & valid


def best_mask(source: Structure) -> Tensor:
    """Mark the candidates of a distribution's best structure: bool (B, G, C)."""
    return candidates_mask(source.best_candidates(), source.valid)


def candidates_mask(candidates: Tensor, like: Tensor) -> Tensor:
    """Mark one candidate a group: (B, G) of indices, -1 for none, gives bool in the shape of `like`."""
    mask = torch.zeros_like(like, dtype=torch.bool)
    return mask.scatter(-1, candidates.clamp(min=0)[..., None], (candidates >= 0)[..., None])


def kept_by_sources(log_marginals: Tensor, sigma: float, valid: Tensor) -> Tensor:
    """Threshold each source alone: bool (S, B, G, C).

    Args:
        log_marginals: (S, B, G, C).
        sigma: the mass that each source keeps.
        valid: bool (B, G, C), candidates that may be kept.

    Raises:
        ValueError: as `threshold`.
    """
    return torch.stack([threshold(own, sigma, valid) for own in log_marginals])


def with_best(chart: Tensor, best: Sequence[Tensor] | Tensor) -> Tensor:
    """Allow whole structures as well: bool (B, G, C), as the chart.

    Args:
        chart: bool (B, G, C).
        best: S times (B, G), indices of candidates, -1 for none.
    """
    for candidates in best:
        chart = chart | candidates_mask(candidates, chart)
    return chart


def union_chart(sources: Sequence[Structure], sigma: float) -> Tensor:
    """Make the chart of PPTX: the union of the sources' likeliest candidates and best structures.

    Args:
        sources: distributions over one space.
        sigma: the mass that each source keeps.

    Returns:
        bool (B, G, C).

    Raises:
        ValueError: there is no source, or their alphabets differ in size.
    """
    kept = kept_by_sources(stacked_log_marginals(sources), sigma, possible_candidates(sources))
    return with_best(kept.any(0), [source.best_candidates() for source in sources])


def pooled_chart(
    sources: Sequence[Structure],
    sigma: float,
    weights: Tensor | Sequence[float] | None = None,
    floor: float = 0.0,
) -> Tensor:
    """Make the chart of an opinion pool: its likeliest candidates, and every source's best structure.

    Args:
        sources: distributions over one space.
        sigma: the mass that the pool keeps.
        weights: (S,), uniform if not given; a source of weight 0 still adds its best structure.
        floor: see `log_opinion_pool`.

    Returns:
        bool (B, G, C).
    """
    marginals = stacked_log_marginals(sources)
    valid = possible_candidates(sources)
    chart = threshold(log_opinion_pool(marginals, weights, floor, valid=valid), sigma, valid)
    return with_best(chart, [source.best_candidates() for source in sources])
