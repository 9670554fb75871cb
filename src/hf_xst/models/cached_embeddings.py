"""Share the outputs of frozen encoders and layers among models, and cache word embeddings."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils._pytree import tree_flatten

from hf_xst.charts.dataset import words_hash
from hf_xst.console import progress
from hf_xst.files import atomic_path
from hf_xst.models.modeling import StructuredModel, evaluating
from hf_xst.models.pretrained_words import PretrainedWords
from hf_xst.models.running import BATCH_WORDS, EmbeddingSource, length_batches
from hf_xst.numerics import tensors_digest

EMBEDDINGS_FILE = "states.safetensors"


def encoder_fingerprint(model: StructuredModel) -> str | None:
    """Hash weights, settings and tokenizer of a fully frozen encoder; return None for all other models."""
    words = model.encoder.words
    if not isinstance(words, PretrainedWords) or not words.is_frozen:
        return None
    return tensors_digest(words.model.state_dict(), words.describe(), words.model)


@torch.no_grad()
def encode_words(model: StructuredModel, sentences: Sequence[Sequence[str]]) -> Tensor:
    """Run only a model's word encoder, in evaluation mode: (B, N, D) on the model's device."""
    lengths = torch.tensor([len(words) for words in sentences], device=model.device)
    features = {key: each.to(model.device) for key, each in model.encoder.featurise(sentences).items()}
    with evaluating(model):
        return model.encoder.words(lengths, **features)  # type: ignore[no-any-return]


class SharedEncoder:
    """Embeddings of the latest batch, for all models with the frozen encoder of `model`; thread-safe."""

    def __init__(self, model: StructuredModel) -> None:
        self._model = model
        # One attribute, read once and written once, so that no thread sees another thread's embeddings.
        self._latest: tuple[list[list[str]], Tensor] = ([], torch.empty(0))

    def batch(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Return the embeddings of a batch, (B, N, D); repeated calls with one batch encode it once."""
        requested = [list(words) for words in sentences]
        sentences, embeddings = self._latest
        if requested != sentences:
            embeddings = encode_words(self._model, requested)
            self._latest = (requested, embeddings)
        return embeddings


