"""The contract of all structures, against the enumeration of all structures."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from helpers.structure_spaces import Space, assert_same_best, rows, tensors
from hf_xst.structures import Structure


def test_log_partition_is_the_sum_over_all_structures(space: Space, structure: Structure[Any]) -> None:
    expected = [space.enumerated(structure, i).log_partition for i in range(len(structure.lengths))]
    assert_close(
        structure.log_partition(), torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-12
    )


def test_marginals_are_sums_of_structure_probabilities(space: Space, structure: Structure[Any]) -> None:
    marginals = structure.marginals()
    view = structure.group_view(marginals)
    assert_close(structure.part_view(view), marginals, rtol=0, atol=0)
    for i, groups in enumerate(structure.group_lengths.tolist()):
        enumerated = space.enumerated(structure, i)
        expected = torch.tensor(enumerated.marginals(), dtype=torch.float64).reshape(view[i, :groups].shape)
        assert_close(view[i, :groups], expected, rtol=1e-9, atol=1e-11)
        assert (view[i, groups:] == 0).all()


def test_parts_in_no_structure_have_marginal_zero(space: Space) -> None:
    structure = space.random([3, 4, 4, 2, 4, 4], absent=0.6, seed=3)
    view = structure.group_view(structure.marginals())
    for i, groups in enumerate(structure.group_lengths.tolist()):
        possible = {pair for _, one in space.enumerated(structure, i).possible for pair in enumerate(one)}
        assert {tuple(pair) for pair in view[i, :groups].nonzero().tolist()} == possible


def test_log_count_counts_possible_structures(space: Space, structure: Structure[Any]) -> None:
    counts = [len(space.enumerated(structure, i).possible) for i in range(len(structure.lengths))]
    assert [round(count) for count in structure.log_count().exp().tolist()] == counts


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("labels", [1, 3])
def test_zero_scores_give_the_closed_form_count(space: Space, n: int, labels: int) -> None:
    labels = max(labels, space.fewest_labels)
    structure = space.random([n, 7], labels, scale=0.0)
    expected = torch.tensor([math.log(space.count(n, labels)), math.log(space.count(7, labels))])
    assert_close(structure.log_partition(), expected.double(), rtol=1e-7, atol=1e-7)
    assert_close(structure.log_count(), structure.log_partition(), rtol=1e-12, atol=1e-12)
    assert_close(structure.entropy(), structure.log_partition(), rtol=1e-12, atol=1e-12)


def test_entropy(space: Space, structure: Structure[Any]) -> None:
    expected = [space.enumerated(structure, i).entropy() for i in range(len(structure.lengths))]
    assert_close(structure.entropy(), torch.tensor(expected, dtype=torch.float64), rtol=1e-9, atol=1e-9)


def test_best_has_the_highest_score(space: Space, structure: Structure[Any]) -> None:
    best = structure.best()
    candidates = structure.candidates(best)
    for i, groups in enumerate(structure.group_lengths.tolist()):
        enumerated = space.enumerated(structure, i)
        chosen = tuple(candidates[i, :groups].tolist())
        assert (candidates[i, groups:] == -1).all()
        if enumerated.possible:
            score = enumerated.totals[enumerated.structures.index(chosen)]
            assert score == pytest.approx(enumerated.possible[0][0], rel=1e-12, abs=1e-12)
        else:
            assert all((part[i] == -1).all() for part in tensors(best))
    possible = structure.log_partition() > -math.inf
    assert_close(structure.contains(best), possible)
    assert_close(structure.best_candidates(), candidates)


def test_padding_of_best_is_minus_one(structure: Structure[Any]) -> None:
    for part in tensors(structure.best()):
        beyond = torch.arange(part.shape[1]) >= structure.lengths.unsqueeze(1)
        assert (part[beyond] == -1).all()


def test_log_prob_of_every_structure(space: Space, structure: Structure[Any]) -> None:
    for i, groups in enumerate(structure.group_lengths.tolist()):
        enumerated = space.enumerated(structure, i)
        names = torch.full((len(enumerated.structures), structure.valid.shape[1]), -1)
        if groups:
            names[:, :groups] = torch.tensor(enumerated.structures)
        repeated = structure.select(torch.full((len(names),), i))
        log_probs = repeated.log_prob(repeated.best_from_candidates(names))
        expected = torch.tensor(enumerated.totals, dtype=torch.float64) - enumerated.log_partition
        assert_close(log_probs, expected.nan_to_num(-math.inf, neginf=-math.inf), rtol=1e-10, atol=1e-10)


def test_gradient_of_the_log_partition_is_the_marginals(space: Space) -> None:
    structure = space.random([3, 1, 4], seed=4)
    scores = structure.scores.requires_grad_()
    weights = torch.tensor([2.0, 3.0, -1.0], dtype=torch.float64)
    (gradient,) = torch.autograd.grad(structure.with_scores(scores).log_partition() @ weights, scores)
    shaped = weights.reshape(-1, *[1] * (scores.ndim - 1))
    assert_close(gradient, structure.marginals() * shaped, rtol=1e-12, atol=1e-14)
    assert torch.autograd.gradcheck(lambda x: structure.with_scores(x).log_partition(), (scores,))


def test_log_mass_is_the_log_probability_of_the_restriction(space: Space) -> None:
    structure = space.random([3, 1, 4, 2], seed=5)
    generator = torch.Generator().manual_seed(6)
    keep = torch.rand(structure.scores.shape, generator=generator) < 0.7
    keep |= structure.part_view(
        torch.nn.functional.one_hot(structure.best_candidates().clamp(min=0), structure.valid.shape[2]).bool()
    )
    scores = structure.scores.clone().requires_grad_()
    log_mass = structure.with_scores(scores).log_mass(keep)
    restricted = structure.restricted_to(keep)
    assert_close(log_mass, restricted.log_partition() - structure.log_partition())
    log_mass.sum().backward()
    assert_close(scores.grad, restricted.marginals() - structure.marginals(), rtol=1e-10, atol=1e-12)
    assert (log_mass <= 0).all()
    everything = structure.log_mass(torch.ones_like(keep))
    assert_close(everything, torch.zeros_like(everything), rtol=0, atol=1e-12)


def test_views_and_candidates_are_inverted(space: Space, structure: Structure[Any]) -> None:
    valid = structure.valid
    assert valid.shape == structure.group_view(structure.scores).shape
    assert valid.dtype == torch.bool
    numbers = torch.arange(structure.scores.numel(), dtype=torch.float64).reshape(structure.scores.shape)
    kept = structure.part_view(structure.group_view(numbers))
    assert_close(kept[structure.valid_parts], numbers[structure.valid_parts])
    assert_close(structure.part_view(valid), structure.valid_parts)
    for i, (n, groups) in enumerate(
        zip(structure.lengths.tolist(), structure.group_lengths.tolist(), strict=True)
    ):
        names = space.listed(n, structure.scores.shape[-1])
        used = {pair for one in names for pair in enumerate(one)}
        assert {tuple(pair) for pair in valid[i].nonzero().tolist()} == used
        everything = torch.full((len(names), *valid.shape[:2]), -1)
        if groups:
            everything[:, i, :groups] = torch.tensor(names)
        best = structure.best_from_candidates(everything)
        for row in range(0, len(names), 7):
            assert_close(structure.candidates(rows(best, row))[i], everything[row, i])


def test_topk_is_sorted_and_complete(space: Space, structure: Structure[Any]) -> None:
    k = 12
    topk = structure.topk(k)
    for i, (n, groups) in enumerate(
        zip(structure.lengths.tolist(), structure.group_lengths.tolist(), strict=True)
    ):
        enumerated = space.enumerated(structure, i)
        expected = [score for score, _ in enumerated.possible[:k]]
        mine = [
            tuple(x for part in tensors(topk) for x in part[r, i][space.inside(n)].flatten().tolist())
            for r in range(k)
        ]
        present = [one for one in mine if one[0] != -1]
        assert len(present) == len(set(present)) == len(expected)
        assert {x for one in mine[len(present) :] for x in one} <= {-1}
        names = [structure.candidates(rows(topk, r))[i, :groups].tolist() for r in range(len(present))]
        scores = [enumerated.totals[enumerated.structures.index(tuple(name))] for name in names]
        assert scores == pytest.approx(expected, rel=1e-12, abs=1e-12)
    best = structure.log_prob(structure.best())
    assert_close(structure.log_prob(rows(topk, 0)), best)


def test_sample_frequencies(space: Space) -> None:
    structure = space.random([3, 1, 2], seed=8, absent=0.1)
    draws = 4000
    samples = structure.sample(draws, generator=torch.Generator().manual_seed(9))
    for i, n in enumerate(structure.lengths.tolist()):
        groups = int(structure.group_lengths[i])
        enumerated = space.enumerated(structure, i)
        seen = Counter(
            tuple(column) for column in _candidate_rows(structure, samples, i, draws)[:, :groups].tolist()
        )
        tested = {one for _, one in enumerated.possible}
        assert set(seen) <= (tested or {(-1,) * groups})
        for one in tested:
            p = sum(
                math.exp(t - enumerated.log_partition)
                for t, s in zip(enumerated.totals, enumerated.structures, strict=True)
                if s == one
            )
            assert abs(seen[one] / draws - p) <= 5 * math.sqrt(p * (1 - p) / draws) + 1e-9
        assert all((part[:, i, n:] == -1).all() for part in tensors(samples))


def _candidate_rows(structure: Structure[Any], samples: Any, sentence: int, draws: int) -> Tensor:
    repeated = structure.select(torch.full((draws,), sentence))
    return repeated.candidates(rows(samples, (slice(None), sentence)))


def test_sampling_uses_only_its_generator(space: Space) -> None:
    structure = space.random([3, 2])
    before = torch.random.get_rng_state()
    one = structure.sample(5, generator=torch.Generator().manual_seed(1))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert_same_best(one, structure.sample(5, generator=torch.Generator().manual_seed(1)))


def test_with_scores_keeps_the_space(space: Space) -> None:
    structure = space.random([3, 2], labels=2)
    other = structure.with_scores(space.random([3, 2], labels=3, seed=1).scores)
    assert type(other) is type(structure)
    assert {**vars(other), "scores": None} == {**vars(structure), "scores": None}
    assert_close(other.log_partition(), space.random([3, 2], labels=3, seed=1).log_partition())


def test_select(space: Space) -> None:
    structure = space.random([3, 1, 4], seed=14)
    index = torch.tensor([2, 0, 2])
    assert_close(structure.select(index).log_partition(), structure.log_partition()[index])


def test_label_axes_grow_with_the_labels(space: Space) -> None:
    small, large = space.random([3], labels=2), space.random([3], labels=5)
    grown = [
        axis for axis in range(-small.scores.ndim, 0) if small.scores.shape[axis] != large.scores.shape[axis]
    ]
    assert tuple(grown) == small.LABEL_AXES


def test_the_majority_wins(space: Space) -> None:
    structure = space.random([3, 4, 1], seed=15)
    agreed, other = structure.best(), rows(structure.topk(2), 1)
    result = structure.vote([other, agreed, agreed])
    assert_close(structure.candidates(result), structure.candidates(agreed))
