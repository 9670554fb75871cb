"""Enumerate all structures of a sentence from the definition: slow, scalar, independent of the package.

A structure is the tuple of its candidates, one for each group; scores[g][c] is a nested list.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

Candidates = tuple[int, ...]


def descends_from_root(heads: tuple[int, ...], word: int) -> bool:
    seen = set()
    while word != 0:
        if word in seen:
            return False
        seen.add(word)
        word = heads[word - 1]
    return True


def descends_from(heads: tuple[int, ...], word: int, ancestor: int) -> bool:
    while word not in (0, ancestor):
        word = heads[word - 1]
    return word == ancestor


def is_projective(heads: tuple[int, ...]) -> bool:
    return all(
        descends_from(heads, between, head)
        for word, head in enumerate(heads, 1)
        for between in range(min(word, head) + 1, max(word, head))
    )


def trees(n: int, *, single_root: bool, projective: bool) -> list[tuple[int, ...]]:
    """List the head vectors of all trees over n words."""
    return [
        heads
        for heads in itertools.product(range(n + 1), repeat=n)
        if all(descends_from_root(heads, word) for word in range(1, n + 1))
        and (not single_root or heads.count(0) == 1)
        and (not projective or is_projective(heads))
    ]


def tree_candidates(n: int, labels: int, *, single_root: bool, projective: bool) -> list[Candidates]:
    return [
        tuple(head * labels + label for head, label in zip(heads, chosen, strict=True))
        for heads in trees(n, single_root=single_root, projective=projective)
        for chosen in itertools.product(range(labels), repeat=n)
    ]


def chain_candidates(n: int, tags: int) -> list[Candidates]:
    return [
        tuple(before * tags + after for before, after in itertools.pairwise(sequence))
        for sequence in itertools.product(range(tags), repeat=n)
    ]


def bracketings(first: int, last: int) -> list[frozenset[tuple[int, int]]]:
    """List the spans of all binary trees over the words from `first` to `last`."""
    if first == last:
        return [frozenset({(first, first)})]
    return [
        left | right | {(first, last)}
        for middle in range(first, last)
        for left in bracketings(first, middle)
        for right in bracketings(middle + 1, last)
    ]


def constituency_candidates(n: int, labels: int) -> list[Candidates]:
    """List all binary trees with labelled spans; label 0, no constituent, is one of the labels."""
    spans = [(first, last) for last in range(n) for first in range(last + 1)]
    found = []
    for tree in bracketings(0, n - 1):
        for chosen in itertools.product(range(1, labels), repeat=len(tree)):
            names = dict(zip(sorted(tree), chosen, strict=True))
            found.append(tuple(names.get(span, 0) for span in spans))
    return found


def independent_candidates(n: int, choices: int) -> list[Candidates]:
    return list(itertools.product(range(choices), repeat=n))


@dataclass
class Enumerated:
    """One sentence's distribution, computed by enumeration.

    Args:
        structures: all structures of the space.
        scores: scores[g][c].
    """

    structures: list[Candidates]
    scores: list[list[float]]
    totals: list[float] = field(init=False)
    log_partition: float = field(init=False)

    def __post_init__(self) -> None:
        self.totals = [sum(self.scores[g][c] for g, c in enumerate(one)) for one in self.structures]
        top = max(self.totals, default=-math.inf)
        if top == -math.inf:
            self.log_partition = -math.inf
        else:
            self.log_partition = top + math.log(math.fsum(math.exp(total - top) for total in self.totals))

    @property
    def possible(self) -> list[tuple[float, Candidates]]:
        """Score and candidates of the possible structures, best first."""
        pairs = [pair for pair in zip(self.totals, self.structures, strict=True) if pair[0] > -math.inf]
        return sorted(pairs, key=lambda pair: -pair[0])

    def probability(self, structure: Candidates) -> float:
        return math.exp(self.totals[self.structures.index(structure)] - self.log_partition)

    def marginals(self) -> list[list[float]]:
        sums = [[0.0] * len(row) for row in self.scores]
        for total, one in self.possible:
            for g, c in enumerate(one):
                sums[g][c] += math.exp(total - self.log_partition)
        return sums

    def entropy(self) -> float:
        terms = [
            math.exp(total - self.log_partition) * (self.log_partition - total) for total, _ in self.possible
        ]
        return math.fsum(terms)


Lister = Callable[[int, int], list[Candidates]]
