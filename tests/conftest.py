"""What every test shares: offline libraries, one thread a process, and the way to the shared material."""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
os.environ.setdefault("HF_EVALUATE_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # two processes run at a time (`pytest -n 2`)

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("brief", max_examples=25, deadline=None)
settings.register_profile("thorough", max_examples=200, deadline=None)  # pytest --hypothesis-profile thorough
settings.load_profile("brief")

REPOSITORY = Path(__file__).resolve().parent.parent


def shared_path(*parts: str) -> Path:
    """Where a shared file would be: below HF_XST_SHARED, else beside the repository."""
    root = os.environ.get("HF_XST_SHARED") or REPOSITORY.parent / "shared"
    return Path(root).joinpath(*parts)


@pytest.fixture(scope="session")
def shared() -> Callable[..., Path]:
    """Give the path of a shared file, or skip the test with the file's name."""

    def find(*parts: str) -> Path:
        path = shared_path(*parts)
        if not path.exists():
            pytest.skip(f"shared material is missing: {'/'.join(parts)} (set HF_XST_SHARED)")
        return path

    return find


@pytest.fixture(scope="session", autouse=True)
def own_caches(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the libraries' caches out of the user's home, and bars off the screen, while tests run."""
    import datasets.config

    datasets.disable_progress_bars()
    cache = tmp_path_factory.mktemp("datasets")
    datasets.config.HF_DATASETS_CACHE = cache


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """Let every test draw the same numbers, whichever tests ran before it."""
    import torch

    torch.manual_seed(0)


@pytest.fixture(scope="session", autouse=True)
def imported_objects_are_not_collected() -> Iterator[None]:
    """A Trainer collects garbage first; going through all that was imported takes most of a tiny run."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two layers that sees 20 pieces at once, one piece a letter."""
    from helpers.tiny_models import save_bert

    return save_bert(tmp_path_factory.mktemp("bert"))
