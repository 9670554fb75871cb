"""Arithmetic on non-negative numbers, represented as themselves or as their logarithms.

An algorithm that only adds, multiplies and divides runs on both. Plain numbers are faster, and as exact as
logarithms unless some product underflows; `least` detects that.
"""

from __future__ import annotations

import torch
from torch import Tensor
from typing_extensions import override

from hf_xst.numerics import NEGATIVE_INFINITY, zero_if_infinite


class Arithmetic:
    """Operations on tensors of non-negative numbers that represent themselves."""

    zero, one = 0.0, 1.0

    def from_logs(self, logs: Tensor) -> Tensor:
        """Return a new tensor that represents the numbers with these logarithms."""
        return logs.exp()

    def log(self, x: Tensor) -> Tensor:
        """Return the logarithms."""
        return x.log()

    def plain(self, x: Tensor) -> Tensor:
        """Return the numbers themselves."""
        return x

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """Add."""
        return x + y

    def multiply(self, x: Tensor, y: Tensor) -> Tensor:
        """Multiply."""
        return x * y

    def divide(self, x: Tensor, y: Tensor) -> Tensor:
        """Divide; 0 / 0 is 0."""
        return x / y.masked_fill(y == 0, 1)

    def sum(self, x: Tensor, dim: int) -> Tensor:
        """Sum along an axis."""
        return x.sum(dim)

    def add_outer(self, x: Tensor, rows: Tensor, columns: Tensor) -> None:
        """Add the outer product of rows (B, H) and columns (B, D) to x (B, H, D), in place."""
        x.addcmul_(rows.unsqueeze(2), columns.unsqueeze(1))

    def weigh(self, x: Tensor, weights: Tensor) -> Tensor:
        """Return sum_h x[b, d, h] * weights[b, h] for x (B, D, H) and weights (B, H): (B, D)."""
        return (x @ weights.unsqueeze(2)).squeeze(2)

    def least(self, x: Tensor) -> Tensor:
        """Return (B,) the least positive number of each sentence of x (B, ...), at most 1.

        If the product of the least numbers of x and y does not underflow, no product of their entries does.
        """
        return x.masked_fill(x == 0, 1).flatten(1).amin(1).clamp(max=1)


class _Logarithms(Arithmetic):
    """Numbers represented by their logarithms, which do not underflow at any scale."""

    zero, one = NEGATIVE_INFINITY, 0.0

    @override
    def from_logs(self, logs: Tensor) -> Tensor:
        return logs.clone()

    @override
    def log(self, x: Tensor) -> Tensor:
        return x

    @override
    def plain(self, x: Tensor) -> Tensor:
        return x.exp()

    @override
    def add(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.logaddexp(x, y)

    @override
    def multiply(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y

    @override
    def divide(self, x: Tensor, y: Tensor) -> Tensor:
        return x - zero_if_infinite(y)

    @override
    def sum(self, x: Tensor, dim: int) -> Tensor:
        return torch.logsumexp(x, dim)

    @override
    def add_outer(self, x: Tensor, rows: Tensor, columns: Tensor) -> None:
        torch.logaddexp(x, rows.unsqueeze(2) + columns.unsqueeze(1), out=x)

    @override
    def weigh(self, x: Tensor, weights: Tensor) -> Tensor:
        return torch.logsumexp(x + weights.unsqueeze(1), 2)

    @override
    def least(self, x: Tensor) -> Tensor:
        return x.new_ones(x.shape[:1])


PLAIN_NUMBERS, LOGARITHMS = Arithmetic(), _Logarithms()
