"""Arithmetic in log space that stays exact at minus infinity.

Everywhere in the package -inf is the logarithm of an exact 0: it is what a removed candidate scores. The
functions here return -inf where the answer is the logarithm of 0, and pass a gradient of exactly 0 to
whatever led there, where the textbook formulas give NaN. No constant is ever added inside a partition
function; the floor of pools is a setting, and tolerances of optimisers stand with them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

NEGATIVE_INFINITY = float("-inf")


def working_dtype(device: torch.device) -> torch.dtype:
    """Return the precision in which structures are summed on a device: float64 wherever the device has it."""
    return torch.float32 if device.type == "mps" else torch.float64


def smallest_safe(dtype: torch.dtype) -> float:
    """Return a positive number so far above a dtype's smallest that sums and quotients keep all digits."""
    limits = torch.finfo(dtype)
    return limits.tiny / limits.eps


def zero_if_infinite(x: Tensor) -> Tensor:
    """Replace -inf by 0, so that the result may be subtracted from other entries that are -inf as well."""
    return x.masked_fill(x == NEGATIVE_INFINITY, 0)


def safe_log(p: Tensor) -> Tensor:
    """Return log p, which is -inf with a gradient of 0 (not infinity or NaN) where p is 0.

    Args:
        p: any shape, entries at least 0.
    """
    positive = p > 0
    return p.masked_fill(~positive, 1).log().masked_fill(~positive, NEGATIVE_INFINITY)


def logsumexp(x: Tensor, dim: int, keepdim: bool = False) -> Tensor:
    """Return log sum exp along one axis; -inf with a gradient of 0 where no entry is above -inf.

    Args:
        x: any shape, no NaN and no +inf.
        dim: the axis to sum over.
        keepdim: whether the axis stays, with length 1.
    """
    if x.shape[dim] == 0:
        return x.sum(dim, keepdim=keepdim).fill_(NEGATIVE_INFINITY)
    top = zero_if_infinite(x.detach().amax(dim, keepdim=True))
    total = safe_log((x - top).exp().sum(dim, keepdim=True)) + top
    return total if keepdim else total.squeeze(dim)


def log_normalise(x: Tensor, dim: int) -> Tensor:
    """Shift x so that exp(x) sums to 1 along an axis; where all entries are -inf they stay so."""
    return x - zero_if_infinite(logsumexp(x, dim, keepdim=True))


class _WideLogSumExp(torch.autograd.Function):
    """Sum over the last axis; see `wide_logsumexp`."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, mask: Tensor) -> Tensor:
        top = zero_if_infinite(x.amax(-1))
        powers = (x - top.unsqueeze(-1)).exp_()
        sums = powers.sum(-1)
        ctx.save_for_backward(powers, sums, mask)
        wide = working_dtype(x.device)
        return (top.to(wide) + sums.to(wide).log()).masked_fill_(~mask, NEGATIVE_INFINITY)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None]:
        powers, sums, mask = ctx.saved_tensors  # type: ignore[attr-defined]
        usable = mask & (sums > 0)
        factor = gradient.to(sums.dtype) / sums.masked_fill(~usable, 1)
        return (powers * factor.unsqueeze(-1)).masked_fill_(~usable.unsqueeze(-1), 0), None


def wide_logsumexp(x: Tensor, mask: Tensor) -> Tensor:
    """Return log sum exp over the last axis in the working precision, without widening x itself.

    Only differences to the maximum are exponentiated in the precision of x; the maximum is added back in the
    working precision, so the result is good to about 1e-7 absolutely however large float32 scores are. It can
    be differentiated once.

    Args:
        x: (..., C) scores; half precision is computed in float32.
        mask: bool (...); where false the result is -inf, and x never matters there, NaN included.

    Returns:
        (...) in the working precision.
    """
    half = x.dtype in (torch.float16, torch.bfloat16)
    return _WideLogSumExp.apply(x.float() if half else x, mask)  # type: ignore[no-any-return, no-untyped-call]


@contextmanager
def denormals_flushed() -> Iterator[None]:
    """Let the processor take numbers below the smallest normal one for 0 while the block runs, where it can.

    The gradient of a chart loss is full of probabilities of no account. As denormal numbers they slow matrix
    products on common processors down: the backward pass of a parser trained for a while took seven times as
    long.
    Structures are summed in float64 and leave plain numbers for logarithms before these grow so small.
    """
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def tensors_digest(tensors: Mapping[str, Tensor], seed: str = "") -> str:
    """Identify tensors of any type and device by the SHA-256 of their names and bytes, as 64 hex digits.

    Args:
        tensors: by name; their order does not matter.
        seed: what else tells one from another.
    """
    digest = hashlib.sha256(seed.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def at_least_single(x: Tensor) -> Tensor:
    """Return x in float32 if it is in half precision, else as it is."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
