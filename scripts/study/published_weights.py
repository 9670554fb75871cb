"""Learn pool weights as in the published experiments, to show the cost of their stopping rule.

The weights are the softmax of logits that start at log(1/S) and follow the gradient of the mean negative
log-likelihood, in batches of sentences of similar length, with a step size that decays after each epoch.
The search ends as soon as a step changes the norm of the logits by less than a tolerance. The gradient is
orthogonal to equal logits, so the first step changes their norm only in second order and is often the last
one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from hf_xst.charts.gold_groups import Array, GoldGroups, Places
from hf_xst.charts.weights import PoolProblem

# Sentences whose numbers of groups agree except for the last digit share batches.
BUCKET = 10


@dataclass(frozen=True)
class PublishedSearch:
    """Settings of the published search.

    Args:
        learning_rate: initial step size.
        decay: factor of the step size after each epoch.
        epochs: maximum number of epochs.
        tolerance: stop once a step changes the norm of the logits by less.
        batch_size: sentences per step.
    """

    learning_rate: float = 0.1
    decay: float = 0.9
    epochs: int = 100
    tolerance: float = 1e-3
    batch_size: int = 80


def published_weights(
    groups: GoldGroups, units: Places, *, seed: int = 0, search: PublishedSearch | None = None
) -> tuple[Array, int]:
    """Learn weights as in the published experiments, and return them (S,) with the number of steps.

    Args:
        groups: `GoldGroups.check` must have accepted them.
        units: (B,), the weight of each sentence in a batch's mean, by its number. As published, this is one
            more than its words: a parser's root symbol counted, and a tagger has one more pair than words.
        seed: random seed of the order of batches.
        search: settings; the published ones by default.
    """
    search = PublishedSearch() if search is None else search
    draw = np.random.default_rng(seed)
    batches = [_batch(groups, units, batch) for batch in _buckets(groups, search.batch_size)]
    logits = np.full(groups.sources, -np.log(groups.sources))
    norm, updates = float(np.linalg.norm(logits)), 0
    for epoch in range(search.epochs):
        rate = search.learning_rate * search.decay**epoch
        for index in draw.permutation(len(batches)):
            problem, factor = batches[index]
            weights = softmax(logits)
            slope = factor * problem.gradient(weights)
            logits = logits - rate * weights * (slope - weights @ slope)
            updates += 1
            before, norm = norm, float(np.linalg.norm(logits))
            if abs(norm - before) < search.tolerance:
                return np.asarray(softmax(logits)), updates
    return np.asarray(softmax(logits)), updates


def _buckets(groups: GoldGroups, batch_size: int) -> Iterator[Places]:
    """Yield batches of sentences with gold, similar in length."""
    counts = np.bincount(groups.places[:, 0])
    for bucket in np.unique(counts[counts > 0] // BUCKET):
        sentences = np.flatnonzero((counts > 0) & (counts // BUCKET == bucket))
        for start in range(0, len(sentences), batch_size):
            yield sentences[start : start + batch_size]


def _batch(groups: GoldGroups, units: Places, sentences: Places) -> tuple[PoolProblem, float]:
    """Return a batch's problem, and the factor from its mean over groups to a mean over units."""
    wanted = np.zeros(len(units), dtype=bool)
    wanted[sentences] = True
    rows = wanted[groups.places[:, 0]]
    chosen = groups.selected(rows[groups.owner], rows)
    return PoolProblem(chosen), len(chosen) / float(units[sentences].sum())
