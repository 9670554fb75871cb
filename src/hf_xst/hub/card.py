"""Write the card of a model or of charts from what was recorded.

A card is a README.md with metadata for the Hub and two pictures. When it is generated again, edits are kept;
see `hf_xst.hub.card_merge`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from huggingface_hub import DatasetCardData, ModelCardData
from jinja2 import Environment, PackageLoader, StrictUndefined

from hf_xst.data.treebank_facts import TreebankFacts
from hf_xst.files import write_text
from hf_xst.hub.card_merge import Card, split_sections, to_card_data
from hf_xst.hub.facts import Facts
from hf_xst.hub.markdown import Markdown, block, cell, code, plain, strip_command, to_markdown
from hf_xst.hub.metadata import UNKNOWN, card_metadata
from hf_xst.hub.pictures import TABLE, TREE, Example, card_pictures, count_rows, example_of
from hf_xst.hub.run_records import EXAMPLE, METRICS, RunRecords
from hf_xst.inference.annotation import find_tagger
from hf_xst.records import write_json
from hf_xst.training.results import TransferResults

README = "README.md"
_SCORE_KEYS = ("metrics", "model-index", "model_name")
_BLANK_LINES, _BEFORE_END = re.compile(r"\n{3,}"), re.compile(r"\n+(?=<!-- hf_xst:end)")
_NOT_IN_ID = re.compile(r"[^\w./-]")
_PIPELINES = {"parser": "dependency-parsing", "tagger": "structured-tagging"}
_RULES = {"pool": "logarithmic opinion pool", "union": "union (PPTX)", "linear": "linear opinion pool"}


def write_card(
    folder: Path,
    *,
    replaced: Mapping[str, dict[str, Any]] | None = None,
    stated: frozenset[str] = frozenset(),
    vocabulary: str | None = None,
    repository: str | None = None,
) -> None:
    """Render the card of a folder and write it there, with its pictures.

    Args:
        folder: the folder of a model or of charts.
        replaced: records by file name that take precedence over the files.
        stated: options of `card` that a person just stated; they take precedence over the existing card.
        vocabulary: which words are published, `public` or `all`, if decided.
        repository: id on the Hub, for the commands and code in the card.

    Raises:
        ValueError: the folder contains neither a model nor charts, or a record or the card is broken.
    """
    records, old = RunRecords.read(folder, replaced), Card.read(folder / README)
    options = records.card_options
    facts = Facts(records, tuple(options.get("language") or ()))
    title = str(options.get("title") or _title(facts))
    example = example_of(records)
    generated = card_metadata(facts, title)
    # A model pulled from the Hub lacks its run: the existing card knows more about it than its folder.
    keep_old = not records.is_complete and old.fingerprint is not None
    keep_old = keep_old and old.fingerprint == records.fingerprint
    if keep_old:
        generated = {key: generated[key] for key in generated if key in stated or key in _SCORE_KEYS}
        rest = {key: value for key, value in old.metadata.items() if key not in stated}
        metadata = old.merge_metadata(rest | generated, stated)
    else:
        metadata = old.merge_metadata(generated, stated)
    languages = metadata.get("language") or []  # possibly edited
    facts = Facts(records, tuple(map(str, languages if isinstance(languages, list) else [languages])))
    hub_id = Markdown(_NOT_IN_ID.sub("", repository or "USER/NAME"))
    context = {"title": title, "vocabulary": vocabulary, "repository": hub_id}
    sections = _render_sections(facts, example, metadata, context)
    pictures = card_pictures(facts, example)
    if keep_old:
        known = {"scores": TABLE in pictures, "example": "example" in stated, "licence": "license" in stated}
        sections = {name: text for name, text in sections.items() if known.get(name)}
        if "example" not in sections:
            del pictures[TREE]
    record = old.record(generated, sections, records.fingerprint, keep_old=keep_old)
    text = f"{old.merge_sections(sections).rstrip()}\n\n{record}"
    is_charts = records.kind == "charts"
    data = DatasetCardData(**metadata) if is_charts else ModelCardData(**to_card_data(metadata))
    for name, content in pictures.items():
        write_text(folder / name, content)
    write_text(folder / README, f"---\n{data.to_yaml()}\n---\n{text}")
    if example.origin != "invented":
        write_json(folder / EXAMPLE, example)
    else:
        (folder / EXAMPLE).unlink(missing_ok=True)


def _title(facts: Facts) -> str:
    name = facts.task_name[0].upper() + facts.task_name[1:]
    if facts.records.kind == "charts":
        name = f"Charts for a {facts.task_name}"
    return f"{name}: {_enumerate(facts.language_names)}" if facts.languages else name


@cache
def _templates() -> Environment:
    """Return the templates' environment, which formats and escapes the value of every expression."""
    environment = Environment(
        loader=PackageLoader("hf_xst.hub"),
        undefined=StrictUndefined,
        finalize=to_markdown,
        autoescape=False,  # noqa: S701 - of HTML; this is Markdown
    )
    environment.filters.update(code=code, cell=cell, block=block)
    return environment


