"""Published settings (supplement, table 6) by kind of model and of charts, and the recipe of each kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hf_xst.models.base import StructuredModel
from hf_xst.training.recipes import PUBLISHED_RECIPE, RECOMMENDED


@dataclass(frozen=True)
class Published:
    """Settings that differ between the two tasks.

    Args:
        target_length: longest target sentence in training, added tokens counted.
        learning_rate: Adam's step size, by kind of charts, see `kind_of`.
        l2: strength of the pull to the starting parameters, by kind of charts.
        recipe: the one that is taken where none is told, see `hf_xst.training.recipes`: what did better on
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
