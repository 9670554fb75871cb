"""Paths to helpers of other folders."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import datasets
import pytest

TESTS = Path(__file__).resolve().parent.parent
HELPERS = [str(TESTS / name) for name in ("training", "structures", "models")]
sys.path += [path for path in HELPERS if path not in sys.path]


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
