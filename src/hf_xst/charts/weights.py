"""Pool weights from a few gold structures: the optimum of a convex problem.

The mean negative log-likelihood of the gold candidates under the pool is convex in the weights (Heskes 1998;
Kurniawan et al. 2021, section "Learning the Opinion Pool Weight Factors"), so there is one best value. A few
steps of sequential quadratic programming find the face of the simplex, Newton's method polishes on it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from torch import Tensor

from hf_xst.numerics import safe_log

Array = npt.NDArray[np.float64]
# Newton's steps end when no weight moves more than this; weights below ZERO lie on the border.
STEP = 1e-13
ZERO = 1e-9


def learn_weights(log_marginals: Tensor, gold: Tensor, floor: float = 0.0) -> Tensor:
    """Return the weights that make the gold candidates likeliest under the pool.

    Args:
        log_marginals: (S, B, G, C), log-probabilities of S sources.
        gold: (B, G), index of the right candidate, -1 where there is none.
        floor: see `log_opinion_pool`.

    Returns:
        (S,) weights, not negative, summing to one, in the caller's dtype.

    Raises:
        ValueError: there is no gold candidate, or a source gives one probability zero at floor 0 (the
            message names sentence and group).
    """
    if log_marginals.dim() != 4 or tuple(gold.shape) != tuple(log_marginals.shape[1:3]):
        raise ValueError(
            f"expected log-marginals (S, B, G, C) and gold (B, G); found {tuple(log_marginals.shape)} "
            f"and {tuple(gold.shape)}"
        )
    problem = _problem(log_marginals.detach().double(), gold, floor)
    weights = _polish(problem, _search(problem))
    return torch.as_tensor(weights, dtype=log_marginals.dtype, device=log_marginals.device)


class _Problem:
    """Mean negative log-likelihood of gold candidates, its gradient and Hessian.

    Args:
        logs: (M, S, C), zero where a candidate is excluded.
        excluded: bool (M, C), candidates that no pool allows.
        gold_logs: (M, S).
    """

    def __init__(self, logs: Array, excluded: npt.NDArray[np.bool_], gold_logs: Array) -> None:
        self.logs, self.gold_logs = logs, gold_logs
        self.barrier = np.where(excluded, -np.inf, 0.0)

    def pooled(self, weights: Array) -> Array:
        return np.asarray(np.einsum("s,msc->mc", weights, self.logs) + self.barrier)

    def value(self, weights: Array) -> float:
        return float(np.mean(logsumexp(self.pooled(weights), axis=-1) - self.gold_logs @ weights))

    def derivatives(self, weights: Array) -> tuple[Array, Array]:
        probs = softmax(self.pooled(weights), axis=-1)  # (M, C)
        expected = np.einsum("mc,msc->ms", probs, self.logs)
        centred = self.logs - expected[..., None]
        gradient = (expected - self.gold_logs).mean(0)
        hessian = np.einsum("mc,msc,mtc->st", probs, centred, centred, optimize=True) / len(self.logs)
        return gradient, hessian


def _problem(log_marginals: Tensor, gold: Tensor, floor: float) -> _Problem:
    chosen = gold >= 0
    if not bool(chosen.any()):
        raise ValueError("gold holds no candidate (all are -1); weights need labelled examples")
    logs = safe_log(log_marginals.exp() + floor) if floor > 0 else log_marginals
    logs = logs.permute(1, 2, 0, 3)[chosen]  # (M, S, C)
    gold_logs = logs.gather(-1, gold[chosen][:, None, None].expand(-1, logs.shape[1], 1))[..., 0]
    impossible = (gold_logs == -torch.inf).any(-1)
    if bool(impossible.any()):
        places = torch.nonzero(chosen)[impossible].tolist()
        named = ", ".join(f"(sentence {b}, group {g})" for b, g in places[:10])
        more = f" and {len(places) - 10} more" if len(places) > 10 else ""
        raise ValueError(
            f"a source gives the gold candidate probability 0 in {named}{more}; "
            "use a floor such as 1e-9, or leave these out"
        )
    # A candidate that one source excludes is excluded by every pool in which that source has weight.
    excluded = (logs == -torch.inf).any(1)
    finite = logs.masked_fill(excluded[:, None], 0.0)
    return _Problem(finite.numpy(force=True), excluded.numpy(force=True), gold_logs.numpy(force=True))


def _search(problem: _Problem) -> Array:
    sources = problem.logs.shape[1]
    found = minimize(
        problem.value,
        np.full(sources, 1 / sources),
        jac=lambda weights: problem.derivatives(weights)[0],
        method="SLSQP",
        bounds=[(0.0, 1.0)] * sources,
        constraints=[{"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like}],
        options={"ftol": 1e-15, "maxiter": 500},
    )
    weights = np.clip(found.x, 0, None)
    return np.asarray(weights / weights.sum())


def _polish(problem: _Problem, weights: Array) -> Array:
    """Newton's method within a face of the simplex; the face grows while a weight at zero would help."""
    free = weights > ZERO
    while True:
        weights = _newton(problem, np.where(free, weights, 0.0), free)
        gradient, _ = problem.derivatives(weights)
        free = weights > ZERO
        helpful = ~free & (gradient < gradient[free].mean() - ZERO)
        if not helpful.any():
            return np.where(free, weights, 0.0)
        first = int(np.argmin(np.where(helpful, gradient, np.inf)))
        free[first], weights[first] = True, 2 * ZERO


def _newton(problem: _Problem, weights: Array, free: npt.NDArray[np.bool_]) -> Array:
    weights = weights / weights.sum()
    count = int(free.sum())
    for _ in range(50):
        gradient, hessian = problem.derivatives(weights)
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
