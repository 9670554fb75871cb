"""Test Hub ids and the explanations of Hub errors, without network access."""

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

from hf_xst.remote import explain_hub_error, similar_repositories, split_revision


@pytest.fixture(autouse=True)
def small_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fake an account with three models and two revisions."""

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
    return kind("several\n\nlines", response=httpx2.Response(status, request=request))


def wrapped(error: BaseException) -> OSError:
    """Wrap an exception of the client as transformers does."""
    try:
        raise OSError("other\nlines") from error
    except OSError as wrapper:
        return wrapper


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            refused(RepositoryNotFoundError, 404),
            "uper-sorbian not found on the Hub; did you mean anna/upper-",
        ),
        (refused(RevisionNotFoundError, 404), "has no revision v9; available: main, v1"),
        (refused(GatedRepoError, 403), "is gated: request access"),
        (refused(RemoteEntryNotFoundError, 404), "exists but lacks a file"),
        (refused(HfHubHTTPError, 401), "the Hub rejected the token (401)"),
        (refused(HfHubHTTPError, 403), "the Hub rejected the token (403)"),
        (HFValidationError("no"), "is neither a local folder nor a valid Hub id (USER/NAME)"),
        (LocalTokenNotFoundError("none"), "no token found: log in with `hf auth login`"),
        (OfflineModeIsEnabled("offline"), "HF_HUB_OFFLINE is set"),
        (httpx2.ConnectError("refused"), "cannot be reached (ConnectError); check the network"),
        (LocalEntryNotFoundError("gone"), "cannot be reached"),
    ],
)
def test_explanation_is_one_line(error: BaseException, text: str) -> None:
    for raised in (error, wrapped(error)):
        message = explain_hub_error(raised, "anna/uper-sorbian", "model", "v9")
        assert text in message
        assert "\n" not in message


def test_a_cache_that_cannot_be_written_is_explained() -> None:
    error = PermissionError(13, "Permission denied", f"{constants.HF_HUB_CACHE}/models--anna--x")
    message = explain_hub_error(error, "anna/x")
    assert message.endswith(
        "models--anna--x: Permission denied; set HF_HUB_CACHE to a folder that can be written"
    )


def test_other_errors_are_joined_to_one_line() -> None:
    assert explain_hub_error(ValueError("invalid\n- metadata"), "anna/x") == "invalid - metadata"
    assert explain_hub_error(refused(HfHubHTTPError, 500), "anna/x") == "several lines"


@pytest.mark.parametrize(
    ("name", "similar"),
    [
        ("anna/uper-sorbian", ["anna/upper-sorbian"]),
        ("anna/upper-sorbian", ["anna/lower-sorbian"]),
        ("anna/completely-else", []),
        ("nobody/en", []),
        ("en", []),
    ],
)
def test_similar_repositories(name: str, similar: list[str]) -> None:
    assert similar_repositories(name)[:1] == similar


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
def test_split_revision(text: str, revision: str | None, expected: tuple[str, str | None]) -> None:
    assert split_revision(text, revision) == expected


def test_existing_path_is_not_split(tmp_path: Path) -> None:
    folder = tmp_path / "model@home"
    folder.mkdir()
    assert split_revision(str(folder)) == (str(folder), None)
