"""Padding, empty spaces, precision, and invalid arguments, for all structures."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from helpers.structure_spaces import Space, assert_same_best, rows, tensors


def test_incomplete_gold_has_log_prob_minus_infinity(space: Space) -> None:
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
def test_padding_is_ignored(space: Space, filling: float) -> None:
    full = space.random([3, 1, 4, 2], labels=3)
    unused = ~full.valid_parts
    scores = full.scores.masked_fill(unused, filling).requires_grad_()
    structure = full.with_scores(scores)
    gold = full.best()
    loss = structure.log_prob(gold) + structure.log_mass(full.valid_parts) + structure.log_partition()
    (gradient,) = torch.autograd.grad(loss.sum(), scores)
    assert (gradient[unused] == 0).all()
    assert gradient.isfinite().all()
    for i in range(4):
        single = space.alone(full, i)
        inside = (i, *(slice(size) for size in single.scores.shape[1:]))
        n = int(structure.lengths[i])
        assert_close(structure.log_partition()[i], single.log_partition()[0])
        assert_close(structure.marginals()[inside], single.marginals()[0])
        assert_close(structure.entropy()[i], single.entropy()[0])
        assert_close(structure.log_count()[i], single.log_count()[0])
        gold_here = rows(gold, (slice(i, i + 1), *space.inside(n)))
        assert_close(structure.log_prob(gold)[i], single.log_prob(gold_here)[0])
        assert_same_best(rows(structure.best(), (i, *space.inside(n))), rows(single.best(), 0))
        assert_same_best(
            rows(structure.topk(3), (slice(None), i, *space.inside(n))),
            rows(single.topk(3), (slice(None), 0)),
        )


def test_an_empty_space_does_not_affect_the_batch(space: Space) -> None:
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
    for result in (empty.best(), rows(empty.topk(2), 0), rows(empty.sample(2), 1)):
        assert all((part[1] == -1).all() for part in tensors(result))
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


@pytest.mark.parametrize("k", [0, -1])
def test_k_must_be_positive(space: Space, k: int) -> None:
    structure = space.random([2])
    with pytest.raises(ValueError, match=f"at least 1, got {k}"):
        structure.topk(k)
    with pytest.raises(ValueError, match=f"at least 1, got {k}"):
        structure.sample(k)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_results_have_the_dtype_of_the_scores(space: Space, dtype: torch.dtype) -> None:
    wide = space.random([3, 1, 4, 2])
    narrow = wide.with_scores(wide.scores.to(dtype).requires_grad_())
    exact = wide.with_scores(narrow.scores.detach().double())
    gold = exact.best()
    tolerance = {"rtol": 0, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 1e-2, "atol": 1e-2}
    for name in ("log_partition", "marginals", "entropy", "log_count"):
        result = getattr(narrow, name)()
        assert result.dtype == dtype
        assert_close(result, getattr(exact, name)().to(dtype), **tolerance)
    assert_close(narrow.log_prob(gold), exact.log_prob(gold).to(dtype), **tolerance)
    narrow.log_partition().sum().backward()
    assert_close(narrow.scores.grad, exact.marginals().to(dtype), **tolerance)
    assert_same_best(narrow.best(), gold)
    assert_same_best(narrow.topk(2), exact.topk(2))
    narrow.sample(2)


@pytest.mark.parametrize("offset", [1e6, -1e6])
def test_huge_offsets_lose_no_accuracy(space: Space, offset: float) -> None:
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
        space.random([11, 2]).possible.any()
    larger = space.random([11, 2])
    leaf = larger.scores.clone().requires_grad_()
    larger.with_scores(leaf).log_prob(larger.best()).sum().backward()
    with torch.no_grad():
        assert_close(structure.marginals(), expected)
        assert not structure.with_scores(structure.scores.clone().requires_grad_()).marginals().requires_grad


def test_arguments_are_not_changed(space: Space) -> None:
    structure = space.random([3, 1, 4], seed=12)
    scores, lengths = structure.scores.clone(), structure.lengths.clone()
    structure.marginals(), structure.best(), structure.topk(3), structure.sample(2), structure.entropy()
    structure.restricted_to(structure.valid_parts).log_partition()
    assert_close(structure.scores, scores, rtol=0, atol=0)
    assert_close(structure.lengths, lengths, rtol=0, atol=0)
    assert not structure.scores.requires_grad


def test_lengths_default_to_the_full_length(space: Space) -> None:
    structure = space.random([4, 4], seed=13)
    assert_close(space.make(structure.scores).log_partition(), structure.log_partition())
    assert space.make(structure.scores).lengths.tolist() == [4, 4]


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        (torch.tensor([0, 3]), "between 1 and 3, got 0"),
        (torch.tensor([1, 4]), "between 1 and 3, got 4"),
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


def test_wrongly_shaped_restrictions_are_refused(space: Space) -> None:
    structure = space.random([3, 3])
    with pytest.raises(ValueError, match=r"keep must be bool of shape .*, got torch.float64"):
        structure.restricted_to(structure.scores)
    with pytest.raises(ValueError, match=r"keep must be bool of shape"):
        structure.restricted_to(structure.valid_parts[:1])


def test_empty_batches(space: Space) -> None:
    structure = space.make(torch.zeros(0, *space.shape(3, 2)), torch.zeros(0, dtype=torch.long))
    assert structure.log_partition().shape == (0,)
    assert structure.marginals().shape == structure.scores.shape
    for best, axes in (
        (structure.best(), (0, 3)),
        (structure.sample(2), (2, 0, 3)),
        (structure.topk(2), (2, 0, 3)),
    ):
        assert all(part.shape[: len(axes)] == axes for part in tensors(best))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.nan], ids=str)
@pytest.mark.parametrize("part", [0, -1])
def test_scores_that_are_not_finite_name_their_sentence(space: Space, value: float, part: int) -> None:
    structure = space.random([4, 1, 3, 2], labels=3)
    gold, keep = structure.best(), structure.valid_parts
    scores = structure.scores.clone()
    scores[2, *structure.valid_parts[2].nonzero()[part]] = value
    scores[3] = value  # the first is named
    broken = structure.with_scores(scores)
    computations: list[Callable[[], object]] = [
        broken.best,
        lambda: broken.topk(1),
        lambda: broken.topk(2),
        lambda: broken.sample(2),
        broken.log_partition,
        broken.marginals,
        broken.entropy,
        broken.log_count,
        lambda: broken.possible,
        lambda: broken.log_prob(gold),
        lambda: broken.log_mass(keep),
        lambda: broken.cross_entropy(structure.group_view(structure.marginals())),
    ]
    for compute in computations:
        with pytest.raises(ValueError, match=r"scores of sentence 2 of the batch .* NaN or \+inf"):
            compute()
