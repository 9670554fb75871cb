"""Read and validate the configuration of a study: a YAML file with the entries of `Study`.

A file may contain only the difference to another one, see `read_config`; README.md lists those that exist.
"""

from __future__ import annotations

import ast
import math
import os
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import yaml

Settings = Mapping[str, Any]
Files = str | Sequence[str]
Entry = TypeVar("Entry")
TASKS = ("tagger", "parser")
RULES = (
    *("vote", "pool", "pool-agreement", "linear-pool", "truth", "average", "average-agreement"),
    *("vote-files", "pool-files", "pool-probabilities"),
)
FROM_LABELS = ("pool-published", "pool-grouped")
WEIGHTS = {"learned": "weights.yaml", "published": "published_weights.yaml"}  # from labelled sentences
GOLD = "gold"
# The data class of each command's options, and the options that a study sets from its other entries.
COMMANDS = {
    "train_source": (
        "TrainSourceArguments",
        "output seed task treebank split dev_split tagger vectors encoder init_from",
    ),
    "build_charts": (
        "BuildChartsArguments",
        "output seed sources preset treebank text split tagger vectors init_from rule weights",
    ),
    "transfer": (
        "TransferArguments",
        "output seed charts treebank split tagger vectors embedding_cache init_from like",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Source:
    """A source; paths are relative to the data folder.

    Args:
        place: a trained source, as `--sources` names it (e.g. spacy:PACKAGE); nothing is trained then.
        script: a script of this folder that trains it, in place of `hf-xst train-source`.
        train, split: training files and the part of them that is used.
        dev, dev_split: development files; if omitted, the end of the training sentences.
        test, test_split: test files of its own language.
        init_from: the source that it is fine-tuned from.
        pool: whether it joins the pool; otherwise it is only scored beside the others.
        languages: targets besides its own that it is not used for.
        tasks: restrict it to these.
        note: how its files differ from the published ones.
        train_source: options of `hf-xst train-source`.
    """

    place: str | None = None
    script: str | None = None
    train: Files = ()
    split: str = "train"
    dev: Files = ()
    dev_split: str = "dev"
    test: Files = ()
    test_split: str = "test"
    init_from: str | None = None
    pool: bool = True
    languages: Sequence[str] = ()
    tasks: Sequence[str] = ()
    note: str = ""
    train_source: Settings = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Target:
    """A target language: unlabelled text, test files, and development files for curves and learned weights.

    `stand_in` marks test files that replace the published ones; see `Source` for the rest.
    """

    text: Files
    test: Files
    text_split: str = "text"
    test_split: str = "test"
    dev: Files = ()
    dev_split: str = "dev"
    note: str = ""
    stand_in: bool = False


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """How models read words: `vectors` (a file name with {code}) or `encoder` (a folder).

    `train_source` and `transfer` are options of these commands, `methods` those of `transfer` by method;
    `parser` and `tagger` hold the same three for one task and take precedence.
    """

    vectors: str | None = None
    encoder: str | None = None
    train_source: Settings = field(default_factory=dict)
    transfer: Settings = field(default_factory=dict)
    methods: Mapping[str, Settings] = field(default_factory=dict)
    parser: Settings = field(default_factory=dict)
    tagger: Settings = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Charts:
    """Charts of a target.

    Args:
        rule: `pool`, `union` or `linear`.
        weights: `uniform`, `agreement`, `learned` or `published` (from labelled sentences).
        sources: use only these sources.
        init_from: the initial model: a source, or `best` for the source that agrees most with the rest.
        add: methods whose target models join the sources.
        text_split: part of the target's text.
        build_charts: further options of `hf-xst build-charts`.
    """

    rule: str = "pool"
    weights: str = "uniform"
    sources: Sequence[str] = ()
    init_from: str | None = None
    add: Sequence[str] = ()
    text_split: str | None = None
    build_charts: Settings = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Method:
    """A way to train a target model.

    Args:
        charts: the charts to train on.
        transfer: options of `hf-xst transfer`.
        init_from: `average` or `scratch` in place of the initial model of the charts.
        upos: see `Study`; of the sentences that are scored.
        config: fields of the model configuration that are changed before scoring, e.g. single_root.
        targets, tasks: restrict the method to these.
        seeds: in place of those of the study.
        trials: number of trials of a random search; they are called METHOD:trial=1, METHOD:trial=2, ...
        search: by option of `transfer`, the range from which trials are drawn log-uniformly.
    """

    charts: str
    transfer: Settings = field(default_factory=dict)
    init_from: str | None = None
    upos: str | None = None
    config: Settings = field(default_factory=dict)
    targets: Sequence[str] = ()
    tasks: Sequence[str] = ()
    seeds: Sequence[int] = ()
    trials: int = 0
    search: Mapping[str, Sequence[float]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study.

    Args:
        sources, targets, encoders, charts, methods: by name, see these classes.
        tasks: by task (parser, tagger), options of commands as in `Encoder`.
        init_from: the source that transfer is initialised from.
        paper_methods: include `pptx` and `paper-pool`, trained on the charts `union` and `pool`.
        select: for each target, use only the N sources that agree most with the rest.
        upos: a tagger's method whose target model gives the UPOS tags that parsers read; defaults to gold.
        labelled: number of labelled sentences from which weights are learned.
        analyse: measure charts and pools of each target.
        rules: combinations of the sources without training.
        sigma: probability mass kept in charts.
        bf16: sources run in bfloat16 for charts, and their encoders for combinations.
        seeds: of target models; sources take the first one.
        output: folder of tables; defaults to runs/study/NAME.
        jobs: folder of target models and results, relative to the output; two studies may share one if they
            agree in all jobs of the same name.
        source_models: folder of source models, relative to the output; defaults to `jobs`.
        name, data: the name of the configuration, and the data folder.
    """

    sources: Mapping[str, Source]
    targets: Mapping[str, Target]
    encoders: Mapping[str, Encoder]
    tasks: Mapping[str, Settings]
    charts: Mapping[str, Charts] = field(default_factory=dict)
    methods: Mapping[str, Method] = field(default_factory=dict)
    init_from: str = "en"
    paper_methods: bool = True
    select: int | None = None
    upos: str | None = None
    labelled: int = 0
    analyse: bool = False
    rules: Sequence[str] = ("vote", "pool", "pool-agreement")
    sigma: float = 0.95
    bf16: bool = False
    seeds: Sequence[int] = (42,)
    output: str = ""
    jobs: str = "."
    source_models: str | None = None
    name: str = ""
    data: str = "."


PAPER_CHARTS = {"union": {"rule": "union"}, "pool": {}}
PAPER_METHODS = {"pptx": {"charts": "union"}, "paper-pool": {"charts": "pool"}}
ENTRIES = {"sources": Source, "targets": Target, "encoders": Encoder, "charts": Charts, "methods": Method}


def read_study(path: Path, data: str = ".", output: str | None = None) -> Study:
    """Read and validate a study.

    Args:
        path: the YAML file.
        data: the data folder.
        output: folder of tables, in place of that of the file.

    Raises:
        ValueError: the configuration is invalid; the message names the entry.
    """
    content = {name: value for name, value in read_config(path).items() if value is not None}
    check_names(content, {each.name for each in fields(Study)} - {"name", "data"}, str(path))
    paper_methods = PAPER_METHODS if content.get("paper_methods", True) else {}
    content["charts"] = {**PAPER_CHARTS, **content.get("charts", {})}
    content["methods"] = {**paper_methods, **content.get("methods", {})}
    for entry, kind in ENTRIES.items():
        named = content.get(entry, {}).items()
        marks = "-_.:=," if entry == "methods" else "-_."
        for name, _ in named:  # part of the paths of results
            if not re.fullmatch(rf"(?!\.)[\w{re.escape(marks)}]+", str(name)):
                raise ValueError(
                    f"{path}: {entry}: found the name {name!r}; expected letters, digits and {marks} without "
                    "a dot at the start"
                )
        content[entry] = {name: parse(kind, settings, f"{entry}: {name}") for name, settings in named}
    content["methods"] = dict(expand_trials(content["methods"]))
    content["output"] = output or content.get("output") or f"runs/study/{path.stem}"
    study = parse(Study, content | {"name": path.stem, "data": os.path.relpath(data)}, str(path))
    check_study(study)
    return study


# Types of fields by the beginning of their annotation.
TYPES: dict[str, Any] = {
    **{"Sequence": (list, tuple), "Mapping": Mapping, "Settings": Mapping, "Files": (str, list, tuple)},
    **{"str": str, "int": int, "bool": bool, "float": (int, float)},
}


def parse(kind: type[Entry], settings: Any, where: str) -> Entry:
    """Build a data class from settings; null stands for the default.

    Raises:
        ValueError: a name is unknown or missing, or a value has the wrong type.
    """
    if not isinstance(settings, Mapping):
        raise ValueError(f"{where}: found {settings!r}; expected settings, {{}} for defaults")
    known = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    check_names(settings, known, where)
    values = {name: value for name, value in settings.items() if value is not None}
    required = (name for name, each in known.items() if each.default is each.default_factory is MISSING)
    missing = [name for name in required if name not in values]
    if missing:
        raise ValueError(f"{where}: missing {' and '.join(missing)}")
    for name, value in values.items():
        annotation = str(known[name].type)
        types = next(types for start, types in TYPES.items() if annotation.startswith(start))
        is_list = annotation == "Sequence[int]"
        if not isinstance(value, types) or (is_list and not all(isinstance(each, int) for each in value)):
            raise ValueError(f"{where}: {name}: found {value!r}; expected {annotation}")
    return kind(**values)


def expand_trials(methods: Mapping[str, Method]) -> Iterator[tuple[str, Method]]:
    """Yield methods; one per trial, with options drawn by the trial's number, for each random search.

    Raises:
        ValueError: trials or ranges are missing, or a range is not [LOW, HIGH] with 0 < LOW <= HIGH.
    """
    for name, method in methods.items():
        where = f"methods: {name}"
        if (method.trials > 0) != bool(method.search):
            raise ValueError(f"{where}: found {method.trials} trials of {dict(method.search)}; expected both")
        for option, bounds in method.search.items():
            if len(bounds) != 2 or not 0 < bounds[0] <= bounds[1]:
                raise ValueError(f"{where}: search: {option}: found {bounds}; expected [LOW, HIGH] above 0")
        if not method.trials:
            yield name, method
        for trial in range(1, method.trials + 1):
            draw = random.Random(trial)
            drawn = {
                option: float(f"{math.exp(draw.uniform(math.log(low), math.log(high))):.3g}")
                for option, (low, high) in method.search.items()
            }
            yield f"{name}:trial={trial}", replace(method, transfer={**method.transfer, **drawn}, trials=0)


def check_names(names: Iterable[str | None], known: Iterable[str], where: str) -> None:
    """Raise a ValueError for an unknown name, with the most similar known one; None is no name."""
    expected = list(known)
    for name in names:
        if name is not None and name not in expected:
            near = get_close_matches(str(name), expected, n=1)
            hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(expected)}"
            raise ValueError(f"{where}: unknown name {name}; {hint}")


def check_study(study: Study) -> None:
    """Check that the names that entries refer to exist, and that entries fit together.

    Raises:
        ValueError: they do not; the message names the entry.
    """
    trained = [name for name, source in study.sources.items() if not source.place]
    check_names(study.tasks, TASKS, "tasks")
    check_names([study.init_from], study.sources, "init_from")
    check_names(study.rules, (*RULES, *FROM_LABELS), "rules")
    _check_upos(study, study.upos, "upos")
    if not study.seeds:
        raise ValueError("seeds: found an empty list; expected at least one seed")
    for name, source in study.sources.items():
        _check_source(study, name, source, trained)
    for name, source in study.sources.items():
        for target in set(_initial_models(study, name)) & set(study.targets):
            if target not in (name, *source.languages):
                raise ValueError(f"targets: {target}: source {name} is fine-tuned from that of the target")
    for where, options in _options(study):
        check_names(options, ("train_source", "transfer", "methods"), where)
        check_options("train_source", options.get("train_source", {}), f"{where}: train_source")
        check_options("transfer", options.get("transfer", {}), f"{where}: transfer")
        check_names(options.get("methods", {}), {**study.methods, **PAPER_METHODS}, f"{where}: methods")
        for name, settings in options.get("methods", {}).items():
            check_options("transfer", settings, f"{where}: methods: {name}")
    for name, charts in study.charts.items():
        _check_charts(study, charts, f"charts: {name}")
    for name, method in study.methods.items():
        _check_method(study, method, f"methods: {name}")
    _check_labelled(study)
    _check_average(study)


def _check_upos(study: Study, method: str | None, where: str) -> None:
    check_names([method], [*study.methods, GOLD], where)
    if method not in (None, GOLD) and "tagger" not in study.tasks:
        raise ValueError(f"{where}: {method} requires the task tagger; add it or use {GOLD}")


def _check_labelled(study: Study) -> None:
    charts = {name: charts for name, charts in study.charts.items() if charts.weights in WEIGHTS}
    needing = [f"rules: {rule}" for rule in study.rules if rule in FROM_LABELS]
    needing += [f"charts: {name}" for name in charts]
    if needing and not study.labelled:
        raise ValueError(f"{needing[0]} requires labelled sentences, and labelled is 0")
    if study.select and study.labelled:
        raise ValueError("select and labelled exclude each other: weights are learned for all sources")
    for name, entry in charts.items():
        if entry.sources or entry.add:
            raise ValueError(f"charts: {name}: learned weights exclude sources and add")
    lacking = [code for code, target in study.targets.items() if not target.dev]
    if study.labelled and lacking:
        raise ValueError(f"targets: {lacking[0]}: missing dev, from which labelled sentences are drawn")


def _check_average(study: Study) -> None:
    """Raise a ValueError if sources are averaged that are not fine-tuned from one model."""
    if not any(rule.startswith("average") for rule in study.rules):
        if all(method.init_from != "average" for method in study.methods.values()):
            return
    for task in study.tasks:
        pooled = [n for n, each in study.sources.items() if each.pool and task in (each.tasks or TASKS)]
        first = {_initial_models(study, name)[-1] for name in pooled}
        if len(first) > 1:
            raise ValueError(f"sources: {', '.join(sorted(first))} share no init_from and cannot be averaged")


def _initial_models(study: Study, name: str) -> list[str]:
    """Return a source and the sources that it is fine-tuned from, one after the other."""
    chain = [name]
    while (start := study.sources[chain[-1]].init_from) is not None:
        chain.append(start)
        if start in chain[:-1]:
            raise ValueError(f"sources: {name}: init_from is a cycle: {' -> '.join(chain)}")
    return chain


def _check_source(study: Study, name: str, source: Source, trained: Sequence[str]) -> None:
    where = f"sources: {name}"
    check_options("train_source", source.train_source, f"{where}: train_source")
    check_names(source.tasks, TASKS, f"{where}: tasks")
    check_names([source.init_from], trained, f"{where}: init_from")
    if (source.place is None) == (not source.train):
        raise ValueError(f"{where}: expected either train or place")
    if source.place and (source.script or source.dev or source.test or source.train_source):
        raise ValueError(f"{where}: place excludes script, dev, test and train_source")
    if source.init_from and (source.place or source.script):
        raise ValueError(f"{where}: place and script exclude init_from")


def _options(study: Study) -> Iterator[tuple[str, Settings]]:
    """Yield all entries that hold options of commands, and check how encoders read words."""
    yield from ((f"tasks: {task}", options) for task, options in study.tasks.items())
    for name, encoder in study.encoders.items():
        where = f"encoders: {name}"
        if (encoder.vectors is None) == (encoder.encoder is None):
            raise ValueError(f"{where}: expected either vectors or encoder")
        if encoder.vectors is not None and "{code}" not in encoder.vectors:
            raise ValueError(f"{where}: vectors: found {encoder.vectors}; expected a file name with {{code}}")
        parts = {name: vars(encoder)[name] for name in ("train_source", "transfer", "methods")}
        yield from ((where, parts), *((f"{where}: {task}", vars(encoder)[task]) for task in TASKS))


def _check_charts(study: Study, charts: Charts, where: str) -> None:
    check_options("build_charts", charts.build_charts, f"{where}: build_charts")
    check_names([charts.rule], ("pool", "union", "linear"), f"{where}: rule")
    check_names([charts.weights], ("uniform", "agreement", *WEIGHTS), f"{where}: weights")
    pooled = [name for name, source in study.sources.items() if source.pool]
    check_names(charts.sources, pooled, f"{where}: sources")
    check_names([charts.init_from], [*(charts.sources or pooled), "best"], f"{where}: init_from")
    if (study.select or "select" in charts.build_charts) and charts.init_from not in (None, "best"):
        raise ValueError(f"{where}: of selected sources the best one is the initial model; found init_from")
    check_names(charts.add, study.methods, f"{where}: add")


def _check_method(study: Study, method: Method, where: str) -> None:
    check_options("transfer", {**method.transfer, **method.search}, f"{where}: transfer")
    check_names([method.charts], study.charts, f"{where}: charts")
    check_names([method.init_from], ("average", "scratch"), f"{where}: init_from")
    check_names(method.tasks, TASKS, f"{where}: tasks")
    check_names(method.targets, study.targets, f"{where}: targets")
    _check_upos(study, method.upos, f"{where}: upos")


def check_options(command: str, options: Settings, where: str) -> None:
    """Raise a ValueError for options that a command lacks, or that the study sets itself."""
    kind, derived = COMMANDS[command]
    check_names(options, command_options(kind), where)
    for name in options:
        if name in derived.split():
            raise ValueError(f"{where}: {name} is set by the study from its other entries")


@cache
def command_options(kind: str) -> tuple[str, ...]:
    """Return the options of a command from the source of its data class and those that this extends.

    Importing the package takes seconds, which each job of a cluster would spend again.
    """
    spec = find_spec("hf_xst")
    if spec is None or spec.origin is None:
        raise ImportError("the package hf_xst is not installed")
    modules = [Path(spec.origin).parent / name for name in ("sources/loading.py", "commands/options.py")]
    nodes = [node for path in modules for node in ast.parse(path.read_text(encoding="utf-8")).body]
    classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}

    def options(name: str) -> Iterator[str]:
        for base in classes[name].bases:
            yield from options(base.id) if isinstance(base, ast.Name) else ()
        for node in classes[name].body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield node.target.id

    return tuple(dict.fromkeys(options(kind)))


class TextLoader(yaml.SafeLoader):
    """Read `no`, `on` and the like as text: `no` is the code of Norwegian."""


TextLoader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in forms if not tag.endswith(":bool") or first in "tTfF"]
    for first, forms in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_config(path: Path, above: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Read a configuration, merged into the one that its entry `base` names.

    `base: FILE` is relative to this file; `without: [ENTRY, ...]` drops top-level entries of the base. Other
    entries are merged into the base: mappings by name, a list of names in place of a mapping keeps only these
    names, null removes an entry, and any other value replaces the value of the base.

    Args:
        path: the file.
        above: files that have this one as their base.

    Raises:
        ValueError: the file is missing or invalid, or names what its base does not have.
    """
    path = path.resolve()
    if path in above:
        raise ValueError(f"{path}: base is a cycle: {' -> '.join(each.name for each in (*above, path))}")
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), TextLoader)  # noqa: S506 - a safe loader
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist; expected a study such as small.yaml") from None
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: invalid YAML: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected entries such as sources, targets and encoders")
    if "base" not in content:
        return content
    base = read_config(path.parent / content.pop("base"), (*above, path))
    without = content.pop("without", [])
    check_names(without, base, f"{path}: without")
    return overlay({name: value for name, value in base.items() if name not in without}, content, str(path))


def overlay(base: Settings, changes: Settings, where: str) -> dict[str, Any]:
    """Merge changes into a base; see `read_config`."""
    merged = dict(base)
    for name, value in changes.items():
        below, place = base.get(name), f"{where}: {name}"
        if value is None:
            check_names([name], base, where)
            del merged[name]
        elif isinstance(below, Mapping) and isinstance(value, Mapping):
            merged[name] = overlay(below, value, place)
        elif isinstance(below, Mapping) and isinstance(value, list):
            check_names(value, below, place)
            merged[name] = {entry: below[entry] for entry in value}
        else:
            merged[name] = value
    return merged
