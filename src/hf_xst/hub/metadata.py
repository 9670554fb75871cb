"""The metadata of a card: what the Hub filters and shows, in the forms that it accepts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from huggingface_hub import EvalResult

from hf_xst.data.folders import LANGUAGES
from hf_xst.hub.facts import BOUNDARIES, UPOS, Facts
from hf_xst.hub.scored import Scores

LIBRARY = "hf_xst"
UNKNOWN = "unknown"
# Licences by the names that the Hub knows; any other one is `other`, with its own name beside it.
LICENCES = frozenset(
    """apache-2.0 mit openrail bigscience-openrail-m creativeml-openrail-m bigscience-bloom-rail-1.0
    bigcode-openrail-m afl-3.0 artistic-2.0 bsl-1.0 bsd bsd-2-clause bsd-3-clause bsd-3-clause-clear c-uda cc
    cc0-1.0 cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-2.0 cc-by-nc-3.0
    cc-by-nc-4.0 cc-by-nd-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0
    cdla-sharing-1.0 cdla-permissive-1.0 cdla-permissive-2.0 wtfpl ecl-2.0 epl-1.0 epl-2.0 etalab-2.0 eupl-1.1
    agpl-3.0 gfdl gpl gpl-2.0 gpl-3.0 lgpl lgpl-2.1 lgpl-3.0 isc lppl-1.3c ms-pl mpl-2.0 odc-by odbl
    openrail++ osl-3.0 postgresql ofl-1.1 ncsa unlicense zlib pddl lgpl-lr deepfloyd-if-license llama2 gemma
    unknown other""".split()
)
_SIZES = (
    *((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M")),
    *((10**7, "1M<n<10M"), (10**8, "10M<n<100M"), (10**9, "100M<n<1B")),
)
_SPECIAL_LANGUAGES = ("multilingual",)
_LANGUAGE = re.compile(r"[a-z]{2,3}")
_NO_SLUG = re.compile(r"[^\w.+-]+")
_RELATIONS = frozenset(
    """acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse dislocated
    expl fixed flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis punct reparandum root
    vocative xcomp""".split()
)


def checked_languages(codes: Sequence[str]) -> tuple[str, ...]:
    """Return codes of languages as the Hub takes them.

    Raises:
        ValueError: one is no code.
    """
    for given in codes:
        if given not in _SPECIAL_LANGUAGES and not _LANGUAGE.fullmatch(given):
            names = {language.name.lower(): language.code for language in LANGUAGES.values()}
            hint = f"; {given} is {names[given.lower()]}" if given.lower() in names else ""
            raise ValueError(
                f"found the language {given!r}; expected a code of ISO 639 with two or three letters, such "
                f"as it or hsb{hint}"
            )
    return tuple(codes)


def licence_fields(given: str | None, link: str | None = None) -> dict[str, str]:
    """Return the metadata that states a licence; without one that says so.

    Args:
        given: an id of the Hub, or the name of another licence.
        link: where its text is, for a licence that the Hub has no id for.
    """
    name = (given or UNKNOWN).strip().lower()
    if name in LICENCES:
        return {"license": name} | ({"license_link": link} if link else {})
    fields = {"license": "other", "license_name": _slug(str(given)).lower()}
    return fields | ({"license_link": link} if link else {})


def model_metadata(facts: Facts, title: str) -> dict[str, Any]:
    """Return the metadata of a model's card, without its licence."""
    scored = [scores for scores in facts.scores if scores.treebanks]
    data: dict[str, Any] = {
        "language": facts.languages,
        "library_name": LIBRARY,
        "pipeline_tag": "token-classification",
        "tags": _tags(facts),
        "base_model": facts.base_models,
        "datasets": [each.name for each in facts.treebanks if each.on_hub],
        "metrics": list(dict.fromkeys(m.identifier for scores in facts.scores for m in scores.metrics)),
        "model-index": [result for scores in scored for result in _results(scores, facts)],
    }
    if scored:
        data["model_name"] = title
    if facts.base_models and facts.records.run.get("start") != "none":
        data["base_model_relation"] = "merge" if facts.is_mean else "finetune"
    return _without_empty(data)


def charts_metadata(facts: Facts, title: str) -> dict[str, Any]:
    """Return the metadata of a chart data set's card, without its licence."""
    tasks = {"parser": ["parsing"], "tagger": ["part-of-speech"] if facts.column == "upos" else []}
    number = facts.sentences or 0
    data: dict[str, Any] = {
        "language": facts.languages,
        "pretty_name": title,
        "task_categories": ["token-classification"],
        "task_ids": tasks.get(facts.task, []),
        "tags": _tags(facts),
        "annotations_creators": ["machine-generated"],
        "size_categories": [next((size for most, size in _SIZES if number < most), "n>1T")],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": "train", "path": "data/train-*.parquet"}],
            }
        ],
    }
    return _without_empty(data)


def _tags(facts: Facts) -> list[str]:
    tags = [LIBRARY]
    names = {name.split(":")[0] for name in facts.labels} - BOUNDARIES
    if facts.task == "parser":
        tags.append("dependency-parsing")
    if facts.task == "tagger" and facts.column in ("upos", "xpos"):
        tags.append("part-of-speech")
    standard = {"parser": _RELATIONS, "tagger": UPOS}.get(facts.task, frozenset())
    if names and names <= standard:
        tags.append("universal_dependencies")
    if facts.records.kind in ("transferred", "charts"):
        tags += ["cross-lingual-transfer", "source-free"]
    return tags


def _results(scores: Scores, facts: Facts) -> list[EvalResult]:
    name = scores.name
    is_ud = all(each.is_ud for each in scores.treebanks)
    on_hub = len(scores.treebanks) == 1 and scores.treebanks[0].on_hub
    kinds = {"parser": "Dependency parsing", "tagger": "Part-of-speech tagging"}
    return [
        EvalResult(
            task_type="token-classification",
            task_name=kinds.get(facts.task, "Structured prediction"),
            dataset_type=name if on_hub else "universal_dependencies" if is_ud else _slug(name),
            dataset_name=name,
            dataset_config=name if is_ud else None,
            dataset_split=scores.split,
            metric_type=metric.identifier,
            metric_name=metric.title,
            metric_value=round(metric.value, 2),
        )
        for metric in scores.metrics
    ]


def _slug(name: str) -> str:
    return _NO_SLUG.sub("-", name).strip("-") or UNKNOWN


def _without_empty(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if value not in (None, [], "", ())}
