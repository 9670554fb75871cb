"""The usual ways to compute what this package computes otherwise: what `benchmark.py` compares it with."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hf_xst.models.parser import BiaffineScorer

REMOVED = -1e9  # torch-struct's sums are NaN where every score is -inf
Arcs = NDArray[np.float64]
Search = Callable[[Arcs], list[list[int]]]
"""From scores (B, N+1, N+1), head first, to the heads of each sentence's words."""


def by_matrix_products(heads: Tensor, dependents: Tensor, weight: Tensor) -> Tensor:
    """Return the bilinear form of each pair, (B, M, M, L), with PyTorch's fastest means.

    Args:
        heads: (B, M, M, K).
        dependents: (B, M, M, K).
        weight: (K, L, K).
    """
    return torch.einsum("bhdi,ilj,bhdj->bhdl", heads, weight, dependents)


def by_bilinear(heads: Tensor, dependents: Tensor, weight: Tensor) -> Tensor:
    """Return the same as `nn.Bilinear` computes it."""
    return nn.functional.bilinear(
        heads.contiguous(), dependents.contiguous(), weight.transpose(0, 1).contiguous()
    )


PairScores = Callable[[Tensor, Tensor, Tensor], Tensor]
LABEL_SCORES: dict[str, tuple[PairScores, float]] = {
    "all pairs, einsum": (by_matrix_products, 1.0),
    "all pairs, nn.Bilinear": (by_bilinear, 0.1),
}
"""Dense forms of the label score by name, each with the share of a batch that can be waited for."""


class DenseScorer(nn.Module):
    """A parser's scores with the label's bilinear form taken over all pairs of words, as the formula reads.

    Args:
        scorer: the parser's own, whose parameters are used.
        pairs: computes the bilinear form.
    """

    def __init__(self, scorer: BiaffineScorer, pairs: PairScores) -> None:
        super().__init__()
        self.scorer, self.pairs = scorer, pairs

    def forward(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Score all arcs; see `BiaffineScorer`."""
        own = self.scorer
        hidden = own.dropout(own.projection(states).relu().mT).mT
        arc_head, arc_dependent, head, dependent = torch.split(hidden, own.sizes, dim=-1)
        arcs = arc_head @ own.arc_weight @ arc_dependent.mT + (arc_head @ own.arc_bias)[..., None]
        batch, nodes, size = head.shape
        heads = head[:, :, None].expand(batch, nodes, nodes, size)
        dependents = dependent[:, None].expand(batch, nodes, nodes, size)
        labels = self.pairs(heads, dependents, own.label_weight)
        return arcs, labels + own.label_head(heads) + own.label_dependent(dependents)


def torch_struct_chain_loss(pair_scores: Tensor, keep: Tensor) -> Tensor:
    """Return the chart loss of chains of one length by torch-struct's parallel sums, (B,).

    Args:
        pair_scores: (B, N-1, T, T), previous tag first.
        keep: bool, the same shape.
    """
    turned = pair_scores.transpose(2, 3)  # there the next tag comes first
    spaces = (turned.contiguous(), turned.masked_fill(~keep.transpose(2, 3), REMOVED).contiguous())
    with warnings.catch_warnings():  # its classes are not as torch.distributions has them by now
        warnings.simplefilter("ignore")
        import torch_struct

        sums = [torch_struct.LinearChainCRF(scores).partition for scores in spaces]
    losses: Tensor = sums[0] - sums[1]
    return losses


def searches() -> dict[str, Search]:
    """Return the searches for best trees with one root that are at hand, by name."""
    found: dict[str, Search] = {"plain Python": _search_in_python}
    try:
        from ufal.chu_liu_edmonds import chu_liu_edmonds  # type: ignore[import-untyped]
    except ImportError:
        return found
    # Dependents are rows there.
    found["ufal, C++"] = lambda arcs: [
        chu_liu_edmonds(np.ascontiguousarray(_fewer_roots(one).T))[0][1:] for one in arcs
    ]
    return found


def _search_in_python(arcs: Arcs) -> list[list[int]]:
    return [chu_liu_edmonds_in_python(_fewer_roots(one).tolist())[1:] for one in arcs]


def _fewer_roots(arcs: Arcs) -> Arcs:
    """Take so much from every root arc that no tree with two of them beats one with one."""
    penalised = arcs.copy()
    penalised[0] -= len(arcs) * (arcs.max() - arcs.min()) + 1
    return penalised


def chu_liu_edmonds_in_python(scores: list[list[float]]) -> list[int]:
    """Return the head of every node in the best tree under node 0, contracting one cycle after the other.

    Args:
        scores: of arcs, head first; those into node 0 and from a node to itself do not matter.
    """
    nodes = range(len(scores))
    heads = [0] + [max((h for h in nodes if h != d), key=lambda h: scores[h][d]) for d in nodes[1:]]
    cycle = _find_cycle(heads)
    if not cycle:
        return heads
    rest = [node for node in nodes if node not in cycle]

    def gain(head: int, into: int) -> float:
        return scores[head][into] - scores[heads[into]][into]

    entries = [max(cycle, key=lambda c: gain(h, c)) for h in rest]
    exits = [max(cycle, key=lambda c: scores[c][d]) for d in rest]
    smaller = [
        [*(scores[h][d] for d in rest), gain(h, entry)] for h, entry in zip(rest, entries, strict=True)
    ]
    smaller.append([*(scores[leaving][d] for leaving, d in zip(exits, rest, strict=True)), 0.0])
    *outer, above = chu_liu_edmonds_in_python(smaller)
    for dependent, head, leaving in zip(rest, outer, exits, strict=True):
        heads[dependent] = rest[head] if head < len(rest) else leaving
    heads[entries[above]] = rest[above]
    return heads


def _find_cycle(heads: Sequence[int]) -> list[int]:
    """Return the nodes of some cycle; none if every way leads to node 0."""
    finished = {0}
    for start in range(1, len(heads)):
        path, node = [], start
        while node not in finished and node not in path:
            path.append(node)
            node = heads[node]
        if node in path:
            return path[path.index(node) :]
        finished.update(path)
    return []