class _SharedLayer:
    """A `forward` for a frozen layer that, outside training, reuses the latest output of an equal layer.

    Args:
        layer: the layer.
        about: what its output depends on besides its weights and input.
        latest: calls by digest of the layer and whether in half precision, shared by all layers.
    """

    def __init__(self, layer: nn.Module, about: str, latest: _Calls) -> None:
        usual = layer.forward
        self._forward: Callable[..., Any] = usual._forward if isinstance(usual, _SharedLayer) else usual
        self._layer, self._about, self._latest = layer, about, latest

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the output for an input."""
        given = tree_flatten((args, kwargs))[0]
        # On a GPU, comparing inputs would wait for it.
        on_gpu = any(isinstance(each, Tensor) and each.is_cuda for each in given)
        if on_gpu or torch.is_grad_enabled() or torch.is_inference_mode_enabled():
            return self._forward(*args, **kwargs)
        digest = tensors_digest(self._layer.state_dict(), self._about, self._layer)
        key = digest, torch.is_autocast_enabled("cpu")
        call = self._latest.get(key)
        if call is None or not call.fits(given):
            call = self._latest[key] = _Call(given, self._forward(*args, **kwargs))
        return call.output


class _Call:
    """Input and output of a layer, until a tensor of them is changed in place."""

    def __init__(self, given: list[Any], output: Any) -> None:
        self._given, self.output = given, output
        self._tensors = [each for each in (*given, *tree_flatten(output)[0]) if isinstance(each, Tensor)]
        self._versions = [each._version for each in self._tensors]

    def fits(self, given: list[Any]) -> bool:
        """Return whether the output is that for an input."""
        return self._versions == [each._version for each in self._tensors] and all(
            torch.equal(one, other) if isinstance(one, Tensor) and isinstance(other, Tensor) else one is other
            for one, other in zip_longest(given, self._given)
        )


_Calls = dict[tuple[str, bool], _Call]


def share_encoders(models: Mapping[str, StructuredModel]) -> dict[str, EmbeddingSource]:
    """Let models share what frozen encoders compute for a batch and, on a CPU, frozen layers of others.

    Returns:
        An encoder for each model, by name, or nothing if no two frozen encoders are equal.
    """
    latest: _Calls = {}
    for model in models.values():
        words = model.encoder.words
        layers = words.lower_layers if isinstance(words, PretrainedWords) else ()
        about = words.describe() if layers else ""  # megabytes
        for layer in layers:
            layer.forward = _SharedLayer(layer, about, latest)
    encoders: dict[str, EmbeddingSource] = {}
    by_model: dict[str, EmbeddingSource] = {}
    for name, model in models.items():
        if (fingerprint := encoder_fingerprint(model)) is not None:
            by_model[name] = encoders.setdefault(fingerprint, SharedEncoder(model))
    return by_model if len(encoders) < len(by_model) else {}


class CachedEmbeddings:
    """Word embeddings in half precision, one (N, D) tensor for each distinct sentence.

    `fingerprint` is that of the encoder, see `encoder_fingerprint`.
    """

    def __init__(self, fingerprint: str) -> None:
        self.fingerprint = fingerprint
        self._embeddings: dict[str, Tensor] = {}

    def __len__(self) -> int:
        return len(self._embeddings)

    @classmethod
    def compute(
        cls, model: StructuredModel, sentences: Iterable[Sequence[str]], folder: Path | None = None
    ) -> CachedEmbeddings | None:
        """Return the embeddings of sentences for a model with a frozen encoder, None for other models.

        The folder, if given, caches them between runs, with one subfolder for each encoder.
        """
        fingerprint = encoder_fingerprint(model)
        if fingerprint is None:
            return None
        path = None if folder is None else folder / fingerprint[:16]
        is_cached = path is not None and (path / EMBEDDINGS_FILE).exists()
        cache = cls.load(path) if path is not None and is_cached else cls(fingerprint)
        known = len(cache)
        cache.add(model, sentences)
        if path is not None and len(cache) > known:
            cache.save(path)
        return cache

    def add(
        self, model: StructuredModel, sentences: Iterable[Sequence[str]], batch_words: int = BATCH_WORDS
    ) -> None:
        """Encode the sentences that are not cached yet with a model that has this encoder."""
        words_of = {words_hash(words): list(words) for words in sentences}
        missing = [key for key in words_of if key not in self._embeddings]
        with progress("encoding words", len(missing)) as advance:
            for batch in length_batches([len(words_of[key]) for key in missing], batch_words):
                keys = [missing[index] for index in batch]
                # One copy from the device per batch: one per sentence would synchronise every time.
                embeddings = encode_words(model, [words_of[key] for key in keys]).half().cpu()
                for key, each in zip(keys, embeddings, strict=True):
                    self._embeddings[key] = each[: len(words_of[key])].clone()
                advance(len(keys))

    def batch(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Return the embeddings of a batch, (B, N, D) in float32, zeros as padding.

        Raises:
            KeyError: a sentence is not cached.
        """
        tensors = []
        for words in sentences:
            key = words_hash(words)
            if key not in self._embeddings:
                raise KeyError(
                    f"no cached embeddings for the sentence {' '.join(words)[:80]!r}; add it first"
                )
            tensors.append(self._embeddings[key])
        return pad_sequence(tensors, batch_first=True).float()

    def save(self, folder: Path) -> None:
        """Write the cache as one safetensors file, atomically."""
        lengths = json.dumps({key: len(tensor) for key, tensor in self._embeddings.items()})
        joined = torch.cat(list(self._embeddings.values())) if self._embeddings else torch.empty(0)
        metadata = {"fingerprint": self.fingerprint, "lengths": lengths}
        metadata["crc32"] = _checksum(joined, **metadata)
        with atomic_path(folder / EMBEDDINGS_FILE) as temporary:
            save_file({"states": joined}, temporary, metadata)

    @classmethod
    def load(cls, folder: Path) -> CachedEmbeddings:
        """Read a cache written by `save`; raise ValueError if the file is damaged."""
        path = folder / EMBEDDINGS_FILE
        try:
            with safe_open(path, framework="pt") as file:
                metadata, joined = file.metadata() or {}, file.get_tensor("states")
            if metadata.pop("crc32", None) != _checksum(joined, **metadata):
                raise ValueError("its content has changed")
        except (SafetensorError, ValueError) as error:
            raise ValueError(
                f"{path} is damaged ({error}); remove it, and words will be encoded again"
            ) from error
        cache = cls(metadata["fingerprint"])
        lengths = json.loads(metadata["lengths"])
        if lengths:
            cache._embeddings = dict(zip(lengths, torch.split(joined, list(lengths.values())), strict=True))
        return cache


def _checksum(states: Tensor, **metadata: str) -> str:
    """Return the CRC-32 of a cache, which finds accidental changes.

    It reads a gigabyte in a second, in half the time of SHA-256; to compute the gigabyte took minutes.
    """
    begin = zlib.crc32(json.dumps(metadata, sort_keys=True).encode())
    return str(zlib.crc32(states.reshape(-1).view(torch.uint8).numpy().data, begin))
