"""Weights of the sources for every group, told from how sure each source is of it.

A few labelled sentences say how far each source's certainty can be relied on (after Hu et al. 2021, in its
simplest form): the weight of a source in a group is a softmax over the sources of a number of its own plus a
linear function of its `certainty` there. With all slopes 0 these are weights for all groups alike.
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

from hf_xst.charts.gold_groups import FEATURES, Array, GoldGroups, certainty

BIAS = "bias"


@dataclass(frozen=True)
class GroupedWeights:
    """The parameters of the weights.

    Args:
        parameters: (S, 3), for each source a bias and the slopes of its `FEATURES`.
    """

    parameters: Array

    def weights(self, log_marginals: Tensor) -> Tensor:
        """Return the weights (S, B, G) for `log_opinion_pool`.

        Args:
            log_marginals: (S, B, G, C), log-probabilities of the S sources.

        Raises:
            ValueError: the number of sources is another one.
        """
        sources = len(self.parameters)
        if log_marginals.dim() != 4 or log_marginals.shape[0] != sources:
            raise ValueError(
                f"expected log-marginals (S, B, G, C) of {sources} sources, found shape "
                f"{tuple(log_marginals.shape)}"
            )
        parameters = log_marginals.new_tensor(self.parameters)
        by_group = torch.einsum("sbgf,sf->sbg", certainty(log_marginals), parameters[:, 1:])
        return torch.softmax(parameters[:, 0, None, None] + by_group, 0)

    def of_groups(self, groups: GoldGroups) -> Array:
        """Return the weights of groups with gold, (M, S)."""
        return _weights(self.parameters, groups)

    def by_name(self, names: Sequence[str]) -> dict[str, dict[str, float]]:
        """Write the parameters down by the sources' names, for JSON."""
        return {
            name: dict(zip((BIAS, *FEATURES), row, strict=True))
            for name, row in zip(names, self.parameters.tolist(), strict=True)
        }

    @classmethod
    def from_names(cls, content: Mapping[str, Any], names: Sequence[str]) -> GroupedWeights:
        """Read what `by_name` wrote, in the order of `names`.

        Raises:
            ValueError: the sources or their parameters are others.
        """
        keys = (BIAS, *FEATURES)
        if set(content) != set(names):
            raise ValueError(
                f"weights by group are for {', '.join(map(str, content)) or 'no source'}; the sources are "
                f"{', '.join(names)}"
            )
        try:
            rows = [[float(content[name][key]) for key in keys] for name in names]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"expected the numbers {', '.join(keys)} for each source ({error!r})") from error
        return cls(np.array(rows))


def learn_grouped_weights(groups: GoldGroups, *, shrinkage: float = 1e-3) -> GroupedWeights:
    """Learn weights by group from groups with gold, by a quasi-Newton method (L-BFGS).

    What is minimised is the mean negative log-likelihood of the gold candidates under the pool plus
    `shrinkage` times the sum of all squared parameters, which keeps these finite and the weights near to even
    where there is little to learn from. It is not convex; the search starts from even weights.

    Args:
        groups: see `GoldGroups`; `check` must have found them usable.
        shrinkage: at least 0.
    """
    usable = groups.shared()
    gold_logs = usable.logs[usable.gold]

    def objective(flat: Array) -> tuple[float, Array]:
        parameters = flat.reshape(usable.sources, -1)
        weights = _weights(parameters, usable)
        log_probs = usable.log_probs(weights)
        slope = usable.expected(np.exp(log_probs)) - gold_logs  # (M, S), by the weights
        slope = weights * (slope - (weights * slope).sum(1, keepdims=True))  # by the logits
        by_feature = np.einsum("ms,msf->sf", slope, usable.certainty)
        gradient = np.column_stack([slope.sum(0), by_feature]) / len(usable) + 2 * shrinkage * parameters
        value = -log_probs[usable.gold].mean() + shrinkage * (parameters**2).sum()
        return float(value), gradient.ravel()

    start = np.zeros(usable.sources * (1 + len(FEATURES)))
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 1000})
    return GroupedWeights(np.asarray(found.x).reshape(usable.sources, -1))


def _weights(parameters: Array, groups: GoldGroups) -> Array:
    logits = parameters[:, 0] + np.einsum("msf,sf->ms", groups.certainty, parameters[:, 1:])
    return np.asarray(softmax(logits, axis=1))
