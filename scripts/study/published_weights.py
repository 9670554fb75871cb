"""Pool weights found the way of the published experiments, to show what their stopping rule costs.

They are the softmax of logits that start even, at log(1/S), and follow the gradient of the mean negative
log-likelihood, in batches of sentences of like length and steps that shrink with every epoch.
The search ends as soon as the norm of the logits hardly changes in a step. The gradient is orthogonal to even
logits, so the first step changes their norm only in second order, and often it is the last one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hf_xst.charts.gold_groups import Array, GoldGroups, Places
from hf_xst.charts.weights import PoolProblem

# Sentences whose groups agree in number up to its last digit share batches.
BUCKET = 10


@dataclass(frozen=True)
class PublishedSearch:
    """How the published search goes.

    Args:
        learning_rate: the first step size.
        decay: its factor after every epoch.
        epochs: at most so many.
        tolerance: it ends when the norm of the logits changes by less in a step.
        batch_size: sentences of a step.
    """

    learning_rate: float = 0.1
    decay: float = 0.9
    epochs: int = 100
    tolerance: float = 1e-3
    batch_size: int = 80


@dataclass(frozen=True)
class PublishedWeights:
    """What the search has found.

    Args:
        weights: (S,), positive, summing to one.
        updates: steps taken.
        stopped: whether the stopping rule ended it, before the last epoch was over.
    """

    weights: Array
    updates: int
    stopped: bool


def published_weights(
    groups: GoldGroups, units: Places, *, seed: int = 0, search: PublishedSearch | None = None
) -> PublishedWeights:
    """Search weights as in the published experiments.

    Args:
        groups: see `GoldGroups`; `check` must have found them usable.
        units: (B,), what each sentence counts for in a batch's mean, by its number. As published this is one
            more than its words: a parser's root symbol was counted, on which all sources agree, and a tagger
            has one more pair than words.
        seed: of the order of batches.
        search: step size, stopping rule and so on; the published ones by default.
    """
    search = PublishedSearch() if search is None else search
    draw = np.random.default_rng(seed)
    batches = [_batch(groups, units, batch) for batch in _buckets(groups, search.batch_size)]
    logits = np.full(groups.sources, -np.log(groups.sources))
    norm, updates = float(np.linalg.norm(logits)), 0
    for epoch in range(search.epochs):
        rate = search.learning_rate * search.decay**epoch
        for place in draw.permutation(len(batches)):
            problem, factor = batches[place]
            weights = _softmax(logits)
            slope = factor * problem.gradient(weights)
            logits = logits - rate * weights * (slope - weights @ slope)
            updates += 1
            before, norm = norm, float(np.linalg.norm(logits))
            if abs(norm - before) < search.tolerance:
                return PublishedWeights(_softmax(logits), updates, stopped=True)
    return PublishedWeights(_softmax(logits), updates, stopped=False)


def _softmax(logits: Array) -> Array:
    powers = np.exp(logits - logits.max())
    return np.asarray(powers / powers.sum())


def _buckets(groups: GoldGroups, batch_size: int) -> Iterator[Places]:
    """Cut the sentences that have gold into batches of like length."""
    counts = np.bincount(groups.places[:, 0])
    for bucket in np.unique(counts[counts > 0] // BUCKET):
        sentences = np.flatnonzero((counts > 0) & (counts // BUCKET == bucket))
        for start in range(0, len(sentences), batch_size):
            yield sentences[start : start + batch_size]


def _batch(groups: GoldGroups, units: Places, sentences: Places) -> tuple[PoolProblem, float]:
    """Return a batch's problem, and the factor that makes its mean over groups one over units."""
    wanted = np.zeros(len(units), dtype=bool)
    wanted[sentences] = True
    own = groups.of_sentences(wanted)
    return PoolProblem(own), len(own) / float(units[sentences].sum())
