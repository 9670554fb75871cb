"""Arithmetic in log space that is exact at minus infinity.

Throughout the package -inf is the logarithm of an exact 0, the score of an excluded candidate. The functions
here return -inf for the logarithm of 0, with a gradient of exactly 0, where the textbook formulas give NaN.
No constant is added inside a partition function.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.multiprocessing.reductions import StorageWeakRef

NEGATIVE_INFINITY = float("-inf")


def working_dtype(device: torch.device) -> torch.dtype:
    """Return the dtype in which structures are summed on a device: float64 if the device supports it."""
    return torch.float32 if device.type == "mps" else torch.float64


def smallest_safe(dtype: torch.dtype) -> float:
    """Return a positive number above which sums and quotients keep all digits of a dtype."""
    limits = torch.finfo(dtype)
    return limits.tiny / limits.eps


def zero_if_infinite(x: Tensor) -> Tensor:
    """Replace -inf by 0, so that the result can be subtracted from entries that are -inf too."""
    return x.masked_fill(x == NEGATIVE_INFINITY, 0)


def safe_log(p: Tensor) -> Tensor:
    """Return log p for p >= 0 of any shape; -inf with gradient 0 (not infinity or NaN) where p is 0."""
    is_zero = p == 0
    return p.masked_fill(is_zero, 1).log().masked_fill(is_zero, NEGATIVE_INFINITY)


def logsumexp(x: Tensor, dim: int, keepdim: bool = False) -> Tensor:
    """Return log sum exp of x (no NaN, no +inf) along an axis; -inf with gradient 0 if all entries are."""
    if x.shape[dim] == 0:
        return x.sum(dim, keepdim=keepdim).fill_(NEGATIVE_INFINITY)
    top = zero_if_infinite(x.detach().amax(dim, keepdim=True))
    total = safe_log((x - top).exp().sum(dim, keepdim=True)) + top
    return total if keepdim else total.squeeze(dim)


def maximum(x: Tensor, dim: int) -> Tensor:
    """Return the maximum along an axis; its gradient marks the first of several."""
    return x.max(dim).values


def log_normalise(x: Tensor, dim: int) -> Tensor:
    """Shift x so that exp(x) sums to 1 along an axis; entries stay -inf where all are."""
    return x - zero_if_infinite(logsumexp(x, dim, keepdim=True))


class _WithGradient(torch.autograd.Function):
    """See `with_gradient`."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, value: Tensor, gradient: Tensor) -> Tensor:
        ctx.save_for_backward(gradient)
        return value

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
    def backward(ctx: FunctionCtx, outer: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors  # type: ignore[attr-defined]
        return gradient * outer.to(gradient.dtype).view(-1, *[1] * (gradient.ndim - 1)), None, None


def with_gradient(x: Tensor, value: Tensor, gradient: Tensor) -> Tensor:
    """Return a value (B,) of x (B, ...) whose gradient, of the shape of x, is known; once differentiable."""
    return _WithGradient.apply(x, value, gradient)  # type: ignore[no-any-return, no-untyped-call]


class _WideLogSumExp(torch.autograd.Function):
    """Sum over the last axis; see `wide_logsumexp`."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, mask: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        wide = working_dtype(x.device)
        largest = x.amax(-1)
        top = zero_if_infinite(largest)
        powers = (x - top.unsqueeze(-1)).exp_()
        sums = powers.sum(-1)
        ctx.save_for_backward(powers, sums, mask)
        shift = largest.masked_fill_(~mask, NEGATIVE_INFINITY).amax(dim, keepdim=True)
        shift = zero_if_infinite(shift).to(wide)
        ctx.mark_non_differentiable(shift)
        logs = (top.to(wide) - shift).add_(sums.to(wide).log())
        return logs.masked_fill_(~mask, NEGATIVE_INFINITY), shift

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
    def backward(ctx: FunctionCtx, gradient: Tensor, _: Tensor) -> tuple[Tensor, None, None]:
        powers, sums, mask = ctx.saved_tensors  # type: ignore[attr-defined]
        usable = mask & (sums > 0)
        factor = gradient.to(sums.dtype) / sums.masked_fill(~usable, 1)
        return (powers * factor.unsqueeze(-1)).masked_fill_(~usable.unsqueeze(-1), 0), None, None


def wide_logsumexp(x: Tensor, mask: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return log sum exp over the last axis less a shift, and the shift: the maximum of x along an axis, too.

    Differences to the maximum are exponentiated in the precision of x and the shift is subtracted in the
    working precision, so the absolute error is about 1e-7 however large float32 scores are. Once
    differentiable; the shift counts as a constant.

    Args:
        x: (..., C) scores; half precision is computed in float32.
        mask: bool (...); where false the result is -inf and x is ignored, NaN included.
        dim: axis of the mask, of length 1 in the shift.

    Returns:
        Both in the working precision.
    """
    return _WideLogSumExp.apply(at_least_single(x), mask, dim)  # type: ignore[no-any-return, no-untyped-call]


@contextmanager
def denormals_flushed() -> Iterator[None]:
    """Flush denormal numbers to 0 while the block runs, if the processor supports it.

    The gradient of a chart loss is full of negligible probabilities. As denormal numbers they slow down
    matrix products: the backward pass of a trained parser took seven times as long. Sums over structures are
    not affected: they use float64, and logarithms before plain numbers become so small.
    """
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


_inside = threading.local()
_thread_counts: list[int] = []  # before they entered, of all Python threads inside `on_one_thread`
_thread_counts_lock = threading.Lock()


@contextmanager
def on_one_thread() -> Iterator[None]:
    """Run the CPU operations of the calling Python thread on one thread while the block runs.

    Sums over structures are hundreds of small operations: on several threads each waits until all threads
    have had their turn, which takes many times as long if the processor is busy. PyTorch keeps its number of
    threads for each Python thread. One that first uses PyTorch while another one is inside begins with 1; it
    leaves this block with the number of the others.
    """
    if getattr(_inside, "value", False) or not torch._C.has_openmp:
        yield
        return
    with _thread_counts_lock:
        count = max([torch.get_num_threads(), *_thread_counts])
        _thread_counts.append(count)
        torch.set_num_threads(1)
    _inside.value = True
    try:
        yield
    finally:
        _inside.value = False
        with _thread_counts_lock:
            _thread_counts.remove(count)
            torch.set_num_threads(count)


def require(condition: Tensor, message: str, values: Tensor | None = None) -> None:
    """Raise ValueError unless a bool tensor is true everywhere; the message ends with the first wrong value.

    On a GPU the check is asynchronous: PyTorch prints the message; a later operation raises RuntimeError.
    """
    if condition.is_cuda:
        torch._assert_async(condition.all(), message)
    elif not bool(condition.all()):
        raise ValueError(message if values is None else f"{message}, got {values[~condition][0].item()}")


_digests: WeakKeyDictionary[nn.Module, dict[Any, str]] = WeakKeyDictionary()


def tensors_digest(tensors: Mapping[str, Tensor], seed: str = "", module: nn.Module | None = None) -> str:
    """Return the SHA-256 of `seed` and of tensors' names and bytes, independent of order and device.

    With `module`, the digest is cached until a tensor changes; writes into `Tensor.data` go unnoticed.
    """
    known = {} if module is None else _digests.setdefault(module, {})
    # Memory that was freed has the same address when it is used again, but another storage.
    storage: Any = StorageWeakRef
    identity = [
        (name, storage(each.untyped_storage()), each.data_ptr(), each._version)
        for name, each in sorted(tensors.items())
    ]
    key = (seed, *identity)
    if key not in known:
        digest = hashlib.sha256(seed.encode())
        for name, tensor in sorted(tensors.items()):
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
        known[key] = digest.hexdigest()
    return known[key]


def at_least_single(x: Tensor) -> Tensor:
    """Return x in float32 if it is in half precision, else unchanged."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
