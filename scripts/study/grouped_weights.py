"""Pool weights by group, from how certain each source is of it (after Hu et al. 2021, in its simplest form).

The weight of a source in a group is a softmax over the sources of a bias plus a linear function of its
certainty there. With all slopes 0 these are weights for all groups alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.special import softmax
from torch import Tensor

from hf_xst.charts.gold_groups import Array, GoldGroups
from hf_xst.numerics import zero_if_infinite

PARAMETERS = ("bias", "negative_entropy", "log_top")


def certainty(log_marginals: Tensor) -> Tensor:
    """Return minus the entropy and the log-probability of the likeliest candidate: (..., C) to (..., 2).

    Both are at most 0 nats, and 0 in groups without candidates.
    """
    entropy = -(log_marginals.exp() * zero_if_infinite(log_marginals)).sum(-1)
    return torch.stack([-entropy, zero_if_infinite(log_marginals.amax(-1))], -1)


def certainty_of_groups(groups: GoldGroups) -> Array:
    """Return the certainty of S sources of M groups with gold, (M, S, 2)."""
    finite = np.where(np.isfinite(groups.logs), groups.logs, 0.0)
    negative_entropy = np.add.reduceat(np.exp(groups.logs) * finite, groups.starts)
    return np.stack([negative_entropy, np.maximum.reduceat(groups.logs, groups.starts)], -1)


@dataclass(frozen=True)
class GroupedWeights:
    """The parameters of the weights.

    Args:
        parameters: (S, 3), a bias and two slopes for each source.
    """

    parameters: Array

    def weights(self, log_marginals: Tensor) -> Tensor:
        """Return the weights (S, B, G) for `log_opinion_pool`, given log-marginals (S, B, G, C)."""
        parameters = log_marginals.new_tensor(self.parameters)
        slopes = torch.einsum("sbgf,sf->sbg", certainty(log_marginals), parameters[:, 1:])
        return torch.softmax(parameters[:, 0, None, None] + slopes, 0)

    def of_groups(self, groups: GoldGroups) -> Array:
        """Return the weights of groups with gold, (M, S)."""
        return _weights(self.parameters, certainty_of_groups(groups))

    def by_name(self, names: Sequence[str]) -> dict[str, dict[str, float]]:
        """Return the parameters by source, for JSON."""
        rows = zip(names, self.parameters.tolist(), strict=True)
        return {name: dict(zip(PARAMETERS, row, strict=True)) for name, row in rows}

    @classmethod
    def from_names(cls, content: Mapping[str, Any], names: Sequence[str]) -> GroupedWeights:
        """Read the result of `by_name`, in the order of `names`."""
        return cls(np.array([[float(content[name][key]) for key in PARAMETERS] for name in names]))


def learn_grouped_weights(groups: GoldGroups, *, shrinkage: float = 1e-3) -> GroupedWeights:
    """Learn weights by group from groups with gold, by a quasi-Newton method (L-BFGS).

    The objective is the mean negative log-likelihood of the gold candidates under the pool plus `shrinkage`
    times the sum of squared parameters, which keeps these finite and the weights near uniform where there is
    little to learn from. It is not convex; the search starts from uniform weights.

    Args:
        groups: `GoldGroups.check` must have accepted them.
        shrinkage: at least 0.
    """
    features, usable = certainty_of_groups(groups), groups.shared()
    gold_logs = usable.logs[usable.gold]

    def objective(flat: Array) -> tuple[float, Array]:
        parameters = flat.reshape(usable.sources, -1)
        weights = _weights(parameters, features)
        log_probs = usable.log_probs(weights)
        slope = usable.expected(np.exp(log_probs)) - gold_logs  # (M, S), by the weights
        slope = weights * (slope - (weights * slope).sum(1, keepdims=True))  # by the logits
        by_feature = np.einsum("ms,msf->sf", slope, features)
        gradient = np.column_stack([slope.sum(0), by_feature]) / len(usable) + 2 * shrinkage * parameters
        value = -log_probs[usable.gold].mean() + shrinkage * (parameters**2).sum()
        return float(value), gradient.ravel()

    start = np.zeros(usable.sources * len(PARAMETERS))
    result = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 1000})
    return GroupedWeights(np.asarray(result.x).reshape(usable.sources, -1))


def _weights(parameters: Array, features: Array) -> Array:
    logits = parameters[:, 0] + np.einsum("msf,sf->ms", features, parameters[:, 1:])
    return np.asarray(softmax(logits, axis=1))
