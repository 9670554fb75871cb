"""Which sources make charts, with which weights, and from which one training starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from datasets import Dataset

from hf_xst.data import first
from hf_xst.models.base import StructuredModel
from hf_xst.training.arguments import BuildChartsArguments
from hf_xst.training.recipes import AGREEMENT, Recipe
from hf_xst.training.runs import say
from hf_xst.training.selection import (
    SELECTION_SENTENCES,
    agreement_weights,
    measure_sources,
    rank_sources,
    select_sources,
)
from hf_xst.training.sources import SourcePool


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
