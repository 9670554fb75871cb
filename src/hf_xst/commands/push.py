"""Push a model or charts to the Hub: the command `hf-xst push`."""

from __future__ import annotations

from dataclasses import dataclass

from huggingface_hub import CommitInfo

from hf_xst.hub.publish import push_folder
from hf_xst.hub.upload import PushOptions
from hf_xst.records import required


@dataclass(frozen=True, kw_only=True)
class PushArguments(PushOptions):
    """Push a model or charts to the Hub."""

    folder: str = required(
        "Folder of a model or of charts: the --output of the command that made it. The flag can be omitted."
    )
    to: str = required("Repository on the Hub: USER/NAME.")


def push(arguments: PushArguments) -> CommitInfo | None:
    """Check a folder and push it to the Hub; return the commit, or None after a dry run.

    Raises:
        ValueError: there is nothing to push, private content was found, or the Hub refuses.
    """
    return push_folder(arguments.folder, arguments.to, arguments)
