"""Parsers and taggers for languages without labelled data, from other people's trained models alone.

Importing the package registers its models with the Auto classes and its pipelines with `pipeline` of
transformers. All other public names load when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import models as models  # registers the models
from .hub import pipelines as pipelines  # registers the pipelines

if TYPE_CHECKING:  # what type checkers and editors see of the names below
    from .charts import chart_loss as chart_loss
    from .charts import chart_quality as chart_quality
    from .charts import learn_weights as learn_weights
    from .charts import log_opinion_pool as log_opinion_pool
    from .charts import pooled_chart as pooled_chart
    from .charts import threshold as threshold
    from .charts import union_chart as union_chart
    from .data import load_treebank as load_treebank
    from .data import prepare as prepare
    from .data import read_conllu as read_conllu
    from .data import read_unlabelled as read_unlabelled
    from .data import read_vectors as read_vectors
    from .data import write_conllu as write_conllu
    from .hub.publish import push_charts as push_charts
    from .hub.publish import push_folder as push_folder
    from .hub.publish import push_model as push_model
    from .models import BiaffineParser as BiaffineParser
    from .models import BiaffineParserConfig as BiaffineParserConfig
    from .models import CrfTagger as CrfTagger
    from .models import CrfTaggerConfig as CrfTaggerConfig
    from .structures import DependencyTreeCRF as DependencyTreeCRF
    from .structures import LinearChainCRF as LinearChainCRF
    from .training.chart_folder import load_charts as load_charts
    from .training.supervised import SupervisedTrainer as SupervisedTrainer
    from .training.transfer import ChartTrainer as ChartTrainer

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
    "load_charts": "training.chart_folder",
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
