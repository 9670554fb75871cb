"""Write to a repository on the Hub: create it if necessary, make one commit, set a tag."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Literal

from huggingface_hub import (
    CommitInfo,
    CommitOperationAdd,
    CommitOperationDelete,
    HfApi,
    get_token,
    hf_hub_download,
)
from huggingface_hub.errors import (
    HfHubHTTPError,
    HFValidationError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

from hf_xst.console import say
from hf_xst.hub.card import README
from hf_xst.hub.contents import Contents, is_allowed
from hf_xst.records import checked, option
from hf_xst.remote import HUB_ERRORS, Kind, explain_hub_error

Vocabulary = Literal["public", "all"]


class PushError(ValueError):
    """The Hub, or the state of the repository, does not allow a push; in one line, with what to do."""


@dataclass(frozen=True, kw_only=True)
class PushOptions:
    """How a folder is pushed.

    Attributes:
        description: description of the commit.
        create_pr: open a pull request instead.
        tags: further tags in the card.
        token: a token to use instead of that of the login.

    Raises:
        ValueError: the vocabulary has another value.
    """

    public: bool = option("Create a public repository, or push to one; private by default.", False)
    dry_run: bool = option("Check and list the files with their sizes; send nothing.", False)
    unsearched: bool = option(
        "Push even if the training sentences cannot be read, so that the files are not searched for them.",
        False,
    )
    allow: list[str] = option(
        "Texts that are pushed although the search finds them, such as a contact address.", []
    )
    replace_card: bool = option(
        "Replace what people wrote into the card on the Hub by the folder's card.", False
    )
    vocabulary: Vocabulary = option(
        "Words pushed with a model that reads word vectors: those of the public vector file, or all.",
        "public",
    )
    vectors: str | None = option(
        "The public vector file; if omitted, the one that the model was made with counts as public."
    )
    revision: str | None = option("Branch; defaults to main.")
    new_branch: bool = option("Create the branch if it does not exist.", False)
    tag: str | None = option("Tag for the commit, e.g. v1, so that others can load USER/NAME@v1.")
    message: str | None = option("Subject of the commit.")
    description: str | None = None
    create_pr: bool = False
    tags: tuple[str, ...] = ()
    token: str | bool | None = None

    def __post_init__(self) -> None:
        checked(Vocabulary, self.vocabulary, "vocabulary")


class Repository:
    """A repository on the Hub that is pushed to; its name without USER/ is one of the token's account.

    Raises:
        ValueError: the name is not a valid id, or the token is missing or rejected.
    """

    def __init__(self, name: str, kind: Kind, options: PushOptions) -> None:
        try:
            validate_repo_id(name)
        except HFValidationError as error:
            raise ValueError(f"{name!r} is not a valid Hub id ({error}); expected USER/NAME") from error
        self.name, self.kind, self.options = name, kind, options
        self.token = options.token if isinstance(options.token, str) else None
        self._api = HfApi(token=options.token)
        if options.dry_run:
            return
        if self.token is None and get_token() is None:
            raise PushError("no token found: log in with `hf auth login`, or set HF_TOKEN")
        if not self.account:
            with self._explained("nothing was changed"):
                self.name = f"{self._api.whoami()['name']}/{name}"

    @property
    def account(self) -> str:
        """The account in the repository's id; empty without one."""
        return self.name.rpartition("/")[0]

    def download_card(self) -> Path | None:
        """Download the card of the branch; None if it has no card yet.

        Raises:
            ValueError: the Hub cannot be reached, so an existing card could be lost.
        """
        revision, token = self.options.revision, self.options.token
        try:
            path = hf_hub_download(self.name, README, repo_type=self.kind, revision=revision, token=token)
        except (RemoteEntryNotFoundError, RepositoryNotFoundError, RevisionNotFoundError):
            return None
        except HUB_ERRORS as error:
            raise ValueError(explain_hub_error(error, self.name, self.kind, revision)) from error
        return Path(path)

    def upload(self, contents: Contents) -> CommitInfo:
        """Send files in one commit, which also deletes allowed files that are no longer in the folder.

        Raises:
            PushError: the Hub refuses, or cannot be reached.
        """
        options = self.options
        with self._explained("nothing was changed"):
            self._create()
            self._check_tag()
            known = self._api.list_repo_files(self.name, revision=options.revision, repo_type=self.kind)
            outdated = [name for name in known if is_allowed(name, self.kind) and name not in contents.files]
            commit = self._api.create_commit(
                self.name,
                [
                    *(CommitOperationAdd(name, str(path)) for name, path in contents.files.items()),
                    *(CommitOperationDelete(name) for name in outdated),
                ],
                commit_message=options.message or f"Upload {'model' if self.kind == 'model' else 'charts'}",
                commit_description=options.description,
                repo_type=self.kind,
                revision=options.revision,
                create_pr=options.create_pr,
            )
        if options.tag is not None:
            with self._explained(f"the commit was made, but not the tag {options.tag}"):
                self._set_tag(options.tag, str(commit.oid))
        say(f"{commit.pr_url or commit.commit_url}")
        return commit

    def _create(self) -> None:
        """Create the repository and the branch if they do not exist."""
        options, branch = self.options, self.options.revision
        try:
            info = self._api.repo_info(self.name, repo_type=self.kind)
        except RepositoryNotFoundError:
            self._api.create_repo(self.name, private=not options.public, repo_type=self.kind)
        else:
            if info.private and options.public:
                raise PushError(
                    f"{self.name} is private, and its history would become public too; use a new name, or "
                    "change the visibility in its settings on the Hub first"
                )
            if not info.private and not options.public:
                raise PushError(f"{self.name} is public; pass --public (private=False), or another name")
        if branch is None or branch.startswith("refs/pr"):
            return
        refs = self._api.list_repo_refs(self.name, repo_type=self.kind)
        branches = [ref.name for ref in refs.branches]
        if branch not in branches and not options.new_branch:
            names = ", ".join(branches)
            raise PushError(f"{self.name} has no branch {branch}, only {names}; --new-branch creates it")
        if branch not in branches:
            self._api.create_branch(self.name, branch=branch, repo_type=self.kind)

    def _check_tag(self) -> None:
        """Refuse a tag of another commit before anything is sent."""
        tag = self.options.tag
        if tag is None:
            return
        if self.options.create_pr:
            raise PushError("a pull request cannot have a tag; leave --tag out")
        info = self._api.repo_info(self.name, repo_type=self.kind, revision=self.options.revision)
        if self._tags().get(tag, info.sha) != info.sha:
            raise PushError(f"the tag {tag} of {self.name} marks an older commit; choose another --tag")

    def _set_tag(self, tag: str, commit: str) -> None:
        current = self._tags().get(tag)
        if current is None:
            self._api.create_tag(self.name, tag=tag, revision=commit, repo_type=self.kind)
        elif current != commit:
            raise PushError(f"{self.name}: the commit was made, but the tag {tag} marks an older one")

    def _tags(self) -> dict[str, str]:
        refs = self._api.list_repo_refs(self.name, repo_type=self.kind)
        return {ref.name: ref.target_commit for ref in refs.tags}

    @contextmanager
    def _explained(self, state: str) -> Iterator[None]:
        """Turn Hub errors into one line: what went wrong, and the state of the repository."""
        try:
            yield
        except PushError:
            raise
        except (*HUB_ERRORS, RuntimeError, ValueError) as error:  # the client wraps a broken upload so
            options, (account, _, name) = self.options, self.name.rpartition("/")
            message = explain_hub_error(error, self.name, self.kind, options.revision, options.token)
            if isinstance(error, HfHubHTTPError) and error.response.status_code == HTTPStatus.FORBIDDEN:
                owner = self._api.whoami()["name"]
                if owner != account:
                    message = (
                        f"the token belongs to {owner}, who may not write to {account}'s repositories; push "
                        f"to {owner}/{name}, or use a token of {account}"
                    )
            raise PushError(f"{message}; {self.name}: {state}. Rerun the same command to resume") from error
