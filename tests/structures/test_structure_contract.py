"""What every structure must do, run over all kinds of structure against the listing of all structures."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
import torch
from structure_spaces import SPACES, Space
from torch import Tensor
from torch.testing import assert_close

from hf_xst.structures import Structure

LENGTHS = [3, 1, 4, 2]
SETTINGS = {
    "plain": {},
    "one label": {"labels": 1},
    "three labels, short": {"labels": 3, "lengths": [2, 3]},
    "sharp": {"scale": 30.0},
    "very sharp": {"scale": 1000.0},
    "sparse": {"absent": 0.35, "seed": 1},
    "very sparse": {"absent": 0.6, "seed": 2},
    "equal": {"scale": 0.0},
}


@pytest.fixture(params=list(SPACES))
def space(request: pytest.FixtureRequest) -> Space:
    return SPACES[request.param]


@pytest.fixture(params=list(SETTINGS))
def structure(request: pytest.FixtureRequest, space: Space) -> Structure[Any]:
    return space.random(**{"lengths": LENGTHS, **SETTINGS[request.param]})


def tensors(best: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return (best,) if isinstance(best, Tensor) else best


def rows(best: Any, index: Any) -> Any:
    """Index every tensor of a `best()`."""
    return best[index] if isinstance(best, Tensor) else tuple(part[index] for part in best)


def joined(parts: list[Any]) -> Any:
    """Stack several `best()` along a new first axis."""
    if isinstance(parts[0], Tensor):
        return torch.stack(parts)
    return tuple(torch.stack(column) for column in zip(*parts, strict=True))


def assert_same_best(one: Any, other: Any) -> None:
    for a, b in zip(tensors(one), tensors(other), strict=True):
        assert_close(a, b, rtol=0, atol=0)


def test_log_partition_is_the_sum_over_all_structures(space: Space, structure: Structure[Any]) -> None:
    expected = [space.enumerated(structure, i).log_partition for i in range(len(structure.lengths))]
    assert_close(
        structure.log_partition(), torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-12
    )


def test_marginals_are_the_shares_of_structures(space: Space, structure: Structure[Any]) -> None:
    marginals = structure.marginals()
    view = structure.group_view(marginals)
    assert_close(structure.part_view(view), marginals, rtol=0, atol=0)
    for i, groups in enumerate(structure.group_lengths.tolist()):
        enumerated = space.enumerated(structure, i)
        expected = torch.tensor(enumerated.marginals(), dtype=torch.float64).reshape(view[i, :groups].shape)
        assert_close(view[i, :groups], expected, rtol=1e-9, atol=1e-11)
        assert (view[i, groups:] == 0).all()


def test_what_is_in_no_structure_has_probability_exactly_zero(space: Space) -> None:
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
    structure = space.random([n, 7], labels, scale=0.0)
    expected = torch.tensor([math.log(space.count(n, labels)), math.log(space.count(7, labels))])
    assert_close(structure.log_partition(), expected.double(), rtol=1e-7, atol=1e-7)
    assert_close(structure.log_count(), structure.log_partition(), rtol=1e-12, atol=1e-12)
    assert_close(structure.entropy(), structure.log_partition(), rtol=1e-12, atol=1e-12)


def test_entropy_is_the_mean_surprise(space: Space, structure: Structure[Any]) -> None:
    expected = [space.enumerated(structure, i).entropy() for i in range(len(structure.lengths))]
    assert_close(structure.entropy(), torch.tensor(expected, dtype=torch.float64), rtol=1e-9, atol=1e-9)


def test_best_is_a_structure_of_the_space_with_the_highest_score(
    space: Space, structure: Structure[Any]
) -> None:
    best = structure.best()
    candidates = structure.candidates(best)
    for i, groups in enumerate(structure.group_lengths.tolist()):
        enumerated = space.enumerated(structure, i)
        found = tuple(candidates[i, :groups].tolist())
        assert (candidates[i, groups:] == -1).all()
        if enumerated.possible:
            score = enumerated.totals[enumerated.structures.index(found)]
            assert score == pytest.approx(enumerated.possible[0][0], rel=1e-12, abs=1e-12)
        else:
            assert all((part[i] == -1).all() for part in tensors(best))
    possible = structure.log_partition() > -math.inf
    assert_close(structure.contains(best), possible)
    assert_close(structure.best_candidates(), candidates)


def test_padding_of_the_best_is_minus_one(structure: Structure[Any]) -> None:
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
        found = repeated.log_prob(repeated.best_from_candidates(names))
        expected = torch.tensor(enumerated.totals, dtype=torch.float64) - enumerated.log_partition
        assert_close(found, expected.nan_to_num(-math.inf, neginf=-math.inf), rtol=1e-10, atol=1e-10)


def test_log_prob_of_none_is_minus_infinity_and_harmless(space: Space) -> None:
    structure = space.random([3, 4])
    scores = structure.scores.clone().requires_grad_()
    gold = structure.best()
    for part in tensors(gold):
        part[0, 1] = -1
    log_prob = structure.with_scores(scores).log_prob(gold)
    assert log_prob[0] == -math.inf
    assert log_prob[1] > -math.inf
    log_prob.sum().backward()
    assert (scores.grad[0] == 0).all()
    assert scores.grad.isfinite().all()
    assert (scores.grad[1] != 0).any()


@pytest.mark.parametrize("filling", [0.0, 1e4, -math.inf, math.inf, math.nan])
def test_padding_does_not_speak(space: Space, filling: float) -> None:
    whole = space.random([3, 1, 4, 2], labels=3)
    unused = ~whole.valid_parts
    scores = whole.scores.masked_fill(unused, filling).requires_grad_()
    structure = whole.with_scores(scores)
    gold = whole.best()
    loss = structure.log_prob(gold) + structure.log_mass(whole.valid_parts) + structure.log_partition()
    (gradient,) = torch.autograd.grad(loss.sum(), scores)
    assert (gradient[unused] == 0).all()
    assert gradient.isfinite().all()
    for i in range(4):
        single = space.alone(whole, i)
        inside = (i, *(slice(size) for size in single.scores.shape[1:]))
        n = int(structure.lengths[i])
        assert_close(structure.log_partition()[i], single.log_partition()[0])
        assert_close(structure.marginals()[inside], single.marginals()[0])
        assert_close(structure.entropy()[i], single.entropy()[0])
        assert_close(structure.log_count()[i], single.log_count()[0])
        gold_here = rows(gold, (slice(i, i + 1), slice(n)))
        assert_close(structure.log_prob(gold)[i], single.log_prob(gold_here)[0])
        assert_same_best(rows(structure.best(), (i, slice(n))), rows(single.best(), 0))
        assert_same_best(
            rows(structure.topk(3), (slice(None), i, slice(n))), rows(single.topk(3), (slice(None), 0))
        )


def test_gradient_of_the_log_partition_is_the_marginals(space: Space) -> None:
    structure = space.random([3, 1, 4], seed=4)
    scores = structure.scores.requires_grad_()
    weights = torch.tensor([2.0, 3.0, -1.0], dtype=torch.float64)
    (gradient,) = torch.autograd.grad(structure.with_scores(scores).log_partition() @ weights, scores)
    shaped = weights.reshape(-1, *[1] * (scores.ndim - 1))
    assert_close(gradient, structure.marginals() * shaped, rtol=1e-12, atol=1e-14)
    assert torch.autograd.gradcheck(lambda x: structure.with_scores(x).log_partition(), (scores,))


def test_log_mass_is_the_probability_of_the_restriction(space: Space) -> None:
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


def test_an_empty_restriction_harms_nobody(space: Space) -> None:
    structure = space.random([3, 4, 2], seed=7)
    keep = torch.ones_like(structure.scores, dtype=torch.bool)
    keep[1] = False
    scores = structure.scores.clone().requires_grad_()
    empty = structure.with_scores(scores).restricted_to(keep)
    assert empty.log_partition()[1] == -math.inf
    assert empty.log_count()[1] == -math.inf
    assert empty.entropy()[1] == 0
    assert structure.log_mass(keep)[1] == -math.inf
    assert (empty.marginals()[1] == 0).all()
    for found in (empty.best(), rows(empty.topk(2), 0), rows(empty.sample(2), 1)):
        assert all((part[1] == -1).all() for part in tensors(found))
    assert empty.log_prob(structure.best())[1] == -math.inf
    losses = (
        empty.log_partition()
        + empty.log_prob(structure.best())
        + structure.with_scores(scores).log_mass(keep)
    )
    losses.sum().backward()
    assert scores.grad.isfinite().all()
    assert (scores.grad[1] == 0).all()
    others = torch.tensor([0, 2])
    assert_close(empty.marginals()[others], structure.marginals()[others], rtol=1e-12, atol=1e-14)
    assert_same_best(rows(empty.best(), others), rows(structure.best(), others))


def test_views_and_candidates_go_back_and_forth(space: Space, structure: Structure[Any]) -> None:
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


def test_topk_lists_the_best_in_order(space: Space, structure: Structure[Any]) -> None:
    k = 12
    found = structure.topk(k)
    for i, (n, groups) in enumerate(
        zip(structure.lengths.tolist(), structure.group_lengths.tolist(), strict=True)
    ):
        enumerated = space.enumerated(structure, i)
        expected = [score for score, _ in enumerated.possible[:k]]
        mine = [
            tuple(map(tuple, zip(*(part[r, i, :n].tolist() for part in tensors(found)), strict=True)))
            for r in range(k)
        ]
        present = [one for one in mine if -1 not in one[0]]
        assert len(present) == len(set(present)) == len(expected)
        assert mine[len(present) :] == [((-1,) * len(tensors(found)),) * n] * (k - len(present))
        names = [structure.candidates(rows(found, r))[i, :groups].tolist() for r in range(len(present))]
        scores = [enumerated.totals[enumerated.structures.index(tuple(name))] for name in names]
        assert scores == pytest.approx(expected, rel=1e-12, abs=1e-12)
    best = structure.log_prob(structure.best())
    assert_close(structure.log_prob(rows(found, 0)), best)


def test_samples_come_as_often_as_they_should(space: Space) -> None:
    structure = space.random([3, 1, 2], seed=8, absent=0.1)
    draws = 4000
    found = structure.sample(draws, generator=torch.Generator().manual_seed(9))
    for i, n in enumerate(structure.lengths.tolist()):
        groups = int(structure.group_lengths[i])
        enumerated = space.enumerated(structure, i)
        seen = Counter(
            tuple(column) for column in _candidate_rows(structure, found, i, draws)[:, :groups].tolist()
        )
        tested = {one for _, one in enumerated.possible}
        assert set(seen) <= tested
        for one in tested:
            p = sum(
                math.exp(t - enumerated.log_partition)
                for t, s in zip(enumerated.totals, enumerated.structures, strict=True)
                if s == one
            )
            assert abs(seen[one] / draws - p) <= 5 * math.sqrt(p * (1 - p) / draws) + 1e-9
        assert all((part[:, i, n:] == -1).all() for part in tensors(found))


def _candidate_rows(structure: Structure[Any], found: Any, sentence: int, draws: int) -> Tensor:
    repeated = structure.select(torch.full((draws,), sentence))
    return repeated.candidates(rows(found, (slice(None), sentence)))


def test_sampling_follows_its_generator_and_spares_the_global_one(space: Space) -> None:
    structure = space.random([3, 2])
    before = torch.random.get_rng_state()
    one = structure.sample(5, generator=torch.Generator().manual_seed(1))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert_same_best(one, structure.sample(5, generator=torch.Generator().manual_seed(1)))


@pytest.mark.parametrize("k", [0, -1])
def test_asking_for_no_structures_is_an_error(space: Space, k: int) -> None:
    structure = space.random([2])
    with pytest.raises(ValueError, match=f"at least 1, got {k}"):
        structure.topk(k)
    with pytest.raises(ValueError, match=f"at least 1, got {k}"):
        structure.sample(k)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_the_callers_precision_in_and_out(space: Space, dtype: torch.dtype) -> None:
    wide = space.random([3, 1, 4, 2])
    narrow = wide.with_scores(wide.scores.to(dtype).requires_grad_())
    exact = wide.with_scores(narrow.scores.detach().double())
    gold = exact.best()
    tolerance = {"rtol": 0, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 1e-2, "atol": 1e-2}
    for name in ("log_partition", "marginals", "entropy", "log_count"):
        found = getattr(narrow, name)()
        assert found.dtype == dtype
        assert_close(found, getattr(exact, name)().to(dtype), **tolerance)
    assert_close(narrow.log_prob(gold), exact.log_prob(gold).to(dtype), **tolerance)
    narrow.log_partition().sum().backward()
    assert_close(narrow.scores.grad, exact.marginals().to(dtype), **tolerance)
    assert_same_best(narrow.best(), gold)
    assert_same_best(narrow.topk(2), exact.topk(2))
    narrow.sample(2)


@pytest.mark.parametrize("offset", [1e6, -1e6])
def test_huge_offsets_cost_nothing(space: Space, offset: float) -> None:
    plain = space.random([3, 4], seed=10)
    plain = plain.with_scores((plain.scores * 16).round() / 16)  # float32 holds score and offset exactly
    view = plain.group_view(plain.scores).clone()
    view[:, 1] += offset
    moved = plain.with_scores(plain.part_view(view).float().requires_grad_())
    assert_close(moved.marginals(), plain.marginals().float(), rtol=0, atol=1e-6)
    assert_close(moved.entropy(), plain.entropy().float(), rtol=0, atol=1e-5)
    assert_close(moved.log_partition().double(), plain.log_partition() + offset, rtol=1e-7, atol=0)
    gold = plain.best()
    assert_same_best(moved.best(), gold)
    assert_close(moved.log_prob(gold), plain.log_prob(gold).float(), rtol=0, atol=1e-5)
    moved.log_partition().sum().backward()
    assert_close(moved.scores.grad, moved.marginals(), rtol=0, atol=1e-6)


def test_works_in_inference_mode_and_without_gradients(space: Space) -> None:
    structure = space.random([3, 1, 4], seed=11)
    expected = structure.marginals()
    with torch.inference_mode():
        frozen = space.make(structure.scores * 1, structure.lengths * 1)
        assert_close(frozen.marginals(), expected)
        assert_same_best(frozen.best(), structure.best())
        assert_close(frozen.entropy(), structure.entropy())
        assert_same_best(frozen.topk(2), structure.topk(2))
        frozen.sample(2)
    with torch.no_grad():
        assert_close(structure.marginals(), expected)
        assert not structure.with_scores(structure.scores.clone().requires_grad_()).marginals().requires_grad


def test_results_do_not_change_the_callers_tensors(space: Space) -> None:
    structure = space.random([3, 1, 4], seed=12)
    scores, lengths = structure.scores.clone(), structure.lengths.clone()
    structure.marginals(), structure.best(), structure.topk(3), structure.sample(2), structure.entropy()
    structure.restricted_to(structure.valid_parts).log_partition()
    assert_close(structure.scores, scores, rtol=0, atol=0)
    assert_close(structure.lengths, lengths, rtol=0, atol=0)
    assert not structure.scores.requires_grad


def test_no_lengths_means_all_full(space: Space) -> None:
    structure = space.random([4, 4], seed=13)
    assert_close(space.make(structure.scores).log_partition(), structure.log_partition())
    assert space.make(structure.scores).lengths.tolist() == [4, 4]


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        (torch.tensor([0, 3]), r"between 1 and 3, got \[0, 3\]"),
        (torch.tensor([1, 4]), r"between 1 and 3, got \[1, 4\]"),
        (torch.tensor([3]), r"shape \(2,\), got torch.int64 of \(1,\)"),
        (torch.tensor([3.0, 3.0]), r"integers of shape \(2,\), got torch.float32"),
        (torch.tensor([True, True]), r"integers of shape \(2,\), got torch.bool"),
    ],
)
def test_bad_lengths_are_refused(space: Space, lengths: Tensor, message: str) -> None:
    scores = space.random([3, 3]).scores
    with pytest.raises(ValueError, match=message):
        space.make(scores, lengths)


def test_bad_scores_are_refused(space: Space) -> None:
    structure = space.random([3, 3])
    with pytest.raises(ValueError, match=r"must have shape \(B, .*\), got \(3,\)"):
        space.make(torch.zeros(3))
    with pytest.raises(ValueError, match=r"floating point, got torch.int64"):
        space.make(structure.scores.long())
    with pytest.raises(ValueError, match=r"\(sentences, words\) = \(2, 3\), got \(1, 3\)"):
        structure.with_scores(structure.scores[:1])
    with pytest.raises(ValueError, match=r"\(sentences, words\) = \(2, 3\), got \(2, 4\)"):
        structure.with_scores(space.random([4, 4]).scores)


def test_a_restriction_must_fit(space: Space) -> None:
    structure = space.random([3, 3])
    with pytest.raises(ValueError, match=r"keep must be bool of shape .*, got torch.float64"):
        structure.restricted_to(structure.scores)
    with pytest.raises(ValueError, match=r"keep must be bool of shape"):
        structure.restricted_to(structure.valid_parts[:1])


def test_other_scores_keep_space_and_options(space: Space) -> None:
    structure = space.random([3, 2], labels=2)
    other = structure.with_scores(space.random([3, 2], labels=3, seed=1).scores)
    assert type(other) is type(structure)
    assert other.options == structure.options
    assert_close(other.lengths, structure.lengths)
    assert_close(other.log_partition(), space.random([3, 2], labels=3, seed=1).log_partition())


def test_selecting_sentences(space: Space) -> None:
    structure = space.random([3, 1, 4], seed=14)
    index = torch.tensor([2, 0, 2])
    assert_close(structure.select(index).log_partition(), structure.log_partition()[index])


def test_label_axes_are_those_that_grow_with_the_alphabet(space: Space) -> None:
    small, large = space.random([3], labels=2), space.random([3], labels=5)
    grown = [
        axis for axis in range(-small.scores.ndim, 0) if small.scores.shape[axis] != large.scores.shape[axis]
    ]
    assert tuple(grown) == small.LABEL_AXES


def test_an_agreed_structure_wins_every_vote(space: Space) -> None:
    structure = space.random([3, 4, 1], seed=15)
    agreed, other = structure.best(), rows(structure.topk(2), 1)
    result = type(structure).majority_of([other, agreed, agreed], structure.lengths, **structure.options)
    assert_close(structure.candidates(result), structure.candidates(agreed))


def test_an_empty_batch_is_no_error(space: Space) -> None:
    structure = space.make(torch.zeros(0, *space.shape(3, 2)), torch.zeros(0, dtype=torch.long))
    assert structure.log_partition().shape == (0,)
    assert structure.marginals().shape == structure.scores.shape
    assert all(part.shape == (0, 3) for part in tensors(structure.best()))
