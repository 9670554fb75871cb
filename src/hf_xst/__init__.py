"""Parsers and taggers for languages without labelled data, from other people's trained models alone.

Importing the package registers its models with the Auto classes and its pipelines with `pipeline` of
transformers. All other public names load when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hf_xst import models as models  # registers the models
from hf_xst.inference import pipelines as pipelines  # registers the pipelines

if TYPE_CHECKING:  # what type checkers and editors see of the names below
    from hf_xst.charts import chart_loss as chart_loss
    from hf_xst.charts import chart_quality as chart_quality
    from hf_xst.charts import learn_weights as learn_weights
    from hf_xst.charts import log_opinion_pool as log_opinion_pool
    from hf_xst.charts import pooled_chart as pooled_chart
    from hf_xst.charts import threshold as threshold
    from hf_xst.charts import union_chart as union_chart
    from hf_xst.charts.dataset import load_charts as load_charts
    from hf_xst.commands.adapt import adapt as adapt
    from hf_xst.commands.build_charts import build_charts as build_charts
    from hf_xst.commands.train_source import train_source as train_source
    from hf_xst.commands.transfer import transfer as transfer
    from hf_xst.data import load_treebank as load_treebank
    from hf_xst.data import prepare as prepare
    from hf_xst.data import read_conllu as read_conllu
    from hf_xst.data import read_unlabelled as read_unlabelled
    from hf_xst.data import read_vectors as read_vectors
    from hf_xst.data import write_conllu as write_conllu
    from hf_xst.hub.publish import push_charts as push_charts
    from hf_xst.hub.publish import push_folder as push_folder
    from hf_xst.hub.publish import push_model as push_model
    from hf_xst.models import BiaffineParser as BiaffineParser
    from hf_xst.models import BiaffineParserConfig as BiaffineParserConfig
    from hf_xst.models import CrfTagger as CrfTagger
    from hf_xst.models import CrfTaggerConfig as CrfTaggerConfig
    from hf_xst.sources.loading import load_model as load_model
    from hf_xst.sources.loading import load_source as load_source
    from hf_xst.sources.pool import SourcePool as SourcePool
    from hf_xst.structures import DependencyTreeCRF as DependencyTreeCRF
    from hf_xst.structures import LinearChainCRF as LinearChainCRF
    from hf_xst.training.trainer import SupervisedTrainer as SupervisedTrainer
    from hf_xst.training.transfer import ChartTrainer as ChartTrainer

_NAMES = {
    "charts": "chart_loss chart_quality learn_weights log_opinion_pool pooled_chart threshold union_chart",
    "charts.dataset": "load_charts",
    "commands.adapt": "adapt",
    "commands.build_charts": "build_charts",
    "commands.train_source": "train_source",
    "commands.transfer": "transfer",
    "data": "load_treebank prepare read_conllu read_unlabelled read_vectors write_conllu",
    "hub.publish": "push_charts push_folder push_model",
    "models": "BiaffineParser BiaffineParserConfig CrfTagger CrfTaggerConfig",
    "sources.loading": "load_model load_source",
    "sources.pool": "SourcePool",
    "structures": "DependencyTreeCRF LinearChainCRF",
    "training.trainer": "SupervisedTrainer",
    "training.transfer": "ChartTrainer",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
