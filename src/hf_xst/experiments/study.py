"""The cells of a study: source models, their own and their joint answers, charts, transferred models."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from hf_xst.data import read_vectors
from hf_xst.files import sha256_of
from hf_xst.metrics import main_score, score
from hf_xst.training.arguments import (
    BuildChartsArguments,
    EvaluateArguments,
    TrainSourceArguments,
    TransferArguments,
)
from hf_xst.training.inference import predict_rows
from hf_xst.training.jobs.build_charts import build_charts, shared_states
from hf_xst.training.jobs.evaluate import evaluate
from hf_xst.training.jobs.train_source import train_source
from hf_xst.training.jobs.transfer import transfer
from hf_xst.training.jobs.vote import combined
from hf_xst.training.sentences import gold_rows
from hf_xst.training.sources import SourcePool, joint_names, load_model

from .cells import Cell

RULES = {"union": "PPTX", "pool": "pooled"}


@dataclass(frozen=True)
class Study:
    """What a study's configuration says.

    Args:
        sources: by language code, `train` (files below the data folder), and optionally `split` and `dev`.
        targets: by language code, `text` and `test` (files), `text_split`, and optionally `dev`, `dev_split`.
        encoders: by name, `vectors` (a file name with {code}) or `encoder` (a folder), and settings for
            `train_source` and `transfer` under those names.
        tasks: by name (parser, tagger), settings for `train_source` and `transfer`.
        start: the source that training starts from.
        sigma: mass kept in charts.
        seed: of everything.
    """

    sources: Mapping[str, Mapping[str, Any]]
    targets: Mapping[str, Mapping[str, Any]]
    encoders: Mapping[str, Mapping[str, Any]]
    tasks: Mapping[str, Mapping[str, Any]]
    start: str = "en"
    sigma: float = 0.95
    seed: int = 42
    about: str = ""
    data: Path = field(default=Path())

    def cells(self) -> Iterator[Cell]:
        """Give all cells, encoder by encoder and task by task."""
        for encoder in self.encoders:
            for task in self.tasks:
                block = Block(self, encoder, task)
                yield from (block.source(code) for code in self.sources)
                for target in self.targets:
                    yield block.ensemble(target)
                    for rule in RULES:
                        yield block.charts(target, rule)
                        yield block.transferred(target, rule)

    def treebank(self, files: Mapping[str, Any]) -> str:
        """Write splits and their files as `SPLIT=PATH,...`, paths below the data folder."""
        named = []
        for split, paths in files.items():
            for path in [paths] if isinstance(paths, str) else paths:
                named.append(f"{split}={self.data / path}")
        return ",".join(named)

    def hashes(self, *files: Any) -> dict[str, str]:
        """Return the SHA-256 of each file below the data folder."""
        flat = [path for entry in files if entry for path in ([entry] if isinstance(entry, str) else entry)]
        return {path: _hash(self.data / path) for path in flat}


@cache
def _hash(path: Path) -> str:
    return sha256_of(path)


@dataclass(frozen=True)
class Block:
    """The cells of one encoder and one task."""

    study: Study
    encoder: str
    task: str

    @property
    def where(self) -> str:
        """The names' common beginning."""
        return f"{self.encoder}/{self.task}"

    def _settings(self, job: str) -> dict[str, Any]:
        """Merge a job's settings: the task's, the encoder's, and, last, the encoder's for this task."""
        merged: dict[str, Any] = {}
        encoder = self.study.encoders[self.encoder]
        for part in (self.study.tasks[self.task], encoder, encoder.get(self.task, {})):
            for key, value in part.get(job, {}).items():
                joined = isinstance(value, list) and key in merged
                merged[key] = [*merged[key], *value] if joined else value
        return merged

    def _vectors(self, code: str) -> str | None:
        pattern = self.study.encoders[self.encoder].get("vectors")
        return None if pattern is None else str(self.study.data / pattern.format(code=code))

    def _vector_hash(self, code: str) -> dict[str, str]:
        pattern = self.study.encoders[self.encoder].get("vectors")
        if pattern is not None:
            return self.study.hashes(pattern.format(code=code))
        return self.study.hashes(f"{self.study.encoders[self.encoder]['encoder']}/model.safetensors")

    def source(self, code: str) -> Cell:
        """Train a source model; the result is its development score."""
        given = self.study.sources[code]
        files = {"train": given["train"]} | ({"dev": given["dev"]} if "dev" in given else {})
        settings = self._settings("train_source")

        def run(work: Path, _: Mapping[str, Any]) -> Mapping[str, Any]:
            encoder = self.study.encoders[self.encoder].get("encoder")
            arguments = TrainSourceArguments(
                output=str(work),
                seed=self.study.seed,
                task=self.task,  # type: ignore[arg-type]
                treebank=self.study.treebank(files),
                split=given.get("split", "train"),
                dev_split=given.get("dev_split", "dev"),
                vectors=self._vectors(code),
                encoder=None if encoder is None else str(self.study.data / encoder),
                **settings,
            )
            train_source(arguments)
            return _results(work)

        content = {"given": dict(given), "settings": settings, "seed": self.study.seed}
        content |= {
            "data": self.study.hashes(given["train"], given.get("dev")),
            "words": self._vector_hash(code),
        }
        return Cell(f"{self.where}/source/{code}", run, content)

    def _model(self, work: Path, code: str) -> Path:
        # .../work/ENCODER/TASK/kind/... -> .../work/ENCODER/TASK/source/CODE
        root = work
        while root.name != "work":
            root = root.parent
        return root / self.where / "source" / code

    def _needs(self) -> list[str]:
        return [f"{self.where}/source/{code}" for code in self.study.sources]

    def ensemble(self, target: str) -> Cell:
        """Score each source alone, their majority vote, and the pool as it stands, on the test file."""
        given = self.study.targets[target]

        def run(work: Path, _: Mapping[str, Any]) -> Mapping[str, Any]:
            path = self._vectors(target)
            vectors = None if path is None else read_vectors(path)
            models = {
                code: load_model(str(self._model(work, code)), vectors=vectors) for code in self.study.sources
            }
            rows, note = gold_rows(self.study.treebank({"test": given["test"]}), "test", [])
            states = shared_states(models, rows)
            columns = next(iter(models.values())).columns
            found: dict[str, Any] = {"data": note}
            for code, model in models.items():
                found[f"direct {code}"] = score(
                    list(predict_rows(model, rows, states=states.get(code))), rows, columns
                )
            pool = SourcePool(models, joint_names(list(models.values())), states)
            for rule in ("majority", "pool"):
                found[rule] = score(combined(pool, rows, rule), rows, columns)
            return found

        content = {"data": self.study.hashes(given["test"]), "words": self._vector_hash(target)}
        return Cell(f"{self.where}/{target}/ensemble", run, content, self._needs())

    def charts(self, target: str, rule: str) -> Cell:
        """Make charts of the target's unlabelled text."""
        given = self.study.targets[target]

        def run(work: Path, _: Mapping[str, Any]) -> Mapping[str, Any]:
            arguments = BuildChartsArguments(
                output=str(work),
                seed=self.study.seed,
                sources=[f"{code}={self._model(work, code)}" for code in self.study.sources],
                start=self.study.start,
                rule=rule,  # type: ignore[arg-type]
                sigma=self.study.sigma,
                treebank=self.study.treebank({"train": given["text"]}),
                split=given.get("text_split", "train"),
                vectors=self._vectors(target),
            )
            provenance = build_charts(arguments)
            return {key: provenance[key] for key in ("rule", "sigma", "floor", "sentences", "counts")}

        content = {"given": dict(given), "sigma": self.study.sigma, "start": self.study.start}
        content |= {"data": self.study.hashes(given["text"]), "words": self._vector_hash(target)}
        return Cell(f"{self.where}/{target}/charts/{rule}", run, content, self._needs())

    def transferred(self, target: str, rule: str) -> Cell:
        """Train on the charts and score the target model on the test file."""
        given = self.study.targets[target]
        settings = self._settings("transfer")
        by_rule = {name: settings.pop(name, {}) for name in RULES}
        settings |= by_rule[rule]

        def run(work: Path, _: Mapping[str, Any]) -> Mapping[str, Any]:
            dev = given.get("dev")
            arguments = TransferArguments(
                output=str(work),
                seed=self.study.seed,
                charts=str(work.parent.parent / "charts" / rule),
                start=str(self._model(work, self.study.start)),
                vectors=self._vectors(target),
                treebank=None if dev is None else self.study.treebank({"dev": dev}),
                split=given.get("dev_split", "dev"),
                **settings,
            )
            transfer(arguments)
            scores = evaluate(
                EvaluateArguments(
                    output=str(work),
                    model=str(work),
                    treebank=self.study.treebank({"test": given["test"]}),
                    vectors=self._vectors(target),
                )
            )
            return {"test": scores, **_results(work), "curve": _curve(work)}

        content = {"given": dict(given), "settings": settings, "seed": self.study.seed}
        content |= {"data": self.study.hashes(given["test"], given.get("dev"))}
        needs = [*self._needs(), f"{self.where}/{target}/charts/{rule}"]
        return Cell(f"{self.where}/{target}/transferred/{rule}", run, content, needs)


def _results(work: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((work / "run" / "results.json").read_text(encoding="utf-8"))
    found.pop("charts", None)
    return found


def _curve(work: Path) -> list[dict[str, float]]:
    """Take the development scores and losses by update from the Trainer's log."""
    points: dict[int, dict[str, float]] = {}
    for entry in json.loads((work / "run" / "log.json").read_text(encoding="utf-8")):
        point = points.setdefault(entry["step"], {"update": entry["step"]})
        scores = {key.removeprefix("eval_"): value for key, value in entry.items()}
        if "las" in scores or "accuracy" in scores:
            name, value = main_score(scores)
            point[name] = round(value, 2)
        if "loss" in entry:
            point["loss"] = round(entry["loss"], 4)
    return [point for point in points.values() if len(point) > 1]
