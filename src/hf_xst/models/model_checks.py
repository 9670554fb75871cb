"""Check the files of models before anything in them is used."""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import nn
from transformers import CONFIG_MAPPING, PreTrainedConfig
from transformers.modeling_utils import PreTrainedModel
from transformers.utils import CONFIG_NAME, SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME
from transformers.utils.hub import cached_file

from hf_xst.files import check_links
from hf_xst.models.configuration import MAX_SIZE, check_size

HUB_ARGUMENTS = "cache_dir force_download local_files_only proxies revision subfolder token".split()
TOKENIZER_CONFIG_NAME = "tokenizer_config.json"
ADAPTER_CONFIG_NAME = "adapter_config.json"
_EXTERNAL = re.compile(
    r"auto_map|quantization_config|transformers_weights|\w*(attn|experts)_implementation\w*"
)
_FILES = re.compile(r"(?!special_tokens_map)\w+_files?")  # fields of tokenizers; that one is never read
_WEIGHTS = re.compile(r"model[\w.-]*\.safetensors")
_FLOATS = {"F16", "BF16", "F32", "F64"}


def find_file(name: str, file: str, hub: Mapping[str, Any], *, is_required: bool = False) -> str | None:
    """Return the local path of a model's file, downloaded if necessary; None if it is missing."""
    hub = {key: value for key, value in hub.items() if key in HUB_ARGUMENTS}
    return cached_file(name, file, _raise_exceptions_for_missing_entries=is_required, **hub)


def read_settings(name: str, file: str, hub: Mapping[str, Any]) -> dict[str, Any]:
    """Read a JSON file of a model, empty if it is missing and optional (all but config.json are).

    Raises:
        ValueError: it is broken, or refers to code, weights or existing files elsewhere.
    """
    path = find_file(name, file, hub, is_required=file == CONFIG_NAME)
    if path is None:
        return {}
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"), object_pairs_hook=_without_code)
        content = content if isinstance(content, dict) else {}
        for key in filter(_FILES.fullmatch, content):
            names = content[key] if isinstance(content[key], list) else [content[key]]
            places = (folder / str(each) for each in names for folder in (Path(path).parent, Path()))
            check_links(Path(path).parent, (place for place in places if place.exists()))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} of {name} is refused: {error}") from error
    return content


