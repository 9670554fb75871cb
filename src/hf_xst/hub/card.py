"""Cards of models and charts, made from what their runs have recorded.

A card is a README.md with metadata for the Hub, and two pictures beside it. Made again, it keeps what people
have written into it; see `hf_xst.hub.card_merge`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from huggingface_hub import DatasetCard, DatasetCardData, ModelCard, ModelCardData

from hf_xst.files import write_text
from hf_xst.hub.card_merge import Card, folded
from hf_xst.hub.facts import Facts
from hf_xst.hub.metadata import charts_metadata, licence_fields, model_metadata
from hf_xst.hub.pictures import (
    TABLE,
    TREE,
    Example,
    chart_picture,
    count_lines,
    example_of,
    score_lines,
    sentence_picture,
    table_picture,
)
from hf_xst.hub.records import EXAMPLE, Records
from hf_xst.hub.sections import sections_of, title_of
from hf_xst.hub.vocabulary import Vocabulary

README = "README.md"
_SCORE_KEYS = ("metrics", "model-index", "model_name")


class Rendered(NamedTuple):
    """A card, its pictures by file name, and the example as it is drawn."""

    card: ModelCard | DatasetCard
    pictures: dict[str, str]
    example: Example


def write_card(
    folder: str | Path, *, vocabulary: Vocabulary | None = None, repository: str | None = None
) -> ModelCard | DatasetCard:
    """Render the card of a folder and write it there, with its pictures.

    Args:
        folder: a model's or charts'.
        vocabulary: which words of encoder A are published, if that was decided.
        repository: the id on the Hub, for the lines that load it.

    Returns:
        The card.

    Raises:
        ValueError: see `card`.
    """
    return write_records(Records(Path(folder)), frozenset(), vocabulary, repository)


def render_card(
    folder: str | Path, *, vocabulary: Vocabulary | None = None, repository: str | None = None
) -> ModelCard | DatasetCard:
    """Render the card of a folder without writing anything; see `write_card`."""
    return _rendered(Records(Path(folder)), frozenset(), vocabulary, repository).card


def write_records(
    records: Records,
    said: frozenset[str],
    vocabulary: Vocabulary | None = None,
    repository: str | None = None,
) -> ModelCard | DatasetCard:
    """Render a card from records and write it with its pictures."""
    folder = records.folder
    rendered = _rendered(records, said, vocabulary, repository)
    for name, content in rendered.pictures.items():
        write_text(folder / name, content)
    write_text(folder / README, str(rendered.card))
    if rendered.example.origin == "invented":
        (folder / EXAMPLE).unlink(missing_ok=True)
    else:
        told = json.dumps(asdict(rendered.example), indent=1, ensure_ascii=False)
        write_text(folder / EXAMPLE, f"{told}\n")
    return rendered.card


def _rendered(
    records: Records, said: frozenset[str], vocabulary: Vocabulary | None, repository: str | None
) -> Rendered:
    """Render a card.

    Args:
        records: what is known.
        said: what a person has stated just now, as `CardArguments` calls it; it comes before what stands in
            the card.
        vocabulary: see `write_card`.
        repository: see `write_card`.
    """
    check_folder(records.folder)
    old = Card.read(records.folder / README)
    stated = tuple(records.said.get("language") or ())
    facts = Facts(records, stated, records.said.get("text_license"))
    title = str(records.said.get("title") or title_of(facts))
    example = example_of(records)
    generated = _metadata(facts, title)
    keeps = not records.is_whole and old.fingerprint is not None and old.fingerprint == records.fingerprint
    if keeps:  # the card knows more of this very model than its folder
        generated = {key: generated[key] for key in generated if key in said or key in _SCORE_KEYS}
        rest = {key: value for key, value in old.metadata.items() if key not in said}
        metadata = old.renewed(rest | generated, said)
    else:
        metadata = old.renewed(generated, said)
    facts = replace(facts, language=_several(metadata.get("language")))
    told = {"vocabulary": vocabulary, "repository": repository, "title": title}
    sections = sections_of(facts, example, metadata, told)
    if keeps:
        known = {"scores": bool(facts.scores), "example": "example" in said, "licence": "license" in said}
        sections = {name: text for name, text in sections.items() if known.get(name)}
    record = old.record(generated, list(sections), records.fingerprint, partly=keeps)
    text = f"{old.rewritten(sections).rstrip()}\n\n{record}"
    pictures = _pictures(facts, example)
    if keeps and "example" not in sections:
        del pictures[TREE]
    return Rendered(_hub_card(metadata, text, is_charts=records.kind == "charts"), pictures, example)


def _hub_card(metadata: Mapping[str, Any], text: str, *, is_charts: bool) -> ModelCard | DatasetCard:
    """Build the card as the Hub's client does, which checks the metadata's form."""
    if is_charts:
        return DatasetCard(f"---\n{DatasetCardData(**metadata).to_yaml()}\n---\n{text}")
    return ModelCard(f"---\n{ModelCardData(**folded(metadata)).to_yaml()}\n---\n{text}")


def _metadata(facts: Facts, title: str) -> dict[str, Any]:
    build = charts_metadata if facts.records.kind == "charts" else model_metadata
    data, said = build(facts, title), facts.records.said
    licence = licence_fields(said.get("license"), said.get("license_link"))
    return (
        {"language": data.pop("language", None), **licence, **data} if "language" in data else licence | data
    )


def _several(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),) if value else ()


def _pictures(facts: Facts, example: Example) -> dict[str, str]:
    if facts.records.kind == "charts":
        return {TREE: chart_picture(facts), TABLE: table_picture("Charts", count_lines(facts))}
    pictures = {TREE: sentence_picture(example, facts)}
    lines = score_lines(facts)
    return pictures | ({TABLE: table_picture("Scores", lines)} if lines else {})


def check_folder(folder: Path) -> None:
    """Raise ValueError unless the folder holds a model or charts."""
    records = Records(folder)
    if not folder.is_dir() or not (records.config or records.provenance):
        raise ValueError(
            f"{folder} holds neither a model (config.json) nor charts (provenance.json); give the --output "
            "of train-source, transfer or build-charts"
        )
