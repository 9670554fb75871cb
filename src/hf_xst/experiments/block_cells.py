"""The cells of one encoder and one task of a study."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hf_xst.commands.build_charts import build_charts
from hf_xst.commands.learn_weights import WEIGHTS_FILE, LearnWeightsArguments, learn_weights
from hf_xst.commands.options import BuildChartsArguments, TrainSourceArguments, TransferArguments
from hf_xst.commands.train_source import train_source
from hf_xst.commands.transfer import transfer
from hf_xst.experiments import scoring
from hf_xst.experiments.block import Block, Results, merged, root_of
from hf_xst.experiments.cells import CODE_VERSION, Cell
from hf_xst.experiments.checks import LEARNED, PUBLISHED, SPECIAL
from hf_xst.experiments.plans import ChartPlan, Method
from hf_xst.experiments.scoring import Place
from hf_xst.experiments.shared_weights import share_frozen
from hf_xst.sources.agreement import write_weights

# Since 4 sentences are no longer than those that get charts.
ANALYSIS_VERSION = 4


class BlockCells(Block):
    """Makes the cells."""

    @property
    def pooling(self) -> int:
        """Version of the code that pools: since 3 it leaves out candidates that scores forbid (chains do)."""
        return 3 if self.task == "tagger" else CODE_VERSION

    def target(self, target: str) -> Iterator[Cell]:
        """Give all cells of a target."""
        study = self.study
        if study.select or any(plan.ranked for plan in study.plans.values()):
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

    def source(self, code: str) -> Cell:
        """Train a source model; the result is its score on the development part, and on its own test file."""
        given = self.study.sources[code]
        files = {"train": given["train"]} | ({"dev": given["dev"]} if "dev" in given else {})
        settings = merged(self.settings("train_source"), given.get("train_source", {}))

        begun = given.get("start")

        def run(work: Path, _: Results) -> Results:
            train_source(
                TrainSourceArguments(
                    output=str(work),
                    seed=self.study.seeds[0],
                    task=self.task,  # type: ignore[arg-type]
                    treebank=self.study.treebank(files),
                    split=given.get("split", "train"),
                    dev_split=given.get("dev_split", "dev"),
                    vectors=self.vectors(code),
                    **self.beginning(given, work, settings),
                )
            )
            found = scoring.results_of(work)
            root = root_of(work)
            if "test" in given:
                place = Place(
                    root=root,
                    treebanks={"test": self.study.treebank({"test": given["test"]})},
                    splits={"test": given.get("test_split", "test")},
                    vectors=self.vectors(code),
                    states=root / "states" / code,
                )
                found["test"] = place.score(work, "test")
            share_frozen(work, root / "frozen")
            return found

        told = {key: value for key, value in given.items() if key != "mark"}
        content = {"given": told, "settings": settings, "seed": self.study.seeds[0]}
        content |= {"data": self.study.hashes(given["train"], given.get("dev"), given.get("test"))}
        needs = [] if begun is None else [self.source_name(begun)]
        return Cell(self.source_name(code), run, content | {"words": self.word_hash(code)}, needs)

    def selection(self, target: str) -> Cell:
        """Rank the sources for a target without labels, and choose among them."""

        def run(work: Path, _: Results) -> Results:
            place = self.place(work, target)
            return scoring.selection(place, self.candidates(target), self.study.select)

        content = self.content(target, "text", select=self.study.select)
        needs = [self.source_name(code) for code in self.candidates(target)]
        needs += self.annotator_cells(target, None)
        return Cell(self.cell_name(target, "selection"), run, content, needs, self.pooling)

    def weights(self, target: str) -> Cell:
        """Learn pool weights from a few labelled sentences, exactly and as published."""

        def run(work: Path, results: Results) -> Results:
            place = self.place(work, target)
            found = learn_weights(
                LearnWeightsArguments(
                    output=str(work),
                    seed=self.study.seeds[0],
                    sources=place.named(self.chosen(target, results)),
                    treebank=place.treebanks["dev"],
                    split=place.splits["dev"],
                    tagger=place.annotator,
                    vectors=place.vectors,
                    sentences=self.study.labelled,
                    grouped="grouped" in self.study.rules,
                )
            )
            return scoring.public(found)

        content = self.content(target, "dev", labelled=self.study.labelled, seed=self.study.seeds[0])
        if "grouped" in self.study.rules:
            content["grouped"] = True
        needs = self.needs(target, *self.annotator_cells(target, None))
        return Cell(self.cell_name(target, "weights"), run, content, needs, self.pooling)

    def ensemble(self, target: str) -> Cell:
        """Score each source alone, and the sources together without training, on dev and test."""
        weighted = [self.cell_name(target, "weights")] if self.study.labelled else []

        def run(work: Path, results: Results) -> Results:
            learned = None if not weighted else results[weighted[0]]
            chosen = self.chosen(target, results)
            # The sources that were not chosen are scored, too: else nobody can tell what the choice is worth.
            others = [code for code in self.candidates(target) if code not in chosen]
            return scoring.ensemble(
                self.place(work, target),
                chosen,
                [*others, *self.beside(target)],
                self.study.rules,
                learned,
            )

        content = self.content(target, "dev", "test", rules=list(self.study.rules))
        if self.study.select:
            content["direct"] = "all sources"
        beside = [self.source_name(code) for code in self.beside(target)]
        needs = self.needs(target, *weighted, *beside, *self.annotator_cells(target, None))
        return Cell(self.cell_name(target, "ensemble"), run, content, needs, self.pooling)

    def analysis(self, target: str) -> Cell:
        """Describe charts and pools on the development part: size, quality, distance."""
        weighted = [self.cell_name(target, "weights")] if self.study.labelled else []

        def run(work: Path, results: Results) -> Results:
            learned = None if not weighted else results[weighted[0]]["weights"]
            place = self.place(work, target)
            return scoring.description(place, self.chosen(target, results), self.study.sigma, learned)

        split = "dev" if "dev" in self.study.targets[target] else "test"
        content = self.content(target, split, sigma=self.study.sigma)
        needs = self.needs(target, *weighted, *self.annotator_cells(target, None))
        return Cell(self.cell_name(target, "analysis"), run, content, needs, ANALYSIS_VERSION)

    def charts(self, target: str, name: str) -> Cell:
        """Make charts of the target's unlabelled text."""
        plan: ChartPlan = self.study.plans[name]
        learned = [self.cell_name(target, "weights")] if plan.weights in (LEARNED, PUBLISHED) else []
        added = [
            self.cell_name(target, "transferred", method, str(self.study.seeds[0])) for method in plan.add
        ]
        ranked = [self.cell_name(target, "selection")] if plan.ranked else []

        def run(work: Path, results: Results) -> Results:
            place = self.place(work, target, plan.upos)
            codes = self.planned(target, name, results)
            start = plan.start or self.study.start
            if ranked:
                order = [code for code in results[ranked[0]]["chosen"] if code in codes]
                codes = [code for code in codes if code in order[: plan.select]]
                start = order[0] if start == "best" else start
            provenance = build_charts(
                BuildChartsArguments(
                    output=str(work),
                    seed=self.study.seeds[0],
                    sources=[
                        *place.named(codes),
                        *(f"{path.split('/')[-2]}={place.root / path}" for path in added),
                    ],
                    start=start if start in codes else codes[0],
                    rule=plan.rule,  # type: ignore[arg-type]
                    weights=_weights_file(place, plan.weights, learned[0], results)
                    if learned
                    else plan.weights,
                    treebank=place.treebanks["text"],
                    split=plan.text_split or place.splits["text"],
                    tagger=place.annotator,
                    vectors=place.vectors,
                    # What a study's plans do not name is as published.
                    **{"recipe": "published", "sigma": self.study.sigma, **plan.build},
                )
            )
            return {
                key: provenance[key] for key in ("rule", "sigma", "floor", "sentences", "counts", "start")
            }

        content = self.content(
            target, "text", plan=plan.content, sigma=self.study.sigma, start=self.study.start
        )
        needs = self.needs(target, *learned, *added, *ranked, *self.annotator_cells(target, plan.upos))
        return Cell(self.cell_name(target, "charts", name), run, content, needs, self.pooling)

    def transferred(self, target: str, name: str, seed: int) -> Cell:
        """Train on the charts and score the target model on dev and test."""
        method: Method = self.study.all_methods[name]
        plan = method.charts or name
        by_rule = self.settings("transfer")
        special = {rule: by_rule.pop(rule, {}) for rule in SPECIAL}
        settings = merged(by_rule, special.get(name, {}), method.transfer)

        def run(work: Path, results: Results) -> Results:
            place = self.place(work, target, method.upos)
            start = results[self.cell_name(target, "charts", plan)]["start"]
            model = str(place.models[start])
            begin: dict[str, Any] = {"start": method.start or model}
            begin = {"start": "none", "like": model} if method.fresh else begin
            found = transfer(
                TransferArguments(
                    output=str(work),
                    seed=seed,
                    charts=str(place.root / self.cell_name(target, "charts", plan)),
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
            return {**scoring.public(found), **scores, "start": method.start or start}

        content = self.content(target, "dev", "test", settings=settings, seed=seed)
        content |= {"fresh": method.fresh, "upos": method.upos, "model": dict(method.model)}
        if method.start:
            content["start"] = method.start
        if settings.get("soft"):
            content["soft_loss"] = "against the pool's own marginals"  # once against probabilities by group
        needs = self.needs(
            target, self.cell_name(target, "charts", plan), *self.annotator_cells(target, method.upos)
        )
        return Cell(
            self.cell_name(target, "transferred", name, str(seed)), run, content, list(dict.fromkeys(needs))
        )


def _weights_file(place: Place, which: str | None, cell: str, results: Results) -> str:
    """Return the file of weights that a target's `weights` cell has found, by the optimum or as published."""
    path = place.root / cell / WEIGHTS_FILE
    if which == PUBLISHED:
        path = path.with_name(f"{PUBLISHED}_{WEIGHTS_FILE}")
        write_weights(path, results[cell][PUBLISHED])
    return str(path)
