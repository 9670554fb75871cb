"""States of a frozen encoder, computed once for each sentence and kept in half precision."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from hf_xst.charts.storage import words_hash
from hf_xst.console import progress
from hf_xst.files import write_text, written_aside
from hf_xst.models.base import StructuredModel
from hf_xst.models.pretrained_words import PretrainedWords


def encoder_fingerprint(model: StructuredModel) -> str:
    """Identify a frozen encoder by its weights and how words are made of its pieces.

    Raises:
        ValueError: the model has no pretrained encoder, or some of it is trained.
    """
    words = model.encoder.words
    if not isinstance(words, PretrainedWords) or not words.is_frozen:
        raise ValueError("only the states of a wholly frozen pretrained encoder (frozen_layers=-1) can be kept")
    digest = hashlib.sha256(f"{words.piece_pooling} {words.max_pieces}".encode())
    for name, tensor in sorted(words.model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


class FrozenStates:
    """A store of word states, one (N, D) tensor for each distinct sentence.

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
        words = model.encoder.words
        if not isinstance(words, PretrainedWords) or not words.is_frozen:
            return None
        return cls(encoder_fingerprint(model))

    @torch.no_grad()
    def add(self, model: StructuredModel, sentences: Iterable[Sequence[str]], batch_words: int = 2000) -> None:
        """Encode the sentences that are not there yet, longest first.

        Args:
            model: a model with this encoder.
            sentences: lists of words.
            batch_words: words (padding included) encoded at once.
        """
        missing = {words_hash(words): list(words) for words in sentences}
        todo = sorted((key for key in missing if key not in self._states), key=lambda key: -len(missing[key]))
        was_training = model.training
        model.eval()
        start = 0
        with progress("encoding words", len(todo)) as advance:
            while start < len(todo):
                end = start + max(1, batch_words // len(missing[todo[start]]))
                keys = todo[start:end]
                self._encode(model, {key: missing[key] for key in keys})
                advance(len(keys))
                start = end
        model.train(was_training)

    def _encode(self, model: StructuredModel, sentences: dict[str, list[str]]) -> None:
        lengths = torch.tensor([len(words) for words in sentences.values()], device=model.device)
        features = model.encoder.featurise(list(sentences.values()))
        states = model.encoder.words(lengths, **{key: value.to(model.device) for key, value in features.items()})
        for key, length, state in zip(sentences, lengths.tolist(), states, strict=True):
            self._states[key] = state[:length].half().cpu().clone()

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
        """Write the store as `states.safetensors` and `sentences.json`."""
        keys = list(self._states)
        content = {"fingerprint": self.fingerprint, "lengths": {key: len(self._states[key]) for key in keys}}
        if keys:
            with written_aside(folder / "states.safetensors") as aside:
                save_file({"states": torch.cat([self._states[key] for key in keys])}, aside)
        write_text(folder / "sentences.json", json.dumps(content))

    @classmethod
    def load(cls, folder: Path) -> FrozenStates:
        """Read what `save` wrote."""
        content = json.loads((folder / "sentences.json").read_text(encoding="utf-8"))
        store = cls(content["fingerprint"])
        lengths = content["lengths"]
        if lengths:
            states = load_file(folder / "states.safetensors")["states"]
            store._states = dict(zip(lengths, states.split(list(lengths.values())), strict=True))
        return store
