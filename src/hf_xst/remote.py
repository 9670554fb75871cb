"""Resolve Hub ids with revisions, and turn Hub errors into messages that help."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import datasets.config
import yaml
from huggingface_hub import _CACHED_NO_EXIST, HfApi, constants, hf_hub_download, try_to_load_from_cache
from huggingface_hub.errors import (  # type: ignore[attr-defined]
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    HTTPError,
    LocalEntryNotFoundError,
    LocalTokenNotFoundError,
    OfflineModeIsEnabled,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.repocard import REGEX_YAML_BLOCK, metadata_load

Kind = Literal["model", "dataset", "space"]
# What the client raises if the Hub refuses or is unreachable; a malformed id raises a ValueError.
HUB_ERRORS = (OSError, HTTPError, HFValidationError)
_KIND_NAMES = {"model": "model", "dataset": "data set", "space": "Space"}
_REMEDIES = {
    errno.ENOSPC: "free disk space",
    errno.EDQUOT: "free disk space",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.EACCES: "check the permissions",
    errno.EROFS: "choose a folder that can be written",
}
_MAX_LISTED = 1000  # repositories of an account to compare with a misspelt name


def split_revision(text: str, revision: str | None = None) -> tuple[str, str | None]:
    """Split `PATH_OR_ID[@REVISION]`, except an existing local path; a revision given separately counts."""
    path, at, suffix = text.rpartition("@")
    if not at or not path or Path(text).exists():
        return text, revision
    return path, revision or suffix


def download_if_exists(repository: str, name: str, revision: str | None = None, **hub: Any) -> str | None:
    """Download an optional file of a model on the Hub, and return its local path or None.

    Raises:
        ValueError: The Hub is unreachable and the cache does not know whether the file exists.
    """
    # The cache also records files that did not exist, so this works offline.
    if try_to_load_from_cache(repository, name, revision=revision) is _CACHED_NO_EXIST:
        return None
    try:
        return str(hf_hub_download(repository, name, revision=revision, **hub))
    except RemoteEntryNotFoundError:
        return None
    except HUB_ERRORS as error:
        message = explain_hub_error(error, repository, "model", revision)
        raise ValueError(f"cannot determine whether {repository} has a {name}: {message}") from error


def read_card_metadata(path: Path) -> dict[str, Any]:
    """Return the metadata of a card (README.md), empty if it has none.

    Raises:
        ValueError: it is no YAML mapping, or contains aliases, whose expansion can exhaust the memory.
    """
    block = REGEX_YAML_BLOCK.search(path.read_text(encoding="utf-8-sig"))
    try:
        if block and any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(block[2])):
            raise ValueError("it contains YAML aliases (*name); write their values out")
        return metadata_load(path) or {}
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(str(error)) from error


def similar_repositories(repository: str, kind: Kind = "model", token: str | bool | None = None) -> list[str]:
    """Return up to three repositories of the same account with similar names; empty if listing fails."""
    account, _, _ = repository.rpartition("/")
    if not account:
        return []
    try:
        listed = getattr(HfApi(token=token), f"list_{kind}s")(author=account)
        names = [str(info.id) for info in islice(listed, _MAX_LISTED)]
    except HUB_ERRORS:
        return []
    return get_close_matches(repository, [name for name in names if name != repository], n=3, cutoff=0.7)


def explain_hub_error(
    error: BaseException,
    repository: str,
    kind: Kind = "model",
    revision: str | None = None,
    token: str | bool | None = None,
) -> str:
    """Return a one-line explanation of a failed Hub request, by its error or a cause, and how to fix it.

    `token` is that of the request, if not the one of the login.
    """
    chain = list(_causes(error))
    for cause in chain:
        if isinstance(cause, RevisionNotFoundError):
            known = ", ".join(_list_revisions(repository, kind, token)) or "(cannot be listed)"
            return f"{repository} has no revision {revision}; available: {known}, or a commit hash"
        if isinstance(cause, GatedRepoError):
            return f"{repository} is gated: request access at {constants.ENDPOINT}/{repository} and log in"
        if isinstance(cause, RepositoryNotFoundError):
            similar = similar_repositories(repository, kind, token)
            hint = f"did you mean {' or '.join(similar)}?" if similar else "check the spelling"
            return (
                f"{_KIND_NAMES[kind]} {repository} not found on the Hub; {hint} "
                "(a private repository requires its owner's token: hf auth login, or HF_TOKEN)"
            )
        if isinstance(cause, HFValidationError):
            return f"{repository!r} is neither a local folder nor a valid Hub id (USER/NAME)"
        if isinstance(cause, RemoteEntryNotFoundError):
            return f"{repository} exists but lacks a file that a {_KIND_NAMES[kind]} requires"
    return _explain_connection(chain, repository)


def explain_os_error(error: OSError) -> str:
    """Return what the system refused, for which file, and what to do: for caches, which variable to set."""
    if error.errno is None or error.strerror is None:
        return str(error)
    remedy = _REMEDIES.get(error.errno)
    caches = {"HF_DATASETS_CACHE": datasets.config.HF_DATASETS_CACHE, "HF_HUB_CACHE": constants.HF_HUB_CACHE}
    for variable, folder in caches.items():
        if error.errno != errno.ENOENT and Path(str(error.filename)).is_relative_to(folder):
            remedy = f"set {variable} to a folder that can be written"
    message = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    return message if remedy is None else f"{message}; {remedy}"


def _list_revisions(repository: str, kind: Kind, token: str | bool | None) -> list[str]:
    """Return a repository's branches and tags; empty if they cannot be listed."""
    try:
        refs = HfApi(token=token).list_repo_refs(repository, repo_type=kind)
    except HUB_ERRORS:
        return []
    return [ref.name for ref in [*refs.branches, *refs.tags]]


def _explain_connection(chain: list[BaseException], repository: str) -> str:
    for error in chain:
        if isinstance(error, LocalTokenNotFoundError):
            return "no token found: log in with `hf auth login`, or set HF_TOKEN"
        if isinstance(error, HfHubHTTPError) and error.response.status_code in (401, 403):
            return (
                f"the Hub rejected the token ({error.response.status_code}); create one with the required "
                f"permission at {constants.ENDPOINT}/settings/tokens, then run hf auth login or set HF_TOKEN"
            )
    if constants.HF_HUB_OFFLINE or any(isinstance(error, OfflineModeIsEnabled) for error in chain):
        return (
            f"HF_HUB_OFFLINE is set and {repository} is not in the cache; unset it, or load {repository} "
            "once while online"
        )
    for error in chain:
        if isinstance(error, ValueError):  # a precise message of the client about a file or a name
            break
        if isinstance(error, (HTTPError, LocalEntryNotFoundError)) and not isinstance(error, HfHubHTTPError):
            kind = type(error).__name__
            return f"the Hub at {constants.ENDPOINT} cannot be reached ({kind}); check the network"
        if isinstance(error, OSError) and error.filename is not None:
            return explain_os_error(error)
    return " ".join(str(chain[0]).split())


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and the exceptions it was raised from, innermost last."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
