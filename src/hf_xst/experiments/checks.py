"""What is wrong in a study's configuration is told before hours are spent on it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from hf_xst.commands.options import (
    BuildChartsArguments,
    TrainSourceArguments,
    TransferArguments,
    VoteArguments,
)
from hf_xst.experiments.plans import ChartPlan, Method, Settings
from hf_xst.sources.averaging import MEAN

if TYPE_CHECKING:
    from hf_xst.experiments.study import Study

KINDS = ("parser", "tagger")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
# Kinds of charts that step size and pull may be set for apart, see `hf_xst.commands.presets`.
SPECIAL = ("union", "pool", "learned")
GOLD = "gold"  # in place of a tagger's method
LEARNED, PUBLISHED = "learned", "published"
_FROM_LABELS = (LEARNED, PUBLISHED)
_JOBS = ("train_source", "transfer")
_KINDS_OF_JOBS: dict[str, Any] = {
    "train_source": TrainSourceArguments,
    "transfer": TransferArguments,
    "build": BuildChartsArguments,
}
_FILES = frozenset("output seed treebank split tagger vectors".split())
_FILLED_IN = {
    "train_source": _FILES | {"task", "dev_split", "start", "encoder"},
    "transfer": _FILES | {"charts", "states", "start", "like"},
    "build": _FILES | {"sources", "start", "rule", "weights", "text"},
}
# What entries may say, and what they must.
_ENTRIES: dict[str, tuple[str, str]] = {
    "sources": ("train split dev dev_split test test_split start pool languages mark train_source", "train"),
    "targets": ("text text_split dev dev_split test test_split mark stand_in", "text test"),
    "encoders": ("vectors encoder train_source transfer parser tagger", ""),
    "tasks": ("train_source transfer", ""),
}


def check_study(study: Study) -> None:
    """See that a study can be made: all names are known, and all that is named is there.

    Raises:
        ValueError: something is not; the message says where, what was found and what is expected.
    """
    _check_entries(study)
    _check_jobs(study)
    _check_values(study)
    study.sources_by_start()
    for name, plan in study.plans.items():
        _check_plan(study, plan, f"charts: {name}")
    for name, method in study.all_methods.items():
        _check_method(study, name, method)


def check_makeable(study: Study) -> None:
    """See that a study's cells can be made; a report needs less.

    Raises:
        ValueError: an encoder has neither vectors nor a pretrained encoder, or both; or a target lacks the
            part of which labelled sentences are drawn.
    """
    for name, given in study.encoders.items():
        if ("vectors" in given) == ("encoder" in given):
            found = "both" if "encoder" in given else "neither"
            raise ValueError(f"encoders: {name}: found {found} of vectors and encoder; expected one")
        pattern = given.get("vectors", "{code}")
        if set(_PLACEHOLDER.findall(pattern)) != {"{code}"}:
            raise ValueError(
                f"encoders: {name}: vectors: found {pattern!r}; expected a file name with {{code}}"
            )
    without = [code for code, given in study.targets.items() if "dev" not in given]
    if without and study.labelled:
        raise ValueError(
            f"targets: {without[0]}: there is no dev, of which the {study.labelled} labelled sentences are "
            "drawn; give one, or say labelled: 0"
        )


def known_names(given: Iterable[str], known: Collection[str], what: str, kind: str = "") -> None:
    """Refuse names that are not known.

    Args:
        given: the names.
        known: those that there are.
        what: the place that errors tell.
        kind: what the names are of.

    Raises:
        ValueError: one is not known; the message says which may be meant.
    """
    for name in given:
        if name not in known:
            near = get_close_matches(str(name), known, n=1)
            hint = f"; is {near[0]} meant?" if near else f"; there are {', '.join(known)}"
            raise ValueError(f"{what}: there is no {f'{kind} {name}'.strip()}{hint}")


def known_settings(given: Settings, kind: Any, what: str) -> None:
    """Refuse settings that a data class has not (see `known_names`), or that are of another type.

    Raises:
        ValueError: there is such a setting.
    """
    known_names(given, [each.name for each in fields(kind)], what)
    hints = get_type_hints(kind)
    for name, value in given.items():
        allowed = get_args(hints[name]) or (hints[name],)
        if isinstance(value, str) and {int, float} & set(allowed) and str not in allowed:
            raise ValueError(f"{what}: {name}: found {value!r}; expected a number")


def _job_settings(given: Settings, job: str, what: str) -> None:
    """Refuse settings of a command that it does not have, or that a study fills in itself."""
    known_settings(given, _KINDS_OF_JOBS[job], what)
    for name in given:
        if name in _FILLED_IN[job]:
            raise ValueError(f"{what}: {name} is filled in by the study, from its own entries")


def _check_entries(study: Study) -> None:
    for name, (known, needed) in _ENTRIES.items():
        entries = getattr(study, name)
        if not isinstance(entries, Mapping):
            raise ValueError(
                f"{name}: found {entries!r}; expected names with their settings (a list of names chooses "
                "among those of a base)"
            )
        for entry, given in entries.items():
            if not isinstance(entry, str):
                raise ValueError(f"{name}: found the name {entry!r}; quote it: YAML reads no as false")
            if not isinstance(given, Mapping):
                raise ValueError(f"{name}: {entry}: found {given!r}; expected settings, {{}} for none")
            known_names(given, known.split(), f"{name}: {entry}")
            missing = [key for key in needed.split() if key not in given]
            if missing:
                raise ValueError(f"{name}: {entry}: there is no {' and no '.join(missing)}")
    known_names(study.tasks, KINDS, "tasks")


def _parts(study: Study) -> Iterator[tuple[str, Settings]]:
    """Give all that holds settings of commands, with its place."""
    yield from ((f"tasks: {name}", given) for name, given in study.tasks.items())
    for name, given in study.encoders.items():
        yield f"encoders: {name}", given
        for task in KINDS:
            part = given.get(task, {})
            known_names(part, _JOBS, f"encoders: {name}: {task}")
            yield f"encoders: {name}: {task}", part


def _check_jobs(study: Study) -> None:
    for where, part in _parts(study):
        for job in _JOBS:
            settings = dict(part.get(job, {}))
            for rule in [rule for rule in SPECIAL if rule in settings and job == "transfer"]:
                _job_settings(settings.pop(rule), job, f"{where}: {job}: {rule}")
            _job_settings(settings, job, f"{where}: {job}")
    for name, source in study.sources.items():
        _job_settings(source.get("train_source", {}), "train_source", f"sources: {name}: train_source")


def _check_values(study: Study) -> None:
    if not isinstance(study.seeds, (list, tuple)) or not study.seeds:
        raise ValueError(f"seeds: found {study.seeds!r}; expected a list of at least one number")
    if isinstance(study.rules, str):
        raise ValueError(f"rules: found {study.rules!r}; expected a list")
    if not isinstance(study.labelled, int):
        raise ValueError(f"labelled: found {study.labelled!r}; expected a number of sentences")
    known_names(study.rules, [*_choices(VoteArguments, "rule"), MEAN, PUBLISHED], "rules")
    known_names([study.start], list(study.sources), "start")
    _check_upos(study, study.upos, "upos")
    if study.select is not None and study.select < 1:
        raise ValueError(f"select: found {study.select}; expected a number of sources")
    asking = [rule for rule in study.rules if rule in ("grouped", PUBLISHED)]
    if asking and not study.labelled:
        raise ValueError(f"rules: {asking[0]} takes weights from labelled sentences, and labelled is 0")


def _check_plan(study: Study, plan: ChartPlan, where: str) -> None:
    _job_settings(plan.build, "build", f"{where}: build")
    known_names([plan.rule], _choices(BuildChartsArguments, "rule"), f"{where}: rule")
    if plan.weights is not None and not plan.weights.endswith((".yaml", ".yml")):
        known_names([plan.weights], [*_FROM_LABELS, "agreement", "uniform"], f"{where}: weights")
    known_names(plan.sources or (), list(study.sources), where, "source")
    if plan.start is not None:
        known_names([plan.start], [*study.sources, "best"], f"{where}: start")
    known_names(plan.add, study.all_methods, f"{where}: add")
    _check_upos(study, plan.upos, f"{where}: upos")


def _check_method(study: Study, name: str, method: Method) -> None:
    where = f"methods: {name}"
    _job_settings(method.transfer, "transfer", f"{where}: transfer")
    if (method.charts or name) not in study.plans:
        raise ValueError(
            f"{where}: it wants the charts {method.charts or name!r}; there are {', '.join(study.plans)}"
        )
    if study.plans[method.charts or name].weights in _FROM_LABELS and not study.labelled:
        raise ValueError(f"{where}: its charts take weights from labelled sentences, and labelled is 0")
    if method.start not in (None, MEAN):
        raise ValueError(f"{where}: found the start {method.start!r}; expected {MEAN}")
    known_names(method.tasks or (), KINDS, f"{where}: tasks")
    known_names(method.targets or (), list(study.targets), f"{where}: targets")
    known_names(method.encoders or (), list(study.encoders), f"{where}: encoders")
    _check_upos(study, method.upos, f"{where}: upos")


def _check_upos(study: Study, upos: str | None, where: str) -> None:
    if upos is not None:
        known_names([upos], [*study.all_methods, GOLD], where)


def _choices(kind: Any, name: str) -> tuple[str, ...]:
    """Return the values that an argument may have."""
    return get_args(get_type_hints(kind)[name])
