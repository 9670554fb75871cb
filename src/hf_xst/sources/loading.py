"""Load models by name, folder or Hub id, with errors that say what was found and what is expected."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from torch import nn
from transformers import AutoConfig, AutoModel
from transformers.utils import CONFIG_NAME, SAFE_WEIGHTS_NAME

from hf_xst.data import WordVectors
from hf_xst.models.configuration import StructuredConfig
from hf_xst.models.modeling import StructuredModel
from hf_xst.models.words import VectorTable
from hf_xst.numerics import tensors_digest
from hf_xst.remote import explain_hub_error, split_revision

_SPEC = re.compile(r"(?:(?P<name>[^=/@]+)=)?(?P<place>[^=]+)")
_PICKLED = "pickled weights, which are never read because they can run any program; ask for safetensors"


@dataclass(frozen=True)
class SourceSpec:
    """Name and place of a source: `NAME=PATH_OR_ID[@REVISION]`; NAME defaults to the last path segment."""

    name: str
    path: str
    revision: str | None = None

    @classmethod
    def parse(cls, text: str) -> SourceSpec:
        """Read `NAME=PATH_OR_ID[@REVISION]`.

        Raises:
            ValueError: the text has another form.
        """
        match = _SPEC.fullmatch(text)
        place, revision = split_revision(match["place"]) if match else ("", None)
        if match is None or revision == "" or ("@" in place and not Path(place).exists()):
            raise ValueError(f"cannot read the source {text!r}; expected NAME=PATH_OR_ID[@REVISION]")
        path = place.rstrip("/") or place
        return cls(match["name"] or Path(path).name or Path(path).resolve().name, path, revision)

    @classmethod
    def parse_all(cls, texts: Sequence[str]) -> list[SourceSpec]:
        """Read several specifications with different names.

        Raises:
            ValueError: the list is empty, or two sources share a name.
        """
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
    """Load a parser or tagger; replace its word vectors if it reads words by vectors.

    Args:
        path: a folder, or a Hub id with or without `@REVISION`.
        revision: the revision, if it is not part of the id.
        vectors: word vectors of the language to read.

    Raises:
        ValueError: the model is missing, damaged, or of another kind, or its vectors are of another space.
    """
    name, revision = split_revision(path, revision)
    _check_place(name, revision)
    hub = {"revision": revision} if revision else {}
    try:
        # The configuration first: other kinds of model are not downloaded, and no foreign code runs.
        config = AutoConfig.from_pretrained(name, trust_remote_code=False, **hub)
    except OSError as error:
        raise ValueError(_missing(name, revision, error)) from error
    except ValueError as error:
        raise ValueError(_unsupported(name, "no config.json, or one of an unknown type")) from error
    if not isinstance(config, StructuredConfig):
        raise ValueError(_unsupported(name, f"a model of type {config.model_type}"))
    try:
        model: StructuredModel = AutoModel.from_pretrained(name, use_safetensors=True, **hub)
    except OSError as error:
        raise ValueError(_missing(name, revision, error)) from error
    except SafetensorError as error:
        raise ValueError(
            f"the weights of {name} cannot be read ({error}): the file is truncated or damaged; copy it again"
        ) from error
    if not all(bool(each.isfinite().all()) for each in model.parameters()):
        raise ValueError(
            f"the weights of {name} contain NaN or infinite values; training has probably diverged"
        )
    if vectors is not None and isinstance(model.encoder.words, VectorTable):
        model.replace_word_vectors(vectors)
    return model


def _check_place(name: str, revision: str | None) -> None:
    """Reject a local path that is not the folder of a model."""
    folder = Path(name)
    if revision is not None and folder.exists():
        raise ValueError(
            f"{name} is a local folder, which has no revision {revision!r}; leave it out, or give a Hub id"
        )
    if folder.is_file():
        raise ValueError(f"{name} is a file; expected the folder of a model, such as {folder.parent}")
    if folder.is_dir() and not (folder / CONFIG_NAME).is_file():
        raise ValueError(_missing(name, revision))


def _unsupported(path: str, what: str) -> str:
    return f"{path} holds {what}; expected a parser or tagger saved by this package"


def _missing(path: str, revision: str | None, error: Exception | None = None) -> str:
    if Path(path).is_dir():
        pickled = sorted(file.name for file in Path(path).glob("pytorch_model*.bin"))
        if pickled:
            return f"the folder {path} holds {_PICKLED} ({pickled[0]})"
        return (
            f"the folder {path} holds no complete model: config.json and model.safetensors are required, "
            "which train-source and transfer write when they finish"
        )
    at = f" at revision {revision}" if revision else ""
    if error is not None and SAFE_WEIGHTS_NAME in str(error):
        return f"no model {path}{at}: it has no {SAFE_WEIGHTS_NAME}; if it has {_PICKLED}"
    why = "" if error is None else f": {explain_hub_error(error, path, revision=revision)}"
    return f"no model {path}{at}: it is neither a local folder nor within reach on the Hub{why}"


def ready_model(
    path: str, revision: str | None = None, vectors: WordVectors | None = None
) -> StructuredModel:
    """Load a model for inference, as `load_model` does, on the GPU if there is one."""
    model = load_model(path, revision, vectors)
    return nn.Module.to(model, "cuda" if torch.cuda.is_available() else "cpu")


def load_sources(specs: Sequence[SourceSpec], vectors: WordVectors | None) -> dict[str, StructuredModel]:
    """Load source models by name, for inference."""
    return {spec.name: ready_model(spec.path, spec.revision, vectors) for spec in specs}


def weights_digest(model: StructuredModel) -> str:
    """Return the SHA-256 of a model's parameters.

    Trained word vectors are parameters and count. Frozen ones are replaced by those of the language to read
    and do not count.
    """
    return tensors_digest(dict(model.named_parameters()))
