"""All kinds of structure, with the functions that the contract tests require."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor
from torch.testing import assert_close

from helpers.categorical import IndependentGroups
from helpers.structure_oracle import (
    Candidates,
    Enumerated,
    chain_candidates,
    constituency_candidates,
    independent_candidates,
    tree_candidates,
)
from hf_xst.structures import ConstituencyTreeCRF, DependencyTreeCRF, LinearChainCRF, Structure


@dataclass(frozen=True)
class Space:
    """A kind of structure: its constructor, the shape of its scores, its enumeration, and its size.

    `shape`, `listed` and `count` take words and labels; `shape` is without the batch. `best_axes` is the
    number of axes of a `best()` that run over words.
    """

    name: str
    make: Callable[..., Structure[Any]]
    shape: Callable[[int, int], tuple[int, ...]]
    listed: Callable[[int, int], list[Candidates]]
    count: Callable[[int, int], float]
    best_axes: int = 1
    fewest_labels: int = 1

    def inside(self, n: int) -> tuple[slice, ...]:
        """Return the index of the entries of n words in one sentence of a `best()`."""
        return (slice(n),) * self.best_axes

    def random(
        self, lengths: list[int], labels: int = 2, *, scale: float = 1.0, seed: int = 0, absent: float = 0.0
    ) -> Structure[Any]:
        """Draw a batch with float64 scores, of which the fraction `absent` is -inf."""
        generator, labels = torch.Generator().manual_seed(seed), max(labels, self.fewest_labels)
        shape = (len(lengths), *self.shape(max(lengths), labels))
        scores = torch.randn(shape, generator=generator, dtype=torch.float64) * scale
        gone = torch.rand(shape, generator=generator) < absent
        return self.make(scores.masked_fill(gone, -math.inf), torch.tensor(lengths))

    def alone(self, structure: Structure[Any], sentence: int) -> Structure[Any]:
        """Return one sentence of a batch without padding."""
        n, labels = int(structure.lengths[sentence]), structure.scores.shape[-1]
        inside = tuple(slice(size) for size in self.shape(n, labels))
        return self.make(structure.scores[(slice(sentence, sentence + 1), *inside)], torch.tensor([n]))

    def enumerated(self, structure: Structure[Any], sentence: int) -> Enumerated:
        """Enumerate the structures of one sentence with their scores."""
        groups = int(structure.group_lengths[sentence])
        scores = structure.group_view(structure.scores.detach().double())[sentence, :groups]
        names = listed(self.name, int(structure.lengths[sentence]), structure.scores.shape[-1])
        return Enumerated(names, scores.tolist())


def _tree_space(name: str, single_root: bool, projective: bool, count: Callable[[int], float]) -> Space:
    options = {"single_root": single_root, "projective": projective}
    return Space(
        name,
        partial(DependencyTreeCRF, **options),
        lambda n, labels: (n + 1, n + 1, labels),
        partial(tree_candidates, **options),
        lambda n, labels: count(n) * labels**n,
    )


SPACES = {
    space.name: space
    for space in (
        _tree_space("nonproj_single", True, False, lambda n: n ** (n - 1)),
        _tree_space("nonproj_multi", False, False, lambda n: (n + 1) ** (n - 1)),
        _tree_space("proj_single", True, True, lambda n: math.comb(3 * n - 2, n - 1) / n),
        _tree_space("proj_multi", False, True, lambda n: math.comb(3 * n, n) / (2 * n + 1)),
        Space(
            "chain",
            LinearChainCRF,
            lambda n, tags: (n - 1, tags, tags),
            chain_candidates,
            lambda n, tags: tags**n,
        ),
        Space(
            "constituency",
            ConstituencyTreeCRF,
            lambda n, labels: (n, n, labels),
            constituency_candidates,
            lambda n, labels: math.comb(2 * n - 2, n - 1) / n * (labels - 1) ** (2 * n - 1),
            best_axes=2,
            fewest_labels=2,
        ),
        Space(
            "independent",
            IndependentGroups,
            lambda n, choices: (n, choices),
            independent_candidates,
            lambda n, choices: choices**n,
        ),
    )
}


@lru_cache
def listed(name: str, n: int, labels: int) -> list[Candidates]:
    """Enumerate all structures of a space, cached."""
    return SPACES[name].listed(n, labels)


TREE_SPACES = {name: space for name, space in SPACES.items() if "proj" in name}


def tensors(best: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return (best,) if isinstance(best, Tensor) else best


def rows(best: Any, index: Any) -> Any:
    """Index every tensor of a `best()`."""
    return best[index] if isinstance(best, Tensor) else tuple(part[index] for part in best)


def assert_same_best(one: Any, other: Any) -> None:
    for a, b in zip(tensors(one), tensors(other), strict=True):
        assert_close(a, b, rtol=0, atol=0)


def tree_votes(heads: Tensor, labels: Tensor, lengths: Tensor | None = None, **options: Any) -> Any:
    """Return the majority of (S, B, N) heads and labels of S sources."""
    words, count = heads.shape[2], max(0, int(labels.max()), options.get("root_label") or 0) + 1
    space = DependencyTreeCRF(torch.zeros(heads.shape[1], words + 1, words + 1, count), lengths, **options)
    return space.vote(list(zip(heads, labels, strict=True)))
