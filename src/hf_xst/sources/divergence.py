"""How far a pool is from gold, split into the sources' error and their diversity.

For gold, which puts all probability on one candidate, the divergence is minus the log of that candidate's
probability under the pool (Kurniawan et al. 2021, equations 12 and 13). It is the weighted mean of the
sources' divergences (error) less the weighted mean of the divergences from pool to source (diversity), and
the latter is minus the log of the pool's normaliser (Heskes 1998).

The paper divides the sum over all groups by the number of words. The published code divides by the number of
groups instead, which for sequences is another one: its pairs at a sentence's two ends count too. Both are
given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from hf_xst.charts import log_opinion_pool
from hf_xst.charts.pooling import normalised_weights
from hf_xst.numerics import logsumexp
from hf_xst.sources.opinions import floored
from hf_xst.sources.quality import SCOPES, by_scope, counted_groups
from hf_xst.structures.base import Structure

TERMS = ("kl", "error", "diversity")


def split_distance(
    log_marginals: Tensor,
    gold: Tensor,
    weights: Tensor | Sequence[float] | None = None,
    floor: float = 0.0,
    *,
    valid: Tensor | None = None,
) -> dict[str, Tensor]:
    """Return `kl`, `error` and `diversity` of every group; kl = error - diversity wherever both are finite.

    With a floor the sources are what they are with the floor added. At floor 0 the error is infinite where a
    source of positive weight excludes gold, and the diversity where these sources share no support (there the
    pool is uniform over their best candidates, see `log_opinion_pool`).

    Args:
        log_marginals: (S, B, G, C), log-probabilities of S sources.
        gold: (B, G), index of the right candidate, -1 where there is none.
        weights: (S,), uniform if not given.
        floor: see `log_opinion_pool`.
        valid: bool (B, G, C); by default what any source supports.

    Returns:
        (B, G) each, in nats, at least 0; 0 where there is no gold.
    """
    possible = (log_marginals > -torch.inf).any(0) if valid is None else valid
    place, known = gold.clamp(min=0)[..., None], gold >= 0
    pooled = log_opinion_pool(log_marginals, weights, floor, valid=possible)
    shares = normalised_weights(weights, log_marginals.shape[0], log_marginals)
    mixed = torch.zeros_like(pooled)
    for share, source in zip(shares, floored(log_marginals, floor, possible), strict=True):
        if share > 0:  # a source without weight has no say, not even by a zero
            mixed = mixed + share * source
    found = {
        "kl": -pooled.gather(-1, place)[..., 0],
        "error": -mixed.gather(-1, place)[..., 0],
        "diversity": -logsumexp(mixed, -1),
    }
    return {name: value.clamp(min=0).masked_fill(~known, 0) for name, value in found.items()}


class DistanceTotals:
    """Divergence of one pool from gold, added up over batches.

    Groups whose gold label the alphabet lacks are left out and counted; they are taken to be as others are.

    Args:
        added: how many groups the model adds at a sentence's start and end.
    """

    def __init__(self, added: tuple[int, int] = (0, 0)) -> None:
        self._added = added
        self._sums: dict[str, dict[str, float]] = {}
        self._counts: dict[str, dict[str, int]] = {}
        self._words = 0
        self._impossible = 0

    def add(self, distribution: Structure, distances: dict[str, Tensor], gold: Tensor, words: int) -> None:
        """Count a batch.

        Args:
            distribution: any distribution over the sentences' structures.
            distances: what `split_distance` gave.
            gold: (B, G).
            words: of all sentences of the batch.
        """
        self._words += words
        self._impossible += int((distances["kl"] == torch.inf).sum())
        for scope, counted in counted_groups(distribution, self._added).items():
            known = counted & (gold >= 0)
            sums = self._sums.setdefault(scope, dict.fromkeys(TERMS, 0.0))
            for term in TERMS:
                sums[term] += float(distances[term].double()[known].sum())
            counts = self._counts.setdefault(scope, {"groups": 0, "known": 0})
            counts["groups"] += int(counted.sum())
            counts["known"] += int(known.sum())

    def result(self) -> dict[str, Any]:
        """Return for both scopes `kl`, `error`, `diversity` a word, and under `per_group` the same a group.

        Beside them stand `impossible`, the groups in which the pool gives gold no probability, and
        `unknown_gold`, those whose gold label the alphabet lacks.
        """
        found: dict[str, dict[str, Any]] = {}
        for scope, counts in self._counts.items():
            means = {term: _ratio(self._sums[scope][term], counts["known"]) for term in TERMS}
            groups = _ratio(counts["groups"], self._words)
            found[scope] = {term: mean * groups for term, mean in means.items()} | {"per_group": means}
        total = self._counts.get(SCOPES[0], {"groups": 0, "known": 0})
        none = {SCOPES[0]: dict.fromkeys(TERMS, math.nan) | {"per_group": dict.fromkeys(TERMS, math.nan)}}
        return {
            **by_scope(found or none),
            "impossible": self._impossible,
            "unknown_gold": total["groups"] - total["known"],
        }


def _ratio(part: float, whole: int) -> float:
    return part / whole if whole else math.nan
