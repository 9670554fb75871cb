"""Write the card of a model or of charts: the command `hf-xst card`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from hf_xst.commands.options import takes_options
from hf_xst.commands.runs import RunFolder
from hf_xst.console import say
from hf_xst.files import protect_files
from hf_xst.hub.card import README, write_card
from hf_xst.hub.metadata import check_languages
from hf_xst.hub.pictures import TABLE, TREE, read_example
from hf_xst.hub.run_records import CARD_OPTIONS, EXAMPLE, RunRecords
from hf_xst.records import option, required

_REMEMBERED = ("title", "language", "license", "license_link", "text_license")


@dataclass(frozen=True, kw_only=True)
class CardArguments:
    """Write the card of a model or of charts."""

    folder: str = required(
        "Folder of a model or of charts: the --output of the command that made it. The flag can be omitted."
    )
    title: str | None = option("Title of the card; defaults to task and language.")
    language: list[str] = option("Language codes (ISO 639), if the treebank does not say.", [])
    license: str | None = option("Licence of the model or charts: a Hub id (cc-by-sa-4.0), or a name.")
    license_link: str | None = option("Where the text of the licence is.")
    text_license: str | None = option("Licence of the treebank or text that was used.")
    example: str | None = option(
        "Sentence for the picture, annotated by the model: words separated by spaces, or a CoNLL-U file. It "
        "is published with the card."
    )
    overwrite: bool = option("Replace pictures that hf-xst did not write.", False)


@takes_options(CardArguments)
def card(arguments: CardArguments) -> None:
    """Write FOLDER/README.md and its pictures, and record the options for later cards of the folder.

    Raises:
        ValueError: the folder contains neither a model nor charts, a language code is invalid, the example
            cannot be annotated, or the existing card is broken.
    """
    folder = Path(arguments.folder)
    records = RunRecords.read(folder)
    if not arguments.overwrite:
        protect_files(folder / TREE, folder / TABLE)
    check_languages(arguments.language)
    stated = {key for key, value in asdict(arguments).items() if value}
    if arguments.example and records.kind == "charts":
        raise ValueError("charts do not annotate sentences: leave --example out")
    recorded = {key: value for key, value in records.card_options.items() if key in _REMEMBERED and value}
    if arguments.license:
        recorded.pop("license_link", None)  # it belongs to the previous licence
        stated |= {"license_name", "license_link"}
    arguments = replace(arguments, **{key: recorded[key] for key in recorded.keys() - stated})
    run = RunFolder(arguments.folder, arguments, prefix="card-")
    replaced = {CARD_OPTIONS: asdict(arguments)}
    if arguments.example:
        replaced[EXAMPLE] = asdict(read_example(arguments.example))
    write_card(folder, replaced=replaced, stated=frozenset(stated))
    run.begin()
    say(f"wrote {folder / README}; edits outside its marks are kept when the card is written again")
