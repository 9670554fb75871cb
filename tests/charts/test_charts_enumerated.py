"""Pools, charts and losses of every kind of structure against enumeration of all structures."""

from __future__ import annotations

import math

import pytest
import torch

from helpers.structure_spaces import SPACES
from hf_xst.charts import chart_loss, log_opinion_pool, pooled_chart, stacked_log_marginals, union_chart

SIGMA = 0.8


def likeliest(probabilities: list[float]) -> set[int]:
    """Return the fewest candidates whose probabilities reach SIGMA."""
    order = sorted(range(len(probabilities)), key=lambda candidate: -probabilities[candidate])
    counts = [sum(probabilities[c] for c in order[:count]) for count in range(len(order) + 1)]
    return set(order[: next(count for count, mass in enumerate(counts) if mass >= SIGMA)])


@pytest.mark.parametrize("name", SPACES)
def test_pools_charts_and_losses_are_those_of_enumeration(name):
    space, lengths = SPACES[name], [3, 2]
    sources = [space.random(lengths, 3, scale=2.0, seed=seed) for seed in (1, 2, 3)]
    model = space.random(lengths, 3, seed=4)
    model.scores.requires_grad_()
    pooled = log_opinion_pool(stacked_log_marginals(sources)).exp()
    union, chart = union_chart(sources, SIGMA), pooled_chart(sources, SIGMA)
    losses = chart_loss(model, chart)
    (gradient,) = torch.autograd.grad(losses.sum(), model.scores)
    gradient = model.group_view(gradient)
    for sentence, _ in enumerate(lengths):
        by_source = [space.enumerated(source, sentence) for source in sources]
        best = [max(one.possible)[1] for one in by_source]
        own = space.enumerated(model, sentence)
        kept: list[set[int]] = []
        for group, rows in enumerate(zip(*(one.marginals() for one in by_source), strict=True)):
            means = [math.prod(column) ** (1 / len(rows)) for column in zip(*rows, strict=True)]
            expected = [mean / sum(means) for mean in means]
            assert pooled[sentence, group].tolist() == pytest.approx(expected, abs=1e-12)
            bests = {one[group] for one in best}
            kept.append(likeliest(expected) | bests)
            assert set(union[sentence, group].nonzero()[:, 0].tolist()) == bests.union(*map(likeliest, rows))
            assert set(chart[sentence, group].nonzero()[:, 0].tolist()) == kept[-1]
        inside = [
            one for _, one in own.possible if all(c in group for c, group in zip(one, kept, strict=True))
        ]
        mass = math.fsum(own.probability(one) for one in inside)
        assert losses[sentence].item() == pytest.approx(-math.log(mass), abs=1e-12)
        # d loss / d score = p(candidate) - p(candidate | chart)
        for group, row in enumerate(own.marginals()):
            given = [0.0] * len(row)
            for one in inside:
                given[one[group]] += own.probability(one) / mass
            difference = [p - q for p, q in zip(row, given, strict=True)]
            assert gradient[sentence, group].tolist() == pytest.approx(difference, abs=1e-12)
