"""What cells of a study compute beside the commands: scores of models and of ensembles, and descriptions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datasets import Dataset

from hf_xst.charts import GroupedWeights
from hf_xst.commands.presets import chart_limits
from hf_xst.commands.sentences import annotate, gold_rows, split_of
from hf_xst.commands.vote import combined
from hf_xst.data import WordVectors, first, prepare, read_vectors
from hf_xst.metrics import main_score, score
from hf_xst.models.cached_states import FrozenStates, WordStates
from hf_xst.models.modeling import StructuredModel
from hf_xst.models.pretrained_words import PretrainedWords
from hf_xst.models.running import predict_rows
from hf_xst.sources.agreement import SELECTION_SENTENCES, measure_sources, rank_sources
from hf_xst.sources.averaging import MEAN, mean_of_models
from hf_xst.sources.description import describe, standard_charts
from hf_xst.sources.pool import SourcePool, ready_model


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a target's files and the models for it are.

    Args:
        root: folder of all cells' files.
        models: the source models' folders by name.
        treebanks: by part (text, dev, test), as commands take them.
        splits: by part, the stretch of it.
        vectors: the target's word vectors, if models read by vectors.
        annotator: folder of the tagger whose answers parsers read; gold if None.
        states: folder where the word states of frozen encoders are kept.
    """

    root: Path
    models: Mapping[str, Path] = field(default_factory=dict)
    treebanks: Mapping[str, str]
    splits: Mapping[str, str]
    vectors: str | None = None
    annotator: str | None = None
    states: Path

    def named(self, codes: Iterable[str]) -> list[str]:
        """Return sources as commands take them."""
        return [f"{code}={self.models[code]}" for code in codes]

    def word_vectors(self) -> WordVectors | None:
        """Read the target's word vectors, if models read by vectors."""
        return None if self.vectors is None else read_vectors(self.vectors)

    def load(self, codes: Iterable[str]) -> dict[str, StructuredModel]:
        """Load source models for the target."""
        vectors = self.word_vectors()
        return {code: ready_model(str(self.models[code]), vectors=vectors) for code in codes}

    def gold(self, part: str, columns: Sequence[str], **limits: int) -> tuple[Dataset, Dataset, str]:
        """Return a part's gold rows, the same rows as models read them, and what the preparation reports."""
        gold, note = gold_rows(self.treebanks[part], self.splits[part], [], columns, **limits)
        return gold, annotate(gold, self.annotator, self.word_vectors()), note

    def text(self, **limits: Any) -> Dataset:
        """Return the unlabelled text as models read it."""
        raw = split_of(self.treebanks["text"], self.splits["text"], [])
        rows, _ = prepare(raw, gold=False, **limits)
        return annotate(rows, self.annotator, self.word_vectors())

    def score(self, folder: Path, part: str, config: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Score a model on a part, with some fields of its configuration set otherwise."""
        model = ready_model(str(folder), vectors=self.word_vectors())
        for name, value in (config or {}).items():
            setattr(model.config, name, value)
        gold, rows, _ = self.gold(part, model.columns)
        states = self.shared_states({"model": model}, rows).get("model")
        found: dict[str, Any] = score(list(predict_rows(model, rows, states=states)), gold, model.columns)
        return found

    def shared_states(
        self, models: Mapping[str, StructuredModel], rows: Dataset, trained: bool = False
    ) -> dict[str, WordStates | None]:
        """Return the word states of frozen encoders, kept in files for the cells to come.

        Args:
            models: by name.
            rows: the sentences.
            trained: also those of encoders that were trained, in memory, where each model reads the rows more
                than once.
        """
        stores: dict[str, FrozenStates] = {}
        found: dict[str, WordStates | None] = {}
        for name, model in models.items():
            fresh = FrozenStates.of(model)
            if fresh is None:
                found[name] = None
                if trained and isinstance(model.encoder.words, PretrainedWords):
                    found[name] = own = FrozenStates(name)
                    own.add(model, rows["words"])
                continue
            if fresh.fingerprint not in stores:
                kept = FrozenStates.kept(model, rows["words"], self.states)
                assert kept is not None
                stores[fresh.fingerprint] = kept
            found[name] = stores[fresh.fingerprint]
        return found

    def pool(self, codes: Sequence[str], rows: Dataset) -> SourcePool:
        """Load sources over the union of their labels, with the word states of the rows at hand."""
        models = self.load(codes)
        return SourcePool(models, states=self.shared_states(models, rows))


def ensemble(
    place: Place,
    codes: Sequence[str],
    beside: Sequence[str],
    rules: Sequence[str],
    learned: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Score the sources alone and together, on dev (where there is one) and test.

    Args:
        place: the target's.
        codes: the sources that are pooled.
        beside: models that are scored, but not pooled.
        rules: of `combined`; `mean` for the mean of the sources' parameters, `published` for the pool with
            the weights of the published procedure.
        learned: result of learning weights.
    """
    models = place.load([*codes, *beside])
    pooled = {code: models[code] for code in codes}
    alone = {f"direct {code}": model for code, model in models.items()}
    if MEAN in rules:
        models[MEAN] = alone[MEAN] = mean_of_models(pooled)
    columns = models[codes[0]].columns
    found: dict[str, Any] = {"data": {}}
    for part in ("dev", "test"):
        if part not in place.treebanks:
            continue
        gold, rows, note = place.gold(part, columns)
        states = place.shared_states(models, rows, trained=True)
        scores: dict[str, Any] = {}
        for (name, model), code in zip(alone.items(), models, strict=True):
            scores[name] = score(list(predict_rows(model, rows, states=states[code])), gold, columns)
        pool = SourcePool(pooled, states={code: states[code] for code in codes})
        for name, rule, options in _ways(pool, rules, learned):
            scores[name] = score(combined(pool, rows, rule, **options), gold, columns)
        found[part], found["data"][part] = scores, note
    return found


def _ways(
    pool: SourcePool, rules: Sequence[str], learned: Mapping[str, Any] | None
) -> list[tuple[str, str, dict[str, Any]]]:
    # Truth inference is for models of one label a word; weights by group must have been learned.
    without = {MEAN, "grouped", "published"} | (
        set() if len(pool.sources[0].model.columns) == 1 else {"truth"}
    )
    ways: list[tuple[str, str, dict[str, Any]]] = [(rule, rule, {}) for rule in rules if rule not in without]
    if learned is not None:
        ways.append(("pool learned", "pool", {"weights": pool.weights(learned["weights"])}))
        if "published" in rules:
            ways.append(("pool published", "pool", {"weights": pool.weights(learned["published"])}))
        if "grouped" in rules:
            by_group = GroupedWeights.from_names(learned["grouped"], [source.name for source in pool.sources])
            ways.append(("grouped", "grouped", {"grouped": by_group}))
    return ways


def selection(place: Place, codes: Sequence[str], count: int | None) -> dict[str, Any]:
    """Rank sources by measures that need no labels, and choose the first ones by agreement."""
    model = ready_model(str(place.models[codes[0]]), vectors=place.word_vectors())
    rows = first(place.text(**chart_limits(model)), SELECTION_SENTENCES)
    found = measure_sources(place.pool(codes, rows), rows)
    return {"chosen": rank_sources(found)[:count], "measures": found}


def description(
    place: Place, codes: Sequence[str], sigma: float, weights: Mapping[str, float] | None
) -> dict[str, Any]:
    """Describe charts and pools of a target on gold of sentences as long as those that get charts.

    See `hf_xst.sources.description`.
    """
    model = ready_model(str(place.models[codes[0]]), vectors=place.word_vectors())
    part = "dev" if "dev" in place.treebanks else "test"
    _, rows, note = place.gold(part, model.columns, **chart_limits(model))
    charts = standard_charts(sigma, learned=weights)
    return {"part": part, "data": note, **describe(place.pool(codes, rows), rows, charts)}


def results_of(work: Path) -> dict[str, Any]:
    """Read what a command has left in its run folder."""
    return public(json.loads((work / "run" / "results.json").read_text(encoding="utf-8")))


def public(results: Mapping[str, Any]) -> dict[str, Any]:
    """Drop what other cells say already, and the command, which is the study's."""
    return {key: value for key, value in results.items() if key not in ("charts", "command")}


def curve(work: Path) -> list[dict[str, float]]:
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
