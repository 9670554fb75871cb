"""Source models: named, loaded, and asked for their distributions over one alphabet."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel
from transformers.utils import CONFIG_NAME, SAFE_WEIGHTS_NAME

from hf_xst.charts.alphabet import Relabelling
from hf_xst.data import WordVectors
from hf_xst.models.cached_states import WordStates, shared_encoders
from hf_xst.models.configuration import StructuredConfig
from hf_xst.models.modeling import Row, StructuredModel
from hf_xst.models.running import run_rows
from hf_xst.models.words import VectorTable
from hf_xst.numerics import tensors_digest
from hf_xst.remote import explain_hub_error, split_revision
from hf_xst.sources.word_checks import tell_of_own_words
from hf_xst.structures.base import Structure

_SPEC = re.compile(r"(?:(?P<name>[^=/@]+)=)?(?P<place>[^=]+)")


@dataclass(frozen=True)
class SourceSpec:
    """Where a source model is: `NAME=PATH_OR_ID[@REVISION]`; without NAME, the last part of the path."""

    name: str
    path: str
    revision: str | None = None

    @classmethod
    def parse(cls, text: str) -> SourceSpec:
        """Read `NAME=PATH_OR_ID[@REVISION]`.

        Raises:
            ValueError: the text has another form.
        """
        found = _SPEC.fullmatch(text)
        if found is None:
            raise ValueError(f"cannot read the source {text!r}; expected NAME=PATH_OR_ID[@REVISION]")
        place, revision = split_revision(found["place"])
        if revision == "" or ("@" in place and not Path(place).exists()):
            raise ValueError(f"cannot read the source {text!r}; expected NAME=PATH_OR_ID[@REVISION]")
        path = place.rstrip("/") or place
        name = found["name"] or Path(path).name or Path(path).resolve().name
        return cls(name, path, revision)

    @classmethod
    def parse_all(cls, texts: Sequence[str]) -> list[SourceSpec]:
        """Read several specifications; their names must differ.

        Raises:
            ValueError: there is none, or two have one name.
        """
        specs = [cls.parse(text) for text in texts]
        if not specs:
            raise ValueError("no source model is named; give at least one NAME=PATH_OR_ID[@REVISION]")
        names = [spec.name for spec in specs]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two sources are called {', '.join(twice)}; name them apart: NAME=PATH_OR_ID")
        return specs

    def public_id(self) -> str | None:
        """Return the Hub id, or None for a local folder: local paths do not belong into what is shared."""
        return None if Path(self.path).exists() else self.path


def load_model(path: str, revision: str | None = None, vectors: WordVectors | None = None) -> StructuredModel:
    """Load a structured model and give it a target language's word vectors where it reads words by vectors.

    Args:
        path: a folder, or a Hub id with or without `@REVISION`.
        revision: the revision, if it is not part of the id.
        vectors: the language's word vectors.

    Raises:
        ValueError: there is no model, what is there is no structured model, or its vectors are of another
            space.
    """
    name, revision = split_revision(path, revision)
    _check_place(name, revision)
    hub = {"revision": revision} if revision else {}
    try:
        # The configuration first: nothing of another kind of model is fetched, and no code of others run.
        config = AutoConfig.from_pretrained(name, trust_remote_code=False, **hub)
    except OSError as error:
        raise ValueError(_no_model(name, revision, error)) from error
    except ValueError as error:
        raise ValueError(_other_model(name, "no config.json, or one of an unknown type")) from error
    if not isinstance(config, StructuredConfig):
        raise ValueError(_other_model(name, f"a model of the type {config.model_type}"))
    try:
        model: StructuredModel = AutoModel.from_pretrained(name, use_safetensors=True, **hub)
    except OSError as error:
        raise ValueError(_no_model(name, revision, error)) from error
    except SafetensorError as error:
        raise ValueError(
            f"the weights of {name} cannot be read ({error}): the file is cut off or damaged; copy it again"
        ) from error
    if not all(bool(each.isfinite().all()) for each in model.parameters()):
        raise ValueError(f"the weights of {name} hold numbers that are none (NaN): its training has diverged")
    if vectors is not None and isinstance(model.encoder.words, VectorTable):
        model.replace_word_vectors(vectors)
    return model


def _check_place(name: str, revision: str | None) -> None:
    """Refuse a path of this machine that is no model's folder."""
    place = Path(name)
    if revision is not None and place.exists():
        raise ValueError(
            f"{name} is a folder here, which has no revision {revision!r}; give the folder alone, or an "
            "id on the Hub"
        )
    if place.is_file():
        raise ValueError(f"{name} is a file; expected the folder of a model, such as {place.parent}")
    if place.is_dir() and not (place / CONFIG_NAME).is_file():
        raise ValueError(_no_model(name, revision))


def _other_model(path: str, what: str) -> str:
    return f"{path} holds {what}; expected a parser or tagger saved by this package"


def _no_model(path: str, revision: str | None, error: Exception | None = None) -> str:
    if Path(path).is_dir():
        pickled = sorted(file.name for file in Path(path).glob("pytorch_model*.bin"))
        if pickled:
            return (
                f"the folder {path} holds pickled weights ({pickled[0]}), which are not read, since they can "
                "run any program; ask for the model in safetensors form"
            )
        return (
            f"the folder {path} holds no whole model: config.json and model.safetensors are needed, which "
            "train-source and transfer write when they end"
        )
    at = f" at the revision {revision}" if revision else ""
    if error is not None and SAFE_WEIGHTS_NAME in str(error):
        return (
            f"no model {path}{at}: it holds no {SAFE_WEIGHTS_NAME}, and pickled weights are not read, since "
            "they can run any program; ask for the model in safetensors form"
        )
    why = "" if error is None else f": {explain_hub_error(error, path, revision=revision)}"
    return f"no model {path}{at}: it is neither a folder on this machine nor within reach on the Hub{why}"


