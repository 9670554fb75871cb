"""Properties for any scores, on sentences too long for enumeration."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from helpers.structure_spaces import SPACES, TREE_SPACES, Space
from hf_xst.structures import DependencyTreeCRF

names = st.sampled_from(sorted(SPACES))
seeds = st.integers(0, 10_000)
scales = st.sampled_from([0.1, 1.0, 10.0, 300.0])
shares = st.sampled_from([0.0, 0.2, 0.5])


@given(names, seeds, scales, shares)
def test_marginals_of_a_group_sum_to_one(name: str, seed: int, scale: float, absent: float) -> None:
    structure = SPACES[name].random([9, 6, 1], 3, scale=scale, seed=seed, absent=absent)
    view = structure.group_view(structure.marginals())
    possible = structure.log_partition() > -math.inf
    inside = torch.arange(view.shape[1]) < structure.group_lengths.unsqueeze(1)
    assert ((view >= 0) & (view <= 1 + 1e-12)).all()
    assert_close(view.sum(2), (inside & possible.unsqueeze(1)).double(), rtol=0, atol=1e-11)


@given(names, seeds, scales, shares)
def test_entropy_lies_between_zero_and_the_log_count(
    name: str, seed: int, scale: float, absent: float
) -> None:
    structure = SPACES[name].random([8, 5], 2, scale=scale, seed=seed, absent=absent)
    entropy, log_count = structure.entropy(), structure.log_count()
    possible = log_count > -math.inf
    assert ((entropy >= 0) & ((entropy <= log_count + 1e-9) | ~possible)).all()
    assert torch.equal(possible, structure.log_partition() > -math.inf)
    assert torch.equal(possible, structure.contains(structure.best()))


@given(names, seeds, st.floats(-1e5, 1e5))
def test_a_constant_on_one_group_shifts_the_log_partition(name: str, seed: int, constant: float) -> None:
    plain = SPACES[name].random([7, 7], 2, seed=seed)
    view = plain.group_view(plain.scores).clone()
    view[:, 2] += constant
    moved = plain.with_scores(plain.part_view(view))
    assert_close(moved.log_partition(), plain.log_partition() + constant, rtol=1e-13, atol=1e-9)
    assert_close(moved.marginals(), plain.marginals(), rtol=0, atol=1e-9)
    assert torch.equal(moved.best_candidates(), plain.best_candidates())


@given(names, seeds, shares)
def test_topk_descends_from_the_best_without_duplicates(name: str, seed: int, absent: float) -> None:
    structure = SPACES[name].random([6, 5], 3, seed=seed, absent=absent)
    result = structure.topk(5)
    each = [
        (result[r] if isinstance(result, torch.Tensor) else tuple(part[r] for part in result))
        for r in range(5)
    ]
    log_probs = torch.stack([structure.log_prob(one) for one in each])
    assert all((later <= earlier + 1e-12).all() for earlier, later in itertools.pairwise(log_probs))
    assert_close(log_probs[0], structure.log_prob(structure.best()))
    for sentence, possible in enumerate((structure.log_partition() > -math.inf).tolist()):
        rows = [tuple(structure.candidates(one)[sentence].tolist()) for one in each]
        present = [
            row for row, score in zip(rows, log_probs[:, sentence].tolist(), strict=True) if score > -math.inf
        ]
        assert len(set(present)) == len(present)
        assert bool(present) == possible


@given(names, seeds, shares)
def test_samples_are_structures_of_the_space(name: str, seed: int, absent: float) -> None:
    structure = SPACES[name].random([7, 4], 3, seed=seed, absent=absent)
    result = structure.sample(3, generator=torch.Generator().manual_seed(seed))
    possible = structure.log_partition() > -math.inf
    for r in range(3):
        one = result[r] if isinstance(result, torch.Tensor) else tuple(part[r] for part in result)
        assert torch.equal(structure.contains(one), possible)
        assert torch.equal(structure.log_prob(one) > -math.inf, possible)


@given(seeds, scales)
def test_larger_spaces_have_larger_partition_functions(seed: int, scale: float) -> None:
    weights = {
        name: space.random([6, 3], 2, scale=scale, seed=seed).log_partition().round(decimals=9)
        for name, space in TREE_SPACES.items()
    }
    for kind in ("nonproj", "proj"):
        assert (weights[f"{kind}_multi"] >= weights[f"{kind}_single"]).all()
    for roots in ("single", "multi"):
        assert (weights[f"nonproj_{roots}"] >= weights[f"proj_{roots}"]).all()


@pytest.mark.parametrize("name", TREE_SPACES)
@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_root_marginals_sum_to_the_expected_number_of_roots(name: str, scale: float) -> None:
    structure = TREE_SPACES[name].random([25, 12], 2, scale=scale)
    roots = structure.marginals()[:, 0].sum((1, 2))
    if name.endswith("single"):
        assert_close(roots, torch.ones(2, dtype=torch.float64), rtol=0, atol=1e-11)
    else:
        assert (roots >= 1 - 1e-11).all()


@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_acyclic_arcs_make_words_independent(scale: float) -> None:
    """If heads always precede their dependents, every choice of heads is a tree."""
    n = 30
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(1, n + 1, n + 1, 2, generator=generator, dtype=torch.float64) * scale
    earlier = torch.ones(n + 1, n + 1).triu(1).bool()[None, :, :, None].expand(scores.shape)
    structure = DependencyTreeCRF(scores, single_root=False).restricted_to(earlier)
    columns = structure.scores[0, :, 1:].transpose(0, 1).flatten(1)
    assert_close(structure.log_partition()[0], columns.logsumexp(1).sum(), rtol=1e-13, atol=1e-12)
    shares = structure.group_view(structure.marginals())[0]
    assert_close(shares, columns.softmax(1), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("space", TREE_SPACES.values(), ids=TREE_SPACES)
def test_reordering_the_words_changes_nothing(space: Space) -> None:
    """Any order for non-projective trees, the mirror image for projective ones."""
    structure = space.random([12], 2, scale=5.0)
    shuffled = torch.randperm(12, generator=torch.Generator().manual_seed(1)) + 1
    words = torch.arange(12, 0, -1) if getattr(structure, "projective", False) else shuffled
    order = torch.cat([torch.tensor([0]), words])
    renamed = structure.with_scores(structure.scores[:, order[:, None], order])
    assert_close(renamed.log_partition(), structure.log_partition(), rtol=1e-13, atol=1e-12)
    marginals = structure.marginals()[:, order[:, None], order]
    assert_close(renamed.marginals(), marginals, rtol=1e-10, atol=1e-300)
