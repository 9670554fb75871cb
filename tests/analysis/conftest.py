"""Paths to helpers of other folders, and the same random numbers in every test."""

from __future__ import annotations

import sys
from pathlib import Path

import datasets
import pytest
import torch

TESTS = Path(__file__).resolve().parent.parent
HELPERS = [str(TESTS / name) for name in ("structures", "models", "training", "charts")]
sys.path += [path for path in HELPERS if path not in sys.path]


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="session", autouse=True)
def no_progress_bars() -> None:
    datasets.disable_progress_bars()