def _render_sections(
    facts: Facts, example: Example, metadata: Mapping[str, Any], context: Mapping[str, Any]
) -> dict[str, str]:
    """Render all sections of a card with their marks, by name."""
    template = _templates().get_template("charts.md" if facts.records.kind == "charts" else "model.md")
    text = template.render({**_context(facts, example, metadata), **context})
    text = "\n".join(line.rstrip() for line in text.splitlines())
    text = _BEFORE_END.sub("\n", _BLANK_LINES.sub("\n\n", text))
    return {name: section for name, section in split_sections(text) if name}


def _context(facts: Facts, example: Example, metadata: Mapping[str, Any]) -> dict[str, Any]:
    records, config = facts.records, facts.records.config
    recorded = [each.licence for each in records.treebanks if each.licence]
    text_licence = records.card_options.get("text_license")
    dev_treebanks = records.dev_treebanks if records.kind == "transferred" else ()
    context = {
        "facts": facts,
        "records": records,
        "config": config,
        "kind": records.kind,
        "task": Markdown(plain(facts.task_name)),
        "languages": _enumerate(facts.language_names),
        "treebanks": _names(records.treebanks, code),
        "treebanks_in_cell": _names(records.treebanks, cell),
        "development": _names(dev_treebanks, code) if dev_treebanks else None,
        "reads_tags": bool(config.get("uses_upos")),
        "has_tagger": find_tagger(str(records.folder)) is not None,
        "has_vectors": bool(config.get("vector_space")),
        "command": strip_command(records.command, facts.ids),
        "licences": [text_licence] if text_licence else list(dict.fromkeys(recorded)),
        "licence": _licence(metadata),
        "unlicensed": metadata.get("license", UNKNOWN) == UNKNOWN,
        "scores": list(records.all_scores()),
        "metrics": METRICS,
        "example": example,
        "pipeline": _PIPELINES.get(facts.task),
        "call": Markdown(_call(facts, example)),
        "tree": Markdown(TREE),
        "table": Markdown(TABLE),
        "alt": _alternative_text(facts, example),
        "table_alt": plain("; ".join(f"{row.name}: {row.value}" for row in count_rows(facts))),
        "empty_charts": records.results.empty_charts if isinstance(records.results, TransferResults) else 0,
        "candidates": "arcs" if facts.task == "parser" else "pairs of adjacent tags",
        "charts": records.charts,
    }
    if (charts := records.charts) is not None:
        counts = charts.counts
        context |= {
            "rule": _RULES.get(charts.settings.rule, charts.settings.rule),
            "weighted": bool(charts.settings.weights),
            "kept_per_group": round(counts.kept / counts.groups, 2) if counts.groups else None,
            "dropped": {name: round(mass, 1) for name, mass in counts.dropped_mass.items()},
        }
    return context


def _licence(metadata: Mapping[str, Any]) -> Markdown:
    licence = metadata.get("license", UNKNOWN)
    name = metadata.get("license_name") if licence == "other" else licence
    link = metadata.get("license_link")
    return Markdown(f"{plain(name or licence)}{f' ({plain(link)})' if link else ''}")


def _enumerate(names: Iterable[str]) -> str:
    *first, last = [*names] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def _names(treebanks: Iterable[TreebankFacts], style: Callable[[str], Markdown]) -> Markdown:
    return Markdown(_enumerate(style(each.name) for each in treebanks) or "a treebank that is not recorded")


def _alternative_text(facts: Facts, example: Example) -> Markdown:
    """Describe the picture of the example in words."""
    words = " ".join(example.words)
    if facts.records.kind == "charts":
        return plain(f"Chart of an example sentence: {words}")
    if facts.task == "parser" and example.heads:
        nodes = ["the root", *example.words]
        rows = zip(example.words, example.columns["deprel"], example.heads, strict=True)
        arcs = "; ".join(f"{word} is {label} of {nodes[head]}" for word, label, head in rows)
        return plain(f"Dependency tree of {words}: {arcs}")
    labels = example.columns.get(facts.column) or example.columns.get("upos") or []
    return plain(f"Labels of {words}: {' '.join(map(str, labels))}")


def _call(facts: Facts, example: Example) -> str:
    """Return the argument of a call in the example code: words, and UPOS tags if the model requires them."""
    words = json.dumps(example.words, ensure_ascii=False)
    reads_tags = facts.records.config.get("uses_upos")
    if facts.task != "model" and not reads_tags:
        return words
    row = f'"words": {words}'
    if reads_tags and find_tagger(str(facts.records.folder)) is None:
        row += f', "upos": {json.dumps(example.columns.get("upos", []), ensure_ascii=False)}'
    return f"{{{row}}}"
