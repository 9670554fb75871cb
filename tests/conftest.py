"""What every test shares: offline libraries, one thread a process, and the way to the shared material."""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
os.environ.setdefault("HF_EVALUATE_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from collections.abc import Callable
from pathlib import Path

import pytest

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
    """Keep the libraries' caches out of the user's home while tests run."""
    import datasets.config

    cache = tmp_path_factory.mktemp("datasets")
    datasets.config.HF_DATASETS_CACHE = cache
