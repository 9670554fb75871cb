"""Field cases: roots (P15), huge scores (P16), padding (P17), one-word sentences (P18)."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hf_xst.structures import DependencyTreeCRF, LinearChainCRF

ROOTS = torch.tensor([[0, 6, 1, 4, 9], [0, 0, 5, 9, 7], [0, 7, 0, 0, 4], [0, 1, 3, 0, 4], [0, 3, 0, 3, 0]])
SMALL = torch.tensor([[0, 2, 0, 1], [0, 0, 3, 0], [0, 1, 0, 2], [0, 0, 1, 0]])


def batch_of(*matrices: Tensor, filling: float = 0.0) -> tuple[Tensor, Tensor]:
    """Pad square score matrices to one size, as (B, N+1, N+1, 1) and lengths."""
    nodes = max(len(matrix) for matrix in matrices)
    scores = torch.full((len(matrices), nodes, nodes, 1), filling, dtype=matrices[0].dtype)
    for row, matrix in zip(scores, matrices, strict=True):
        row[: len(matrix), : len(matrix), 0] = matrix
    return scores, torch.tensor([len(matrix) - 1 for matrix in matrices])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("mates", [[], [torch.zeros(8, 8), torch.zeros(2, 2)]], ids=["alone", "padded"])
def test_the_best_single_root_tree_is_not_a_repaired_forest(dtype: torch.dtype, mates: list[Tensor]) -> None:
    scores, lengths = batch_of(*(matrix.to(dtype) for matrix in [ROOTS, *mates]), filling=50.0)
    single = DependencyTreeCRF(scores, lengths)
    several = DependencyTreeCRF(scores, lengths, single_root=False)
    assert single.best()[0][0, :4].tolist() == [0, 1, 1, 1]
    assert several.best()[0][0, :4].tolist() == [0, 1, 1, 0]
    assert single.score_of(single.best_candidates())[0] == 27
    assert several.score_of(several.best_candidates())[0] == 29
    assert single.topk(2)[0][1, 0].tolist() != single.best()[0][0].tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("single_root", "log_partition"), [(True, 7.227951), (False, 7.564033)])
@pytest.mark.parametrize("added", [0.0, 800_000.0, -800_000.0])
def test_a_huge_offset_on_one_word(
    dtype: torch.dtype, single_root: bool, log_partition: float, added: float
) -> None:
    plain = DependencyTreeCRF(SMALL.to(dtype)[None, ..., None], single_root=single_root)
    scores = plain.scores.clone()
    scores[:, :, 2] += added
    scores.requires_grad_()
    moved = DependencyTreeCRF(scores, single_root=single_root)
    assert_close(moved.marginals(), plain.marginals(), rtol=0, atol=1e-6)
    assert moved.log_partition().item() - added == pytest.approx(log_partition, abs=0.07 if added else 1e-6)
    best = moved.log_prob(moved.best())
    assert_close(best, plain.log_prob(plain.best()), rtol=0, atol=1e-6)
    assert best <= 0
    best.sum().backward()
    assert scores.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("factor", [1e3, 1e6])
def test_sharp_scores_approach_the_best_tree(
    dtype: torch.dtype, projective: bool, single_root: bool, factor: float
) -> None:
    scores = (SMALL.to(dtype)[None, ..., None] * factor).requires_grad_()
    structure = DependencyTreeCRF(scores, single_root=single_root, projective=projective)
    marginals = structure.marginals()
    chosen = structure.part_view(torch.nn.functional.one_hot(structure.best_candidates(), 4).to(dtype))
    assert_close(marginals, chosen, rtol=0, atol=1e-6)
    assert structure.log_prob(structure.best()).item() == pytest.approx(0, abs=1e-4)
    structure.log_prob(structure.best()).sum().backward()
    assert scores.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6, 1e30])
@pytest.mark.parametrize("projective", [True, False])
def test_any_finite_scores_give_finite_answers(dtype: torch.dtype, scale: float, projective: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    scores = (torch.randn(6, 9, 9, 3, generator=generator, dtype=dtype) * scale).requires_grad_()
    structure = DependencyTreeCRF(scores, projective=projective)
    marginals = structure.marginals()
    assert ((marginals >= 0) & (marginals <= 1 + 1e-6)).all()
    assert_close(marginals.sum((1, 3))[:, 1:], torch.ones(6, 8, dtype=dtype), rtol=0, atol=1e-5)
    assert (structure.log_prob(structure.best()) <= 0).all()
    structure.log_partition().sum().backward()
    assert_close(scores.grad, marginals)


@pytest.mark.parametrize("filling", [0.0, 1e4, -math.inf, math.nan])
def test_padding_in_a_batch_of_trees(filling: float) -> None:
    scores, lengths = batch_of(torch.zeros(2, 2), SMALL.float(), torch.zeros(6, 6), filling=filling)
    single = DependencyTreeCRF(scores, lengths)
    several = DependencyTreeCRF(scores, lengths, single_root=False)
    assert_close(single.log_partition(), torch.tensor([0, 7.227951, 6.437752]), rtol=0, atol=1e-5)
    assert_close(several.log_partition(), torch.tensor([0, 7.564033, 7.167038]), rtol=0, atol=1e-5)
    marginals = single.marginals()
    assert_close(
        marginals[1, [0, 1, 3], 2, 0], torch.tensor([0.021920, 0.943551, 0.034529]), rtol=0, atol=1e-6
    )
    assert (marginals[0, :, 2:] == 0).all()
    assert (marginals[1, 4:] == 0).all()
    assert (single.best()[0][0, 1:] == -1).all()
    assert_close(single.log_prob(single.best()).isfinite(), torch.tensor([True] * 3))


def test_a_chain_with_boundaries_around_one_position() -> None:
    """The tagger's chain for one word: start, word and end, where only the word is free."""
    emissions = torch.tensor([1.0, 2.0, 5.0]).log()
    pair_scores = torch.full((2, 5, 5, 5), math.nan)
    pair_scores[:, :2] = -math.inf
    pair_scores[:, 0, 3, :3] = emissions
    pair_scores[:, 1, :3, 4] = 0
    pair_scores[1, 2:] = 0
    pair_scores.requires_grad_()
    structure = LinearChainCRF(pair_scores, torch.tensor([3, 3]))
    assert_close(structure.marginals()[0, 0, 3, :3], torch.tensor([0.125, 0.25, 0.625]))
    assert structure.best()[0, :3].tolist() == [3, 2, 4]
    loss = -structure.log_prob(torch.tensor([[3, 2, 4, -1, -1, -1]] * 2))
    assert_close(loss, torch.tensor([0.470004, 0.470004]), rtol=0, atol=1e-6)
    loss.sum().backward()
    assert pair_scores.grad.isfinite().all()


