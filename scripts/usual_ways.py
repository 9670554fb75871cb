"""The usual ways to compute what this package computes otherwise: what `benchmark.py` compares it with."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

from hf_xst.models.parser import BiaffineScorer

Sums = dict[str, Callable[[Tensor], Tensor]]


class DenseScorer(nn.Module):
    """A parser's scores with the label's bilinear form taken over all pairs of words, as the formula reads.

    Args:
        scorer: the parser's own, whose parameters are used.
    """

    def __init__(self, scorer: BiaffineScorer) -> None:
        super().__init__()
        self.scorer = scorer

    def forward(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Score all arcs; see `BiaffineScorer`."""
        own = self.scorer
        hidden = own.dropout(own.projection(states).relu().mT).mT
        arc_head, arc_dependent, head, dependent = torch.split(hidden, own.sizes, dim=-1)
        arcs = arc_head @ own.arc_weight @ arc_dependent.mT + (arc_head @ own.arc_bias)[..., None]
        batch, nodes, size = head.shape
        heads = head[:, :, None].expand(batch, nodes, nodes, size)
        dependents = dependent[:, None].expand(batch, nodes, nodes, size)
        labels = torch.einsum("bhdi,ilj,bhdj->bhdl", heads, own.label_weight, dependents)
        return arcs, labels + own.label_head(heads) + own.label_dependent(dependents)


def optional(name: str) -> Any:
    """Import a package, or return nothing if it is not installed."""
    with suppress(ImportError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # their classes are not as torch.distributions has them by now
        return importlib.import_module(name)
    return {}


def tree_sums() -> Sums:
    """Return log Z of trees with one root from scores (B, N+1, N+1), head first, by name."""
    ways: Sums = {"matrix-tree theorem, plain": _matrix_tree}
    if torch_struct := optional("torch_struct"):

        def by_torch_struct(arcs: Tensor) -> Tensor:
            roots_on_diagonal = arcs[:, 1:, 1:].diagonal_scatter(arcs[:, 0, 1:], dim1=1, dim2=2)
            return torch_struct.NonProjectiveDependencyCRF(roots_on_diagonal).partition

        ways["torch-struct"] = by_torch_struct
    if supar := optional("supar.structs"):
        ways["SuPar"] = lambda arcs: supar.MatrixTree(arcs.mT).log_partition
    return ways


def _matrix_tree(arcs: Tensor) -> Tensor:
    """Koo et al. (2007): the determinant of the Laplacian whose first row holds the root arcs."""
    weights = arcs.exp()
    inner = weights[:, 1:, 1:] * (1 - torch.eye(arcs.shape[1] - 1))
    laplacian = torch.diag_embed(inner.sum(1)) - inner
    return torch.cat([weights[:, :1, 1:], laplacian[:, 1:]], 1).logdet()


def chain_sums(transitions: Tensor) -> Sums:
    """Return log Z of chains from scores of tags (B, N, T), given transitions (T, T), by name."""

    def plain(tags: Tensor) -> Tensor:
        forward = tags[:, 0]
        for position in range(1, tags.shape[1]):
            forward = (forward[:, :, None] + transitions).logsumexp(1) + tags[:, position]
        return forward.logsumexp(1)

    ways: Sums = {"forward algorithm, plain": plain}
    if torch_struct := optional("torch_struct"):
        ways["torch-struct"] = lambda tags: (
            torch_struct.LinearChainCRF(
                pair_scores(tags, transitions).mT.contiguous()  # there the next tag comes first
            ).partition
        )
    if supar := optional("supar.structs"):
        boundaries = nn.functional.pad(transitions, (0, 1, 0, 1))
        ways["SuPar"] = lambda tags: supar.LinearChainCRF(tags, boundaries).log_partition
    return ways


def pair_scores(tags: Tensor, transitions: Tensor) -> Tensor:
    """Return scores (B, N-1, T, T) of adjacent tags from scores of tags (B, N, T) and transitions (T, T)."""
    first = nn.functional.pad(tags[:, :1], (0, 0, 0, tags.shape[1] - 2))
    return transitions + tags[:, 1:, None] + first[..., None]


def phrase_sums() -> Sums:
    """Return log Z of constituency trees from scores of labelled spans (B, N, N, L), by name."""
    ways: Sums = {}
    if torch_struct := optional("torch_struct"):
        ways["torch-struct"] = lambda spans: torch_struct.TreeCRF(spans).partition
    if supar := optional("supar.structs"):  # without labels, and between words
        ways["SuPar"] = lambda spans: (
            supar.ConstituencyCRF(nn.functional.pad(spans.logsumexp(3), (1, 0, 0, 1))).log_partition
        )
    return ways


def phrase_best() -> Sums:
    """Return the score of the best constituency tree from scores of spans (B, N, N, L), by name."""
    torch_struct = optional("torch_struct")
    return torch_struct and {
        "torch-struct": lambda spans: (torch_struct.TreeCRF(spans.clone()).argmax * spans).sum((1, 2, 3))
    }


def searches() -> dict[str, Callable[[Tensor], Tensor]]:
    """Return searches for the best trees with one root: heads (B, N) from scores (B, N+1, N+1), by name."""
    found: dict[str, Callable[[Tensor], Tensor]] = {}
    if supar := optional("supar.structs"):
        found["SuPar"] = lambda arcs: supar.MatrixTree(arcs.mT.clone()).argmax[:, 1:]  # it changes them
    if ufal := optional("ufal.chu_liu_edmonds"):

        def by_ufal(arcs: Tensor) -> Tensor:
            scores = arcs.mT.double().numpy().copy()  # dependents are rows there
            # No tree with two roots beats one with one.
            scores[:, :, 0] -= scores.shape[1] * (scores.max() - scores.min()) + 1
            return torch.tensor([ufal.chu_liu_edmonds(one)[0][1:] for one in scores])

        found["ufal, C++"] = by_ufal
    return found
