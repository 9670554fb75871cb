"""Make charts for unlabelled sentences from source models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from datasets import Dataset

from hf_xst.charts.dataset import FORMAT_VERSION, ChartSettings, write_provenance
from hf_xst.commands.options import BuildChartsArguments
from hf_xst.commands.presets import (
    AGREEMENT,
    PUBLISHED_RECIPE,
    RECIPES,
    RECOMMENDED,
    UNIFORM,
    Recipe,
    chart_limits,
    default_recipe,
)
from hf_xst.commands.runs import RunFolder, check_one_process, check_output, package_versions
from hf_xst.commands.sentences import annotate, read_word_vectors, unlabelled_rows
from hf_xst.console import say
from hf_xst.data import WordVectors, first
from hf_xst.data.treebank_facts import treebank_facts
from hf_xst.files import CHARTS
from hf_xst.models.modeling import StructuredModel
from hf_xst.sources.agreement import (
    SELECTION_SENTENCES,
    agreement_weights,
    measure_sources,
    rank_sources,
    read_weights,
    select_sources,
)
from hf_xst.sources.averaging import have_mean
from hf_xst.sources.building import BuildCounts, ChartMaker, build_shards
from hf_xst.sources.pool import SourcePool, SourceSpec, joint_names, load_sources, weights_digest
from hf_xst.sources.word_checks import tell_of_unknown_words


def build_charts(arguments: BuildChartsArguments) -> dict[str, Any]:
    """Make charts and write them with their provenance; an interrupted run goes on where it stopped.

    Args:
        arguments: see the class.

    Returns:
        The provenance, which is also in OUTPUT/provenance.json.

    Raises:
        ValueError: the sources or the sentences do not fit, or OUTPUT holds other charts.
    """
    check_one_process("build-charts")
    check_output(arguments.output, CHARTS)
    specs = SourceSpec.parse_all(arguments.sources)
    vectors = read_word_vectors(arguments)
    models = load_sources(specs, vectors)
    name = _recipe(arguments, models)
    recipe = RECIPES[name]
    settings = _settings(arguments, recipe)
    rows, note = _sentences(arguments, recipe, next(iter(models.values())), vectors)
    tell_of_unknown_words(next(iter(models.values())), rows["words"])
    choice = choose(arguments, recipe, models, rows)
    specs = [spec for spec in specs if spec.name in choice.names]
    models = {spec.name: models[spec.name] for spec in specs}
    settings = settings if choice.weights is None else replace(settings, weights=choice.weights)
    from_mean = _from_mean(arguments, recipe, models)
    say(f"training is to start from {'the mean of the sources' if from_mean else choice.start}")
    first = models[choice.start]
    names = first.names if arguments.labels == "start" else joint_names([first, *models.values()])
    make = ChartMaker(SourcePool(models, names), settings)
    provenance = _provenance(specs, models, choice.start, names, settings, vectors, arguments)
    provenance |= {"recipe": name, "weights_by_agreement": choice.weights is not None}
    provenance |= {"start_from_mean": True} if from_mean else {}
    folder = RunFolder(arguments.output, arguments)
    counts = build_shards(
        rows, make, folder.path, _identity(provenance, models), batch_words=arguments.batch_words
    )
    folder.begin()
    _report(counts)
    provenance |= {
        "sentences": note.split(": ", 1)[-1],
        "text": _text_facts(arguments),
        "label_settings": first.label_settings,
        "counts": asdict(counts),
        "versions": package_versions(),
    }
    write_provenance(folder.path, provenance)
    return provenance


def _recipe(arguments: BuildChartsArguments, models: Mapping[str, StructuredModel]) -> str:
    if arguments.recipe is not None:
        return arguments.recipe
    if arguments.rule != "pool":
        return PUBLISHED_RECIPE
    return RECOMMENDED if have_mean(models) else default_recipe(next(iter(models.values())).config.model_type)


def _from_mean(
    arguments: BuildChartsArguments, recipe: Recipe, models: Mapping[str, StructuredModel]
) -> bool:
    return recipe.start_by_agreement and arguments.start is None and have_mean(models)


def _settings(arguments: BuildChartsArguments, recipe: Recipe) -> ChartSettings:
    keep = recipe.keep_log_probs if arguments.keep_log_probs is None else arguments.keep_log_probs
    weights = arguments.weights or recipe.weights
    return ChartSettings(
        arguments.rule,
        recipe.sigma if arguments.sigma is None else arguments.sigma,
        arguments.floor,
        None if weights in (AGREEMENT, UNIFORM) else read_weights(weights),
        keep,
        arguments.temperature,
    )


def _sentences(
    arguments: BuildChartsArguments, recipe: Recipe, model: StructuredModel, vectors: WordVectors | None
) -> tuple[Dataset, str]:
    longest = recipe.max_length if arguments.max_length is None else arguments.max_length
    rows, note = unlabelled_rows(arguments, **chart_limits(model, longest))
    say(note)
    return annotate(rows, arguments.tagger, vectors), note


def _text_facts(arguments: BuildChartsArguments) -> list[dict[str, Any]]:
    if arguments.treebank is not None:
        return treebank_facts(arguments.treebank, arguments.split, arguments.data)
    return [{"name": Path(str(arguments.text)).name}]


def _provenance(
    specs: list[SourceSpec],
    models: Mapping[str, StructuredModel],
    start: str,
    names: list[str],
    settings: ChartSettings,
    vectors: WordVectors | None,
    arguments: BuildChartsArguments,
) -> dict[str, Any]:
    space = None if vectors is None else {"name": vectors.name, "sha256": vectors.sha256}
    return {
        "format_version": FORMAT_VERSION,
        "model_type": models[start].config.model_type,
        "names": names,
        "labels": arguments.labels,
        "start": start,
        "sources": [
            {
                "name": spec.name,
                "id": spec.public_id(),
                "revision": spec.revision,
                "weights_sha256": weights_digest(models[spec.name]),
                "labels_not_in_charts": sorted(set(models[spec.name].names) - set(names)),
            }
            for spec in specs
        ],
        "vectors": space,
        "annotated_by_model": arguments.tagger is not None,
        **asdict(settings),
    }


def _identity(provenance: Mapping[str, Any], models: Mapping[str, StructuredModel]) -> dict[str, Any]:
    """Name all that the charts depend on beside the sentences: also how each model's weights are used."""
    configurations = {name: model.config.to_diff_dict() for name, model in models.items()}
    for configuration in configurations.values():
        configuration.pop("transformers_version", None)
    return {**provenance, "configurations": configurations}


