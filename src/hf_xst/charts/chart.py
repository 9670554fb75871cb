"""Make charts: the candidates that stay allowed (Kurniawan et al. 2021, equations 3 to 6)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor

from hf_xst.charts.pooling import linear_opinion_pool, log_opinion_pool, stacked_log_marginals
from hf_xst.numerics import require
from hf_xst.structures.base import Structure

Rule = Literal["pool", "union", "linear"]
FLOOR = 1e-9  # the published one
SIGMA = 0.95


@dataclass(frozen=True)
class ChartSettings:
    """Settings of charts.

    Args:
        rule: `"pool"` (logarithmic opinion pool), `"linear"` (linear opinion pool) or `"union"` (PPTX).
        sigma: probability mass kept in each group.
        floor: added to each marginal probability before the logarithm.
        weights: a weight per source name; uniform by default.
        keep_log_probs: store the pooled log-probabilities of the kept candidates.
        temperature: each source's scores are divided by it before its marginals are computed.

    Raises:
        ValueError: the rule is unknown, or sigma, floor or temperature is out of range.
    """

    rule: Rule = "pool"
    sigma: float = SIGMA
    floor: float = FLOOR
    weights: Mapping[str, float] | None = None
    keep_log_probs: bool = False
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if self.rule not in get_args(Rule):
            raise ValueError(f"rule is {self.rule!r}; expected one of {', '.join(get_args(Rule))}")
        if not 0 < self.sigma <= 1:
            raise ValueError(f"sigma is {self.sigma}; expected a probability in (0, 1]")
        if not 0 <= self.floor < 1:
            raise ValueError(f"floor is {self.floor}; expected a probability in [0, 1)")
        if not 0 < self.temperature < math.inf:
            raise ValueError(f"temperature is {self.temperature}; expected a positive number")


@dataclass(frozen=True)
class SourceDistributions:
    """The distributions of S sources over the structures of B sentences, and what follows from them.

    Args:
        sources: distributions over one space.
    """

    sources: Sequence[Structure]
    _space: Structure | None = field(default=None, init=False, repr=False, compare=False)
    _kept: dict[float, Tensor] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def stored(
        cls, space: Structure, log_marginals: Tensor, best: Tensor, valid: Tensor, entropy: Tensor
    ) -> SourceDistributions:
        """Return distributions of which only what follows from them is known; `space` has any scores."""
        found = cls(())
        known = {"log_marginals": log_marginals, "best": best, "valid": valid, "entropy": entropy}
        vars(found).update(known, _space=space)  # where cached properties look first
        return found

    @property
    def space(self) -> Structure:
        """The sentences' structures; its scores do not matter."""
        return self.sources[0] if self._space is None else self._space

    @cached_property
    def entropy(self) -> Tensor:
        """(S, B), of each source, in nats."""
        return torch.stack([source.entropy() for source in self.sources])

    @cached_property
    def log_marginals(self) -> Tensor:
        """(S, B, G, C), -inf where the probability is zero."""
        return stacked_log_marginals(self.sources)

    @cached_property
    def best(self) -> Tensor:
        """(S, B, G), each source's best candidates, -1 if there are none."""
        return torch.stack([source.best_candidates() for source in self.sources])

    @cached_property
    def valid(self) -> Tensor:
        """Bool (B, G, C), the candidates that any source considers possible.

        A floor is added to these only: it stands for probabilities that round to zero. Candidates
        that no structure contains must get none.
        """
        return torch.stack([source.possible for source in self.sources]).any(0)

    def softened(self, temperature: float) -> SourceDistributions:
        """Divide all scores by a temperature; ValueError if the distributions were stored."""
        if temperature == 1:
            return self
        if self._space is not None:
            raise ValueError(
                f"the temperature is {temperature}, and stored marginals have 1: leave out --marginals-cache"
            )
        return SourceDistributions(
            [source.with_scores(source.scores / temperature) for source in self.sources]
        )

    def kept(self, sigma: float) -> Tensor:
        """Threshold each source alone, false in groups where it has no distribution: bool (S, B, G, C)."""
        if sigma not in self._kept:
            kept = torch.stack([threshold(each, sigma, self.valid) for each in self.log_marginals])
            self._kept[sigma] = kept & (self.log_marginals > -torch.inf).any(-1, keepdim=True)
        return self._kept[sigma]

    def pooled(self, rule: Rule, weights: Tensor | Sequence[float] | None, floor: float) -> Tensor:
        """Return the log-probabilities of the linear pool, for other rules of the logarithmic: (B, G, C)."""
        if rule == "linear":
            return linear_opinion_pool(self.log_marginals, weights, valid=self.valid)
        return log_opinion_pool(self.log_marginals, weights, floor, valid=self.valid)

    def with_pooled(self, pooled: Tensor) -> Structure:
        """Return the distribution whose scores are pooled log-probabilities (B, G, C): the ensemble."""
        return self.space.with_scores(self.space.part_view(pooled))

    def voted(self) -> Any:
        """Return the structure with the most votes of the sources; see `Structure.vote`."""
        return self.space.vote([self.space.best_from_candidates(each) for each in self.best])


