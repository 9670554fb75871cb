"""Trees and chains: candidate indices, membership, and invalid arguments."""

from __future__ import annotations

import pytest
import torch

from helpers.structure_oracle import descends_from_root, is_projective
from helpers.structure_spaces import TREE_SPACES, Space
from hf_xst.structures import DependencyTreeCRF, LinearChainCRF
from hf_xst.structures.dependency import is_tree


def test_tree_candidates_do_not_depend_on_padding() -> None:
    heads, labels = torch.tensor([[2, 0, -1]]), torch.tensor([[1, 3, -1]])
    for words in (3, 6):
        structure = DependencyTreeCRF(torch.zeros(1, words + 1, words + 1, 4), torch.tensor([2]))
        wide = [torch.nn.functional.pad(part, (0, words - 3), value=-1) for part in (heads, labels)]
        assert structure.candidates((wide[0], wide[1]))[0, :3].tolist() == [9, 3, -1]
        marked = torch.zeros(1, words, (words + 1) * 4)
        marked[0, 0, 9] = 1
        assert structure.part_view(marked).nonzero().tolist() == [[0, 2, 1, 1]]


def test_chain_candidates() -> None:
    structure = LinearChainCRF(torch.zeros(1, 3, 4, 4), torch.tensor([3]))
    assert structure.candidates(torch.tensor([[1, 3, 0, 2]])).tolist() == [[7, 12, -1]]
    marked = torch.zeros(1, 3, 16)
    marked[0, 1, 12] = 1
    assert structure.part_view(marked).nonzero().tolist() == [[0, 1, 3, 0]]


@pytest.mark.parametrize("space", TREE_SPACES.values(), ids=TREE_SPACES)
def test_membership_of_all_head_vectors(space: Space) -> None:
    options = space.make.keywords
    heads = torch.cartesian_prod(*[torch.arange(-1, 6)] * 4)
    result = is_tree(heads, torch.full((len(heads),), 4), **options)
    expected = [
        all(0 <= head <= 4 for head in row)
        and all(descends_from_root(tuple(row), word) for word in range(1, 5))
        and (not options["single_root"] or row.count(0) == 1)
        and (not options["projective"] or is_projective(tuple(row)))
        for row in heads.tolist()
    ]
    assert result.tolist() == expected
    beyond = torch.cat([heads, torch.full((len(heads), 1), -7)], 1)
    assert is_tree(beyond, torch.full((len(heads),), 4), **options).tolist() == expected


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16])
def test_narrow_integers_are_accepted(dtype: torch.dtype) -> None:
    tree = torch.tensor([[0, 1, 1]]), torch.tensor([[0, 1, 0]])
    trees = DependencyTreeCRF(torch.randn(1, 4, 4, 2), torch.tensor([3], dtype=dtype))
    assert trees.log_prob((tree[0].to(dtype), tree[1].to(dtype))) == trees.log_prob(tree)
    chain = LinearChainCRF(torch.randn(1, 2, 2, 2), torch.tensor([3], dtype=dtype))
    assert chain.log_prob(tree[0].to(dtype)) == chain.log_prob(tree[0])


def test_trees_without_valid_labels_are_not_contained() -> None:
    structure = DependencyTreeCRF(torch.zeros(1, 3, 3, 2))
    assert structure.contains((torch.tensor([[0, 1]]), torch.tensor([[0, 1]]))).all()
    assert not structure.contains((torch.tensor([[0, 1]]), torch.tensor([[0, -1]]))).any()
    assert not structure.contains((torch.tensor([[0, 1]]), torch.tensor([[0, 2]]))).any()


@pytest.mark.parametrize(
    ("heads", "labels", "message"),
    [
        ([[0, 3]], [[0, 0]], "heads must be below 3, got 3"),
        ([[0, 1]], [[0, 5]], "labels must be below 2, got 5"),
        ([[0.0, 1.0]], [[0, 0]], "heads must be integers, got torch.float32"),
    ],
)
def test_impossible_trees_are_refused(
    heads: list[list[float]], labels: list[list[int]], message: str
) -> None:
    structure = DependencyTreeCRF(torch.zeros(1, 3, 3, 2))
    with pytest.raises(ValueError, match=message):
        structure.log_prob((torch.tensor(heads), torch.tensor(labels)))


def test_impossible_tags_are_refused() -> None:
    structure = LinearChainCRF(torch.zeros(1, 2, 3, 3))
    with pytest.raises(ValueError, match="tags must be below 3, got 3"):
        structure.log_prob(torch.tensor([[0, 3, 1]]))
    with pytest.raises(ValueError, match=r"tags must be integers, got torch.bool"):
        structure.log_prob(torch.tensor([[True, False, True]]))


@pytest.mark.parametrize("shape", [(2, 3, 4, 1), (2, 3, 3), (2, 3, 3, 0)])
def test_wrongly_shaped_tree_scores_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"\(B, N\+1, N\+1, L\), got \(2, 3"):
        DependencyTreeCRF(torch.zeros(shape))


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3, 3), (2, 3, 0, 0)])
def test_wrongly_shaped_pair_scores_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"\(B, N-1, T, T\), got \(2, 3"):
        LinearChainCRF(torch.zeros(shape))


def test_empty_sentences_are_refused() -> None:
    with pytest.raises(ValueError, match=r"room for at least one word, got shape \(2, 1, 1, 3\)"):
        DependencyTreeCRF(torch.zeros(2, 1, 1, 3))


def test_sampled_labels_follow_their_distribution() -> None:
    scores = torch.zeros(1, 2, 2, 3)
    scores[0, 0, 1] = torch.tensor([1.0, 2.0, 5.0]).log()
    heads, labels = DependencyTreeCRF(scores).sample(8000, generator=torch.Generator().manual_seed(0))
    assert (heads == 0).all()
    shares = labels.flatten().bincount(minlength=3) / 8000
    assert shares.tolist() == pytest.approx([0.125, 0.25, 0.625], abs=0.02)
