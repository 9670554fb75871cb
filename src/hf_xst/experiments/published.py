"""The numbers that Kurniawan et al. (2021) published, which reports put beside ours.

They are kept in `published.json`: scores in percent (LAS without punctuation for parsing, accuracy for
tagging), a mean over five seeds and, for methods that train, a standard deviation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

Pair = tuple[float, float]


@dataclass(frozen=True)
class Published:
    """The published numbers; tasks are `parser` and `tagger`, methods are named as in reports.

    Args:
        seeds: how many runs a mean is over.
        methods: the methods of the paper's table of full results, in its order.
        scores: by part (`dev`, `test`), task and target, for each method [mean] or [mean, deviation].
        averages: test scores over all 18 targets, by task, for each method (None where it is not given).
        sources: scores of the source models on their own languages, by task and source.
        chart_size: by task and target, the median number of structures in a union chart, and how large the
            pooled chart's is in percent of it.
        chart_quality: by task and target, precision and recall in percent of union and pooled charts.
        correlation: by task, r and p of the pool's distance to gold with the gain over majority vote.
    """

    seeds: int
    methods: list[str]
    scores: Mapping[str, Mapping[str, Mapping[str, list[list[float]]]]]
    averages: Mapping[str, list[float | None]]
    sources: Mapping[str, Mapping[str, float]]
    chart_size: Mapping[str, Mapping[str, Pair]]
    chart_quality: Mapping[str, Mapping[str, tuple[Pair, Pair]]]
    correlation: Mapping[str, Pair]

    def score(self, part: str, task: str, target: str, method: str) -> tuple[float, float | None] | None:
        """Return mean and standard deviation of a method; None where there is no published score."""
        row = self.scores[part].get(task, {}).get(target)
        if row is None or method not in self.methods:
            return None
        mean, *std = row[self.methods.index(method)]
        return mean, std[0] if std else None

    def average(self, part: str, task: str, targets: Iterable[str], method: str) -> float | None:
        """Return the mean of a method's scores over targets; None unless it has one for each of them."""
        found = [self.score(part, task, target, method) for target in targets]
        means = [score[0] for score in found if score is not None]
        return sum(means) / len(means) if means and len(means) == len(found) else None


@cache
def published() -> Published:
    """Read the published numbers."""
    content: dict[str, Any] = json.loads(
        files(__package__).joinpath("published.json").read_text(encoding="utf-8")
    )
    return Published(**content)