def _without_code(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for key, value in pairs:
        if _EXTERNAL.fullmatch(key) and value not in (None, True, False, "eager", "sdpa"):
            raise ValueError(f"it sets {key}, which can run code from outside transformers")
    return dict(pairs)


def read_tensors(name: str, hub: Mapping[str, Any]) -> dict[str, tuple[str, int]]:
    """Return the type and the number of entries of each tensor in a model's safetensors files.

    Raises:
        ValueError: weights are missing, damaged or not safetensors, or a link leads out of the folder.
    """
    folder = Path(name, hub.get("subfolder") or "")
    if folder.is_dir():
        check_links(folder, folder.iterdir())
        if any(folder.glob("shard-*.safetensors")):  # which transformers reads instead of all others
            raise ValueError(f"{name} holds weights of a distributed run; save them as {SAFE_WEIGHTS_NAME}")
    if read_settings(name, ADAPTER_CONFIG_NAME, hub):
        raise ValueError(f"{name} is an adapter ({ADAPTER_CONFIG_NAME}); merge it with its model first")
    paths = {SAFE_WEIGHTS_NAME: find_file(name, SAFE_WEIGHTS_NAME, hub)}
    if paths[SAFE_WEIGHTS_NAME] is None:
        shards = read_settings(name, SAFE_WEIGHTS_INDEX_NAME, hub).get("weight_map", {})
        names = {*map(str, shards.values())} if isinstance(shards, dict) else {str(shards)}
        paths = {each: find_file(name, each, hub) if _WEIGHTS.fullmatch(each) else None for each in names}
    if not paths:  # transformers would ask a service of the Hub to convert pickled weights
        raise ValueError(
            f"{name} has no {SAFE_WEIGHTS_NAME}: it is incomplete, or its weights are pickled, and pickled "
            "weights are refused because they can run any program. Choose a revision with it, or convert the "
            f"model on a machine without secrets: AutoModel.from_pretrained({name!r}).save_pretrained(FOLDER)"
        )
    tensors = {}
    for file, path in sorted(paths.items()):
        if path is None:
            raise ValueError(
                f"the index of the weights of {name} names {file!r:.80}; expected existing files beside it "
                "whose names begin with model and end in .safetensors"
            )
        try:
            with safe_open(path, "pt") as content:
                for key in content.keys():
                    part = content.get_slice(key)
                    tensors[key] = (part.get_dtype(), math.prod(part.get_shape()))
        except SafetensorError as error:
            raise ValueError(
                f"{file} of {name} cannot be read ({error}): it is truncated or damaged; copy it again"
            ) from error
    return tensors


def check_weights(name: str, build: Callable[[], nn.Module], hub: Mapping[str, Any]) -> None:
    """Compare the files of a model with its configuration, before memory for the model is allocated.

    `build` makes the model; it is called with tensors that have no memory.

    Raises:
        ValueError: as `read_tensors`; or the configuration describes no model, or a much larger one than the
            files hold; or weights are not floating point.
    """
    stored = read_tensors(name, hub)
    try:
        with torch.device("meta"):
            state = build().state_dict()
    except Exception as error:
        raise ValueError(f"{CONFIG_NAME} of {name} describes no model: {error}") from error
    wrong = sorted(
        key
        for key, (dtype, _) in stored.items()
        if dtype not in _FLOATS and (key not in state or state[key].is_floating_point())
    )
    if wrong:
        raise ValueError(f"the weights of {name} are not floating point: {', '.join(wrong[:3])}")
    described = sum(each.numel() for each in state.values())
    present = sum(size for _, size in stored.values())
    if described > 2 * present:  # tensors that share memory are stored once
        raise ValueError(
            f"{CONFIG_NAME} of {name} describes {described:,} numbers, its weights hold {present:,}"
        )


def check_loaded(name: str, model: nn.Module, report: Mapping[str, Any]) -> None:
    """Check a model that transformers has loaded, given its report of missing, unexpected and other keys.

    Raises:
        ValueError: tensors are missing, unexpected or of another shape, or hold NaN or infinite values.
    """
    missing = {key for key in report["missing_keys"] if "pooler" not in key}
    wrong = {
        "lack": missing | {key for key, *_ in report["mismatched_keys"]},
        "also hold": {*report["unexpected_keys"]},
    }
    for verb, keys in wrong.items():
        if keys:
            raise ValueError(
                f"the files of {name} {verb} {len(keys)} weights, or have them in another shape: "
                f"{', '.join(sorted(keys)[:3])}; is it a checkpoint of this type of model?"
            )
    tensors = (*model.parameters(), *model.buffers())  # frozen word vectors are buffers
    if not all(bool(each.isfinite().all()) for each in tensors):
        raise ValueError(
            f"the weights of {name} contain NaN or infinite values; training has probably diverged"
        )


def encoder_config(settings: Mapping[str, Any]) -> PreTrainedConfig:
    """Build an encoder's configuration from the fields of its class; raise ValueError if one is invalid."""
    try:
        content = json.loads(json.dumps(settings, default=str), object_pairs_hook=_without_code)
        kind = CONFIG_MAPPING[content["model_type"]]
        known = {*inspect.signature(kind.__init__).parameters, *kind.attribute_map}
        kept = {key: value for key, value in content.items() if key in known - {"dtype"}}
        for key, value in kept.items():
            for each in value if isinstance(value, list) else [value]:
                if type(each) is int:
                    check_size(key, each, -MAX_SIZE)
        config: PreTrainedConfig = kind(**kept)
    except Exception as error:
        raise ValueError(f"encoder_config describes no encoder: {error}") from error
    check_encoder(config, "encoder_config")
    return config


def check_encoder(config: PreTrainedConfig, name: str) -> None:
    """Raise ValueError if a model has a decoder."""
    if config.is_encoder_decoder or type(config).is_encoder_decoder:
        raise ValueError(
            f"{name} is an encoder-decoder model ({config.model_type}); expected an encoder, such as XLM-R"
        )


@torch.no_grad()
def check_forward(model: PreTrainedModel, name: str) -> None:
    """Raise ValueError unless a model turns pieces into states without further input."""
    pieces = torch.zeros(1, 2, dtype=torch.long, device=model.device)
    try:
        states = model(input_ids=pieces, attention_mask=torch.ones_like(pieces)).last_hidden_state
        if states.shape != (1, 2, model.config.hidden_size):
            raise ValueError(f"its states of two pieces have the shape {tuple(states.shape)}")
    except Exception as error:
        raise ValueError(
            f"{name} ({model.config.model_type}) cannot be used as an encoder of text: {error}"
        ) from error
