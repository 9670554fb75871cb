"""Compare with torch-struct, where it is accurate: full-length sentences, moderate scores."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from hf_xst.structures import ConstituencyTreeCRF, DependencyTreeCRF, LinearChainCRF

pytestmark = pytest.mark.filterwarnings("ignore:.*arg_constraints:UserWarning")


@pytest.fixture(scope="module")
def torch_struct() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("torch_struct")


def diagonal_roots(scores: torch.Tensor) -> torch.Tensor:
    """Rearrange (B, N+1, N+1, 1) to torch-struct's (B, N, N), where the diagonal holds the root arcs."""
    inner = scores[:, 1:, 1:, 0].clone()
    inner.diagonal(dim1=1, dim2=2).copy_(scores[:, 0, 1:, 0])
    return inner.requires_grad_()


@pytest.fixture
def scores() -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(5, 13, 13, 1, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("single_root", [True, False])
def test_projective_trees(torch_struct: Any, scores: torch.Tensor, single_root: bool) -> None:
    mine = DependencyTreeCRF(scores, single_root=single_root, projective=True)
    theirs = torch_struct.DependencyCRF(diagonal_roots(scores), multiroot=not single_root)
    assert_close(mine.log_partition(), theirs.partition, rtol=1e-9, atol=1e-9)
    assert_close(diagonal_roots(mine.marginals()), theirs.marginals, rtol=0, atol=1e-9)
    best = mine.part_view(torch.nn.functional.one_hot(mine.best_candidates(), 13).double())
    assert_close(diagonal_roots(best), theirs.argmax, rtol=0, atol=0)


@pytest.mark.parametrize("single_root", [True, False])
def test_non_projective_trees(torch_struct: Any, scores: torch.Tensor, single_root: bool) -> None:
    mine = DependencyTreeCRF(scores, single_root=single_root)
    theirs = torch_struct.NonProjectiveDependencyCRF(diagonal_roots(scores), multiroot=not single_root)
    assert_close(mine.log_partition(), theirs.partition, rtol=0, atol=1e-3)  # it adds 1e-5 to every arc
    assert_close(diagonal_roots(mine.marginals()), theirs.marginals, rtol=0, atol=1e-3)


def test_chains(torch_struct: Any) -> None:
    generator = torch.Generator().manual_seed(1)
    pair_scores = torch.randn(5, 11, 4, 4, generator=generator, dtype=torch.float64)
    mine = LinearChainCRF(pair_scores)
    theirs = torch_struct.LinearChainCRF(pair_scores.transpose(2, 3).contiguous().requires_grad_())
    assert_close(mine.log_partition(), theirs.partition, rtol=1e-9, atol=1e-9)
    assert_close(mine.marginals(), theirs.marginals.transpose(2, 3), rtol=0, atol=1e-9)
    best = mine.part_view(torch.nn.functional.one_hot(mine.best_candidates(), 16).double())
    assert_close(best, theirs.argmax.transpose(2, 3), rtol=0, atol=0)
    assert_close(mine.entropy(), theirs.entropy, rtol=1e-9, atol=1e-9)


def test_constituency_trees(torch_struct: Any) -> None:
    generator = torch.Generator().manual_seed(2)
    scores = torch.randn(5, 9, 9, 4, generator=generator, dtype=torch.float64)
    scores[..., 0] = 0  # torch-struct has no score for a span that a tree lacks
    lengths = torch.tensor([9, 2, 9, 1, 5])
    mine = ConstituencyTreeCRF(scores, lengths)
    theirs = torch_struct.TreeCRF(scores[..., 1:].clone(), lengths=lengths)
    assert_close(mine.log_partition(), theirs.partition, rtol=1e-12, atol=1e-12)
    assert_close(mine.marginals()[..., 1:], theirs.marginals, rtol=0, atol=1e-12)
    best = torch.nn.functional.one_hot(mine.best().clamp(min=0), 4)[..., 1:].double()
    assert_close(best, theirs.argmax, rtol=0, atol=0)
