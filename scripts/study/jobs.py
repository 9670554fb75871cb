"""Build the command line, inputs and results of each job of a study."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from configuration import FROM_LABELS, GOLD, WEIGHTS, Files, Method, Settings, Source, Study, Target

HERE = Path(__file__).resolve().parent
RESULTS, SCORES = "run/results.json", "run/scores.json"  # of training, of evaluation
CHARTS = "provenance.json"


@dataclass(frozen=True)
class Job:
    """A job: its command line, the data files that it reads, and the results of other jobs that it needs."""

    command: str
    files: Sequence[str] = ()
    needs: Sequence[str] = ()


@dataclass
class _Sources:
    """Options that commands over several sources share, with the files that they read and need."""

    options: dict[str, Any]
    files: list[str] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)


class Jobs:
    """The jobs of a study; each method that returns a `Job` belongs to the rule of the same name."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.root = os.path.normpath(Path(study.output, study.jobs))
        self.source_root = os.path.normpath(Path(study.output, study.source_models or study.jobs))

    # -- paths ------------------------------------------------------------------------------------------

    def source(self, encoder: str, task: str, source: str) -> str:
        """Return the folder of a source model."""
        return f"{self.source_root}/{encoder}/{task}/sources/{source}"

    def target(self, encoder: str, task: str, target: str, *rest: str | int) -> str:
        """Return a folder or file of a target."""
        return "/".join((self.root, encoder, task, "targets", target, *map(str, rest)))

    def embedding_cache(self, target: str) -> str:
        """Return the folder where outputs of frozen encoders are cached."""
        return f"{self.root}/embeddings/{target}"

    def files(self, *names: Files | None) -> list[str]:
        """Return paths of data files."""
        flat = (name for each in names if each for name in ([each] if isinstance(each, str) else each))
        return [os.path.normpath(Path(self.study.data, name)) for name in flat]

    def test_alone(self, target: Target) -> list[str]:
        """Return test files that are not also the text: their sentences are removed from the text."""
        return [path for path in self.files(target.test) if path not in self.files(target.text)]

    def treebank(self, **splits: Files) -> str | None:
        """Return files by split as `--treebank` takes them."""
        parts = [f"{split}={path}" for split, names in splits.items() for path in self.files(names)]
        return ",".join(parts) or None

    def vectors(self, encoder: str, code: str) -> list[str]:
        """Return the file of a language's word vectors, if words are read by vectors."""
        pattern = self.study.encoders[encoder].vectors
        return [] if pattern is None else self.files(pattern.format(code=code))

    # -- which jobs exist -------------------------------------------------------------------------------

    def usable(self, task: str, target: str = "") -> dict[str, Source]:
        """Return the sources of a task, for a target all except its own language's."""
        return {
            name: source
            for name, source in self.study.sources.items()
            if target not in (name, *source.languages) and (not source.tasks or task in source.tasks)
        }

    def pooled(self, task: str, target: str, charts: str | None = None) -> list[str]:
        """Return the sources pooled for a target, or in its charts."""
        names = () if charts is None else self.study.charts[charts].sources
        found = [n for n, s in self.usable(task, target).items() if s.pool and (not names or n in names)]
        if not found:
            raise ValueError(f"targets: {target}: no source left to pool; charts: {charts}")
        return found

    def initial(self, charts: str, names: Sequence[str]) -> str | None:
        """Return the pooled source that training on charts is initialised from, unless it is ranked first."""
        own = [name for name in names if not self._is_foreign(name)]
        start = self.study.charts[charts].init_from or self.study.init_from
        return start if start in own else own[0] if own else None

    def _is_foreign(self, source: str) -> bool:
        """Return whether a source is not a model of the package."""
        return bool(self.study.sources[source].place or self.study.sources[source].script)

    def methods(self, task: str, target: str) -> Iterator[tuple[str, Method]]:
        """Yield the methods of a target."""
        for name, method in self.study.methods.items():
            if task in (method.tasks or [task]) and target in (method.targets or [target]):
                yield name, method

    def seeds(self, method: str) -> Sequence[int]:
        """Return the seeds of a method."""
        return self.study.methods[method].seeds or self.study.seeds

    @property
    def stand_ins(self) -> list[str]:
        """Return the targets whose test files replace the published ones."""
        return [name for name, target in self.study.targets.items() if target.stand_in]

    def results(self) -> list[str]:
        """Return the result files of all jobs."""
        blocks = [(encoder, task) for encoder in self.study.encoders for task in self.study.tasks]
        paths: dict[str, None] = {}
        for block in blocks:
            for name, settings in self.usable(block[1]).items():
                if settings.place:
                    continue
                folder = self.source(*block, name)
                paths |= dict.fromkeys([f"{folder}/{RESULTS}", *[f"{folder}/{SCORES}"] * bool(settings.test)])
            for target in self.study.targets:
                paths |= dict.fromkeys(self._results_of(*block, target))
        return list(paths)

    def _results_of(self, *block: str) -> Iterator[str]:
        if self.study.labelled:
            yield self.target(*block, "weights", RESULTS)
        if self.others_weigh:
            yield self.target(*block, "weights/other_weights.json")
        if self.study.analyse:
            yield self.target(*block, "analysis/analysis.json")
        yield self.target(*block, "ensembles.json")
        for name, method in self.methods(*block[1:]):
            yield self.target(*block, "charts", method.charts, CHARTS)
            for seed in self.seeds(name):
                yield self.target(*block, "models", name, seed, RESULTS)
                yield self.target(*block, "models", name, seed, SCORES)

    @property
    def others_weigh(self) -> bool:
        """Return whether pools with other weights than the optimal ones are scored."""
        return bool(set(FROM_LABELS) & set(self.study.rules))

    # -- jobs -------------------------------------------------------------------------------------------

    def settings(self, command: str, encoder: str, task: str, method: str = "") -> dict[str, Any]:
        """Merge options of a command: the task's, the encoder's, the encoder's for the task, the method's."""
        entry = vars(self.study.encoders[encoder])
        parts = (self.study.tasks[task], entry, entry[task])
        by_method = [part.get("methods", {}).get(method, {}) for part in parts]
        return merge(*(part.get(command, {}) for part in parts), *by_method)

    def _over_sources(
        self, encoder: str, task: str, target: str, names: Iterable[str], upos: str | None = None
    ) -> _Sources:
        trained = {n: self.source(encoder, task, n) for n in names if not self.study.sources[n].place}
        places = {name: self.study.sources[name].place or trained[name] for name in names}
        vectors, tagger = self.vectors(encoder, target), None
        needs = [f"{path}/{RESULTS}" for path in trained.values()]
        method = upos or self.study.upos or GOLD
        if task == "parser" and method != GOLD:
            tagger = self.target(encoder, "tagger", target, "models", method, self.seeds(method)[0])
            needs += model_files(tagger)
        options = {
            "sources": [f"{name}={place}" for name, place in places.items()],
            "task": task if any(self._is_foreign(name) for name in names) else None,
            "tagger": tagger,
            "vectors": vectors[0] if vectors else None,
        }
        return _Sources(options, vectors, needs)

    def _of_charts(
        self, encoder: str, task: str, target: str, charts: str, upos: str | None = None
    ) -> _Sources:
        """Return the sources of charts: those pooled, and the target models that the charts add."""
        block = (encoder, task, target)
        pool = self._over_sources(*block, self.pooled(task, target, charts), upos)
        for method in self.study.charts[charts].add:
            folder = self.target(*block, "models", method, self.seeds(method)[0])
            pool.options["sources"].append(f"{re.sub('[^A-Za-z0-9]+', '-', method)}={folder}")
            pool.needs += model_files(folder)
        return pool

    def train_source(self, encoder: str, task: str, source: str) -> Job:
        """Train a source model."""
        settings, folder = self.study.sources[source], self.source(encoder, task, source)
        options, needs = self.settings("train_source", encoder, task), []
        base = self.files(self.study.encoders[encoder].encoder)
        initial = {"encoder": base[0] if base else None}
        if settings.init_from:  # the initial model brings its encoder and configuration
            start = self.source(encoder, task, settings.init_from)
            initial, needs = {"init_from": start}, [f"{start}/{RESULTS}"]
            options = {k: value for k, value in options.items() if k not in ("encoder_layers", "model")}
        vectors = self.vectors(encoder, source)
        options = merge(options, settings.train_source) | {
            "output": folder,
            "seed": self.study.seeds[0],
            "task": task,
            "treebank": self.treebank(train=settings.train, dev=settings.dev),
            "split": settings.split,
            "dev_split": settings.dev_split,
            "vectors": vectors[0] if vectors else None,
            **initial,
        }
        files = [*self.files(settings.train, settings.dev), *vectors]
        if settings.script:
            names = ("output", "seed", "treebank", "split", "dev_split", "encoder")
            options = {name: options[name] for name in names} | settings.train_source
            return Job(python(settings.script, options), files)
        return Job(train("train-source", options), files, needs)

    def evaluate_source(self, encoder: str, task: str, source: str) -> Job:
        """Score a source model on the test files of its own language."""
        settings, folder = self.study.sources[source], self.source(encoder, task, source)
        vectors = self.vectors(encoder, source)
        options = {
            "model": folder,
            "output": folder,
            "treebank": self.treebank(test=settings.test),
            "split": settings.test_split,
            "vectors": vectors[0] if vectors else None,
        }
        files = [*vectors, *self.files(settings.test)]
        return Job(hf_xst("evaluate", options), files, [f"{folder}/{RESULTS}"])

    def learn_weights(self, encoder: str, task: str, target: str, script: str = "") -> Job:
        """Learn pool weights from labelled sentences."""
        settings = self.study.targets[target]
        pool = self._over_sources(encoder, task, target, self.pooled(task, target))
        options = pool.options | {
            "output": self.target(encoder, task, target, "weights"),
            "seed": self.study.seeds[0],
            "treebank": self.treebank(dev=settings.dev),
            "split": settings.dev_split,
            "sentences": self.study.labelled,
        }
        command = python(script, options) if script else hf_xst("learn-weights", options)
        return Job(command, [*pool.files, *self.files(settings.dev)], pool.needs)

    def other_weights(self, encoder: str, task: str, target: str) -> Job:
        """Learn weights from the same sentences by the published procedure, and by group."""
        return self.learn_weights(encoder, task, target, "other_weights.py")

    def ensembles(self, encoder: str, task: str, target: str) -> Job:
        """Score each source alone, and combinations of the sources without training."""
        study, settings = self.study, self.study.targets[target]
        pool = self._over_sources(encoder, task, target, self.pooled(task, target))
        others = [name for name, source in self.usable(task, target).items() if not source.pool]
        beside = self._over_sources(encoder, task, target, others)
        folder = self.target(encoder, task, target, "weights")
        weights = f"{folder}/weights.yaml" if study.labelled else None
        other_weights = f"{folder}/other_weights.json" if self.others_weigh else None
        options = pool.options | {
            "task": pool.options["task"] or beside.options["task"],
            "beside": beside.options["sources"],
            "rules": study.rules,
            "weights": weights,
            "other_weights": other_weights,
            "select": study.select,
            "text": [self.treebank(text=settings.text), settings.text_split],
            "exclude": self.test_alone(settings),
            "dev": [self.treebank(dev=settings.dev), settings.dev_split] if settings.dev else None,
            "test": [self.treebank(test=settings.test), settings.test_split],
            "embedding_cache": self.embedding_cache(target),
            "bf16": study.bf16 or None,
            "output": self.target(encoder, task, target, "ensembles.json"),
        }
        needs = [*pool.needs, *beside.needs, *filter(None, (weights, other_weights))]
        files = [*pool.files, *self.files(settings.text, settings.dev, settings.test)]
        return Job(python("ensembles.py", options), files, needs)

    def analyse(self, encoder: str, task: str, target: str) -> Job:
        """Measure charts, pools and sources on development sentences, else on test sentences."""
        settings = self.study.targets[target]
        pool = self._over_sources(encoder, task, target, self.pooled(task, target))
        weights = self.target(encoder, task, target, "weights/weights.yaml") if self.study.labelled else None
        name = "dev" if settings.dev else "test"
        gold = getattr(settings, name)
        options = pool.options | {
            "output": self.target(encoder, task, target, "analysis"),
            "treebank": self.treebank(**{name: gold}),
            "split": getattr(settings, f"{name}_split"),
            "sigma": self.study.sigma,
            "weights": weights,
            "plots": False,
        }
        needs = [*pool.needs, *filter(None, [weights])]
        return Job(hf_xst("analyse", options), [*pool.files, *self.files(gold)], needs)

    def build_charts(self, encoder: str, task: str, target: str, charts: str) -> Job:
        """Make charts of a target's text."""
        block, study = (encoder, task, target), self.study
        settings, entry = study.charts[charts], study.targets[target]
        pool = self._of_charts(*block, charts)
        weights = settings.weights
        if weights in WEIGHTS:
            weights = self.target(*block, "weights", WEIGHTS[weights])
            pool.needs.append(weights)
        every = len(pool.options["sources"]) if settings.init_from == "best" else None
        select = settings.build_charts.get("select") or study.select or every
        initial = None if select else self.initial(charts, self.pooled(task, target, charts))
        options = {"sigma": study.sigma, **settings.build_charts} | pool.options
        options |= {
            "output": self.target(*block, "charts", charts),
            "seed": study.seeds[0],
            "preset": "paper",
            "rule": settings.rule,
            "weights": weights,
            "bf16": study.bf16 or None,
            "select": select,  # of selected sources the best one is the initial model
            "init_from": initial,
            "treebank": self.treebank(text=entry.text),
            "split": settings.text_split or entry.text_split,
            "exclude": self.test_alone(entry),
        }
        files = [*pool.files, *self.files(entry.text, entry.test)]
        return Job(hf_xst("build-charts", options), files, pool.needs)

    def transfer(self, encoder: str, task: str, target: str, method: str, seed: str) -> Job:
        """Train a target model on charts."""
        block, entry = (encoder, task, target), self.study.targets[target]
        settings = self.study.methods[method]
        charts = self.target(*block, "charts", settings.charts)
        pool = self._of_charts(*block, settings.charts, settings.upos)
        del pool.options["sources"], pool.options["task"]
        if settings.init_from == "scratch" and "encoder_layers" in settings.transfer:
            pool.options["encoder"] = self.files(self.study.encoders[encoder].encoder)[0]
        elif settings.init_from == "scratch":
            names = self.pooled(task, target, settings.charts)
            pool.options["like"] = self.source(encoder, task, str(self.initial(settings.charts, names)))
        options = merge(self.settings("transfer", encoder, task, method), settings.transfer) | pool.options
        options |= {
            "output": self.target(*block, "models", method, seed),
            "seed": seed,
            "charts": charts,
            "init_from": settings.init_from,
            "treebank": self.treebank(dev=entry.dev),
            "split": entry.dev_split if entry.dev else None,
            "embedding_cache": self.embedding_cache(target),
        }
        files = [*pool.files, *self.files(entry.dev)]
        return Job(train("transfer", options), files, [*pool.needs, f"{charts}/{CHARTS}"])

    def evaluate_target(self, encoder: str, task: str, target: str, method: str, seed: str) -> Job:
        """Score a target model on the test files."""
        settings, entry = self.study.methods[method], self.study.targets[target]
        folder = self.target(encoder, task, target, "models", method, seed)
        pool = self._over_sources(encoder, task, target, [], settings.upos)
        test = (self.treebank(test=entry.test), entry.test_split)
        changes = [f"{name}={yaml.safe_dump(value).split()[0]}" for name, value in settings.config.items()]
        options = pool.options | {
            "sources": [f"model={folder}"],
            "config": changes,
            "test": test,
            "embedding_cache": self.embedding_cache(target),
            "output": f"{folder}/{SCORES}",
        }
        command = python("ensembles.py", options)
        files = [*pool.files, *self.files(entry.test)]
        return Job(command, files, [*model_files(folder), *pool.needs])


