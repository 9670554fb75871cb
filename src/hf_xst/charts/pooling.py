"""Pool distributions over groups of candidates (Kurniawan et al. 2021, equation 6; Stone 1961)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from hf_xst.numerics import at_least_single, log_normalise, logsumexp, require, safe_log
from hf_xst.structures.base import Structure


def normalised_weights(weights: Tensor | Sequence[float] | None, sources: int, like: Tensor) -> Tensor:
    """Return weights that sum to one over the sources, (S,) or (S, B, G); uniform by default.

    They get the precision and device of `like`, a tensor (S, B, G, C).

    Raises:
        ValueError: the shape is neither of these, a weight is negative or not finite, or all are zero.
    """
    if weights is None:
        return like.new_full((sources,), 1 / sources)
    given = torch.as_tensor(weights, dtype=like.dtype, device=like.device)
    if given.shape not in ((sources,), (sources, *like.shape[1:3])):
        raise ValueError(
            f"expected a weight for each of {sources} sources, (S,) or (S, B, G); found shape "
            f"{tuple(given.shape)}"
        )
    total = given.sum(0)
    if not bool(torch.isfinite(given).all()) or bool((given < 0).any()) or not bool((total > 0).all()):
        raise ValueError(
            f"weights must be finite, not negative, and not all zero; found {given.tolist()!s:.80}"
        )
    return given / total


def group_weights(weights: Tensor | Sequence[float] | None, log_marginals: Tensor) -> Tensor:
    """Return normalised weights that broadcast over groups, (S, 1, 1) or (S, B, G); reject NaN and +inf."""
    if log_marginals.dim() != 4:
        raise ValueError(f"expected log-marginals of shape (S, B, G, C), found {tuple(log_marginals.shape)}")
    check_log_marginals(log_marginals)
    normalised = normalised_weights(weights, log_marginals.shape[0], log_marginals)
    return normalised[:, None, None] if normalised.dim() == 1 else normalised


def check_log_marginals(log_marginals: Tensor) -> None:
    """Raise ValueError if a log-marginal is NaN or +inf."""
    require(log_marginals < torch.inf, "a log-marginal is NaN or +inf; every source must give a distribution")


def log_opinion_pool(
    log_marginals: Tensor,
    weights: Tensor | Sequence[float] | None = None,
    floor: float = 0.0,
    *,
    valid: Tensor | None = None,
) -> Tensor:
    """Pool distributions over the candidates of each group: the weighted geometric mean, normalised.

    A candidate to which no source gives any probability stays at probability zero whatever the floor, unless
    `valid` says otherwise. A source of weight zero does not enter the pool. At floor 0 a candidate
    requires support from every source of positive weight; in a group without such a candidate the pool is
    uniform over the best candidates of those sources.

    Args:
        log_marginals: (S, B, G, C), log-probabilities of S sources; -inf is allowed.
        weights: (S,), or (S, B, G) with one per group; normalised here, uniform by default.
        floor: added to every probability before the logarithm (published: 1e-9).
        valid: bool (B, G, C), candidates that may get probability; by default those that any source supports.

    Returns:
        (B, G, C), log-probabilities that sum to one over C; all -inf in groups without any candidate.

    Raises:
        ValueError: the shape, the weights or the floor do not fit, or a log-probability is NaN or +inf.
    """
    normalised = group_weights(weights, log_marginals)
    possible = (log_marginals > -torch.inf).any(0) if valid is None else valid
    supported, pooled = possible, torch.zeros_like(log_marginals[0])
    for source, weight in zip(log_marginals, normalised, strict=True):
        logs = with_floor(source, floor)
        if floor == 0:
            missing = logs == -torch.inf
            supported = supported & ~(missing & (weight > 0)[..., None])
            # Zero times minus infinity must reach neither the value nor the gradient.
            logs = logs.masked_fill(missing, 0.0)
        pooled = pooled + logs * weight[..., None]
    alone = possible.any(-1) & ~supported.any(-1)
    if floor == 0 and bool(alone.any()):
        counts = (log_marginals > -torch.inf).any(-1) & (normalised > 0)  # (S, B, G)
        best = log_marginals.argmax(-1, keepdim=True)
        marked = torch.zeros_like(log_marginals, dtype=torch.bool).scatter(-1, best, counts[..., None])
        supported = torch.where(alone[..., None], marked.any(0) & possible, supported)
        pooled = torch.where(alone[..., None], 0.0, pooled)
    return log_normalise(torch.where(supported, pooled, -torch.inf), -1)


def with_floor(log_probs: Tensor, floor: float) -> Tensor:
    """Add a floor to probabilities, given and returned as logarithms of any shape; not normalised.

    A positive floor is at least the smallest number that the precision holds in full.
    """
    if not 0 <= floor < math.inf:
        raise ValueError(f"floor is {floor}; expected a probability of at least 0")
    if floor == 0:
        return log_probs
    probs = at_least_single(log_probs).exp()
    return (probs + max(floor, torch.finfo(probs.dtype).tiny)).log().to(log_probs.dtype)


def floored(log_marginals: Tensor, floor: float, valid: Tensor) -> Tensor:
    """Add a floor to the probabilities of valid candidates and normalise: (S, B, G, C).

    The pool of the result at floor 0 is the pool of `log_marginals` at that floor.
    """
    return log_normalise(with_floor(log_marginals, floor).masked_fill(~valid, -torch.inf), -1)


def unsupported_groups(log_marginals: Tensor, weights: Tensor | Sequence[float] | None = None) -> Tensor:
    """Mark groups with candidates on which the sources of positive weight share no support: bool (B, G)."""
    idle = group_weights(weights, log_marginals) == 0
    has = log_marginals > -torch.inf
    shared = (has | idle[..., None]).all(0).any(-1)
    return has.any(0).any(-1) & ~shared


def stacked_log_marginals(sources: Sequence[Structure]) -> Tensor:
    """Return the log-marginals of S distributions over one space, (S, B, G, C); -inf for probability 0."""
    if not sources:
        raise ValueError("no source; at least one distribution is required")
    shapes = {tuple(source.scores.shape) for source in sources}
    if len(shapes) > 1:
        raise ValueError(f"the sources' scores have shapes {sorted(shapes)}; map them to one label set first")
    return torch.stack([source.group_view(source.marginals()).log() for source in sources])


def linear_opinion_pool(
    log_marginals: Tensor,
    weights: Tensor | Sequence[float] | None = None,
    *,
    valid: Tensor | None = None,
) -> Tensor:
    """Pool distributions over the candidates of each group: their weighted arithmetic mean.

    The support of one source is enough, so there is no floor. In a group in which a source has no
    distribution the others are pooled.

    Arguments, result and errors are those of `log_opinion_pool`; by default all candidates are valid.
    """
    normalised = group_weights(weights, log_marginals)
    pooled = logsumexp(log_marginals + safe_log(normalised)[..., None], 0)
    return log_normalise(pooled if valid is None else torch.where(valid, pooled, -torch.inf), -1)
