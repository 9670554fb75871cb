"""Load or make the model from which training on charts is initialised."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from datasets import Dataset

from hf_xst.charts.dataset import ChartInfo
from hf_xst.commands.options import NewModelArguments, TransferArguments
from hf_xst.commands.presets import NEW_FIELDS, NEW_LAYERS
from hf_xst.commands.training import key_values
from hf_xst.console import say
from hf_xst.data import WordVectors
from hf_xst.models.kinds import model_class
from hf_xst.models.modeling import StructuredModel
from hf_xst.records import checked, read_yaml
from hf_xst.remote import split_revision
from hf_xst.sources.averaging import AVERAGE, SCRATCH, average_models
from hf_xst.sources.loading import SourceSpec, load_model, source_digest
from hf_xst.sources.pool import AnySource
from hf_xst.sources.word_checks import check_vectors

_REMEDY = "make the charts again, or give --init-from"


def resolve_initial_model(options: TransferArguments, info: ChartInfo) -> TransferArguments:
    """Fill in `init_from` from the record of the charts; raise ValueError if the place is not recorded."""
    if options.init_from is not None:
        return options
    if info.from_average:
        return replace(options, init_from=AVERAGE)
    if info.initial_model == SCRATCH:
        return replace(options, init_from=SCRATCH)
    (spec,) = _locate(options.charts, info, [info.initial_model])
    say(f"initialising from {spec.name}, which the charts were made for: {spec.path}")
    return replace(options, init_from=spec.path if spec.revision is None else f"{spec.path}@{spec.revision}")


def _locate(charts: str, info: ChartInfo, names: Sequence[str]) -> list[SourceSpec]:
    """Find sources of charts: by the command that made them here, otherwise by their Hub ids."""
    config = Path(charts) / "run" / "config.yaml"
    if config.is_file() and (recorded := read_yaml(config).get("sources")):
        specs = {
            spec.name: spec
            for spec in SourceSpec.parse_all(checked(list[str], recorded, f"{config}: sources"))
        }
        return [specs[name] for name in names]
    sources = {source.name: source for source in info.sources}
    found = []
    for name in names:
        place = sources[name].id
        if place is None:
            raise ValueError(
                f"the charts {charts} were made from a source called {name}, whose place is not recorded: "
                "give --init-from"
            )
        found.append(SourceSpec(name, place, sources[name].revision))
    return found


def initial_model(
    options: TransferArguments,
    charts: Dataset,
    info: ChartInfo,
    vectors: WordVectors | None,
    *,
    given: bool = True,
) -> StructuredModel:
    """Load or make the initial model of charts; `options.init_from` is resolved.

    A model that the user has not given must be the one that the charts were made from.

    Raises:
        ValueError: charts and model do not fit, `scratch` lacks what it requires, or the sources cannot be
            averaged.
    """
    if options.init_from == SCRATCH:
        model = _from_scratch(options, charts, info, vectors)
    elif flags := given_flags(options):
        raise ValueError(
            f"--init-from {options.init_from} has its own encoder and configuration: leave out "
            f"{', '.join(flags)}"
        )
    elif options.init_from == AVERAGE:
        specs = _locate(options.charts, info, [source.name for source in info.sources])
        say(f"initialising from the average of the sources: {', '.join(spec.name for spec in specs)}")
        models = {spec.name: load_model(spec.path, spec.revision, vectors) for spec in specs}
        check_digests(models, info, _REMEDY)
        model = average_models(models, info.settings.weights)
    else:
        model = load_model(str(options.init_from), vectors=vectors)
        if not given:
            check_digests({info.initial_model: model}, info, _REMEDY)
    if model.config.model_type != info.model_type:
        raise ValueError(
            f"the charts are for a {info.model_type}, the initial model is a {model.config.model_type}"
        )
    check_vectors(model, info, vectors)
    missing = [name for name in info.names if name not in model.names]
    if missing and info.labels == "union":
        model.add_labels(missing)
    return model


def given_flags(options: NewModelArguments) -> list[str]:
    """Return the flags that describe a new model and were given."""
    names = ("encoder", "encoder_layers", "model")
    return [f"--{name.replace('_', '-')}" for name in names if getattr(options, name)]


def check_digests(sources: Mapping[str, AnySource], info: ChartInfo, remedy: str) -> None:
    """Raise ValueError, with a remedy, unless sources, by name, are those that charts were made from."""
    digests = {source.name: source.weights_sha256 for source in info.sources}
    for name, source in sources.items():
        if digests[name] not in (None, source_digest(source)):
            raise ValueError(f"the source {name} is not the one that the charts were made from: {remedy}")


def _from_scratch(
    options: TransferArguments, charts: Dataset, info: ChartInfo, vectors: WordVectors | None
) -> StructuredModel:
    if options.l2 not in (None, 0):
        raise ValueError("--init-from scratch has no initial parameters to be pulled to: leave --l2 out")
    if options.like is None:
        return model_from_scratch(info, charts, options, vectors)
    if flags := given_flags(options):
        raise ValueError(f"--like MODEL has its own encoder and configuration: leave out {', '.join(flags)}")
    like = load_model(options.like, vectors=vectors)
    model = type(like)(copy.deepcopy(like.config))
    model.encoder.words = like.encoder.words  # pretrained words are kept
    return model


def model_from_scratch(
    info: ChartInfo, charts: Dataset, options: NewModelArguments, vectors: WordVectors | None = None
) -> StructuredModel:
    """Make a randomly initialised model for charts, with their type, labels and tags; see `new_model`."""
    kind = model_class(info.model_type)
    column = kind.annotation_column
    settings = kind.settings_from_rows(charts.select_columns([column]), column)
    settings |= info.label_settings
    settings["labels"] = [name for name in info.names if name not in kind.special_names]
    layers: float | None = options.encoder_layers
    if options.encoder is not None:
        settings |= NEW_FIELDS
        layers = NEW_LAYERS if layers is None else layers
    return new_model(kind, settings | model_fields(kind, options.model), options, vectors, layers)


def new_model(
    kind: type[StructuredModel],
    fields: dict[str, Any],
    options: NewModelArguments,
    vectors: WordVectors | None,
    layers: float | None = None,
) -> StructuredModel:
    """Make a randomly initialised model over word vectors or `layers` layers of a pretrained encoder.

    Raises:
        ValueError: not exactly one of vectors and encoder is given, or they do not fit the fields.
    """
    if (vectors is None) == (options.encoder is None):
        raise ValueError("give either --vectors (word vectors) or --encoder (a pretrained encoder)")
    config_class: Any = kind.config_class
    config = config_class(**{"encoder": "pretrained" if options.encoder else "vectors"} | fields)
    if options.encoder is not None:
        encoder, revision = split_revision(options.encoder)
        hub: dict[str, Any] = {"revision": revision} if revision else {}
        return kind.from_encoder(config, encoder, layers=layers, **hub)
    assert vectors is not None
    return kind.from_vectors(config, vectors)


def model_fields(kind: type[StructuredModel], pairs: Sequence[str]) -> dict[str, Any]:
    """Read fields of a model configuration from KEY=VALUE words; raise ValueError if one is wrong."""
    config_class: Any = kind.config_class
    defaults = {field.name: field.default for field in dataclasses.fields(config_class)}
    fields = key_values(pairs, set(defaults))
    for name, value in fields.items():
        if isinstance(defaults[name], bool) and not isinstance(value, bool):
            raise ValueError(f"--model {name}={value}: expected true or false")
    return fields
