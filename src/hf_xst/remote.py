"""The Hub as a place that may be out of reach: ids with revisions, and errors that say what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, Literal

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

Kind = Literal["model", "dataset", "space"]
# What the client raises when the Hub says no, or is not there; a ValueError where an id cannot be one.
HUB_ERRORS = (OSError, HTTPError, HFValidationError)
_CALLED = {"model": "model", "dataset": "data set", "space": "Space"}
# So many repositories of an account are looked at for a similar name.
_LOOKED_AT = 1000


def located(text: str, revision: str | None = None) -> tuple[str, str | None]:
    """Split `PATH_OR_ID[@REVISION]`; what is a path on this machine is never split.

    Args:
        text: what a person has written.
        revision: a revision given apart, which has the last word.
    """
    path, at, own = text.rpartition("@")
    if not at or not path or Path(text).exists():
        return text, revision
    return path, revision or own


def file_if_there(repository: str, name: str, revision: str | None = None, **hub: Any) -> str | None:
    """Fetch a file that a model may have or not: its place, or None if it is known not to have it.

    Args:
        repository: an id on the Hub.
        name: the file's name there.
        revision: the revision.
        hub: further arguments of `hf_hub_download`, such as `token`.

    Raises:
        ValueError: it cannot be told, because the Hub is out of reach.
    """
    # What was not there when the Hub was asked is remembered in the cache, for when it cannot be asked.
    if try_to_load_from_cache(repository, name, revision=revision) is _CACHED_NO_EXIST:
        return None
    try:
        return str(hf_hub_download(repository, name, revision=revision, **hub))
    except RemoteEntryNotFoundError:
        return None
    except HUB_ERRORS as problem:
        told = reason(problem, repository, "model", revision)
        raise ValueError(f"cannot determine whether {repository} has a {name}: {told}") from problem


def near_ids(repository: str, kind: Kind = "model", token: str | bool | None = None) -> list[str]:
    """Name the repositories of the same account that are called almost the same, at most three.

    None where the account cannot be listed.
    """
    account, _, _ = repository.rpartition("/")
    if not account:
        return []
    api = HfApi(token=token)
    listings: dict[str, Callable[..., Iterable[Any]]] = {
        "model": api.list_models,
        "dataset": api.list_datasets,
        "space": api.list_spaces,
    }
    try:
        known = [str(found.id) for found in islice(listings[kind](author=account), _LOOKED_AT)]
    except HUB_ERRORS:
        return []
    return get_close_matches(repository, [name for name in known if name != repository], n=3, cutoff=0.7)


def revisions(repository: str, kind: Kind = "model", token: str | bool | None = None) -> list[str]:
    """Name a repository's branches and tags; none where they cannot be listed."""
    try:
        refs = HfApi(token=token).list_repo_refs(repository, repo_type=kind)
    except HUB_ERRORS:
        return []
    return [ref.name for ref in [*refs.branches, *refs.tags]]


def reason(
    problem: BaseException,
    repository: str,
    kind: Kind = "model",
    revision: str | None = None,
    token: str | bool | None = None,
) -> str:
    """Say in one line why something on the Hub was out of reach, and what to do about it.

    Args:
        problem: what the client raised, directly or as a cause.
        repository: the id that was asked for.
        kind: what is sought there.
        revision: the revision that was asked for.
        token: the token that was used, if not the one of the login.
    """
    chain = list(_causes(problem))
    for error in chain:
        if isinstance(error, RevisionNotFoundError):
            return _no_revision(repository, kind, revision, token)
        if isinstance(error, GatedRepoError):
            return f"{repository} is gated: ask for access at {constants.ENDPOINT}/{repository}, and log in"
        if isinstance(error, RepositoryNotFoundError):
            return _no_repository(repository, kind, token)
        if isinstance(error, HFValidationError):
            return f"{repository!r} is no folder on this machine, and no id on the Hub (USER/NAME)"
        if isinstance(error, RemoteEntryNotFoundError):
            return f"{repository} is there, but lacks a file that such a {_CALLED[kind]} has"
    return _no_connection(chain, repository)


def _no_repository(repository: str, kind: Kind, token: str | bool | None) -> str:
    near = near_ids(repository, kind, token)
    meant = f"; is {' or '.join(near)} meant?" if near else "; check the spelling"
    return (
        f"the Hub shows no {_CALLED[kind]} {repository}{meant} "
        "(a private one shows with its owner's token: hf auth login, or HF_TOKEN)"
    )


def _no_revision(repository: str, kind: Kind, revision: str | None, token: str | bool | None) -> str:
    known = ", ".join(revisions(repository, kind, token)) or "none that can be listed"
    return f"{repository} has no revision {revision}; it has: {known} (a commit's hash will do too)"


def _no_connection(chain: list[BaseException], repository: str) -> str:
    for error in chain:
        if isinstance(error, LocalTokenNotFoundError):
            return "there is no token: log in with `hf auth login`, or set HF_TOKEN"
        if isinstance(error, HfHubHTTPError) and error.response.status_code in (401, 403):
            return (
                f"the Hub refuses the token ({error.response.status_code}); it needs the right to do this: "
                f"make one at {constants.ENDPOINT}/settings/tokens, then hf auth login, or set HF_TOKEN"
            )
    if constants.HF_HUB_OFFLINE or any(isinstance(error, OfflineModeIsEnabled) for error in chain):
        return (
            f"HF_HUB_OFFLINE is set and {repository} is not in the cache; unset it, or load {repository} "
            "once with the network"
        )
    for error in chain:
        if isinstance(error, ValueError):  # what the client itself says about a file or a name
            break
        if isinstance(error, (HTTPError, LocalEntryNotFoundError)) and not isinstance(error, HfHubHTTPError):
            what = type(error).__name__
            return f"the Hub at {constants.ENDPOINT} cannot be reached ({what}); check the network"
    return " ".join(str(chain[0]).split())


def _causes(problem: BaseException | None) -> Iterator[BaseException]:
    """Give an exception and what it was raised from, innermost last."""
    met: set[int] = set()
    while problem is not None and id(problem) not in met:
        met.add(id(problem))
        yield problem
        problem = problem.__cause__ or problem.__context__
