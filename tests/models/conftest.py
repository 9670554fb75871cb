from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny_models import save_bert


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two layers that sees 20 pieces at once, one piece a letter."""
    return save_bert(tmp_path_factory.mktemp("bert"))
