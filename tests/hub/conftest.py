from __future__ import annotations

from collections.abc import Iterator

import pytest

from helpers.hub_process import Client
from helpers.hub_server import Hub, serve


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
def repaired_hub(request: pytest.FixtureRequest) -> Iterator[None]:
    """Repair the handlers that a test broke."""
    yield
    if "hub" in request.fixturenames:
        request.getfixturevalue("hub").broken.clear()