def ready_model(
    path: str, revision: str | None = None, vectors: WordVectors | None = None
) -> StructuredModel:
    """Load a model as `load_model` does for use without training: on the GPU if there is one."""
    model = load_model(path, revision, vectors)
    return nn.Module.to(model, "cuda" if torch.cuda.is_available() else "cpu")


def weights_digest(model: StructuredModel) -> str:
    """Identify a model by the SHA-256 of its parameters.

    Word vectors that are trained are parameters of the model, and count. Frozen ones are exchanged for those
    of the language that is read, and do not: the model stays the same.
    """
    return tensors_digest(dict(model.named_parameters()))


@dataclass
class Source:
    """A loaded source model and how its labels map to the common alphabet."""

    name: str
    model: StructuredModel
    relabelling: Relabelling
    states: WordStates | None = None
    dropped_mass: float = field(default=0.0, init=False)

    def distribution(self, rows: Sequence[Row]) -> Structure:
        """Return the model's distribution over structures that use the common alphabet's labels alone.

        What is expected on dropped labels is added to `dropped_mass`, in candidates.
        """
        own = self.model.distribution(run_rows(self.model, rows, self.states))
        if self.relabelling.is_identity:
            return own
        if self.relabelling.dropped:
            self.dropped_mass += float(self._mass_on_dropped(own))
        return own.with_scores(self.relabelling.scores(own.scores, -torch.inf))

    def _mass_on_dropped(self, own: Structure) -> Tensor:
        """Sum the marginals of candidates with at least one label that is dropped."""
        back = Relabelling(self.relabelling.new, self.relabelling.old, self.relabelling.label_axes)
        marginals = own.marginals()
        survives = back.scores(torch.ones_like(self.relabelling.scores(marginals, 0.0)), 0.0)
        return (marginals * (1 - survives)).sum()


def load_sources(specs: Sequence[SourceSpec], vectors: WordVectors | None) -> dict[str, StructuredModel]:
    """Load source models by name, ready to read a text with the word vectors of its language."""
    return {spec.name: ready_model(spec.path, spec.revision, vectors) for spec in specs}


class SourcePool:
    """Several source models of one kind over one alphabet.

    Args:
        models: the models by name, in the order in which they are pooled.
        names: the common alphabet; by default the union of the models' labels.
        states: ready states by the models' names; by default models that have one and the same frozen encoder
            share its work batch by batch.

    Raises:
        ValueError: the models are not all of one kind, or do not predict the same columns.
    """

    def __init__(
        self,
        models: Mapping[str, StructuredModel],
        names: Sequence[str] | None = None,
        states: Mapping[str, WordStates | None] | None = None,
    ) -> None:
        kinds = {model.config.model_type for model in models.values()}
        if len(kinds) != 1:
            found = ", ".join(f"{name}: {model.config.model_type}" for name, model in models.items())
            raise ValueError(f"the sources must all be models of one kind; found {found or 'none'}")
        fills = {name: " and ".join(model.columns) for name, model in models.items()}
        if len({(fills[name], model.scheme) for name, model in models.items()}) > 1:
            found = ", ".join(
                f"{name}: {fills[name]}" + (f" ({model.scheme})" if model.scheme else "")
                for name, model in models.items()
            )
            raise ValueError(f"the sources must all predict the same column; found {found}")
        tell_of_own_words(models)
        ready = shared_encoders(models) if states is None else states
        self.names = joint_names(list(models.values())) if names is None else list(names)
        self.sources = [
            Source(
                name, model, Relabelling.between(model.names, self.names, model.structure), ready.get(name)
            )
            for name, model in models.items()
        ]

    def distributions(self, rows: Sequence[Row]) -> list[Structure]:
        """Return each source's distribution over the structures of a batch of rows, on one device."""
        return [source.distribution(rows) for source in self.sources]

    def gold_candidates(self, rows: Sequence[Row], like: Structure) -> Tensor:
        """Return the gold candidates of a batch over the common alphabet: (B, G), -1 where it lacks a label.

        Args:
            rows: B rows with gold.
            like: a distribution over the batch's structures.

        Raises:
            ValueError: the rows hold no gold.
        """
        model = self.sources[0].model
        missing = [column for column in model.columns if column not in rows[0]]
        if missing:
            raise ValueError(
                f"sentence {rows[0].get('sent_id', '?')} has no column {' and '.join(missing)}; expected "
                "rows with gold, as prepared from a treebank"
            )
        labels = model.encode_gold(rows, self.names).to(like.scores.device)
        lengths = torch.tensor([len(row["words"]) for row in rows], device=like.scores.device)
        return like.candidates(model.gold_best(labels, lengths, self.names))

    def weights(self, by_name: Mapping[str, float] | None) -> list[float] | None:
        """Put weights by name in the order of the sources.

        Raises:
            ValueError: a source has no weight, or a weight no source.
        """
        if by_name is None:
            return None
        own = [source.name for source in self.sources]
        missing, extra = sorted(set(own) - set(by_name)), sorted(set(by_name) - set(own))
        if missing or extra:
            raise ValueError(
                f"weights are needed for exactly {', '.join(own)}; missing: {', '.join(missing) or 'none'}; "
                f"without a source: {', '.join(extra) or 'none'}"
            )
        return [by_name[name] for name in own]


def joint_names(models: Sequence[StructuredModel]) -> list[str]:
    """Return the union of several models' labels: the first model's order, then what others add.

    Special labels, which every model of a kind has, stay last.
    """
    labels: dict[str, None] = {}
    for model in models:
        labels |= dict.fromkeys(model.config.labels or [])
    return [*labels, *models[0].special_names]
