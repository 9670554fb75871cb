"""Writing to a repository: made if need be, one commit, a tag."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from huggingface_hub import CommitInfo, CommitOperationAdd, CommitOperationDelete, HfApi, get_token
from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

from hf_xst.console import say
from hf_xst.hub.allowed_files import AllowedFiles, is_allowed
from hf_xst.remote import HUB_ERRORS, Kind, explain_hub_error

_UNCHANGED = "nothing has changed there"


class PushError(ValueError):
    """The Hub, or what is there, does not let a push happen; in one line, with what to do."""


@dataclass(frozen=True)
class Destination:
    """Where on the Hub something goes.

    Attributes:
        repository: USER/NAME; without USER the account of the token.
        kind: `"model"` or `"dataset"`.
        public: a new repository is made for all to see; needed as well to push to one that is public.
        revision: the branch, `main` if not given.
        new_branch: make the branch if it is not there.
        tag: a name for the commit.
        message: of the commit.
        description: of the commit.
        create_pr: propose the commit instead.
        token: a token in place of that of the login.
    """

    repository: str
    kind: Kind = "model"
    public: bool = False
    revision: str | None = None
    new_branch: bool = False
    tag: str | None = None
    message: str | None = None
    description: str | None = None
    create_pr: bool = False
    token: str | bool | None = None

    @property
    def account(self) -> str:
        """The account in the repository's id, empty without one."""
        return self.repository.rpartition("/")[0]

    @property
    def known_token(self) -> str | None:
        """The token itself, if one was given."""
        return self.token if isinstance(self.token, str) else None


def resolved(destination: Destination) -> Destination:
    """See that there is a token, and complete the id by its account if need be.

    Raises:
        PushError: there is no token, or it is refused.
    """
    if destination.known_token is None and get_token() is None:
        raise PushError("no token found: log in with `hf auth login`, or set HF_TOKEN")
    if destination.account:
        return destination
    with _told(destination, _UNCHANGED):
        account = _owner(destination)
    return replace(destination, repository=f"{account}/{destination.repository}")


def _owner(destination: Destination) -> str:
    return str(HfApi(token=destination.token).whoami()["name"])


def upload(sent: AllowedFiles, destination: Destination) -> CommitInfo:
    """Send files in one commit; allowed files there from before that do not go now are removed.

    Args:
        sent: the files.
        destination: the repository, `resolved`.

    Raises:
        PushError: the Hub refuses, or cannot be reached.
    """
    api = HfApi(token=destination.token)
    repository, kind = destination.repository, destination.kind
    with _told(destination, _UNCHANGED):
        head = _ready_repository(api, destination)
        _check_tag(api, destination, head)
        known = api.list_repo_files(repository, revision=destination.revision, repo_type=kind)
        stale = [name for name in known if is_allowed(name, kind) and name not in sent.files]
        commit = api.create_commit(
            repository,
            [
                *(CommitOperationAdd(name, str(path)) for name, path in sent.files.items()),
                *(CommitOperationDelete(name) for name in stale),
            ],
            commit_message=destination.message or f"Upload {'model' if kind == 'model' else 'charts'}",
            commit_description=destination.description,
            repo_type=kind,
            revision=destination.revision,
            create_pr=destination.create_pr,
        )
    if destination.tag is not None:
        with _told(destination, f"the commit is there, but without the tag {destination.tag}"):
            _set_tag(api, destination, str(commit.oid))
    say(f"{commit.pr_url or commit.commit_url}")
    return commit


@contextmanager
def _told(destination: Destination, state: str) -> Iterator[None]:
    """Say in one line what went wrong on the Hub, and in what state the repository is."""
    try:
        yield
    except PushError:
        raise
    except (*HUB_ERRORS, RuntimeError, ValueError) as problem:  # the client wraps a broken upload so
        repository = destination.repository
        told = _not_theirs(problem, destination)
        told = told or explain_hub_error(
            problem, repository, destination.kind, destination.revision, destination.token
        )
        raise PushError(
            f"{told}; {repository}: {state}, and once this is mended the same command goes on"
        ) from problem


def _not_theirs(problem: BaseException, destination: Destination) -> str | None:
    """Say whose the token is where the Hub forbids to write with it."""
    if not isinstance(problem, HfHubHTTPError) or problem.response.status_code != HTTPStatus.FORBIDDEN:
        return None
    owner, (account, _, name) = _owner(destination), destination.repository.rpartition("/")
    if owner == account:
        return None
    return (
        f"the token is {owner}'s, who may not write to {account}'s repositories; push to {owner}/{name}, or "
        f"use a token of {account}"
    )


def _ready_repository(api: HfApi, destination: Destination) -> str:
    """Make the repository and the branch unless they are there; return the newest commit."""
    repository, kind = destination.repository, destination.kind
    try:
        info = api.repo_info(repository, repo_type=kind)
    except RepositoryNotFoundError:
        api.create_repo(repository, private=not destination.public, repo_type=kind)
        info = api.repo_info(repository, repo_type=kind)
    else:
        _check_visibility(info, destination)
    branch = destination.revision
    if branch is not None and not branch.startswith("refs/pr"):
        branches = [ref.name for ref in api.list_repo_refs(repository, repo_type=kind).branches]
        if branch not in branches and not destination.new_branch:
            raise PushError(
                f"{repository} has no branch {branch}; it has: {', '.join(branches)} (--new-branch makes it)"
            )
        if branch not in branches:
            api.create_branch(repository, branch=branch, repo_type=kind)
    return str(api.repo_info(repository, repo_type=kind, revision=branch).sha)


def _check_visibility(info: Any, destination: Destination) -> None:
    if not info.private and not destination.public:
        raise PushError(
            f"{info.id} is public already; say --public (private=False) if all may see this, or push to "
            "another name"
        )
    if info.private and destination.public:
        raise PushError(
            f"{info.id} is private, and with it its history would become public; push to a new name with "
            "--public, or change it in its settings on the Hub and repeat"
        )


def _check_tag(api: HfApi, destination: Destination, head: str) -> None:
    """Refuse a tag that stands elsewhere, before anything is sent."""
    if destination.tag is None:
        return
    if destination.create_pr:
        raise PushError("a proposed commit cannot have a tag; leave --tag out")
    tags = _tags(api, destination)
    if tags.get(destination.tag, head) != head:
        raise PushError(
            f"{destination.repository} has a tag {destination.tag} on an older commit; choose another --tag "
            f"than {', '.join(tags)}"
        )


def _set_tag(api: HfApi, destination: Destination, commit: str) -> None:
    repository, tag = destination.repository, str(destination.tag)
    found = _tags(api, destination).get(tag)
    if found is None:
        api.create_tag(repository, tag=tag, revision=commit, repo_type=destination.kind)
    elif found != commit:
        raise PushError(
            f"{repository} holds the new commit, but the tag {tag} stands on an older one; choose another one"
        )


def _tags(api: HfApi, destination: Destination) -> dict[str, str]:
    refs = api.list_repo_refs(destination.repository, repo_type=destination.kind)
    return {ref.name: ref.target_commit for ref in refs.tags}
