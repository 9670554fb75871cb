"""The command `hf-xst build-charts`: make charts for unlabelled sentences from source models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

from datasets import Dataset

from hf_xst.charts.dataset import DATA, ChartCounts, ChartInfo, ChartSource
from hf_xst.commands.options import BuildChartsArguments, takes_options
from hf_xst.commands.presets import AGREEMENT, Preset, length_limits, resolve_charts
from hf_xst.commands.runs import RunFolder, package_versions
from hf_xst.commands.sentences import (
    annotate,
    leave_out,
    read_word_vectors,
    source_pool,
    unlabelled_rows,
)
from hf_xst.console import say
from hf_xst.data import first_rows, is_hub_text
from hf_xst.data.treebank_facts import TreebankFacts, treebank_facts
from hf_xst.files import CHARTS
from hf_xst.models.kinds import model_class_for, model_type_of
from hf_xst.models.modeling import StructuredModel
from hf_xst.sources.agreement import (
    SELECTION_SENTENCES,
    agreement_weights,
    measure_sources,
    rank_sources,
    select_sources,
)
from hf_xst.sources.averaging import SCRATCH, can_average
from hf_xst.sources.base import OtherSource
from hf_xst.sources.building import ChartMaker, build_shards
from hf_xst.sources.loading import SourceSpec, load_sources, model_digest, source_digest, source_licence
from hf_xst.sources.pool import AnySource, SourcePool, joint_names, kind_of
from hf_xst.sources.word_checks import check_text


@takes_options(BuildChartsArguments)
def build_charts(options: BuildChartsArguments) -> ChartInfo:
    """Make charts and write them with their record, which is returned; an interrupted run resumes.

    Raises:
        ValueError: the sources or the sentences do not fit, or OUTPUT holds other charts.
    """
    folder = RunFolder(options.output, options, CHARTS, DATA)
    vectors = read_word_vectors(options)
    specs = SourceSpec.parse_all(options.sources)
    models = load_sources(options.sources, vectors, options)
    preset, plan = resolve_charts(options, models)
    kind = SourcePool(models).kind
    rows, note = unlabelled_rows(options, **length_limits(kind, plan.max_length))
    rows = leave_out(rows, options.exclude)
    rows = annotate(rows, options.tagger, vectors)
    check_text(models, rows)
    used, initial_model, weights = rank(options, plan, models, rows)
    models = {name: models[name] for name in used}
    initial = kind_of(models.get(initial_model, models[used[0]]))
    from_average = plan.rank_sources and options.select is None and can_average(models)
    say(f"initial model: {'average of the sources' if from_average else initial_model}")
    labels: Literal["initial", "union"] = "union" if initial_model == SCRATCH else options.labels
    names = initial.names
    if labels == "union":
        names = joint_names([initial, *(kind_of(each) for each in models.values())])
    info = ChartInfo(
        model_type=model_type_of(model_class_for(kind)),
        names=list(names),
        sources=[_source(spec, models[spec.name], names) for spec in specs if spec.name in models],
        settings=replace(plan.charts, weights=weights or plan.charts.weights),
        initial_model=initial_model,
        from_average=from_average,
        labels=labels,
        preset=preset,
        weights_by_agreement=weights is not None,
        vectors=None if vectors is None else {"name": vectors.name, "sha256": vectors.sha256},
        annotated_by_model=options.tagger is not None,
        lost_mass=0.0 if options.marginals_cache is None else options.lost_mass,
        bf16=options.bf16,
    )
    maker = ChartMaker(source_pool(options, models, names), info.settings)
    counts = build_shards(rows, maker, folder.path, _identity(info, models), batch_words=options.batch_words)
    folder.begin()
    _report(counts)
    info = replace(
        info,
        sentences=note.split(": ", 1)[-1],
        text=_text_facts(options),
        label_settings=initial.label_settings,
        counts=counts,
        versions=package_versions(),
    )
    if folder.is_main:
        info.save(folder.path)
    return info


def rank(
    options: BuildChartsArguments, plan: Preset, models: Mapping[str, AnySource], rows: Dataset
) -> tuple[list[str], str, dict[str, float] | None]:
    """Return the sources in use, the initial model, and weights by agreement, if any; all without labels.

    Raises:
        ValueError: the initial model is not among the sources, or there are too few sources.
    """
    if options.init_from is not None and options.init_from not in models:
        raise ValueError(
            f"--init-from {options.init_from} is not a source; expected one of {', '.join(models)}"
        )
    sample = first_rows(rows, SELECTION_SENTENCES)
    order = list(models)
    if options.select is not None:
        order = select_sources(source_pool(options, models), sample, options.select, options.select_by)
        say(f"selected by {options.select_by}: {', '.join(order)} (of {', '.join(models)})")
    names = [name for name in models if name in order]
    weights = None
    by_agreement = plan.weights == AGREEMENT
    if len(names) > 1 and (by_agreement or plan.rank_sources):
        measures = measure_sources(source_pool(options, {name: models[name] for name in names}), sample)
        ranked = rank_sources(measures)
        order = ranked if plan.rank_sources else order
        weights = agreement_weights(measures) if by_agreement else None
        agreements = ", ".join(f"{name} {measures[name]['agreement']:.3f}" for name in ranked)
        say(f"agreement with the pool of the others: {agreements}")
    own = [name for name in order if isinstance(models[name], StructuredModel)]
    initial = options.init_from or next(iter(own), SCRATCH)
    if initial == SCRATCH:
        say("none of the sources can initialise training: use transfer --init-from scratch --encoder")
    elif initial not in names:
        raise ValueError(f"--init-from {initial} is not among the selected sources: {', '.join(names)}")
    return names, initial, weights


def _source(spec: SourceSpec, source: AnySource, names: list[str]) -> ChartSource:
    missing = sorted(set(source.names) - set(names))
    other = source if isinstance(source, OtherSource) else None
    return ChartSource(
        spec.name,
        spec.public_id(),
        spec.revision,
        source_digest(source),
        missing,
        "model" if isinstance(source, StructuredModel) else other.kind if other else "other",
        source_licence(spec, source),
    )


def _text_facts(options: BuildChartsArguments) -> list[dict[str, Any]]:
    if options.treebank is not None:
        return treebank_facts(options.treebank, options.split, options.data)
    if is_hub_text(options.text) and not Path(str(options.text)).exists():
        return [asdict(TreebankFacts(re.split("[:@]", str(options.text))[0], on_hub=True))]
    return [{"name": Path(str(options.text)).name}]


def _identity(info: ChartInfo, models: Mapping[str, AnySource]) -> dict[str, Any]:
    """Return everything that the charts depend on besides the sentences."""
    owned = {name: model_digest(each) for name, each in models.items() if isinstance(each, StructuredModel)}
    return {**asdict(info), "models": owned}


def _report(counts: ChartCounts) -> None:
    groups = max(1, counts.groups)
    say(f"{counts.sentences} sentences, {counts.kept / groups:.2f} candidates kept per group")
    if counts.without_support:
        say(
            f"In {counts.without_support} groups no label has support from every source; only the sources' "
            "best labels were kept.",
            "yellow",
        )
    for name, mass in counts.dropped_mass.items():
        say(
            f"{name}: {mass:.1f} expected candidates ({mass / groups:.2%}) have labels that the charts lack "
            "and were dropped; --labels union keeps them",
            "yellow",
        )
