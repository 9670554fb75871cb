"""The published settings (supplement, table 6), by kind of model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """Settings that differ between the two tasks.

    Args:
        target_length: longest target sentence in training, added tokens counted.
        learning_rate: Adam's step size, by rule of the charts.
        l2: strength of the pull to the starting parameters, by rule of the charts.
    """

    target_length: int
    learning_rate: dict[str, float]
    l2: dict[str, float]

    def of(self, rule: str) -> tuple[float, float]:
        """Return step size and strength of the pull for charts made by a rule; pools of any kind are alike."""
        kind = "union" if rule == "union" else "pool"
        return self.learning_rate[kind], self.l2[kind]


SOURCE_LEARNING_RATE = 1e-4
PUBLISHED = {
    "hf_xst_biaffine_parser": Published(
        30, {"union": 8.5e-5, "pool": 9.4e-5}, {"union": 2.8e-5, "pool": 1.6e-4}
    ),
    "hf_xst_crf_tagger": Published(60, {"union": 5.9e-5, "pool": 2.6e-4}, {"union": 0.1, "pool": 4.7e-3}),
}
