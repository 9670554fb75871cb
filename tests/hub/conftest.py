from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_process import Client

from hub_server import Hub, serve

TESTS = Path(__file__).resolve().parent.parent
for folder in ("training", "structures", "models"):  # small ready models live there
    if str(TESTS / folder) not in sys.path:
        sys.path.append(str(TESTS / folder))


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    server = serve(tmp_path_factory.mktemp("hub"))
    yield server
    server.close()


@pytest.fixture(scope="session")
def client(hub: Hub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    process = Client(hub.url, tmp_path_factory.mktemp("client"))
    yield process
    process.close()


@pytest.fixture(autouse=True)
def whole_again(request: pytest.FixtureRequest) -> Iterator[None]:
    """Mend what a test has broken."""
    yield
    if "hub" in request.fixturenames:
        request.getfixturevalue("hub").broken.clear()


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tiny_models import save_bert

    return save_bert(tmp_path_factory.mktemp("bert"))
