"""The cells of one encoder and one task of a study."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hf_xst.training.arguments import BuildChartsArguments, TrainSourceArguments, TransferArguments
from hf_xst.training.jobs.build_charts import build_charts
from hf_xst.training.jobs.learn_weights import WEIGHTS_FILE, LearnWeightsArguments, learn_weights_job
from hf_xst.training.jobs.train_source import train_source
from hf_xst.training.jobs.transfer import transfer

from . import scoring
from .cells import Cell
from .heads import share_frozen
from .scoring import Place
from .study import ChartPlan, Method, Settings, Study

Results = Mapping[str, Any]


@dataclass(frozen=True)
class Block:
    """The cells of one encoder and one task."""

    study: Study
    encoder: str
    task: str

    # -- names ----------------------------------------------------------------------------------------

    @property
    def where(self) -> str:
        """The names' common beginning."""
        return f"{self.encoder}/{self.task}"

    def _source(self, code: str) -> str:
        return f"{self.where}/source/{code}"

    def _cell(self, target: str, kind: str, *rest: str) -> str:
        return "/".join((self.where, target, kind, *rest))

    def candidates(self, target: str) -> list[str]:
        """Return the sources that may be pooled for a target: all but its own language's."""
        return [
            code
            for code, given in self.study.sources.items()
            if code != target and given.get("pool", True)
        ]

    def _beside(self, target: str) -> list[str]:
        """Return the models that are scored beside the sources, unless they know the target's language."""
        return [
            code
            for code, given in self.study.sources.items()
            if not given.get("pool", True) and target not in given.get("languages", ())
        ]

    def target(self, target: str) -> Iterator[Cell]:
        """Give all cells of a target."""
        study = self.study
        if study.select or any(plan.start == "best" for plan in study.plans.values()):
            yield self.selection(target)
        if study.labelled:
            yield self.weights(target)
        yield self.ensemble(target)
        if study.describe:
            yield self.analysis(target)
        made: set[str] = set()
        for name, method in study.all_methods.items():
            if method.serves(self.encoder, self.task, target):
                plan = method.charts or name
                if plan not in made:
                    made.add(plan)
                    yield self.charts(target, plan)
                for seed in method.seeds or study.seeds:
                    yield self.transferred(target, name, seed)

    # -- what cells have in common --------------------------------------------------------------------

    def settings(self, job: str) -> dict[str, Any]:
        """Merge a job's settings: the task's, the encoder's, and, last, the encoder's for this task."""
        encoder = self.study.encoders[self.encoder]
        parts = (self.study.tasks[self.task], encoder, encoder.get(self.task, {}))
        return _merged(*(part.get(job, {}) for part in parts))

    def _vectors(self, code: str) -> str | None:
        pattern = self.study.encoders[self.encoder].get("vectors")
        return None if pattern is None else str(self.study.data / pattern.format(code=code))

    def _word_hash(self, code: str) -> dict[str, str]:
        pattern = self.study.encoders[self.encoder].get("vectors")
        if pattern is not None:
            return self.study.hashes(pattern.format(code=code))
        return self.study.hashes(f"{self.study.encoders[self.encoder]['encoder']}/model.safetensors")

    def _needs(self, target: str, *more: str) -> list[str]:
        chosen = [self._cell(target, "selection")] if self.study.select else []
        sources = dict.fromkeys([*self.candidates(target), self.study.start])
        return [*(self._source(code) for code in sources), *chosen, *more]

    def _chosen(self, target: str, results: Results) -> list[str]:
        if not self.study.select:
            return self.candidates(target)
        return list(results[self._cell(target, "selection")]["chosen"])

    def _annotator(self, upos: str | None) -> str | None:
        """Return the method of the tagger whose answers a parser reads, if it reads any."""
        return (upos or self.study.upos) if self.task == "parser" else None

    def _annotator_cell(self, target: str, upos: str | None) -> list[str]:
        method = self._annotator(upos)
        if method is None:
            return []
        seeds = self.study.all_methods[method].seeds or self.study.seeds
        return [f"{self.encoder}/tagger/{target}/transferred/{method}/{seeds[0]}"]

    def _place(self, work: Path, target: str, upos: str | None = None) -> Place:
        root, given = _root(work), self.study.targets[target]
        files = {"text": given["text"], "test": given["test"]} | ({"dev": given["dev"]} if "dev" in given else {})
        return Place(
            root=root,
            models={code: root / self._source(code) for code in self.study.sources},
            treebanks={split: self.study.treebank({split: paths}) for split, paths in files.items()},
            splits={split: given.get(f"{split}_split", split) for split in files},
            vectors=self._vectors(target),
            annotator=next((str(root / name) for name in self._annotator_cell(target, upos)), None),
            states=root / "states" / target,
        )

    def _content(self, target: str, *files: str, **more: Any) -> dict[str, Any]:
        given = self.study.targets[target]
        named = {name: given[name] for name in given if name.split("_")[0] in files}
        hashes = self.study.hashes(*(given.get(name) for name in files))
        return {"given": named, "data": hashes, "words": self._word_hash(target), **more}

    # -- the cells ------------------------------------------------------------------------------------

    def source(self, code: str) -> Cell:
        """Train a source model; the result is its score on the development part, and on its own test file."""
        given = self.study.sources[code]
        files = {"train": given["train"]} | ({"dev": given["dev"]} if "dev" in given else {})
        settings = _merged(self.settings("train_source"), given.get("train_source", {}))

        def run(work: Path, _: Results) -> Results:
            encoder = self.study.encoders[self.encoder].get("encoder")
            train_source(
                TrainSourceArguments(
                    output=str(work),
                    seed=self.study.seeds[0],
                    task=self.task,  # type: ignore[arg-type]
                    treebank=self.study.treebank(files),
                    split=given.get("split", "train"),
                    dev_split=given.get("dev_split", "dev"),
                    vectors=self._vectors(code),
                    encoder=None if encoder is None else str(self.study.data / encoder),
                    **settings,
                )
            )
            found = scoring.results_of(work)
            root = _root(work)
            if "test" in given:
                place = Place(
                    root=root,
                    treebanks={"test": self.study.treebank({"test": given["test"]})},
                    splits={"test": given.get("test_split", "test")},
                    vectors=self._vectors(code),
                    states=root / "states" / code,
                )
                found["test"] = place.score(work, "test")
            share_frozen(work, root / "frozen")
            return found

        content = {"given": dict(given), "settings": settings, "seed": self.study.seeds[0]}
        content |= {"data": self.study.hashes(given["train"], given.get("dev"), given.get("test"))}
        return Cell(self._source(code), run, content | {"words": self._word_hash(code)})

    def selection(self, target: str) -> Cell:
        """Rank the sources for a target without labels, and choose among them."""

        def run(work: Path, _: Results) -> Results:
            place = self._place(work, target)
            return scoring.selection(place, self.candidates(target), self.study.select)

        content = self._content(target, "text", select=self.study.select)
        needs = [self._source(code) for code in self.candidates(target)]
        return Cell(self._cell(target, "selection"), run, content, [*needs, *self._annotator_cell(target, None)])

    def weights(self, target: str) -> Cell:
        """Learn pool weights from a few labelled sentences, exactly and as published."""

        def run(work: Path, results: Results) -> Results:
            place = self._place(work, target)
            return learn_weights_job(
                LearnWeightsArguments(
                    output=str(work),
                    seed=self.study.seeds[0],
                    sources=place.named(self._chosen(target, results)),
                    treebank=place.treebanks["dev"],
                    split=place.splits["dev"],
                    tagger=place.annotator,
                    vectors=place.vectors,
                    sentences=self.study.labelled,
                    grouped="grouped" in self.study.rules,
                )
            )

        content = self._content(target, "dev", labelled=self.study.labelled, seed=self.study.seeds[0])
        needs = self._needs(target, *self._annotator_cell(target, None))
        return Cell(self._cell(target, "weights"), run, content, needs)

    def ensemble(self, target: str) -> Cell:
        """Score each source alone, and the sources together without training, on dev and test."""
        weighted = [self._cell(target, "weights")] if self.study.labelled else []

        def run(work: Path, results: Results) -> Results:
            learned = None if not weighted else results[weighted[0]]
            return scoring.ensemble(
                self._place(work, target),
                self._chosen(target, results),
                self._beside(target),
                self.study.rules,
                learned,
            )

        content = self._content(target, "dev", "test", rules=list(self.study.rules))
        beside = [self._source(code) for code in self._beside(target)]
        needs = self._needs(target, *weighted, *beside, *self._annotator_cell(target, None))
        return Cell(self._cell(target, "ensemble"), run, content, needs)

    def analysis(self, target: str) -> Cell:
        """Describe charts and pools on the development part: size, quality, distance."""
        weighted = [self._cell(target, "weights")] if self.study.labelled else []

        def run(work: Path, results: Results) -> Results:
            learned = None if not weighted else results[weighted[0]]["weights"]
            place = self._place(work, target)
            return scoring.description(place, self._chosen(target, results), self.study.sigma, learned)

        split = "dev" if "dev" in self.study.targets[target] else "test"
        content = self._content(target, split, sigma=self.study.sigma)
        needs = self._needs(target, *weighted, *self._annotator_cell(target, None))
        return Cell(self._cell(target, "analysis"), run, content, needs)

    def charts(self, target: str, name: str) -> Cell:
        """Make charts of the target's unlabelled text."""
        plan: ChartPlan = self.study.plans[name]
        learned = [self._cell(target, "weights")] if plan.weights == "learned" else []
        added = [self._cell(target, "transferred", method, str(self.study.seeds[0])) for method in plan.add]
        ranked = [self._cell(target, "selection")] if plan.start == "best" else []

        def run(work: Path, results: Results) -> Results:
            place = self._place(work, target, plan.upos)
            codes = list(plan.sources or self._chosen(target, results))
            start = results[ranked[0]]["chosen"][0] if ranked else plan.start or self.study.start
            provenance = build_charts(
                BuildChartsArguments(
                    output=str(work),
                    seed=self.study.seeds[0],
                    sources=[*place.named(codes), *(f"{path.split('/')[-2]}={place.root / path}" for path in added)],
                    start=start if start in codes else codes[0],
                    rule=plan.rule,  # type: ignore[arg-type]
                    weights=str(place.root / learned[0] / WEIGHTS_FILE) if learned else None,
                    treebank=place.treebanks["text"],
                    split=plan.text_split or place.splits["text"],
                    tagger=place.annotator,
                    vectors=place.vectors,
                    **{"sigma": self.study.sigma, **plan.build},
                )
            )
            return {key: provenance[key] for key in ("rule", "sigma", "floor", "sentences", "counts", "start")}

        content = self._content(
            target, "text", plan=dataclasses.asdict(plan), sigma=self.study.sigma, start=self.study.start
        )
        needs = self._needs(target, *learned, *added, *ranked, *self._annotator_cell(target, plan.upos))
        return Cell(self._cell(target, "charts", name), run, content, needs)

    def transferred(self, target: str, name: str, seed: int) -> Cell:
        """Train on the charts and score the target model on dev and test."""
        method: Method = self.study.all_methods[name]
        plan = method.charts or name
        by_rule = self.settings("transfer")
        special = {rule: by_rule.pop(rule, {}) for rule in ("union", "pool", "learned")}
        settings = _merged(by_rule, special.get(name, {}), method.transfer)

        def run(work: Path, results: Results) -> Results:
            place = self._place(work, target, method.upos)
            start = results[self._cell(target, "charts", plan)]["start"]
            model = str(place.models[start])
            begin = {"start": "none", "like": model} if method.fresh else {"start": model}
            found = transfer(
                TransferArguments(
                    output=str(work),
                    seed=seed,
                    charts=str(place.root / self._cell(target, "charts", plan)),
                    vectors=place.vectors,
                    treebank=place.treebanks.get("dev"),
                    split=place.splits.get("dev", "dev"),
                    tagger=place.annotator,
                    states=str(place.states),
                    **begin,
                    **settings,
                )
            )
            scores = {"test": place.score(work, "test", method.model), "curve": scoring.curve(work)}
            share_frozen(work, place.root / "frozen")
            return {**scoring.public(found), **scores, "start": start}

        content = self._content(target, "dev", "test", settings=settings, seed=seed)
        content |= {"fresh": method.fresh, "upos": method.upos, "model": dict(method.model)}
        needs = self._needs(
            target, self._cell(target, "charts", plan), *self._annotator_cell(target, method.upos)
        )
        return Cell(self._cell(target, "transferred", name, str(seed)), run, content, list(dict.fromkeys(needs)))


def _root(work: Path) -> Path:
    """Return the folder of all cells' files, given that of one cell."""
    return next(folder for folder in work.parents if folder.name == "work")


def _merged(*parts: Settings) -> dict[str, Any]:
    """Join settings, later ones winning; lists are appended to each other."""
    merged: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            joined = isinstance(value, list) and key in merged
            merged[key] = [*merged[key], *value] if joined else value
    return merged
