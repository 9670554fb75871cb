"""Models of a study without the frozen weights that they share: these are kept once, in one file."""

from __future__ import annotations

import json
import os
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import save_file
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME

from hf_xst.files import write_text, atomic_path
from hf_xst.models.pretrained_words import PretrainedWords
from hf_xst.numerics import tensors_digest
from hf_xst.sources.pool import load_model

ENCODER_PREFIX = "encoder.words.model."
# Named as shards are, so that such a model can be published like any other.
OWN = "model-00001-of-00002.safetensors"
SHARED = "model-00002-of-00002.safetensors"


def share_frozen(folder: Path, store: Path) -> None:
    """Split a saved model's weights into its own and the frozen ones of its encoder, kept once in a store.

    The folder stays what `from_pretrained` reads: an index names both files, and that of the frozen weights
    is a link to the store's. A model without a pretrained encoder, or split before, is left as it is.

    Args:
        folder: of a saved model.
        store: where the frozen weights are, by their hash; on the same file system.
    """
    whole = folder / SAFE_WEIGHTS_NAME
    if not whole.exists():
        return
    names = _frozen_names(folder)
    if not names:
        return
    with safe_open(whole, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}
    frozen = {name: tensor for name, tensor in tensors.items() if name in names}
    own = {name: tensor for name, tensor in tensors.items() if name not in names}
    kept = store / f"frozen-{tensors_digest(frozen)[:16]}.safetensors"
    if not kept.exists():
        with atomic_path(kept) as aside:
            save_file(frozen, aside, {"format": "pt"})
    with atomic_path(folder / OWN) as aside:
        save_file(own, aside, {"format": "pt"})
    (folder / SHARED).unlink(missing_ok=True)
    os.link(kept, folder / SHARED)
    places = dict.fromkeys(own, OWN) | dict.fromkeys(frozen, SHARED)
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    index = {"metadata": {"total_size": size}, "weight_map": dict(sorted(places.items()))}
    write_text(folder / SAFE_WEIGHTS_INDEX_NAME, json.dumps(index, indent=1) + "\n")
    whole.unlink()


def _frozen_names(folder: Path) -> set[str]:
    words = load_model(str(folder)).encoder.words
    if not isinstance(words, PretrainedWords):
        return set()
    return {
        f"{ENCODER_PREFIX}{name}"
        for name, parameter in words.model.named_parameters()
        if not parameter.requires_grad
    }
