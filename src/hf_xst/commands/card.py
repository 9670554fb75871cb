"""The command `hf-xst card`: write the card of a model or of charts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hf_xst.commands.options import option, required
from hf_xst.commands.runs import RunFolder
from hf_xst.console import say
from hf_xst.hub.card import README, check_folder, write_records
from hf_xst.hub.metadata import checked_languages
from hf_xst.hub.pictures import read_example
from hf_xst.hub.records import EXAMPLE, SAID, Records

_RECORDED = ("title", "language", "license", "license_link", "text_license")


@dataclass(kw_only=True)
class CardArguments:
    """Write the card of a model or of charts."""

    folder: str = required(
        "The folder of a model or of charts, --output of the command that made it; the flag may be omitted."
    )
    title: str | None = option("What the card is called; by default after task and language.")
    language: list[str] = option("Codes of the languages (ISO 639), where the treebank does not say it.", [])
    license: str | None = option(
        "Licence of the model or charts: an id of the Hub (cc-by-sa-4.0), or a name."
    )
    license_link: str | None = option("Where the licence's text is.")
    text_license: str | None = option("Licence of the treebank or text that was read.")
    example: str | None = option(
        "A sentence for the picture, annotated by the model: words with spaces between them, or a CoNLL-U "
        "file. It is published with the card."
    )


def card(arguments: CardArguments) -> None:
    """Write OUTPUT/README.md and its pictures; what was said stays recorded for cards made later.

    Args:
        arguments: see the class.

    Raises:
        ValueError: the folder holds neither a model nor charts, a language is no code, the example cannot be
            annotated, or the card that is there is broken.
    """
    folder = Path(arguments.folder)
    check_folder(folder)
    checked_languages(arguments.language)
    told = frozenset(key for key, value in asdict(arguments).items() if value)
    arguments = _with_recorded(arguments, Records(folder).said)
    if arguments.example and Records(folder).kind == "charts":
        raise ValueError("charts annotate no sentence: leave --example out")
    example = read_example(arguments.example) if arguments.example else None
    stated = {SAID: asdict(arguments), EXAMPLE: asdict(example) if example else {}}
    said = told | ({"license_name", "license_link"} if "license" in told else set())
    write_records(Records(folder, stated), said)
    RunFolder(arguments.folder, arguments, prefix="card-").begin()
    say(f"{folder / README} is written; what you add outside of its marks stays when it is made again")


def _with_recorded(arguments: CardArguments, before: Mapping[str, Any]) -> CardArguments:
    """Fill in what was said when the card was made before, and is not said now."""
    kept = {name: before[name] for name in _RECORDED if not getattr(arguments, name) and before.get(name)}
    if arguments.license:
        kept.pop("license_link", None)  # it was that of another licence
    return replace(arguments, **kept)
