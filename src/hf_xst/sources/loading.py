"""Load models and other sources by name, with errors that say what was found and what is expected."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Literal

from torch import nn
from transformers import AutoConfig, AutoModel, PreTrainedConfig
from transformers.utils import CONFIG_NAME

from hf_xst.data import WordVectors
from hf_xst.models.configuration import StructuredConfig
from hf_xst.models.modeling import StructuredModel
from hf_xst.models.words import VectorTable
from hf_xst.numerics import tensors_digest
from hf_xst.records import option
from hf_xst.remote import download_if_exists, explain_hub_error, read_card_metadata, split_revision
from hf_xst.sources.annotated import load_annotated
from hf_xst.sources.base import OtherSource, Source, inference_device
from hf_xst.sources.pool import AnySource
from hf_xst.sources.spacy_pipeline import load_spacy
from hf_xst.sources.token_classifier import TokenClassifier, read_label_map

_SPEC = re.compile(r"(?P<name>[^=/@]+)=(?P<named>.+)|(?P<place>[^=]+)")
Task = Literal["parser", "tagger"]
SPACY = "spacy:"
ENTRY_POINTS = "hf_xst.sources"


@dataclass(frozen=True)
class SourceSpec:
    """Name and place of a source: `NAME=PATH_OR_ID[@REVISION]`; NAME defaults to the last path segment."""

    name: str
    path: str
    revision: str | None = None

    @classmethod
    def parse(cls, text: str) -> SourceSpec:
        """Read `NAME=PATH_OR_ID[@REVISION]`; raise ValueError if the text has another form."""
        match = _SPEC.fullmatch(text)
        place, revision = split_revision(match["named"] or match["place"]) if match else ("", None)
        if match is None or revision == "" or ("@" in place and not Path(place).exists()):
            raise ValueError(f"cannot read the source {text!r}; expected NAME=PATH_OR_ID[@REVISION]")
        path = place.rstrip("/") or place
        return cls(match["name"] or Path(path).name or Path(path).resolve().name, path, revision)

    @classmethod
    def parse_all(cls, texts: Sequence[str]) -> list[SourceSpec]:
        """Read specifications; raise ValueError if there are none, or two share a name."""
        specs = [cls.parse(text) for text in texts]
        if not specs:
            raise ValueError("no source model; give at least one NAME=PATH_OR_ID[@REVISION]")
        names = [spec.name for spec in specs]
        duplicates = sorted({name for name in names if names.count(name) > 1})
        if duplicates:
            raise ValueError(f"two sources are called {', '.join(duplicates)}; use different NAME=PATH_OR_ID")
        return specs

    def public_id(self) -> str | None:
        """Return the Hub id, or None for a local folder, whose path must not be published."""
        return None if Path(self.path).exists() else self.path


def load_model(path: str, revision: str | None = None, vectors: WordVectors | None = None) -> StructuredModel:
    """Load a parser or tagger from a folder or `ID[@REVISION]`, to read words by `vectors` if it does.

    Raises:
        ValueError: the model is missing, damaged, or of another kind, or its vectors are of another space.
    """
    name, revision = split_revision(path, revision)
    _check_place(name, revision)
    config = _config(name, revision)
    if not isinstance(config, StructuredConfig):
        raise ValueError(_unsupported(name, f"a model of type {config.model_type}"))
    hub = {"revision": revision} if revision else {}
    try:
        model: StructuredModel = AutoModel.from_pretrained(name, trust_remote_code=False, **hub)
    except OSError as error:
        raise ValueError(_missing(name, revision, error)) from error
    if vectors is not None and isinstance(model.encoder.words, VectorTable):
        model.replace_word_vectors(vectors)
    return model


def _config(name: str, revision: str | None) -> PreTrainedConfig:
    """Read the configuration of a model, before anything else is downloaded; no foreign code runs."""
    hub = {"revision": revision} if revision else {}
    try:
        config: PreTrainedConfig = AutoConfig.from_pretrained(name, trust_remote_code=False, **hub)
        return config
    except OSError as error:
        raise ValueError(_missing(name, revision, error)) from error
    except ValueError as error:
        what = f"no config.json, or one of an unknown type or with a faulty field ({f'{error}'[:200]})"
        raise ValueError(_unsupported(name, what)) from error


def _check_place(name: str, revision: str | None) -> None:
    """Reject a local path that is not the folder of a model, or that may not be read."""
    folder = Path(name)
    if revision is not None and folder.exists():
        raise ValueError(
            f"{name} is a local folder, which has no revision {revision!r}; leave it out, or give a Hub id"
        )
    if folder.is_file():
        raise ValueError(f"{name} is a file; expected the folder of a model or, as a source, a .conllu file")
    if folder.is_dir() and not (folder / CONFIG_NAME).is_file():
        raise ValueError(_missing(name, revision))
    for path in folder.glob("*.*"):
        if path.exists() and not os.access(path, os.R_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def _unsupported(path: str, what: str) -> str:
    return f"{path} holds {what}; expected a parser or tagger saved by this package"


def _missing(path: str, revision: str | None, error: Exception | None = None) -> str:
    if Path(path).is_dir():
        return (
            f"the folder {path} holds no complete model: config.json and model.safetensors are required, "
            "which train-source and transfer write when they finish"
        )
    at = f" at revision {revision}" if revision else ""
    why = "" if error is None else f": {explain_hub_error(error, path, revision=revision)}"
    return f"no model {path}{at}: it is neither a local folder nor within reach on the Hub{why}"


def ready_model(
    path: str, revision: str | None = None, vectors: WordVectors | None = None
) -> StructuredModel:
    """Load a model for inference, as `load_model` does, on the GPU if there is one."""
    model = load_model(path, revision, vectors)
    return nn.Module.to(model, inference_device())


@dataclass(frozen=True, kw_only=True)
class OtherSourceSettings:
    """Sources that are not models of this package."""

    column: str | None = option(
        "Column that files and token classifiers predict, such as xpos or ner_tags; labels are then used as "
        "they are. Defaults to that of the other sources, otherwise upos, or ner_tags for entity models."
    )
    label_map: str | None = option(
        "YAML file that maps the labels of token classifiers to UPOS tags, where their names do not."
    )
    pooling: Literal["first", "mean"] = option(
        "Prediction of token classifiers for a word: that of its first piece, or the mean of all.", "first"
    )
    confidence: float = option(
        "Probability of the label or arc in a file, or in the best tree of a spaCy pipeline without beam.",
        0.9,
    )
    beam_width: int = option("Number of trees from which the arc probabilities of spaCy are computed.", 16)


@dataclass(frozen=True, kw_only=True)
class SourceSettings(OtherSourceSettings):
    """Task of sources that are not models of this package."""

    task: Task | None = option(
        "What spaCy pipelines and files are sources of; defaults to the kind of the other sources."
    )


def load_source(
    place: str | os.PathLike[str],
    vectors: WordVectors | None = None,
    settings: SourceSettings | None = None,
) -> AnySource:
    """Load a source; its kind is recognised by what is there, and no code of others runs.

    Args:
        place: `[NAME=]PLACE[@REVISION]`: a model of this package or a transformers model for token
            classification (folder or Hub id), `spacy:PACKAGE` or the folder of a spaCy pipeline, a CoNLL-U
            file, or `NAME:PLACE` for an entry point NAME of the group `hf_xst.sources`, which is called with
            PLACE and the settings.
        vectors: word vectors of the language to read, for models that read words by vectors.
        settings: see the class.

    Raises:
        ValueError: the place holds nothing that can be a source, or the task is unknown.
    """
    (source,) = load_sources([os.fspath(place)], vectors, settings).values()
    return source


def source_kind(spec: SourceSpec) -> str:
    """Return `model`, `token-classifier`, `spacy`, `conllu` or `entry-point`, or raise ValueError."""
    path = Path(spec.path)
    if spec.path.startswith(SPACY) or (path / "config.cfg").is_file():
        return "spacy"
    if path.is_file() and spec.path.removesuffix(".gz").endswith(".conllu"):
        return "conllu"
    if _entry_point(spec) is not None:
        return "entry-point"
    _check_place(spec.path, spec.revision)
    config = _config(spec.path, spec.revision)
    names = config.architectures or []
    is_classifier = any(name.endswith("ForTokenClassification") for name in names)
    return "token-classifier" if is_classifier else "model"


def _entry_point(spec: SourceSpec) -> EntryPoint | None:
    """Return the entry point that a place `NAME:PLACE` names, if it is installed."""
    name, colon, _ = spec.path.partition(":")
    return next(iter(entry_points(group=ENTRY_POINTS, name=name)), None) if colon else None


def _load(kind: str, spec: SourceSpec, vectors: WordVectors | None, settings: SourceSettings) -> AnySource:
    """Load a source of a known kind; see `source_kind`."""
    if kind == "model":
        return ready_model(spec.path, spec.revision, vectors)
    if kind == "token-classifier":
        labels = None if settings.label_map is None else read_label_map(settings.label_map)
        return TokenClassifier.load(
            spec.path, spec.revision, labels=labels, column=settings.column, pooling=settings.pooling
        )
    if kind == "entry-point" and (entry := _entry_point(spec)):
        source: AnySource = entry.load()(spec.path.partition(":")[2], settings)
        if not isinstance(source, Source):
            raise ValueError(
                f"{entry.value} returned a {type(source).__name__}; expected a hf_xst.sources.Source"
            )
        return source
    if settings.task is None:
        raise ValueError(f"the source {spec.name} can be a parser or a tagger: give --task")
    confidence = settings.confidence
    if kind == "spacy":
        place, width = spec.path.removeprefix(SPACY), settings.beam_width
        return load_spacy(place, settings.task, confidence=confidence, beam_width=width)
    columns = ("head", "deprel") if settings.task == "parser" else (settings.column or "upos",)
    return load_annotated(spec.path, columns, confidence=confidence)


def load_sources(
    places: Sequence[str], vectors: WordVectors | None = None, settings: SourceSettings | None = None
) -> dict[str, AnySource]:
    """Load sources by name; task and column of spaCy pipelines and files default to those of the others."""
    specs = SourceSpec.parse_all(places)
    settings = given = settings or SourceSettings()
    kinds = {spec.name: source_kind(spec) for spec in specs}
    loaded: dict[str, AnySource] = {}
    for spec in sorted(specs, key=lambda spec: kinds[spec.name] in ("spacy", "conllu")):
        if len(loaded) == 1:
            first, *others = next(iter(loaded.values())).columns
            task: Task = "parser" if others else "tagger"
            column = given.column or (None if others else first)
            settings = replace(given, task=given.task or task, column=column)
        loaded[spec.name] = _load(kinds[spec.name], spec, vectors, settings)
        _check_columns(spec.name, loaded[spec.name].columns, given)
    return {spec.name: loaded[spec.name] for spec in specs}


def _check_columns(name: str, columns: Sequence[str], settings: SourceSettings) -> None:
    """Reject a source of another task or column than the given ones."""
    is_other = settings.task is not None and (settings.task == "parser") != ("head" in columns)
    if is_other or settings.column not in (None, *columns):
        expected = f"a {settings.task}" if is_other else f"the column {settings.column} (--column)"
        raise ValueError(f"the source {name} predicts {' and '.join(columns)}; expected {expected}")


def source_digest(source: AnySource) -> str | None:
    """Return the SHA-256 that identifies a source, None for sources of third parties without one."""
    if isinstance(source, StructuredModel):
        return weights_digest(source)
    return source.digest() if isinstance(source, OtherSource) else None


def weights_digest(model: StructuredModel) -> str:
    """Return the SHA-256 of a model's parameters.

    Trained word vectors are parameters and count. Frozen ones are replaced by those of the language to read
    and do not count.
    """
    return tensors_digest(dict(model.named_parameters()))


def model_digest(model: StructuredModel) -> str:
    """Return the SHA-256 of everything that a model's predictions depend on.

    Beside the parameters, these are frozen weights and word vectors, the configuration, and the tokenizer or
    the list of words.
    """
    config = model.config.to_dict()
    for name in ("_name_or_path", "transformers_version"):
        config.pop(name, None)
    seed = json.dumps(config, sort_keys=True, default=str) + model.encoder.words.describe()
    return tensors_digest(model.state_dict(), seed, model)


def source_licence(spec: SourceSpec, source: AnySource) -> str | None:
    """Return the licence of a source: as it states itself, or from the card of its model; None if unknown."""
    own = source.licence if isinstance(source, OtherSource) else None
    if own is not None or ":" in spec.path:
        return own
    licence, card = None, Path(spec.path) / "README.md"
    with suppress(ValueError):  # the Hub is unreachable and the model cached without a card, or it is broken
        if not Path(spec.path).exists():
            card = Path(download_if_exists(spec.path, "README.md", spec.revision) or card)
        licence = read_card_metadata(card).get("license") if card.is_file() else None
    return None if licence is None else str(licence)
