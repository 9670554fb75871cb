"""The model that training on charts starts from."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import yaml
from datasets import Dataset

from hf_xst.commands.options import TransferArguments
from hf_xst.console import say
from hf_xst.data import WordVectors
from hf_xst.models.kinds import model_class
from hf_xst.models.modeling import StructuredModel
from hf_xst.sources.averaging import MEAN, NONE, mean_of_models
from hf_xst.sources.pool import SourceSpec, load_model, weights_digest
from hf_xst.sources.word_checks import same_words

NO_MODELS = (None, NONE, MEAN)
"""Starts that are no folder or Hub id of a model."""
Arguments = TypeVar("Arguments", bound=TransferArguments)


def with_start(arguments: Arguments, provenance: Mapping[str, Any]) -> Arguments:
    """Fill the start in where it is not told: what the charts were made to start from, a source or the mean.

    Raises:
        ValueError: it is not known where that source is.
    """
    if arguments.start is not None:
        return arguments
    if provenance.get("start_from_mean"):
        return replace(arguments, start=MEAN)
    name = provenance["start"]
    (spec,) = _located(arguments.charts, provenance, [name])
    say(f"starting from {name}, which the charts were made for: {spec.path}")
    return replace(arguments, start=spec.path, start_revision=arguments.start_revision or spec.revision)


def _located(charts: str, provenance: Mapping[str, Any], names: Sequence[str]) -> list[SourceSpec]:
    """Find sources of charts.

    A folder of charts made on this machine knows where they are; charts of others name them by their ids.

    Raises:
        ValueError: it is not known where one of them is.
    """
    given = Path(charts) / "run" / "config.yaml"
    if given.is_file():
        texts = yaml.safe_load(given.read_text(encoding="utf-8"))["sources"]
        found = {spec.name: spec for spec in SourceSpec.parse_all(texts)}
        return [found[name] for name in names]
    sources = {source["name"]: source for source in provenance["sources"]}
    unknown = [name for name in names if sources[name]["id"] is None]
    if unknown:
        raise ValueError(
            f"the charts {charts} come of a source called {unknown[0]}, and they do not tell where it is: "
            "give --start"
        )
    return [SourceSpec(name, sources[name]["id"], sources[name]["revision"]) for name in names]


def starting_model(
    arguments: TransferArguments,
    charts: Dataset,
    provenance: Mapping[str, Any],
    vectors: WordVectors | None,
    *,
    told: bool = True,
) -> StructuredModel:
    """Load the model that training starts from, or make one.

    Args:
        arguments: with the start.
        charts: what is trained on.
        provenance: of the charts.
        vectors: the language's word vectors, if any are told.
        told: a person has named the start; one that was found must be what the charts were made from.

    Raises:
        ValueError: the charts and the start do not fit, `--start none` lacks what it needs, or the sources
            have no mean.
    """
    if arguments.start not in (None, NONE) and arguments.encoder is not None:
        raise ValueError(f"--start {arguments.start} brings its own encoder: leave --encoder out")
    if arguments.start == MEAN:
        model = _mean(arguments, provenance, vectors)
    elif arguments.start not in NO_MODELS:
        model = load_model(str(arguments.start), arguments.start_revision, vectors)
        if not told:
            _check_same({provenance["start"]: (str(arguments.start), model)}, provenance)
    else:
        model = _fresh(arguments, charts, provenance, vectors)
    if model.config.model_type != provenance["model_type"]:
        raise ValueError(
            f"the charts are for a {provenance['model_type']}, the start is a {model.config.model_type}"
        )
    same_words(model, provenance, vectors)
    missing = [name for name in provenance["names"] if name not in model.names]
    if missing and provenance["labels"] == "union":
        model.add_labels(missing)
    return model


def _mean(
    arguments: TransferArguments, provenance: Mapping[str, Any], vectors: WordVectors | None
) -> StructuredModel:
    """Average the sources of the charts, with the weights that they have there."""
    names = [source["name"] for source in provenance["sources"]]
    specs = _located(arguments.charts, provenance, names)
    say(f"starting from the mean of the charts' sources: {', '.join(names)}")
    models = {spec.name: load_model(spec.path, spec.revision, vectors) for spec in specs}
    _check_same({spec.name: (spec.path, models[spec.name]) for spec in specs}, provenance)
    return mean_of_models(models, provenance.get("weights"))


def _check_same(found: Mapping[str, tuple[str, StructuredModel]], provenance: Mapping[str, Any]) -> None:
    """See that models which were found are those that the charts were made from.

    Raises:
        ValueError: another one lies where a source was, or it was trained again.
    """
    known = {source["name"]: source.get("weights_sha256") for source in provenance["sources"]}
    for name, (path, model) in found.items():
        if known[name] not in (None, weights_digest(model)):
            raise ValueError(
                f"the model at {path} is not the source {name} that the charts were made from: its weights "
                "differ. Make the charts again, or say --start with the model that is meant"
            )


def _fresh(
    arguments: TransferArguments,
    charts: Dataset,
    provenance: Mapping[str, Any],
    vectors: WordVectors | None,
) -> StructuredModel:
    if arguments.l2 not in (None, 0):
        raise ValueError("--start none has no start to be pulled to: leave --l2 out, or say --l2 0")
    if arguments.like is None:
        return fresh_model(provenance, charts, vectors, arguments.encoder)
    like = load_model(arguments.like, None, vectors)
    model = type(like)(copy.deepcopy(like.config))
    model.encoder.words = like.encoder.words  # what is pretrained stays
    return model


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
