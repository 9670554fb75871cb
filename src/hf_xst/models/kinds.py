"""The one registry of model kinds by task name."""

from __future__ import annotations

from typing import Any

from transformers import MODEL_MAPPING, AutoConfig

from hf_xst.models.columns import StructureColumns
from hf_xst.models.modeling import StructuredModel, register
from hf_xst.models.parser import BiaffineParser
from hf_xst.models.tagger import CrfTagger


def model_type_of(model_class: type[StructuredModel]) -> str:
    """Return the `model_type` of a class of models."""
    return str(model_class.config_class.model_type)  # type: ignore[union-attr]


KINDS: dict[str, type[StructuredModel]] = {"parser": BiaffineParser, "tagger": CrfTagger}
"""The model classes of this package by task name; other packages `register` theirs with the Auto classes."""
TASK_OF_MODEL_TYPE = {model_type_of(kind): task for task, kind in KINDS.items()}
"""`model_type` of a configuration to task name."""

for kind in KINDS.values():
    register(kind.config_class, kind)  # type: ignore[arg-type]


def model_class(model_type: str) -> type[StructuredModel]:
    """Return the model class of a `model_type`, as recorded with charts; raise ValueError if unknown."""
    try:
        registered: Any = MODEL_MAPPING[type(AutoConfig.for_model(model_type))]
    except (ValueError, KeyError) as error:
        raise ValueError(
            f"the charts are for models of the unknown type {model_type!r}; update hf_xst, or import the "
            "package that defines it"
        ) from error
    model: type[StructuredModel] = registered
    return model


def model_class_for(kind: StructureColumns) -> type[StructuredModel]:
    """Return the class of models for the charts of a source; raise ValueError if its structure has none."""
    if isinstance(kind, StructuredModel):
        return type(kind)
    for each in KINDS.values():
        if each.structure is kind.structure:
            return each
    raise ValueError(f"no kind of model has the structure {kind.structure.__name__}")
