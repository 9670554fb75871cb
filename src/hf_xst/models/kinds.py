"""The kinds of models: the one registry of parsers and taggers."""

from __future__ import annotations

from typing import Any

from transformers import MODEL_MAPPING, AutoConfig

from hf_xst.models.configuration import BiaffineParserConfig, CrfTaggerConfig
from hf_xst.models.modeling import StructuredModel
from hf_xst.models.parser import BiaffineParser
from hf_xst.models.tagger import CrfTagger

KINDS: dict[str, tuple[type[StructuredModel], Any]] = {
    "parser": (BiaffineParser, BiaffineParserConfig),
    "tagger": (CrfTagger, CrfTaggerConfig),
}


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
