"""Labels of arcs from the root symbol in best trees, k best, samples and votes."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from helpers.structure_spaces import TREE_SPACES, listed, tree_votes
from hf_xst.structures import DependencyTreeCRF

LABELS, ROOT = 3, 1


def obeys(heads: Tensor, labels: Tensor) -> bool:
    """Whether exactly the arcs from the root symbol have the label; absent arcs (-1) do not matter."""
    return bool((((heads == 0) == (labels == ROOT)) | (heads < 0)).all())


@pytest.mark.parametrize("name", TREE_SPACES)
@pytest.mark.parametrize("length", [1, 2, 3])
def test_trees_are_the_best_of_those_that_obey_the_rule(name, length):
    generator = torch.Generator().manual_seed(length)
    scores = torch.randn(2, length + 1, length + 1, LABELS, generator=generator, dtype=torch.float64) * 3
    free = TREE_SPACES[name].make(scores)
    trees = free.with_root_label(ROOT)
    every = torch.tensor([list(one) for one in listed(name, length, LABELS)])  # (trees, N)
    allowed = torch.stack([one for one in every if obeys(*free.best_from_candidates(one))])
    for sentence in range(2):
        here = trees.select(torch.full((len(allowed),), sentence))
        totals = here.score_of(allowed)
        one = trees.select(torch.tensor([sentence]))
        assert_close(one.score_of(one.best_candidates()), totals.max()[None])
        ranked = one.topk(len(allowed) + 1)
        assert obeys(*ranked)
        assert int((ranked[0][:, 0, 0] >= 0).sum()) == len(allowed)
        assert obeys(*one.sample(20, generator=generator))
    assert torch.equal(trees.marginals(), free.marginals())
    assert torch.equal(trees.log_partition(), free.log_partition())
    assert (trees.log_prob(trees.best()) <= free.log_prob(free.best())).all()


def test_scores_that_leave_no_choice_are_kept():
    scores = torch.zeros(1, 3, 3, LABELS)
    scores[:, 0, 1] = 1  # no ties
    without = scores.clone()
    without[..., ROOT] = -torch.inf
    assert DependencyTreeCRF(without, root_label=ROOT).best()[0].tolist() == [[0, 1]]
    only = scores.clone()
    only[..., [label for label in range(LABELS) if label != ROOT]] = -torch.inf
    for trees in (DependencyTreeCRF(only, root_label=ROOT), DependencyTreeCRF(scores[..., :1], root_label=0)):
        assert trees.best()[0].tolist() == [[0, 1]]
    kept = torch.ones_like(scores, dtype=torch.bool)
    kept[:, 0, :, ROOT] = False
    assert DependencyTreeCRF(scores, root_label=ROOT).restricted_to(kept).best()[1].tolist() == [[0, 0]]


@pytest.mark.parametrize("name", TREE_SPACES)
def test_votes_for_the_root_symbol_count_for_its_label(name):
    options = TREE_SPACES[name].make.keywords
    heads = torch.tensor([[[0, 1, 1]], [[0, 1, 1]], [[2, 0, 2]]])
    labels = torch.tensor([[[2, 0, 0]], [[0, ROOT, 2]], [[0, ROOT, 2]]])
    winner = tree_votes(heads, labels, **options, root_label=ROOT)
    assert obeys(*winner)
    assert winner[0].tolist() == [[0, 1, 1]]
    alone = tree_votes(torch.zeros(2, 1, 1, dtype=torch.long), torch.tensor([[[0]], [[2]]]), root_label=ROOT)
    assert [part.tolist() for part in alone] == [[[0]], [[ROOT]]]


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("place", [(1, 2, ROOT), (0, 1, 0), (0, 1, ROOT), (1, 2, 2)])
def test_the_rule_hides_no_score_that_is_not_finite(value, place):
    scores = torch.zeros(2, 3, 3, LABELS)
    scores[1, *place] = value
    trees = DependencyTreeCRF(scores, root_label=ROOT)
    for compute in (trees.best, lambda: trees.topk(2), lambda: trees.sample(2), trees.marginals):
        with pytest.raises(ValueError, match="sentence 1 of the batch"):
            compute()


@pytest.mark.parametrize("label", [-1, LABELS])
def test_the_label_must_exist(label):
    with pytest.raises(ValueError, match=f"root_label is {label}; expected the index of one of 3 labels"):
        DependencyTreeCRF(torch.zeros(1, 3, 3, LABELS), root_label=label)
