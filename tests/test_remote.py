"""What is said when something on the Hub is out of reach; no network is needed for that."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from huggingface_hub import HfApi, constants
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    LocalTokenNotFoundError,
    OfflineModeIsEnabled,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from hf_xst.remote import located, near_ids, reason


@pytest.fixture(autouse=True)
def a_small_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """An account with three models, one of them with a tag; told from memory."""

    def listed(self: HfApi, author: str) -> list[SimpleNamespace]:
        names = ("upper-sorbian", "lower-sorbian", "en") if author == "anna" else ()
        return [SimpleNamespace(id=f"{author}/{name}") for name in names]

    def refs(self: HfApi, repository: str, repo_type: str) -> SimpleNamespace:
        return SimpleNamespace(branches=[SimpleNamespace(name="main")], tags=[SimpleNamespace(name="v1")])

    monkeypatch.setattr(HfApi, "list_models", listed)
    monkeypatch.setattr(HfApi, "list_repo_refs", refs)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)


def refused(kind: type[Any], status: int) -> Any:
    request = httpx2.Request("GET", "http://127.0.0.1/api/models/anna/x")
    return kind("told\n\nat length", response=httpx2.Response(status, request=request))


def caused(problem: BaseException) -> OSError:
    """As transformers wraps what the client raises."""
    try:
        raise OSError("a long story\nin lines") from problem
    except OSError as error:
        return error


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (
            refused(RepositoryNotFoundError, 404),
            "shows no model anna/uper-sorbian; is anna/upper-sorbian",
        ),
        (refused(RevisionNotFoundError, 404), "has no revision v9; it has: main, v1"),
        (refused(GatedRepoError, 403), "is gated: ask for access"),
        (refused(RemoteEntryNotFoundError, 404), "is there, but lacks a file"),
        (refused(HfHubHTTPError, 401), "the Hub refuses the token (401)"),
        (refused(HfHubHTTPError, 403), "the Hub refuses the token (403)"),
        (HFValidationError("no"), "is no folder on this machine, and no id on the Hub (USER/NAME)"),
        (LocalTokenNotFoundError("none"), "there is no token: log in with `hf auth login`"),
        (OfflineModeIsEnabled("offline"), "HF_HUB_OFFLINE is set"),
        (httpx2.ConnectError("refused"), "cannot be reached (ConnectError); check the network"),
        (LocalEntryNotFoundError("gone"), "cannot be reached"),
    ],
)
def test_each_problem_has_its_line(problem: BaseException, text: str) -> None:
    for raised in (problem, caused(problem)):
        told = reason(raised, "anna/uper-sorbian", "model", "v9")
        assert text in told
        assert "\n" not in told


def test_another_problem_is_told_as_it_is_in_a_line() -> None:
    assert reason(ValueError("invalid\n- metadata"), "anna/x") == "invalid - metadata"
    assert reason(refused(HfHubHTTPError, 500), "anna/x") == "told at length"


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("anna/uper-sorbian", ["anna/upper-sorbian"]),
        ("anna/upper-sorbian", ["anna/lower-sorbian"]),
        ("anna/completely-else", []),
        ("nobody/en", []),
        ("en", []),
    ],
)
def test_names_that_are_near(name: str, near: list[str]) -> None:
    assert near_ids(name)[:1] == near


@pytest.mark.parametrize(
    ("text", "revision", "expected"),
    [
        ("anna/en", None, ("anna/en", None)),
        ("anna/en@v1", None, ("anna/en", "v1")),
        ("anna/en@v1", "v2", ("anna/en", "v2")),
        ("anna/en", "v2", ("anna/en", "v2")),
        ("@v1", None, ("@v1", None)),
    ],
)
def test_an_id_with_a_revision(text: str, revision: str | None, expected: tuple[str, str | None]) -> None:
    assert located(text, revision) == expected


def test_a_path_is_never_split(tmp_path: Path) -> None:
    folder = tmp_path / "model@home"
    folder.mkdir()
    assert located(str(folder)) == (str(folder), None)
