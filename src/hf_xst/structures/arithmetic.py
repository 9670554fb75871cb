"""Arithmetic of numbers that are at least 0, on the numbers themselves or on their logarithms.

An algorithm that only adds, multiplies and divides runs on either. Plain numbers are faster, and as exact as
logarithms unless some product is too small for a float; `least` tells the two cases apart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor
from typing_extensions import override

from hf_xst.numerics import NEGATIVE_INFINITY, zero_if_infinite


class Arithmetic(ABC):
    """Operations on tensors of numbers, however they are kept."""

    zero: ClassVar[float]
    one: ClassVar[float]

    @abstractmethod
    def from_logs(self, logs: Tensor) -> Tensor:
        """Return a new tensor of the numbers with these logarithms."""

    @abstractmethod
    def log(self, x: Tensor) -> Tensor:
        """Return the logarithms."""

    @abstractmethod
    def plain(self, x: Tensor) -> Tensor:
        """Return the numbers themselves."""

    @abstractmethod
    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """Add."""

    @abstractmethod
    def multiply(self, x: Tensor, y: Tensor) -> Tensor:
        """Multiply."""

    @abstractmethod
    def divide(self, x: Tensor, y: Tensor) -> Tensor:
        """Divide; 0 by 0 is 0."""

    @abstractmethod
    def sum(self, x: Tensor, dim: int) -> Tensor:
        """Sum along an axis."""

    @abstractmethod
    def add_outer(self, x: Tensor, rows: Tensor, columns: Tensor) -> None:
        """Add the products of rows (B, H) and columns (B, D) to x (B, H, D), in place."""

    @abstractmethod
    def weigh(self, x: Tensor, weights: Tensor) -> Tensor:
        """Sum x (B, D, H) times weights (B, H) over H: (B, D)."""

    @abstractmethod
    def least(self, x: Tensor) -> Tensor:
        """Return (B,) the least positive number of each sentence of x (B, ...), or 1 if all are larger.

        No product of a number of x and one of y gets lost if the product of their least ones does not.
        """


class Logarithms(Arithmetic):
    """Numbers kept as their logarithms, where nothing gets lost at any scale."""

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


class PlainNumbers(Arithmetic):
    """Numbers kept as they are."""

    zero, one = 0.0, 1.0

    @override
    def from_logs(self, logs: Tensor) -> Tensor:
        return logs.exp()

    @override
    def log(self, x: Tensor) -> Tensor:
        return x.log()

    @override
    def plain(self, x: Tensor) -> Tensor:
        return x

    @override
    def add(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y

    @override
    def multiply(self, x: Tensor, y: Tensor) -> Tensor:
        return x * y

    @override
    def divide(self, x: Tensor, y: Tensor) -> Tensor:
        return x / y.masked_fill(y == 0, 1)

    @override
    def sum(self, x: Tensor, dim: int) -> Tensor:
        return x.sum(dim)

    @override
    def add_outer(self, x: Tensor, rows: Tensor, columns: Tensor) -> None:
        x.addcmul_(rows.unsqueeze(2), columns.unsqueeze(1))

    @override
    def weigh(self, x: Tensor, weights: Tensor) -> Tensor:
        return (x @ weights.unsqueeze(2)).squeeze(2)

    @override
    def least(self, x: Tensor) -> Tensor:
        return x.masked_fill(x == 0, 1).flatten(1).amin(1).clamp(max=1)


LOGARITHMS, PLAIN_NUMBERS = Logarithms(), PlainNumbers()
