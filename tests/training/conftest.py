"""Paths to helpers of other folders, the same random numbers in every test, and short training runs."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import datasets
import pytest
import torch

TESTS = Path(__file__).resolve().parent.parent
sys.path += [str(TESTS / name) for name in ("structures", "models") if str(TESTS / name) not in sys.path]


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="session", autouse=True)
def no_progress_bars() -> None:
    datasets.disable_progress_bars()


@pytest.fixture(scope="session", autouse=True)
def imported_objects_are_not_collected() -> Iterator[None]:
    """A Trainer collects garbage first; going through all that was imported takes most of a tiny run."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