# -- command lines --------------------------------------------------------------------------------------


def hf_xst(command: str, options: Settings) -> str:
    """Return the command line of a command."""
    return shlex.join(["hf-xst", command, *flags(options)])


def train(command: str, options: Settings) -> str:
    """Return the command line of a training command, which removes its checkpoints at the end.

    Links and folders without the state of a Trainer stay.
    """
    remove = ["find", f"{options['output']}/run", "-maxdepth", "1", "-type", "d", "-name", "checkpoint-*"]
    remove += ["-exec", "test", "-f", "{}/trainer_state.json", ";", "-exec", "rm", "-r", "{}", "+"]
    return f"{hf_xst(command, options)} && {shlex.join(remove)}"


def python(script: str, options: Settings) -> str:
    """Return the command line of a script beside this one."""
    return shlex.join(["python", os.path.relpath(HERE / script), *flags(options)])


def flags(options: Settings) -> Iterator[str]:
    """Yield options as words of a command line; None and empty lists are left out."""
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, (list, tuple)):
            yield from (flag, *map(str, value)) if value else ()
        elif value is not None:
            yield f"{flag}={str(value).lower() if isinstance(value, bool) else value}"


def model_files(folder: str) -> list[str]:
    """Return the files of a trained target model for which jobs over it wait."""
    return [f"{folder}/{RESULTS}", f"{folder}/model.safetensors"]


def merge(*parts: Settings) -> dict[str, Any]:
    """Merge options: later values win, lists are appended to each other."""
    merged: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            is_appended = isinstance(value, list) and isinstance(merged.get(name), list)
            merged[name] = [*merged[name], *value] if is_appended else value
    return merged
