"""Learn pool weights from a few gold structures: the optimum of a convex problem.

The mean negative log-likelihood of the gold candidates under the pool is convex in the weights (Heskes 1998;
Kurniawan et al. 2021, section "Learning the Opinion Pool Weight Factors"), so there is one best value. A few
steps of sequential quadratic programming find the face of the simplex, Newton's method polishes on it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import minimize
from torch import Tensor

from hf_xst.charts.gold_groups import Array, GoldGroups

# Newton's method stops when no weight changes by more than STEP; weights below ZERO count as zero.
STEP = 1e-13
ZERO = 1e-9
# Weight of a source that is useful only for what it excludes (at floor 0).
TRACE = 1e-6
# Faces of the simplex to try per source before the search fails.
_MOST_FACES = 20


def learn_weights(
    log_marginals: Tensor, gold: Tensor, floor: float = 0.0, *, valid: Tensor | None = None
) -> Tensor:
    """Return the weights that make the gold candidates likeliest under the pool.

    Args:
        log_marginals: (S, B, G, C), log-probabilities of S sources.
        gold: (B, G), index of the right candidate, -1 for none.
        floor: see `log_opinion_pool`.
        valid: bool (B, G, C), candidates that may get probability; by default those that any source supports.

    Returns:
        (S,) weights, not negative, summing to one, in the caller's dtype.

    Raises:
        ValueError: there is no gold candidate, or a source gives one probability zero at floor 0 (the
            message names sentence and group).
    """
    groups = GoldGroups.of(log_marginals, gold, floor, valid=valid)
    groups.check()
    return torch.as_tensor(best_weights(groups), dtype=log_marginals.dtype, device=log_marginals.device)


def best_weights(groups: GoldGroups) -> Array:
    """Return the optimum, (S,), for groups that `GoldGroups.check` has found usable.

    In the problem a candidate that one source excludes is excluded by the pool, whatever the source's weight.
    `log_opinion_pool` ignores sources of weight 0, so one that excludes a candidate keeps a small weight.
    """
    problem = PoolProblem(groups)
    weights = _polish(problem, _search(problem))
    excluding = np.isneginf(groups.logs).any(0) & (weights < TRACE)
    weights = np.where(excluding, TRACE, weights)
    return np.asarray(weights / weights.sum())


class PoolProblem:
    """Mean negative log-likelihood of gold candidates, its gradient and Hessian by the weights.

    Args:
        groups: at least one. A candidate that one source excludes counts as excluded by the pool.
    """

    def __init__(self, groups: GoldGroups) -> None:
        self.groups = groups.shared()
        self.gold_logs = self.groups.logs[self.groups.gold]  # (M, S)

    def value(self, weights: Array) -> float:
        """Return the mean over groups."""
        return float(self.groups.losses(weights).mean())

    def gradient(self, weights: Array) -> Array:
        """Return its derivative, (S,)."""
        probs = np.exp(self.groups.log_probs(weights))
        return np.asarray(probs @ self.groups.logs - self.gold_logs.sum(0)) / len(self.groups)

    def hessian(self, weights: Array) -> Array:
        """Return its second derivative, (S, S)."""
        probs = np.exp(self.groups.log_probs(weights))
        centred = self.groups.logs - self.groups.expected(probs)[self.groups.owner]
        return np.asarray((centred.T * probs) @ centred) / len(self.groups)


def _search(problem: PoolProblem) -> Array:
    sources = problem.groups.sources
    found = minimize(
        problem.value,
        np.full(sources, 1 / sources),
        jac=problem.gradient,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * sources,
        constraints=[{"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like}],
        options={"ftol": 1e-15, "maxiter": 500},
    )
    weights = np.clip(found.x, 0, None)
    return np.asarray(weights / weights.sum())


def _polish(problem: PoolProblem, weights: Array) -> Array:
    """Newton's method within a face of the simplex, which grows while a weight at zero would help."""
    free = weights > ZERO
    for _ in range(_MOST_FACES * len(weights)):
        weights = _newton(problem, np.where(free, weights, 0.0), free)
        gradient = problem.gradient(weights)
        free = weights > ZERO
        helpful = ~free & (gradient < gradient[free].mean() - ZERO)
        if not helpful.any():
            return np.where(free, weights, 0.0)
        first = int(np.argmin(np.where(helpful, gradient, np.inf)))
        free[first], weights[first] = True, 2 * ZERO
    raise RuntimeError(f"the weights of {len(weights)} sources do not settle; last {weights.tolist()}")


def _newton(problem: PoolProblem, weights: Array, free: npt.NDArray[np.bool_]) -> Array:
    weights = weights / weights.sum()
    count = int(free.sum())
    for _ in range(50):
        gradient, hessian = problem.gradient(weights), problem.hessian(weights)
        system = np.zeros((count + 1, count + 1))
        system[:count, :count] = hessian[np.ix_(free, free)]
        system[:count, count] = system[count, :count] = 1
        step = np.zeros_like(weights)
        step[free] = np.linalg.lstsq(system, np.append(-gradient[free], 0.0), rcond=None)[0][:count]
        # As far along the step as no weight turns negative.
        shrinking = step < 0
        reach = min(1.0, float((-weights[shrinking] / step[shrinking]).min(initial=1.0)))
        trial = np.clip(weights + reach * step, 0, None)
        if problem.value(trial) > problem.value(weights) + 1e-15 or np.abs(trial - weights).max() < STEP:
            break
        weights = trial / trial.sum()
    return weights
