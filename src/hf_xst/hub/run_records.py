"""Read the records that commands leave with a model or charts; cards contain nothing else."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from hf_xst.charts.dataset import ChartInfo
from hf_xst.data.treebank_facts import TreebankFacts
from hf_xst.files import CHARTS, MODEL, RESULTS, sha256_of
from hf_xst.records import read_json, read_yaml
from hf_xst.training.results import SourceResults, TransferResults

Kind = Literal["source", "transferred", "charts", "unrecorded"]
Treebanks = tuple[TreebankFacts, ...]
CARD_OPTIONS, EXAMPLE = "run/card-config.yaml", "run/card-example.json"
_FILES = {
    "config": MODEL,
    "run": "run/config.yaml",
    "scores": "run/scores.json",
    "evaluation": "run/evaluate-config.yaml",
    "card_options": CARD_OPTIONS,
    "example": EXAMPLE,
    "versions": "run/versions.json",
}
# An option that only the command that makes this kind of folder has.
_OPTION_OF_KIND = {"source": "task", "transferred": "charts", "charts": "sources"}
# Metrics by their key in the records: id on the Hub, and title.
METRICS = {
    "las": ("las", "LAS without punctuation"),
    "uas": ("uas", "UAS without punctuation"),
    "las_punct": ("las", "LAS, all words"),
    "uas_punct": ("uas", "UAS, all words"),
    "f1": ("f1", "F1 of spans"),
    "accuracy": ("accuracy", "accuracy"),
}


@dataclass(frozen=True)
class Scores:
    """Scores on one split of a treebank.

    Attributes:
        metrics: percentages by the keys of `METRICS`.
        used_tagger: whether the UPOS tags came from a tagger, if recorded.
    """

    treebanks: Treebanks
    split: str
    metrics: Mapping[str, float]
    sentences: int | None
    used_tagger: bool | None

    @property
    def name(self) -> str:
        """The names of the treebanks."""
        return " + ".join(each.name for each in self.treebanks) or "not recorded"


@dataclass(frozen=True)
class RunRecords:
    """The records in a folder, each empty or None if its file is missing.

    Attributes:
        kind: what the folder contains, as far as recorded.
        results: results of training.
        charts: record of the charts in the folder, or of those that the model was trained on.
        config: configuration of the model.
        run: options of the command that made the model or charts.
        scores: results of `evaluate`, whose options are `evaluation`.
    """

    folder: Path
    kind: Kind
    results: SourceResults | TransferResults | None
    charts: ChartInfo | None
    config: dict[str, Any]
    run: dict[str, Any]
    scores: dict[str, Any]
    evaluation: dict[str, Any]
    card_options: dict[str, Any]
    example: dict[str, Any]
    versions: dict[str, str]

    @classmethod
    def read(cls, folder: Path, replaced: Mapping[str, dict[str, Any]] | None = None) -> RunRecords:
        """Read the records of a folder; `replaced` content by file name takes precedence over its files.

        Raises:
            ValueError: the folder contains neither a model nor charts, or a record cannot be read.
        """
        records = {key: (replaced or {}).get(name) or _read(folder / name) for key, name in _FILES.items()}
        charts = ChartInfo.load(folder) if (folder / CHARTS).is_file() else None
        results: SourceResults | TransferResults | None = None
        kind: Kind = "unrecorded"
        if not records["config"]:
            if charts is None:
                raise ValueError(
                    f"{folder} contains neither a model ({MODEL}) nor charts ({CHARTS}); pass the --output "
                    "of train-source, transfer or build-charts"
                )
            kind = "charts"
        elif content := _read(folder / "run" / RESULTS):
            if "charts" in content:
                kind, results = "transferred", TransferResults.load(folder / "run")
                charts = results.charts
            elif "train_sentences" in content:
                kind, results = "source", SourceResults.load(folder / "run")
        if _OPTION_OF_KIND.get(kind) not in records["run"]:
            records["run"] = {}
        if not records["versions"] and charts is not None:
            records["versions"] = charts.versions
        return cls(folder, kind, results, charts, **records)

    @property
    def is_complete(self) -> bool:
        """Whether the run that made this folder is recorded; folders from the Hub lack it."""
        if self.kind == "charts":
            return bool(self.run) or bool(self.charts and self.charts.text)
        return self.kind != "unrecorded"

    @cached_property
    def fingerprint(self) -> str | None:
        """Digest of the weights, or of the charts' record; None without any."""
        paths = sorted(self.folder.glob(CHARTS if self.kind == "charts" else "model*.safetensors"))
        lines = "".join(f"{path.name} {sha256_of(path)}\n" for path in paths)
        return hashlib.sha256(lines.encode()).hexdigest() if lines else None

    @property
    def command(self) -> str:
        """The command line of the run."""
        path = self.folder / "run/command.txt"
        return path.read_text(encoding="utf-8").strip() if path.is_file() else ""

    @property
    def treebanks(self) -> Treebanks:
        """Treebanks or text used in training: with gold for a source, otherwise without."""
        if isinstance(self.results, SourceResults):
            return _treebanks(self.results.treebanks)
        return _treebanks(self.charts.text if self.charts else [])

    @property
    def dev_treebanks(self) -> Treebanks:
        """Treebanks whose gold was used for development scores."""
        if self.results is None or self._is_held_out:
            return self.treebanks
        return _treebanks(self.results.dev_treebanks)

    def all_scores(self) -> Iterator[Scores]:
        """Yield the development scores of training and the scores of `evaluate`."""
        if metrics := _finite_metrics((self.results and self.results.dev) or {}, "eval_"):
            split = str(self.run.get("split" if self.kind == "transferred" else "dev_split", "dev"))
            if self._is_held_out:
                split = f"last 10 % of {self.run.get('split', 'train')}"
            number = self.results.dev_sentences if isinstance(self.results, SourceResults) else None
            used_tagger = bool(self.run.get("tagger")) if self.run else None
            yield Scores(self.dev_treebanks, split, metrics, number, used_tagger)
        if metrics := _finite_metrics(self.scores):
            options = self.evaluation
            split = str(options.get("split", "test"))
            number = self.scores.get("sentences")
            used_tagger = bool(options.get("tagger")) if options else None
            treebanks = _treebanks(self.scores.get("treebanks") or [])
            yield Scores(treebanks, split, metrics, number, used_tagger)

    @property
    def _is_held_out(self) -> bool:
        """Whether development sentences were held out from the training split."""
        results = self.results
        return isinstance(results, SourceResults) and "".join(results.data[:1]).startswith("held out")


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    return read_json(path) if path.suffix == ".json" else read_yaml(path)


def _finite_metrics(scores: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    values = {key: scores.get(f"{prefix}{key}") for key in METRICS}
    return {key: float(value) for key, value in values.items() if value is not None and math.isfinite(value)}


def _treebanks(recorded: Sequence[Mapping[str, Any]]) -> Treebanks:
    known = TreebankFacts.__dataclass_fields__
    return tuple(
        TreebankFacts(**{key: value for key, value in entry.items() if key in known}) for entry in recorded
    )