def _report(counts: BuildCounts) -> None:
    say(f"{counts.sentences} sentences, {counts.kept / max(1, counts.groups):.2f} candidates kept per group")
    if counts.without_support:
        say(
            f"{counts.without_support} groups in which the sources share no support keep their best only",
            "yellow",
        )
    for name, mass in counts.dropped_mass.items():
        say(
            f"{name}: {mass:.1f} expected candidates ({mass / max(1, counts.groups):.2%}) have labels that "
            "the charts lack and were dropped; --labels union keeps them",
            "yellow",
        )


@dataclass(frozen=True)
class Choice:
    """What was chosen of the sources.

    Args:
        names: of those that are used, in the order given.
        start: the one that training starts from.
        weights: of the pool, by name, if derived from the sources' agreement.
    """

    names: list[str]
    start: str
    weights: Mapping[str, float] | None


def choose(
    arguments: BuildChartsArguments,
    recipe: Recipe,
    models: Mapping[str, StructuredModel],
    rows: Dataset,
) -> Choice:
    """Choose among sources, as told or as the recipe has it; nothing here reads labels of the sentences.

    Args:
        arguments: what was told.
        recipe: what holds otherwise.
        models: the sources by name.
        rows: the sentences.

    Raises:
        ValueError: the start is none of the sources, or more sources are to be chosen than there are.
    """
    if arguments.start is not None and arguments.start not in models:
        raise ValueError(f"--start is {arguments.start}, which is none of the sources: {', '.join(models)}")
    weighed = (arguments.weights or recipe.weights) == AGREEMENT
    order = _selected(arguments, models, rows)
    names = [name for name in models if name in order]
    by_agreement = arguments.start is None and arguments.select is None and recipe.start_by_agreement
    weights = None
    if len(names) > 1 and (weighed or by_agreement):
        measures = measure_sources(*_sample({name: models[name] for name in names}, rows))
        order = rank_sources(measures) if by_agreement else order
        weights = agreement_weights(measures) if weighed else None
        said = [f"{name} {measures[name]['agreement']:.3f}" for name in rank_sources(measures)]
        say(f"agreement with the pool of the others: {', '.join(said)}")
    start = arguments.start or order[0]
    if start not in names:
        raise ValueError(f"--start is {start}, which is not among the chosen sources: {', '.join(names)}")
    return Choice(names, start, weights)


def _selected(
    arguments: BuildChartsArguments, models: Mapping[str, StructuredModel], rows: Dataset
) -> list[str]:
    """Return the names of the sources that are used, best first where they are chosen."""
    if arguments.select is None:
        return list(models)
    chosen = select_sources(*_sample(models, rows), arguments.select, arguments.select_by)
    say(f"chosen by {arguments.select_by}: {', '.join(chosen)} (of {', '.join(models)})")
    return chosen


def _sample(models: Mapping[str, StructuredModel], rows: Dataset) -> tuple[SourcePool, Dataset]:
    """Return the sources over one alphabet, and as many sentences as they are compared on."""
    return SourcePool(models), first(rows, SELECTION_SENTENCES)
