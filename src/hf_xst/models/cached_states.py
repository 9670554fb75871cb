"""States of a frozen encoder, computed once for each sentence instead of once for each model or epoch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from hf_xst.charts.dataset import words_hash
from hf_xst.console import progress
from hf_xst.files import atomic_path
from hf_xst.models.modeling import StructuredModel
from hf_xst.models.pretrained_words import PretrainedWords
from hf_xst.numerics import tensors_digest

STATES_FILE = "states.safetensors"


class WordStates(Protocol):
    """What gives the word states of a batch of sentences."""

    def batch(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Return the states of a batch, (B, N, D), zeros as padding."""


def has_frozen_encoder(model: StructuredModel) -> bool:
    """Say whether a model reads words by a pretrained encoder of which nothing is trained."""
    words = model.encoder.words
    return isinstance(words, PretrainedWords) and words.is_frozen


def encoder_fingerprint(model: StructuredModel) -> str:
    """Identify a frozen encoder by its weights and how words are made of its pieces.

    Raises:
        ValueError: the model has no pretrained encoder, or some of it is trained.
    """
    words = model.encoder.words
    if not isinstance(words, PretrainedWords) or not words.is_frozen:
        raise ValueError(
            "only the states of a wholly frozen pretrained encoder (frozen_layers=-1) can be kept"
        )
    return tensors_digest(words.model.state_dict(), f"{words.piece_pooling} {words.max_pieces}")


@torch.no_grad()
def encode(model: StructuredModel, sentences: Sequence[Sequence[str]]) -> Tensor:
    """Run a model's word encoder alone, in evaluation mode: (B, N, D) on the model's device."""
    was_training = model.training
    model.train(False)
    lengths = torch.tensor([len(words) for words in sentences], device=model.device)
    features = model.encoder.featurise(sentences)
    states: Tensor = model.encoder.words(
        lengths, **{key: value.to(model.device) for key, value in features.items()}
    )
    model.train(was_training)
    return states


class SharedEncoder:
    """Word states of one batch at a time, encoded once for all models that have the same frozen encoder.

    Args:
        model: any one of these models.
    """

    def __init__(self, model: StructuredModel) -> None:
        self._model = model
        self._sentences: list[list[str]] = []
        self._states = torch.empty(0)

    def batch(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Return the states of a batch, (B, N, D); those of the last batch are at hand."""
        asked = [list(words) for words in sentences]
        if asked != self._sentences:
            self._states, self._sentences = encode(self._model, asked), asked
        return self._states


def shared_encoders(models: Mapping[str, StructuredModel]) -> dict[str, WordStates]:
    """Find the models, by name, whose frozen encoder is another one's too; memory stays that of one batch."""
    encoders: dict[str, WordStates] = {}
    found: dict[str, WordStates] = {}
    for name, model in models.items():
        if has_frozen_encoder(model):
            found[name] = encoders.setdefault(encoder_fingerprint(model), SharedEncoder(model))
    return found if len(encoders) < len(found) else {}


class FrozenStates:
    """A store of word states in half precision, one (N, D) tensor for each distinct sentence.

    Args:
        fingerprint: of the encoder, see `encoder_fingerprint`.
    """

    def __init__(self, fingerprint: str) -> None:
        self.fingerprint = fingerprint
        self._states: dict[str, Tensor] = {}

    def __len__(self) -> int:
        return len(self._states)

    @classmethod
    def of(cls, model: StructuredModel) -> FrozenStates | None:
        """Return an empty store for a model with a frozen encoder, or None where states cannot be kept."""
        return cls(encoder_fingerprint(model)) if has_frozen_encoder(model) else None

    @classmethod
    def kept(
        cls, model: StructuredModel, sentences: Iterable[Sequence[str]], folder: Path | None = None
    ) -> FrozenStates | None:
        """Return a store that holds the states of some sentences, or None where states cannot be kept.

        Args:
            model: the model that will read them.
            sentences: lists of words.
            folder: where states are kept from one run to the next, those of each encoder apart; in memory
                alone without it.
        """
        states = cls.of(model)
        if states is None:
            return None
        place = None if folder is None else folder / states.fingerprint[:16]
        if place is not None and (place / STATES_FILE).exists():
            states = cls.load(place)
        known = len(states)
        states.add(model, sentences)
        if place is not None and len(states) > known:
            states.save(place)
        return states

    def add(
        self, model: StructuredModel, sentences: Iterable[Sequence[str]], batch_words: int = 2000
    ) -> None:
        """Encode the sentences that are not there yet, longest first.

        Args:
            model: a model with this encoder.
            sentences: lists of words.
            batch_words: words (padding included) encoded at once.
        """
        missing = {words_hash(words): list(words) for words in sentences}
        todo = sorted((key for key in missing if key not in self._states), key=lambda key: -len(missing[key]))
        start = 0
        with progress("encoding words", len(todo)) as advance:
            while start < len(todo):
                keys = todo[start : start + max(1, batch_words // len(missing[todo[start]]))]
                # One copy from the device for the whole batch: a copy for each sentence would wait each time.
                found = encode(model, [missing[key] for key in keys]).half().cpu()
                for key, state in zip(keys, found, strict=True):
                    self._states[key] = state[: len(missing[key])].clone()
                advance(len(keys))
                start += len(keys)

    def batch(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Return the states of a batch, (B, N, D) in float32, zeros as padding.

        Raises:
            KeyError: a sentence was not added.
        """
        found = []
        for words in sentences:
            key = words_hash(words)
            if key not in self._states:
                raise KeyError(f"no states are kept for the sentence {' '.join(words)[:80]!r}; add it first")
            found.append(self._states[key])
        return pad_sequence(found, batch_first=True).float()

    def save(self, folder: Path) -> None:
        """Write the store as one file, `states.safetensors`, so that it is always whole."""
        keys = list(self._states)
        lengths = json.dumps({key: len(self._states[key]) for key in keys})
        states = torch.cat([self._states[key] for key in keys]) if keys else torch.empty(0)
        with atomic_path(folder / STATES_FILE) as aside:
            save_file({"states": states}, aside, {"fingerprint": self.fingerprint, "lengths": lengths})

    @classmethod
    def load(cls, folder: Path) -> FrozenStates:
        """Read what `save` wrote."""
        with safe_open(folder / STATES_FILE, framework="pt") as file:
            about = file.metadata()
            states = file.get_tensor("states")
        store = cls(about["fingerprint"])
        lengths = json.loads(about["lengths"])
        if lengths:
            store._states = dict(zip(lengths, torch.split(states, list(lengths.values())), strict=True))
        return store