class Chart(NamedTuple):
    """A chart of B sentences.

    `kept` (B, G, C) marks the likeliest candidates, `allowed` (B, G, C) adds the best structure of each
    source, `pooled` (B, G, C) holds the pooled log-probabilities, of the logarithmic pool for the union.
    """

    kept: Tensor
    allowed: Tensor
    pooled: Tensor


def make_chart(
    sources: SourceDistributions,
    settings: ChartSettings,
    weights: Tensor | Sequence[float] | None = None,
) -> Chart:
    """Make the chart of each sentence. Every chart of the package comes from here.

    Args:
        sources: the distributions; the temperature must already be applied.
        settings: rule, sigma and floor; its weights by name are ignored.
        weights: of the pool, (S,), uniform by default; a source of weight 0 still adds its best structure.
    """
    pooled = sources.pooled(settings.rule, weights, settings.floor)
    if settings.rule == "union":
        kept = sources.kept(settings.sigma).any(0)
    else:
        kept = threshold(pooled, settings.sigma, sources.valid)
    allowed = kept
    for candidates in sources.best:
        allowed = allowed | candidates_mask(candidates, kept)
    return Chart(kept, allowed, pooled)


def threshold(log_probs: Tensor, sigma: float, valid: Tensor) -> Tensor:
    """Keep the fewest candidates of each group, likeliest first, whose probabilities sum to sigma or more.

    Candidates of probability zero are never required for the sum; a group that has valid candidates keeps at
    least one. Ties go to the lower index.

    Args:
        log_probs: (B, G, C).
        sigma: the mass to cover, in (0, 1].
        valid: bool (B, G, C), candidates that may be kept.

    Returns:
        bool (B, G, C).

    Raises:
        ValueError: sigma lies outside (0, 1], or a valid candidate's log-probability is NaN.
    """
    if not 0 < sigma <= 1:
        raise ValueError(f"sigma is {sigma}; expected a probability in (0, 1]")
    masked = torch.where(valid, log_probs, -torch.inf).double()
    require(~masked.isnan(), "a valid candidate's log-probability is NaN")
    # Valid candidates of probability zero sort before invalid ones, so that the one kept is a valid one.
    keys = torch.where(valid, masked.clamp(min=torch.finfo(torch.float64).min), -torch.inf)
    order = keys.sort(dim=-1, descending=True, stable=True).indices
    sorted_probs = masked.gather(-1, order).exp()
    before = sorted_probs.cumsum(-1) - sorted_probs
    required = (before < sigma) & (sorted_probs > 0)
    required[..., 0] = True
    return torch.zeros_like(valid).scatter(-1, order, required) & valid


def candidates_mask(candidates: Tensor, like: Tensor) -> Tensor:
    """Mark one candidate per group: indices (B, G), -1 for none, as bool in the shape of `like`."""
    mask = torch.zeros_like(like, dtype=torch.bool)
    return mask.scatter(-1, candidates.clamp(min=0)[..., None], (candidates >= 0)[..., None])


def best_mask(source: Structure) -> Tensor:
    """Mark the candidates of a distribution's best structure: bool (B, G, C)."""
    return candidates_mask(source.best_candidates(), source.valid)


def union_chart(sources: Sequence[Structure], sigma: float) -> Tensor:
    """Make the chart of PPTX, bool (B, G, C): the union of the sources' charts, each of the mass sigma.

    Raises:
        ValueError: there is no source, or their scores differ in shape.
    """
    return make_chart(SourceDistributions(sources), ChartSettings("union", sigma)).allowed


def pooled_chart(
    sources: Sequence[Structure],
    sigma: float,
    weights: Tensor | Sequence[float] | None = None,
    floor: float = 0.0,
) -> Tensor:
    """Make the chart of a pool of the mass sigma, with every source's best structure: bool (B, G, C).

    For weights, (S,), and floor see `log_opinion_pool`; a source of weight 0 still adds its best structure.

    Raises:
        ValueError: as `union_chart`, or a value is out of range.
    """
    return make_chart(SourceDistributions(sources), ChartSettings("pool", sigma, floor), weights).allowed


def pool(
    sources: Sequence[Structure], weights: Tensor | Sequence[float] | None = None, floor: float = 0.0
) -> Structure:
    """Return the ensemble: the distribution whose scores are those of the logarithmic pool."""
    distributions = SourceDistributions(sources)
    return distributions.with_pooled(distributions.pooled("pool", weights, floor))
