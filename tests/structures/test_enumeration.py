"""Random instances of each structure against enumeration: any scale of the scores, both precisions.

Tolerances. The package subtracts each group's highest score, so its errors are relative to what the best
structure falls short of the sum of these (`loss`), not to the scores. Sums over trees with a single root, and
over constituency trees, lose digits to the largest difference within a group as well (`spread`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from typing import Any

import pytest
import torch

from helpers.structure_oracle import Candidates
from helpers.structure_spaces import SPACES, Space, listed

FEW, MANY, BATCH = 200, 10_000, 100  # instances of each structure, and of a batch
SIZES = {"chain": [(4, 3), (5, 2), (3, 4)], "constituency": [(4, 2), (3, 4), (4, 3)]}  # words, labels
TREE_SIZES = [(3, 2), (4, 1), (2, 4)]
LOSES_DIGITS = ("nonproj_single", "constituency")


def drawn_scores(count: int, dtype: torch.dtype, draw: random.Random) -> list[float]:
    """Draw the scores of one instance, of one kind; in every second some candidates are impossible."""
    limits, scale = torch.finfo(dtype), 10 ** draw.uniform(-3, 3)
    one = draw.choice((0.0, 1e30, -1e30, draw.gauss(0, scale)))
    score = {
        "usual": lambda: draw.gauss(0, scale),
        "mixed": lambda: draw.choice((1e30, -1e30, draw.gauss(0, 1))),
        "huge": lambda: draw.choice((1e30, -1e30)),
        "subnormal": lambda: draw.randint(-3, 3) * limits.smallest_normal * limits.eps,
        "equal": lambda: one,
    }[draw.choice(("usual", "mixed", "huge", "subnormal", "equal"))]
    absent = draw.choice((0, 0, 0.3, 0.6))
    return [-math.inf if draw.random() < absent else score() for _ in range(count)]


def drawn_batch(space: Space, dtype: torch.dtype, draw: random.Random) -> Any:
    """Draw instances of several lengths, with NaN where scores never matter."""
    words, labels = draw.choice(SIZES.get(space.name, TREE_SIZES))
    shape = space.shape(words, labels)
    lengths = torch.tensor([draw.choice((words, words - 1)) for _ in range(BATCH)])
    scores = torch.tensor([drawn_scores(math.prod(shape), dtype, draw) for _ in lengths], dtype=dtype)
    scores = scores.view(BATCH, *shape)
    return space.make(scores.masked_fill(~space.make(scores, lengths).valid_parts, math.nan), lengths)


class Exact:
    """The possible structures of one instance, with totals in Python floats, each rounded once.

    A total lacks `top`, the sum of the highest score of each group; the best total is -`loss`.
    """

    def __init__(self, structures: list[Candidates], scores: list[list[float]]) -> None:
        finite = [
            [s for s in row if -math.inf < s] for row in scores
        ]  # NaN, which never matters, is left out
        tops = [max(row, default=0.0) for row in finite]
        chosen = {one: [scores[g][c] for g, c in enumerate(one)] for one in structures}
        self.totals = {
            one: math.fsum([*row, *(-top for top in tops)])
            for one, row in chosen.items()
            if -math.inf not in row
        }
        self.loss = -max(self.totals.values(), default=0.0)
        self.spread = sum(max(row, default=0.0) - min(row, default=0.0) for row in finite)
        self.magnitude = math.fsum(map(abs, tops))
        self.log_sum = log_sum(self.totals.values())
        self.log_partition = math.fsum([*tops, self.log_sum]) if self.totals else -math.inf
        members: dict[tuple[int, int], list[float]] = {}
        for one, total in self.totals.items():
            for part in enumerate(one):
                members.setdefault(part, []).append(total)
        self.parts = {part: log_sum(totals) for part, totals in members.items()}

    def bounds(self, group: int, candidate: int, delta: float) -> tuple[float, float]:
        """Return bounds of a part's probability if errors multiply its odds by at most exp(delta)."""
        if (group, candidate) not in self.parts:
            return 0.0, 0.0
        others = log_sum(v for (g, c), v in self.parts.items() if g == group and c != candidate)
        odds = self.parts[group, candidate] - others
        return logistic(odds - delta), logistic(odds + delta)


def log_sum(totals: Iterable[float]) -> float:
    """Return log sum exp."""
    totals = list(totals)
    top = max(totals, default=-math.inf)
    return top + math.log(math.fsum(math.exp(total - top) for total in totals)) if totals else top


def logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def assert_exact(space: Space, structure: Any) -> None:
    """Compare log Z, marginals, best and number of all structures of a batch with enumeration."""
    dtype = structure.scores.dtype
    unit = 1e-5 if dtype == torch.float32 else 1e-12  # labels are summed in the precision of the scores
    scores, marginals = (
        structure.group_view(x).double().tolist() for x in (structure.scores, structure.marginals())
    )
    log_partition, log_count = structure.log_partition().tolist(), structure.log_count().tolist()
    best, groups = structure.best_candidates().tolist(), structure.group_lengths.tolist()
    for i, n in enumerate(structure.lengths.tolist()):
        case = scores[i][: groups[i]]
        exact = Exact(listed(space.name, n, structure.scores.shape[-1]), case)
        count = len(exact.totals)
        log_structures = math.log(count) if count else -math.inf
        assert log_count[i] == pytest.approx(log_structures, rel=1e-6, abs=1e-6), case
        chosen = tuple(best[i][: groups[i]])
        if not count:
            assert (log_partition[i], {*chosen}) == (-math.inf, {-1}), case
            assert not any(map(any, marginals[i])), case
            continue
        delta = unit * (1 + 0.01 * (exact.loss + (exact.spread if space.name in LOSES_DIGITS else 0)))
        rounding = 1e-15 * exact.magnitude + torch.finfo(dtype).eps * abs(exact.log_partition)
        assert log_partition[i] == pytest.approx(exact.log_partition, rel=0, abs=delta + rounding), case
        assert exact.totals[chosen] >= -exact.loss - delta, case
        for g, row in enumerate(marginals[i][: groups[i]]):
            for c, found in enumerate(row):
                low, high = exact.bounds(g, c, delta)
                assert low - unit <= found <= high + unit, (case, g, c)


def check(space: Space, instances: int, seed: int) -> None:
    draw = random.Random(seed)
    for batch in range(instances // BATCH):
        structure = drawn_batch(space, (torch.float64, torch.float32)[batch % 2], draw)
        assert_exact(space, structure)
        keep = torch.tensor([draw.random() < 0.7 for _ in range(structure.scores.numel())])
        assert_exact(space, structure.restricted_to(keep.view_as(structure.scores)))


NAMES = pytest.mark.parametrize("name", [name for name in SPACES if name != "independent"])


@NAMES
def test_random_instances(name: str) -> None:
    check(SPACES[name], FEW, 0)


@pytest.mark.slow
@NAMES
def test_many_random_instances(name: str) -> None:
    check(SPACES[name], MANY, 1)
