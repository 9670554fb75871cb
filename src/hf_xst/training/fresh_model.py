"""A model that has learned nothing yet, made to fit charts alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datasets import Dataset
from transformers import MODEL_MAPPING, AutoConfig

from hf_xst.data import WordVectors
from hf_xst.models.base import StructuredModel


def model_class(model_type: str) -> type[StructuredModel]:
    """Find the class of models that charts are for.

    Raises:
        ValueError: the type is unknown here.
    """
    try:
        found: Any = MODEL_MAPPING[type(AutoConfig.for_model(model_type))]
    except (ValueError, KeyError) as problem:
        raise ValueError(
            f"the charts are for models of the type {model_type!r}, which is unknown here; update this "
            "package, or import what defines them"
        ) from problem
    kind: type[StructuredModel] = found
    return kind


def fresh_model(
    provenance: Mapping[str, Any],
    charts: Dataset,
    vectors: WordVectors | None = None,
    encoder: str | None = None,
) -> StructuredModel:
    """Make a model of the published sizes for charts, without any other model at hand.

    Args:
        provenance: says the type of the model, its labels, and what they are labels of (`label_settings`).
        charts: their coarse tags are the model's.
        vectors: word vectors, for encoder A.
        encoder: a pretrained encoder (folder or Hub id), for encoder B.

    Raises:
        ValueError: the type is unknown, or not exactly one of vectors and encoder is given.
    """
    if (vectors is None) == (encoder is None):
        raise ValueError(
            "--start none needs either --vectors (word vectors) or --encoder (a pretrained encoder) to read "
            "words by, or --like MODEL, whose configuration and words it takes"
        )
    kind = model_class(provenance["model_type"])
    column = kind.annotation_column
    settings = kind.settings_from_rows(charts.select_columns([column]), column)
    settings |= provenance.get("label_settings", {})
    settings["labels"] = [name for name in provenance["names"] if name not in kind.special_names]
    config_class: Any = kind.config_class
    if encoder is not None:
        return kind.from_encoder(config_class(**settings, encoder="pretrained"), encoder)
    assert vectors is not None
    return kind.from_vectors(config_class(**settings), vectors)