@pytest.mark.parametrize("mates", [[], [4]], ids=["alone", "padded"])
def test_a_chain_of_one_position_is_uniform(mates: list[int]) -> None:
    lengths = torch.tensor([1, *mates])
    pair_scores = torch.randn(len(lengths), int(lengths.max()) - 1, 3, 3, requires_grad=True)
    structure = LinearChainCRF(pair_scores, lengths)
    assert structure.log_partition()[0].item() == pytest.approx(math.log(3))
    assert structure.entropy()[0].item() == pytest.approx(math.log(3))
    assert structure.log_prob(structure.best())[0].item() == pytest.approx(-math.log(3))
    assert structure.best()[0].tolist() == [0] + [-1] * (int(lengths.max()) - 1)
    assert structure.topk(4)[:, 0, 0].tolist() == [0, 1, 2, -1]
    assert set(structure.sample(60, generator=torch.Generator().manual_seed(0))[:, 0, 0].tolist()) == {
        0,
        1,
        2,
    }
    structure.log_partition().sum().backward()
    assert pair_scores.grad.isfinite().all()


@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("single_root", [True, False])
def test_two_hundred_words(projective: bool, single_root: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    scores = (torch.randn(1, 201, 201, 2, generator=generator) * 5).requires_grad_()
    structure = DependencyTreeCRF(scores, single_root=single_root, projective=projective)
    loss = -structure.log_prob(structure.best())
    loss.sum().backward()
    assert loss.item() >= 0
    assert_close(structure.marginals().sum((1, 3))[0, 1:], torch.ones(200), rtol=0, atol=1e-5)
    assert scores.grad.isfinite().all()
    if not projective:
        zero = DependencyTreeCRF(torch.zeros(1, 201, 201, 1), single_root=single_root).log_partition().item()
        expected = 199 * math.log(200 if single_root else 201)
        assert zero == pytest.approx(expected, rel=1e-6)
