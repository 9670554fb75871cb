"""Linear opinion pools (Stone 1961): the mixture of the sources, beside the logarithmic pool."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from hf_xst.charts.pooling import group_weights
from hf_xst.numerics import log_normalise, logsumexp, safe_log


def linear_opinion_pool(
    log_marginals: Tensor,
    weights: Tensor | Sequence[float] | None = None,
    *,
    valid: Tensor | None = None,
) -> Tensor:
    """Pool distributions over the candidates of each group: their weighted arithmetic mean.

    A candidate needs the support of one source only, so there is no floor. In a group in which a source has
    no distribution the others are pooled.

    Args:
        log_marginals: (S, B, G, C), log-probabilities of S sources; -inf is allowed.
        weights: (S,), or (S, B, G) where every group has its own; normalised here, uniform if not given.
        valid: bool (B, G, C), candidates that may get probability; all of them if not given.

    Returns:
        (B, G, C), log-probabilities that sum to one over C; all -inf in groups without any candidate.

    Raises:
        ValueError: the shape or the weights do not fit, or a log-probability is NaN.
    """
    shares = group_weights(weights, log_marginals)
    if bool(log_marginals.isnan().any()):
        raise ValueError("a log-marginal is NaN; every source must give a distribution")
    pooled = logsumexp(log_marginals + safe_log(shares)[..., None], 0)
    return log_normalise(pooled if valid is None else torch.where(valid, pooled, -torch.inf), -1)
