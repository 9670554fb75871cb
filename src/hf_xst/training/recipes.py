"""Two ways from sources to a target model: as published, and the one that did best here (docs/results).

A recipe says what holds where nothing else is told: `hf-xst build-charts` writes its name with the charts,
and `hf-xst transfer` trains on charts as in the recipe that they were made by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from hf_xst.training.arguments import TransferArguments
from hf_xst.training.collation import Bests, ChartUse

Arguments = TypeVar("Arguments", bound=TransferArguments)
AGREEMENT, UNIFORM = "agreement", "uniform"  # in place of a file of weights


@dataclass(frozen=True)
class Recipe:
    """What building charts and training on them take where they are not told otherwise.

    Args:
        start_by_agreement: training starts from the mean of the sources where these were fine-tuned from one
            start, else from the source that agrees best with the others; if not, from the first.
        weights: `agreement` or `uniform`.
        sigma: mass that is stored.
        keep_log_probs: the pooled log-probabilities are stored as well.
        max_length: longest sentence, added tokens counted; the published one of the task if not given.
        use: what of a stored chart a model is trained on.
        learning_rate: step size of training; the published one of the task if not given.
        updates: number of updates.
        batch_size: sentences of a batch.
    """

    start_by_agreement: bool = False
    weights: str = UNIFORM
    sigma: float = 0.95
    keep_log_probs: bool = False
    max_length: int | None = None
    use: ChartUse = ChartUse()
    learning_rate: float | None = None
    updates: int = 800
    batch_size: int = 80


PUBLISHED_RECIPE, RECOMMENDED = "published", "recommended"
RECIPES: Mapping[str, Recipe] = {
    PUBLISHED_RECIPE: Recipe(),
    RECOMMENDED: Recipe(
        start_by_agreement=True,
        weights=AGREEMENT,
        sigma=0.999,
        keep_log_probs=True,
        max_length=61,
        use=ChartUse(best="pool", sigma=0.95, soft=0.5),
        learning_rate=1e-4,
        updates=200,  # from a good start, more of them are no sure gain (docs/results)
        batch_size=20,
    ),
}


def recipe_of(provenance: Mapping[str, Any]) -> str:
    """Name the recipe that charts were made by; charts from before there were two are published ones."""
    return str(provenance.get("recipe", PUBLISHED_RECIPE))


def as_in_recipe(arguments: Arguments, provenance: Mapping[str, Any]) -> Arguments:
    """Fill in the length of training and the size of batches, where they are not told.

    Raises:
        ValueError: the charts' recipe is not known.
    """
    recipe = _known(recipe_of(provenance))
    return replace(
        arguments,
        updates=recipe.updates if arguments.updates is None else arguments.updates,
        batch_size=recipe.batch_size if arguments.batch_size is None else arguments.batch_size,
    )


def _known(recipe: str) -> Recipe:
    if recipe not in RECIPES:
        raise ValueError(
            f"the charts were made by the recipe {recipe!r}; this package knows {', '.join(RECIPES)}"
        )
    return RECIPES[recipe]


def chart_use(
    provenance: Mapping[str, Any],
    best: Bests | None = None,
    sigma: float | None = None,
    soft: float | None = None,
) -> ChartUse:
    """Complete what is told of the use of charts by the recipe that they were made by.

    Args:
        provenance: of the charts: their recipe, and the mass that they hold.
        best: see `ChartUse`; the recipe's if not given, as the next two.
        sigma: see `ChartUse`; where the recipe's is more than the charts hold, all of them is taken.
        soft: see `ChartUse`.

    Raises:
        ValueError: the recipe is not known, a value is out of range, or sigma is more than the charts hold.
    """
    own, held = _known(recipe_of(provenance)).use, float(provenance["sigma"])
    if sigma is not None and sigma > held:
        raise ValueError(
            f"sigma is {sigma}, but the charts hold {held} of the mass: give no more than that, or make them "
            f"again with build-charts --sigma {sigma}"
        )
    if sigma is None and own.sigma is not None and own.sigma < held:
        sigma = own.sigma
    return ChartUse(own.best if best is None else best, sigma, own.soft if soft is None else soft)
