"""Publish a model or charts: the command `hf-xst push`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from huggingface_hub import CommitInfo

from hf_xst.commands.options import option, required
from hf_xst.hub.publish import Choices, push_folder
from hf_xst.hub.upload import Destination


@dataclass(kw_only=True)
class PushArguments:
    """Put a model or charts on the Hub."""

    folder: str = required(
        "The folder of a model or of charts, --output of the command that made it; the flag may be omitted."
    )
    to: str = required("Where to: USER/NAME on the Hub.")
    public: bool = option("Let all see a new repository, or push to a public one; private without it.", False)
    dry_run: bool = option("Check, and list what would go and how large it is; send nothing.", False)
    unsearched: bool = option(
        "Go on where the training sentences are gone, so that the files cannot be searched for them.", False
    )
    replace_card: bool = option(
        "Let the folder's card replace what people have written into the one on the Hub.", False
    )
    vocabulary: Literal["public", "all"] = option(
        "Words that go with a model that reads by word vectors: those of the public vector file, or all.",
        "public",
    )
    vectors: str | None = option(
        "The public vector file; without it the one that the model was made with counts as public."
    )
    revision: str | None = option("The branch, main without it.")
    new_branch: bool = option("Make the branch if it is not there.", False)
    tag: str | None = option("A name for this state, e.g. v1, for others to load it by (USER/NAME@v1).")
    message: str | None = option("What the commit is called.")


def push(arguments: PushArguments) -> CommitInfo | None:
    """Check a folder and put it on the Hub.

    Args:
        arguments: see the class.

    Returns:
        The commit; None after a dry run.

    Raises:
        ValueError: there is nothing to push, something private would go, or the Hub refuses.
    """
    destination = Destination(
        arguments.to,
        public=arguments.public,
        revision=arguments.revision,
        new_branch=arguments.new_branch,
        tag=arguments.tag,
        message=arguments.message,
    )
    choices = Choices(
        arguments.vocabulary,
        arguments.vectors,
        dry_run=arguments.dry_run,
        unsearched=arguments.unsearched,
        replace_card=arguments.replace_card,
    )
    return push_folder(arguments.folder, destination, choices)
