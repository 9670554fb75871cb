"""Compare methods on the same test sentences: paired bootstrap for a target, a sign test over targets.

`ensembles.py` leaves the number of right words of each test sentence beside its scores.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Counts = NDArray[np.int64]
PAIRS = [
    *(("recommended", base) for base in ("paper-pool", "average", "pool-agreement", "pool", "vote")),
    *(("paper-pool", base) for base in ("pool", "vote")),
    *((method, "vote") for method in ("average", "pool-agreement", "linear-pool", "pool")),
]
SAMPLES, LEVEL = 2000, 0.95


def intervals(right: Mapping[str, Counts], scored: Counts) -> Iterator[tuple[str, str, float]]:
    """Yield the ends of the interval of each difference, as method, metric and points.

    Sentences are drawn with replacement (Koehn 2004), the same for all methods.

    Args:
        right: (N,) right words of each sentence, by method.
        scored: (N,) words that count.
    """
    if not (total := len(scored)):
        return
    drawn = np.random.default_rng(0).multinomial(total, np.full(total, 1 / total), size=SAMPLES)
    words = drawn @ scored
    for method, base in PAIRS:
        if method in right and base in right:
            points = 100 * (drawn @ (right[method] - right[base])) / words
            low, high = np.quantile(points, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
            yield from ((method, f"over:{base}:low", float(low)), (method, f"over:{base}:high", float(high)))


def sign_test(differences: Sequence[float]) -> float:
    """Return the two-sided p of as many positive differences by chance; ties are left out."""
    positive, negative = (sum(sign * each > 0 for each in differences) for sign in (1, -1))
    return float(stats.binomtest(positive, positive + negative).pvalue) if positive + negative else 1.0


def read_counts(ensembles: Path, models: Iterable[Path]) -> tuple[dict[str, Counts], Counts]:
    """Return the right words of each method and the words that count, by sentence, of a target.

    Args:
        ensembles: the scores of combinations.
        models: the scores of target models; of methods with several seeds the first one counts.
    """
    right: dict[str, Counts] = {}
    scored = np.zeros(0, dtype=int)
    for path in (ensembles, *models):
        for row in json.loads(path.read_text(encoding="utf-8")):
            if row["metric"] == "right_by_sentence":
                name = row["method"] if path == ensembles else path.parents[2].name
                right.setdefault(name, np.array(row["value"]))
            elif row["metric"] == "scored_by_sentence":
                scored = np.array(row["value"])
    return right, scored
