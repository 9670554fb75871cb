"""Arithmetic in log space: values against the plain formula, gradients of exactly 0 at -inf."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from hf_xst.numerics import (
    denormals_flushed,
    log_normalise,
    logsumexp,
    safe_log,
    tensors_digest,
    wide_logsumexp,
    working_dtype,
    zero_if_infinite,
)

INF = math.inf
logs = st.lists(st.one_of(st.floats(-1e6, 1e6), st.just(-INF)), min_size=1, max_size=6)


def exact_logsumexp(values: list[float]) -> float:
    top = max(values)
    return top if top == -INF else top + math.log(math.fsum(math.exp(value - top) for value in values))


@given(logs)
def test_logsumexp(values: list[float]) -> None:
    x = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    total = logsumexp(x, 0)
    expected = exact_logsumexp(values)
    assert total.item() == pytest.approx(expected, rel=1e-14, abs=1e-12)
    total.backward()
    assert x.grad.sum().item() == pytest.approx(0 if expected == -INF else 1)
    assert all(
        (gradient == 0) == (softmax(value, expected) == 0)
        for gradient, value in zip(x.grad, values, strict=True)
    )


def softmax(value: float, total: float) -> float:
    return 0 if total == -INF else math.exp(value - total)


@given(logs)
def test_wide_logsumexp_has_the_same_value_and_gradient(values: list[float]) -> None:
    x = torch.tensor([values, values], dtype=torch.float64, requires_grad=True)
    total = sum(wide_logsumexp(x, torch.tensor([True, False]), 0))
    assert total.tolist() == [pytest.approx(exact_logsumexp(values), rel=1e-14, abs=1e-12), -INF]
    total.masked_fill(total == -INF, 0).sum().backward()
    y = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    logsumexp(y, 0).backward()
    assert_close(x.grad, torch.stack([y.grad, torch.zeros_like(y)]))


@pytest.mark.parametrize("filling", [math.nan, INF, -INF])
def test_masked_entries_are_ignored(filling: float) -> None:
    x = torch.tensor([[1.0, filling, 2.0], [filling] * 3], requires_grad=True)
    x = torch.cat([x, torch.tensor([[1.0, 2.0, 2.0]])])
    x.retain_grad()
    total = sum(wide_logsumexp(x, torch.tensor([False, False, True]), 0))
    assert total.tolist() == [-INF, -INF, pytest.approx(math.log(math.e + 2 * math.e**2))]
    total.sum().backward()
    assert x.grad is not None
    assert_close(x.grad[2], x.detach()[2].softmax(-1))
    assert not x.grad[:2].any()


def test_wide_logsumexp_keeps_small_differences_of_huge_float32_scores() -> None:
    x = torch.full((1, 40), 1e6)
    total = sum(wide_logsumexp(x, torch.tensor([True]), 0))
    assert total.dtype == torch.float64
    assert total.item() - 1e6 == pytest.approx(math.log(40), abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_wide_logsumexp_of_half_precision(dtype: torch.dtype) -> None:
    x = torch.tensor([[1.0, 2.0]], dtype=dtype, requires_grad=True)
    total = sum(wide_logsumexp(x, torch.tensor([True]), 0))
    assert total.item() == pytest.approx(math.log(math.e + math.e**2), abs=1e-6)
    total.sum().backward()
    assert x.grad.dtype == dtype


def test_an_empty_axis_sums_to_minus_infinity() -> None:
    x = torch.zeros(2, 0, requires_grad=True)
    assert logsumexp(x, 1).tolist() == [-INF, -INF]
    assert logsumexp(x, 1, keepdim=True).shape == (2, 1)


def test_safe_log() -> None:
    p = torch.tensor([0.0, 0.5, 1.0], requires_grad=True)
    assert safe_log(p).tolist() == [-INF, pytest.approx(math.log(0.5)), 0]
    safe_log(p).sum().backward()
    assert p.grad.tolist() == [0, 2, 1]


def test_log_normalise() -> None:
    x = torch.tensor([[1.0, -INF, 3.0], [-INF] * 3], dtype=torch.float64, requires_grad=True)
    normal = log_normalise(x, 1)
    assert_close(normal.exp().sum(1), torch.tensor([1.0, 0.0], dtype=torch.float64))
    assert (normal[1] == -INF).all()
    normal[0, 0].backward()
    assert_close(
        x.grad,
        torch.tensor([[1 - normal[0, 0].exp().item(), 0, -normal[0, 2].exp().item()], [0, 0, 0]]).double(),
    )


def test_zero_if_infinite() -> None:
    assert zero_if_infinite(torch.tensor([-INF, 2.0])).tolist() == [0, 2]


def test_working_dtype() -> None:
    assert working_dtype(torch.device("cpu")) == torch.float64
    assert working_dtype(torch.device("mps")) == torch.float32


def test_denormals_are_flushed_only_within_the_block():
    tiny = torch.tensor([1e-40])
    with denormals_flushed():
        inside = (tiny * 1.0).item()
    assert (tiny * 1.0).item() > 0
    assert inside == 0


def test_a_module_is_digested_again_after_its_tensors_were_replaced() -> None:
    """Freed memory is used again: the new tensor often has the address of an earlier one."""
    module, layer = torch.nn.Module(), torch.nn.Linear(100, 100)
    for _ in range(10):
        module.register_buffer("vectors", torch.randn(1000, 10))
        layer.weight.data = torch.randn(100, 100)
        layer.bias.detach().add_(1)
        for each in (module, layer):
            assert tensors_digest(each.state_dict(), "", each) == tensors_digest(each.state_dict())
