"""Parsers and taggers for languages without labelled data, from other people's trained models alone.

Importing the package registers its models with the Auto classes and its pipelines with `pipeline` of
transformers. All other public names load when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from . import models as models  # registers the models
from .hub import pipelines as pipelines  # registers the pipelines

_HOMES = {
    "BiaffineParser": "models",
    "BiaffineParserConfig": "models",
    "CrfTagger": "models",
    "CrfTaggerConfig": "models",
    "DependencyTreeCRF": "structures",
    "LinearChainCRF": "structures",
    "chart_loss": "charts",
    "chart_quality": "charts",
    "learn_weights": "charts",
    "log_opinion_pool": "charts",
    "pooled_chart": "charts",
    "threshold": "charts",
    "union_chart": "charts",
    "load_treebank": "data",
    "prepare": "data",
    "read_conllu": "data",
    "read_unlabelled": "data",
    "read_vectors": "data",
    "write_conllu": "data",
    "ChartTrainer": "training.transfer",
    "SupervisedTrainer": "training.supervised",
    "load_charts": "training.jobs.build_charts",
    "push_charts": "hub.publish",
    "push_folder": "hub.publish",
    "push_model": "hub.publish",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
