"""How charts are made, as far as numbers go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

RULES = ("pool", "union", "linear")


@dataclass(frozen=True)
class ChartSettings:
    """How charts are made.

    Args:
        rule: `"pool"` (logarithmic opinion pool), `"linear"` (linear opinion pool) or `"union"` (PPTX).
        sigma: mass that is kept of each group.
        floor: added to every marginal before the logarithm; the published value is 1e-9.
        weights: a weight for each source by name; uniform if not given.
        keep_log_probs: store the pooled log-probabilities of the kept candidates.
        temperature: each source's scores are divided by it before marginals are taken.

    Raises:
        ValueError: the rule is unknown, or sigma, floor or temperature out of range.
    """

    rule: str = "pool"
    sigma: float = 0.95
    floor: float = 1e-9
    weights: Mapping[str, float] | None = None
    keep_log_probs: bool = False
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise ValueError(f"rule is {self.rule!r}; expected one of {', '.join(RULES)}")
        if not 0 < self.sigma <= 1:
            raise ValueError(f"sigma is {self.sigma}; expected a probability in (0, 1]")
        if not 0 <= self.floor < 1:
            raise ValueError(f"floor is {self.floor}; expected a probability in [0, 1)")
        if not self.temperature > 0:
            raise ValueError(f"temperature is {self.temperature}; expected a positive number")
