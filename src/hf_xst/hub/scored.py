"""Scores that were recorded, and the treebanks that they were measured on."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from hf_xst.data.treebank_facts import TreebankFacts, named_treebanks
from hf_xst.hub.records import Records

Treebanks = tuple[TreebankFacts, ...]
# By the key of the score: its id on the Hub, and what it is called.
METRICS = {
    "las": ("las", "LAS without punctuation"),
    "uas": ("uas", "UAS without punctuation"),
    "las_punct": ("las", "LAS, all words"),
    "uas_punct": ("uas", "UAS, all words"),
    "f1": ("f1", "F1 of spans"),
    "accuracy": ("accuracy", "accuracy"),
}
_BEFORE = "eval_"  # what the Trainer puts before the names of scores
_HELD_OUT = "held out"
_TOTAL = re.compile(r"(?P<kept>\d+) of (?P<all>\d+) sentences kept")


@dataclass(frozen=True)
class Metric:
    """A score in percent."""

    key: str
    value: float

    @property
    def identifier(self) -> str:
        """Its id on the Hub."""
        return METRICS[self.key][0]

    @property
    def title(self) -> str:
        """What it is called."""
        return METRICS[self.key][1]


@dataclass(frozen=True)
class Scores:
    """The scores on a part of a treebank.

    Attributes:
        treebanks: what was read.
        split: which part of it.
        metrics: the scores.
        sentences: how many sentences were scored.
        words: how many words.
        annotated: whether coarse tags that the model reads came from another model; None if not recorded.
    """

    treebanks: tuple[TreebankFacts, ...]
    split: str
    metrics: tuple[Metric, ...]
    sentences: int | None = None
    words: int | None = None
    annotated: bool | None = None

    @property
    def name(self) -> str:
        """The treebanks' names."""
        return " + ".join(each.name for each in self.treebanks) or "not recorded"


def trained_on(records: Records) -> Treebanks:
    """Return the treebanks or the text that training read: of a source with gold, else without."""
    run = records.run
    split = str(run.get("split", "train"))
    if records.kind == "source":
        return _treebanks(records.results, run, split)
    if "text" in records.provenance:
        return _recorded(records.provenance["text"])
    return _treebanks({}, run, split) if records.kind == "charts" else ()


def developed_on(records: Records) -> Treebanks:
    """Return the treebank whose gold gave development scores."""
    results, run = records.results, records.run
    if records.kind == "transferred":
        return _treebanks({}, run, str(run.get("split")))
    if records.kind != "source" or _is_held_out(records):
        return trained_on(records)
    told = {"treebank": run.get("dev_treebank") or run.get("treebank"), "data": run.get("data")}
    recorded = {"treebanks": results.get("dev_treebanks")}
    return _treebanks(recorded, told, str(run.get("dev_split", "dev")))


def scores_of(records: Records) -> list[Scores]:
    """Return all scores: those of the development part, and those of evaluate."""
    return [*_development_scores(records), *_evaluation_scores(records)]


def _is_held_out(records: Records) -> bool:
    return str((records.results.get("data") or [""])[0]).startswith(_HELD_OUT)


def _development_scores(records: Records) -> Iterator[Scores]:
    results, run = records.results, records.run
    metrics = _metrics(results.get("dev") or {}, _BEFORE)
    if not metrics:
        return
    key = "split" if records.kind == "transferred" else "dev_split"
    part = str(run.get(key, "dev"))
    if _is_held_out(records):
        part = f"last 10 % of {run.get('split', 'train')}"
    annotated = bool(run.get("tagger")) if run else None
    yield Scores(developed_on(records), part, metrics, results.get("dev_sentences"), None, annotated)


def _evaluation_scores(records: Records) -> Iterator[Scores]:
    scores, run = records.scores, records.evaluation
    metrics = _metrics(scores)
    if not metrics:
        return
    split = str(run.get("split", "test"))
    kept = _TOTAL.search(str(scores.get("data", "")))
    yield Scores(
        _treebanks(scores, run, split),
        split,
        metrics,
        int(kept["kept"]) if kept else None,
        scores.get("words"),
        bool(run.get("tagger")) if run else None,
    )


def _metrics(scores: Mapping[str, Any], before: str = "") -> tuple[Metric, ...]:
    found = [(key, scores.get(f"{before}{key}")) for key in METRICS]
    return tuple(
        Metric(key, float(value)) for key, value in found if value is not None and math.isfinite(value)
    )


def _treebanks(recorded: Mapping[str, Any], run: Mapping[str, Any], split: str) -> tuple[TreebankFacts, ...]:
    """Take what was recorded when the files were read, else what the command was told."""
    if recorded.get("treebanks"):
        return _recorded(recorded["treebanks"])
    if run.get("treebank"):
        return tuple(named_treebanks(str(run["treebank"]), split, has_roots=bool(run.get("data"))))
    if run.get("text"):
        return (TreebankFacts(PurePosixPath(str(run["text"])).name),)
    return ()


def _recorded(entries: Sequence[Mapping[str, Any]]) -> tuple[TreebankFacts, ...]:
    known = TreebankFacts.__dataclass_fields__
    return tuple(
        TreebankFacts(**{key: value for key, value in entry.items() if key in known}) for entry in entries
    )
