"""Build the metadata of a card: what the Hub filters by and shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from huggingface_hub import EvalResult

from hf_xst.data import UPOS_TAGS
from hf_xst.data.folders import LANGUAGES
from hf_xst.hub.facts import Facts
from hf_xst.hub.run_records import METRICS, Scores
from hf_xst.models.configuration import BOUNDARIES

LIBRARY = "hf_xst"
UNKNOWN = "unknown"
# Licence ids of the Hub; any other licence is `other`, with its own name.
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
_RELATIONS = frozenset(
    """acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse dislocated
    expl fixed flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis punct reparandum root
    vocative xcomp""".split()
)
_SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B")
_LANGUAGE = re.compile(r"[a-z]{2,3}|multilingual")
_NOT_IN_SLUG = re.compile(r"[^\w.+-]+")


def check_languages(codes: Sequence[str]) -> None:
    """Raise ValueError unless all are language codes that the Hub accepts."""
    for code in codes:
        if not _LANGUAGE.fullmatch(code):
            codes_by_name = {language.name.lower(): language.code for language in LANGUAGES.values()}
            known = codes_by_name.get(code.lower())
            raise ValueError(
                f"language {code!r} is not an ISO 639 code of two or three letters, such as it or hsb"
                f"{f'; {code} is {known}' if known else ''}"
            )


def licence_fields(licence: str | None, link: str | None = None) -> dict[str, str]:
    """Return the metadata of a licence, a Hub id or another name; `unknown` if none is stated."""
    name = (licence or UNKNOWN).strip().lower()
    fields = {"license": name}
    if name not in LICENCES:
        fields = {"license": "other", "license_name": _slug(str(licence)).lower()}
    return fields | ({"license_link": link} if link else {})


def card_metadata(facts: Facts, title: str) -> dict[str, Any]:
    """Return the metadata of a card."""
    options = facts.records.card_options
    data = {
        "language": facts.languages,
        **licence_fields(options.get("license"), options.get("license_link")),
        **(_charts_metadata if facts.records.kind == "charts" else _model_metadata)(facts, title),
    }
    return {key: value for key, value in data.items() if value not in (None, [], "")}


def _model_metadata(facts: Facts, title: str) -> dict[str, Any]:
    every = list(facts.records.all_scores())
    results = [result for scores in every if scores.treebanks for result in _results(scores, facts)]
    relation = "merge" if facts.is_average else "finetune"
    is_based = facts.base_models and facts.initialised_from != "scratch"
    return {
        "library_name": LIBRARY,
        "pipeline_tag": "token-classification",
        "tags": _tags(facts),
        "base_model": facts.base_models,
        "datasets": [each.name for each in facts.records.treebanks if each.on_hub],
        "metrics": list(dict.fromkeys(METRICS[key][0] for scores in every for key in scores.metrics)),
        "model-index": results,
        "model_name": title if results else None,
        "base_model_relation": relation if is_based else None,
    }


def _charts_metadata(facts: Facts, title: str) -> dict[str, Any]:
    tasks = {"parser": ["parsing"], "tagger": ["part-of-speech"] if facts.column == "upos" else []}
    magnitude = max(3, len(str(facts.sentences or 0))) - 3
    return {
        "pretty_name": title,
        "task_categories": ["token-classification"],
        "task_ids": tasks.get(facts.task, []),
        "tags": _tags(facts),
        "annotations_creators": ["machine-generated"],
        "size_categories": [_SIZES[min(magnitude, len(_SIZES) - 1)]],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": "train", "path": "data/train-*.parquet"}],
            }
        ],
    }


def _tags(facts: Facts) -> list[str]:
    tags = [LIBRARY]
    names = {name.split(":")[0] for name in facts.labels} - set(BOUNDARIES)
    if facts.task == "parser":
        tags.append("dependency-parsing")
    if facts.task == "tagger" and facts.column in ("upos", "xpos"):
        tags.append("part-of-speech")
    standard = {"parser": _RELATIONS, "tagger": frozenset(UPOS_TAGS)}.get(facts.task, frozenset())
    if names and names <= standard:
        tags.append("universal_dependencies")
    if facts.records.kind in ("transferred", "charts"):
        tags += ["cross-lingual-transfer", "source-free"]
    return tags


def _results(scores: Scores, facts: Facts) -> list[EvalResult]:
    name = scores.name
    is_ud = all(each.is_ud for each in scores.treebanks)
    on_hub = len(scores.treebanks) == 1 and scores.treebanks[0].on_hub
    tasks = {"parser": "Dependency parsing", "tagger": "Part-of-speech tagging"}
    return [
        EvalResult(
            task_type="token-classification",
            task_name=tasks.get(facts.task, "Structured prediction"),
            dataset_type=name if on_hub else "universal_dependencies" if is_ud else _slug(name),
            dataset_name=name,
            dataset_config=name if is_ud else None,
            dataset_split=scores.split,
            metric_type=METRICS[key][0],
            metric_name=METRICS[key][1],
            metric_value=round(value, 2),
        )
        for key, value in scores.metrics.items()
    ]


def _slug(name: str) -> str:
    return _NOT_IN_SLUG.sub("-", name).strip("-") or UNKNOWN
