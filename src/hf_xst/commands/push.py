"""Push a model or charts to the Hub: the command `hf-xst push`."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from huggingface_hub import CommitInfo

from hf_xst.commands.options import option, required
from hf_xst.hub.publish import push_folder
from hf_xst.hub.upload import PushOptions, Vocabulary


@dataclass(kw_only=True)
class PushArguments:
    """Push a model or charts to the Hub."""

    folder: str = required(
        "Folder of a model or of charts: the --output of the command that made it. The flag can be omitted."
    )
    to: str = required("Repository on the Hub: USER/NAME.")
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


def push(arguments: PushArguments) -> CommitInfo | None:
    """Check a folder and push it to the Hub.

    Returns:
        The commit; None after a dry run.

    Raises:
        ValueError: there is nothing to push, private content was found, or the Hub refuses.
    """
    options = asdict(arguments)
    return push_folder(options.pop("folder"), options.pop("to"), PushOptions(**options))
