"""The text of a card, section by section, from templates."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from hf_xst.data.treebank_facts import TreebankFacts
from hf_xst.hub.facts import Facts
from hf_xst.hub.markdown import Markdown, block, cell, code, plain, score, shown
from hf_xst.hub.metadata import UNKNOWN
from hf_xst.hub.pictures import TABLE, TREE, Example, count_lines

MODEL = ("summary", "use", "example", "scores", "training", "unused", "licence", "citation")
CHARTS = ("summary", "use", "example", "columns", "making", "unused", "licence", "citation")
_GAPS = re.compile(r"\n{3,}")
_NO_ID = re.compile(r"[^\w./-]")
_PIPELINES = {"parser": "dependency-parsing", "tagger": "structured-tagging"}


def title_of(facts: Facts) -> str:
    """Call a model or charts after what they are and their language."""
    what = what_of(facts)
    name = f"Charts for a {what}" if facts.records.kind == "charts" else what[0].upper() + what[1:]
    return f"{name}: {_listed(facts.language_names)}" if facts.languages else name


def what_of(facts: Facts) -> str:
    """Say in a few words what a model is."""
    if facts.task == "parser":
        return "dependency parser"
    if facts.task == "tagger":
        return "part-of-speech tagger" if facts.column in ("upos", "xpos") else f"tagger of {facts.column}"
    return "model of structures"


def sections_of(
    facts: Facts, example: Example, metadata: Mapping[str, Any], told: Mapping[str, Any]
) -> dict[str, str]:
    """Render all sections of a card.

    Args:
        facts: what is known.
        example: the sentence of the picture.
        metadata: the card's metadata, which may hold somebody's own licence.
        told: `title`, `repository` and `vocabulary`.

    Returns:
        Markdown by the section's name.
    """
    repository = _NO_ID.sub("", told["repository"] or "USER/NAME")
    context = {**_context(facts, example, metadata), **told, "repository": Markdown(repository)}
    folder = "charts" if facts.records.kind == "charts" else "model"
    found = {}
    for name in CHARTS if folder == "charts" else MODEL:
        template = _templates().select_template([f"{folder}/{name}.md", f"common/{name}.md"])
        text = "\n".join(line.rstrip() for line in template.render(context).splitlines())
        found[name] = _GAPS.sub("\n\n", text)
    return found


@cache
def _templates() -> Environment:
    """Load templates whose every output goes through `shown`: names are escaped, and nothing is None."""
    found = Environment(
        loader=PackageLoader("hf_xst.hub"),
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=False,
        keep_trailing_newline=False,
        autoescape=False,
    )
    found.filters.update(code=code, cell=cell, block=block, score=score)
    return found


def _context(facts: Facts, example: Example, metadata: Mapping[str, Any]) -> dict[str, Any]:
    records = facts.records
    made = records.provenance
    counts = made.get("counts", {})
    return {
        "facts": facts,
        "kind": records.kind,
        "what": Markdown(plain(what_of(facts))),
        "languages": _listed(facts.language_names),
        "treebanks": _named(facts.treebanks, code),
        "treebanks_in_cell": _named(facts.treebanks, cell),
        "development": _named(facts.development, code),
        "licence": _licence(metadata),
        "unlicensed": metadata.get("license", UNKNOWN) == UNKNOWN,
        "encoder": facts.encoder,
        "example": example,
        "pipeline": _PIPELINES.get(facts.task),
        "call": Markdown(_call(facts, example)),
        "tree": Markdown(TREE),
        "table": Markdown(TABLE),
        "alt": _sentence_alt(facts, example),
        "table_alt": plain("; ".join(f"{line.name}: {line.value}" for line in count_lines(facts))),
        "made": made,
        "weighted": bool(made.get("weights")),
        "start": made.get("start"),
        "empty_charts": records.results.get("empty_charts", 0),
        "kept_a_group": round(counts["kept"] / counts["groups"], 2) if counts.get("groups") else None,
        "dropped": {name: round(mass, 1) for name, mass in (counts.get("dropped_mass") or {}).items()},
        "candidates": "arcs" if facts.task == "parser" else "pairs of neighbouring tags",
    }


def _licence(metadata: Mapping[str, Any]) -> Markdown:
    given = metadata.get("license", UNKNOWN)
    name = metadata.get("license_name") if given == "other" else given
    link = metadata.get("license_link")
    if given == UNKNOWN:
        return Markdown("unknown: none is stated")
    return Markdown(f"{plain(name or given)}{f' ({plain(link)})' if link else ''}")


def _listed(names: Iterable[str]) -> str:
    *first, last = [*names] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def _named(treebanks: Iterable[TreebankFacts], style: Any) -> Markdown:
    names = [style(each.name) for each in treebanks]
    return Markdown(_listed(names) if names else "a treebank that is not recorded")


def _sentence_alt(facts: Facts, example: Example) -> Markdown:
    """Say the picture in words."""
    words = " ".join(example.words)
    if facts.records.kind == "charts":
        return plain(f"What a chart allows for the words of the sentence {words}")
    if facts.task == "parser" and example.heads:
        nodes = ["the root", *example.words]
        told = zip(example.words, example.columns["deprel"], example.heads, strict=True)
        arcs = "; ".join(f"{word} is {label} of {nodes[head]}" for word, label, head in told)
        return plain(f"Dependency tree of {words}: {arcs}")
    labels = example.columns.get(facts.column) or example.columns.get("upos") or []
    return plain(f"Labels of {words}: {' '.join(map(str, labels))}")


def _call(facts: Facts, example: Example) -> str:
    """Write what the model is called with: words, and tags where it reads them."""
    words = json.dumps(example.words, ensure_ascii=False)
    if facts.task != "model" and not facts.reads_tags:
        return words
    row = f'"words": {words}'
    if facts.reads_tags and not facts.has_tagger:
        row += f', "upos": {json.dumps(example.columns.get("upos", []), ensure_ascii=False)}'
    return f"{{{row}}}"
