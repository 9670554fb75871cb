"""Majority votes: most votes, then the earlier source, always a structure of the space."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from helpers.structure_spaces import TREE_SPACES, Space, listed, tree_votes
from hf_xst.structures import DependencyTreeCRF, LinearChainCRF

Ballots = tuple[Tensor, Tensor]


def ballots(*trees: tuple[list[int], list[int]]) -> Ballots:
    """Make (S, 1, N) heads and labels of one sentence."""
    return torch.tensor([[heads] for heads, _ in trees]), torch.tensor([[labels] for _, labels in trees])


@pytest.fixture(params=list(TREE_SPACES))
def space(request: pytest.FixtureRequest) -> Space:
    return TREE_SPACES[request.param]


@given(st.integers(0, 10_000), st.sampled_from(sorted(TREE_SPACES)), st.integers(1, 5))
def test_no_tree_of_the_space_gets_more_votes(seed: int, name: str, sources: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    options = TREE_SPACES[name].make.keywords
    heads = torch.randint(-1, 5, (sources, 1, 4), generator=generator)
    labels = torch.randint(0, 2, (sources, 1, 4), generator=generator)
    winner = tree_votes(heads, labels, **options)
    assert DependencyTreeCRF(torch.zeros(1, 5, 5, 2), **options).contains(winner).all()
    votes = [[0] * 10 for _ in range(4)]
    for source in range(sources):
        for word in range(4):
            if heads[source, 0, word] >= 0:
                votes[word][2 * int(heads[source, 0, word]) + int(labels[source, 0, word])] += 1
    totals = [sum(votes[g][c] for g, c in enumerate(one)) for one in listed(name, 4, 2)]
    mine = 2 * winner[0][0] + winner[1][0]
    assert sum(votes[g][c] for g, c in enumerate(mine.tolist())) == max(totals)


def test_a_tie_goes_to_the_first_source(space: Space) -> None:
    one, other = ([0, 1, 2], [0, 1, 1]), ([2, 0, 2], [1, 1, 0])
    for first, second in ((one, other), (other, one)):
        heads, labels = tree_votes(*ballots(first, second), **space.make.keywords)
        assert (heads[0].tolist(), labels[0].tolist()) == first


def test_tied_arcs_go_to_the_earlier_source(space: Space) -> None:
    heads = [0, 1, 1, 1]
    voters = [(heads, [1, 1, 0, 9]), (heads, [1, 0, 5, 3]), (heads, [0, 1, 5, 4])]
    winner = tree_votes(*ballots(*voters), **space.make.keywords)
    assert (winner[0][0].tolist(), winner[1][0].tolist()) == (heads, [1, 1, 5, 9])


def test_a_source_outside_the_space_does_not_win_the_tie() -> None:
    forest, tree, other = ([0, 0, 0], [0, 0, 0]), ([0, 1, 1], [1, 1, 1]), ([2, 0, 2], [2, 2, 2])
    heads, labels = tree_votes(*ballots(forest, tree, other))
    assert (heads == 0).sum() == 1
    trees_first = tree_votes(*ballots(tree, other, forest))
    assert trees_first[0][0].tolist() == tree[0]
    several = tree_votes(*ballots(forest, tree, other), single_root=False)
    assert (several[0][0].tolist(), several[1][0].tolist()) == forest
    assert labels.min() >= 0


def test_a_vote_outweighs_all_preferences(space: Space) -> None:
    first, later = ([2, 0, 2, 3], [0, 0, 0, 0]), ([0, 1, 2, 3], [0, 0, 0, 0])
    heads, _ = tree_votes(*ballots(first, later, later), **space.make.keywords)
    assert heads[0].tolist() == later[0]


def test_votes_are_for_labelled_arcs(space: Space) -> None:
    voters = [([0, 1], [0, 0]), ([0, 1], [1, 0]), ([0, 1], [1, 1])]
    heads, labels = tree_votes(*ballots(*voters), **space.make.keywords)
    assert (heads[0].tolist(), labels[0].tolist()) == ([0, 1], [1, 0])


def test_abstentions_only_give_a_tree(space: Space) -> None:
    abstentions = torch.full((2, 1, 3), -1)
    winner = tree_votes(abstentions, abstentions, **space.make.keywords)
    assert DependencyTreeCRF(torch.zeros(1, 4, 4, 1), **space.make.keywords).contains(winner).all()


def test_padding_is_ignored(space: Space) -> None:
    heads = torch.tensor([[[2, 0, 3, -1]], [[2, 0, 1, -100]]])
    labels = torch.tensor([[[0, 1, 0, -1]], [[0, 1, 1, -100]]])
    winner = tree_votes(heads, labels, torch.tensor([2]), **space.make.keywords)
    assert winner[0].tolist() == [[2, 0, -1, -1]]
    assert winner[1].tolist() == [[0, 1, -1, -1]]


def test_sentences_are_independent(space: Space) -> None:
    heads = torch.tensor([[[0, 1, 2], [2, 0, -1]], [[0, 1, 2], [2, 0, -1]]])
    winner = tree_votes(heads, heads.clamp(max=0), torch.tensor([3, 2]), **space.make.keywords)
    assert winner[0].tolist() == [[0, 1, 2], [2, 0, -1]]


@pytest.mark.parametrize(
    ("tags", "length", "winner"),
    [
        ([[3, 0, 1, 5], [1, 0, 2, 5], [1, 4, 4, 0], [-1, -1, 4, 9]], 3, [1, 0, 4, -1]),
        ([[-1, 7, -1], [5, 2, -1], [3, 2, -1], [3, 7, -1], [5, 1, -1]], 3, [5, 7, 0]),
    ],
    ids=["counted by position", "ties go to the earliest source"],
)
def test_tags(tags: list[list[int]], length: int, winner: list[int]) -> None:
    space = LinearChainCRF(torch.zeros(1, len(winner) - 1, 10, 10), torch.tensor([length]))
    assert space.vote([torch.tensor([each]) for each in tags]).tolist() == [winner]


def test_scores_do_not_matter() -> None:
    scores = torch.full((1, 3, 3, 1), -torch.inf)
    tree = torch.tensor([[2, 0]]), torch.tensor([[0, 0]])
    assert DependencyTreeCRF(scores).vote([tree])[0].equal(tree[0])


def test_heads_outside_the_sentence_are_refused() -> None:
    with pytest.raises(ValueError, match="heads must be below 3, got 7"):
        tree_votes(*ballots(([0, 7], [0, 0])))


@pytest.mark.parametrize(
    ("heads", "labels"),
    [
        (torch.zeros(2, 3).long(), torch.zeros(2, 3).long()),
        (torch.zeros(2, 1, 3).long(), torch.zeros(2, 1, 4).long()),
        (torch.zeros(0, 1, 3).long(), torch.zeros(0, 1, 3).long()),
    ],
)
def test_wrongly_shaped_tree_votes_are_refused(heads: Tensor, labels: Tensor) -> None:
    with pytest.raises(ValueError, match=r"must both have shape \(S, B, N\), S at least 1, got"):
        DependencyTreeCRF.majority(heads, labels)


@pytest.mark.parametrize(
    "tags", [torch.zeros(2, 3).long(), torch.zeros(0, 1, 3).long(), torch.zeros(2, 1, 3)]
)
def test_wrongly_shaped_tag_votes_are_refused(tags: Tensor) -> None:
    with pytest.raises(ValueError, match=r"integers of shape \(S, B, N\) with S at least 1, got"):
        LinearChainCRF.majority(tags)
