"""Two ways from sources to a target model: as published, and the one that did best here (docs/results).

A recipe says what holds where nothing else is told: `hf-xst build-charts` writes its name with the charts,
and `hf-xst transfer` trains on charts as in the recipe that they were made by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from hf_xst.commands.options import TransferArguments
from hf_xst.models.modeling import StructuredModel
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


@dataclass(frozen=True)
class Published:
    """Settings that differ between the two tasks.

    Args:
        target_length: longest target sentence in training, added tokens counted.
        learning_rate: Adam's step size, by kind of charts, see `kind_of`.
        l2: strength of the pull to the starting parameters, by kind of charts.
        recipe: the one that is taken where none is told, see `hf_xst.commands.presets`: what did better on
            most of the paper's languages (docs/results).
    """

    target_length: int
    learning_rate: dict[str, float]
    l2: dict[str, float]
    recipe: str


SOURCE_LEARNING_RATE = 1e-4
PUBLISHED = {
    "hf_xst_biaffine_parser": Published(
        30,
        {"union": 8.5e-5, "pool": 9.4e-5, "learned": 9.1e-5},
        {"union": 2.8e-5, "pool": 1.6e-4, "learned": 5.1e-4},
        RECOMMENDED,
    ),
    "hf_xst_crf_tagger": Published(
        60,
        {"union": 5.9e-5, "pool": 2.6e-4, "learned": 4.7e-4},
        {"union": 0.1, "pool": 4.7e-3, "learned": 0.062},
        PUBLISHED_RECIPE,
    ),
}


def default_recipe(model_type: str) -> str:
    """Name the recipe that a kind of model takes where none is told; for new kinds the published one."""
    return PUBLISHED[model_type].recipe if model_type in PUBLISHED else PUBLISHED_RECIPE


def published(model_type: str, flag: str) -> Published:
    """Return the published settings of a kind of model.

    Args:
        model_type: as in its configuration.
        flag: what must be told for kinds that the paper does not have.

    Raises:
        ValueError: it is such a kind.
    """
    if model_type not in PUBLISHED:
        raise ValueError(f"the paper has no settings for a {model_type}: give {flag}")
    return PUBLISHED[model_type]


def target_length(model_type: str) -> int:
    """Return the longest target sentence in training, added tokens counted.

    Raises:
        ValueError: see `published`.
    """
    return published(model_type, "--max-length").target_length


def chart_limits(model: StructuredModel, max_length: int | None = None) -> dict[str, int]:
    """Say which sentences get charts, as limits for `hf_xst.data.prepare`.

    Args:
        model: one of the sources.
        max_length: longest sentence, added tokens counted; by default the published one.

    Raises:
        ValueError: the length is below 1, or not given for a kind of model that the paper does not have.
    """
    if max_length is not None and max_length < 1:
        raise ValueError(f"max_length is {max_length}; expected at least 1")
    limit = target_length(model.config.model_type) if max_length is None else max_length
    return {"max_length": limit, "added_tokens": model.leading + model.trailing}


def kind_of(provenance: Mapping[str, Any]) -> str:
    """Say by which kind of charts settings are chosen: `union`, `pool`, or, with weights, `learned`."""
    if provenance["rule"] == "union":
        return "union"
    return "learned" if provenance.get("weights") else "pool"
