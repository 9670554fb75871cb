"""Load pretrained encoders and their tokenizers, and find out how many pieces an encoder can read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from tokenizers.pre_tokenizers import ByteLevel
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedConfig
from transformers.modeling_utils import PreTrainedModel
from transformers.tokenization_utils_tokenizers import PreTrainedTokenizerFast
from transformers.utils import CONFIG_NAME, logging

from hf_xst.models.model_checks import (
    TOKENIZER_CONFIG_NAME,
    check_encoder,
    check_forward,
    check_loaded,
    read_settings,
    read_tensors,
)


def load_encoder(name: str, layers: float | None = None, **hub: Any) -> PreTrainedModel:
    """Load an encoder (a folder or a Hub id) in float32, from safetensors only.

    `layers` is the number of layers to keep, below 1 their share; `hub` are arguments of `from_pretrained`.

    Raises:
        ValueError: the encoder has fewer layers, a decoder, or code from outside transformers, or its files
            lack some of its weights or hold pickled ones.
    """
    config = read_encoder_config(name, **hub)
    if layers is not None:
        _cut_layers(config, layers, name)
    model = load_weights(partial(bare_encoder, AutoModel.from_pretrained), name, config, hub)
    check_forward(model, name)
    return model


def load_weights(
    from_pretrained: Callable[..., Any], name: str, config: PreTrainedConfig, hub: Mapping[str, Any]
) -> PreTrainedModel:
    """Load a model in float32 from safetensors; raise ValueError as `read_tensors` and `check_loaded`."""
    read_tensors(name, hub)
    with quiet_transformers():  # check_loaded reports what matters
        model, report = from_pretrained(
            name,
            config=config,
            dtype=torch.float32,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **{**hub, "use_safetensors": True, "trust_remote_code": False},
        )
    check_loaded(name, model, {**report, "unexpected_keys": ()})
    loaded: PreTrainedModel = model
    return loaded


def read_encoder_config(name: str, **hub: Any) -> PreTrainedConfig:
    """Read the configuration of an encoder (a folder or a Hub id); raise ValueError as `load_encoder`."""
    read_settings(name, CONFIG_NAME, hub)
    config: PreTrainedConfig = AutoConfig.from_pretrained(name, **hub | {"trust_remote_code": False})
    check_encoder(config, name)
    return config


def bare_encoder(factory: Any, *args: Any, **kwargs: Any) -> Any:
    """Call an `AutoModel` factory without the pooler of some families, which would be random and unused."""
    try:
        return factory(*args, add_pooling_layer=False, **kwargs)
    except TypeError as error:
        if "add_pooling_layer" not in str(error):
            raise
        return factory(*args, **kwargs)


def load_tokenizer(name: str, **hub: Any) -> PreTrainedTokenizerFast:
    """Load a tokenizer as `load_encoder`; raise ValueError unless it maps pieces to words."""
    read_settings(name, TOKENIZER_CONFIG_NAME, hub)
    tokenizer = AutoTokenizer.from_pretrained(name, **hub | {"trust_remote_code": False})
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise ValueError(
            f"the {type(tokenizer).__name__} of {name} does not map pieces to words; use an encoder with a "
            "fast tokenizer (tokenizer.json)"
        )
    backend = tokenizer.backend_tokenizer
    splitter = backend.pre_tokenizer
    if isinstance(splitter, ByteLevel):
        # Words are passed one by one: without a space before it, a word gets pieces from inside of words.
        splitter.add_prefix_space = True
        backend.pre_tokenizer = splitter
    return tokenizer


def word_prefix(tokenizer: PreTrainedTokenizerFast) -> str:
    """Return what to put before each word so that it is cut as in running text: a space, or nothing.

    Some tokenizers mark the space before a word and nothing else at a word's start; words passed one by one
    would be cut like the insides of words.
    """

    def pieces(words: list[str] | str) -> list[int]:
        is_split = not isinstance(words, str)
        ids: list[int] = tokenizer(words, is_split_into_words=is_split, add_special_tokens=False)["input_ids"]
        return ids

    running = pieces("a b")
    return " " if pieces(["a", "b"]) != running and pieces([" a", " b"])[-1:] == running[-1:] else ""


def piece_limit(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> int:
    """Return how many pieces, special ones included, the encoder can read at once.

    This is the smaller of the tokenizer's limit (often unset, which is a huge number) and the encoder's
    number of positions. RoBERTa and its relatives number positions from behind the padding index.
    """
    field = model.config.attribute_map.get("max_position_embeddings", "max_position_embeddings")
    positions = model.config.to_dict().get(field)
    limit = int(tokenizer.model_max_length)
    if positions is None or positions < 1:
        return limit
    skipped = [
        module.padding_idx + 1
        for name, module in model.named_modules()
        if name.endswith("position_embeddings")
        and isinstance(module, nn.Embedding)
        and module.padding_idx is not None
    ]
    return min(limit, int(positions) - max(skipped, default=0))


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Raise the logging level of transformers to errors while the block runs."""
    level = logging.get_verbosity()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call, unused-ignore]
    try:
        yield
    finally:
        logging.set_verbosity(level)


def _cut_layers(config: PreTrainedConfig, share: float, name: str) -> None:
    depth = config.num_hidden_layers
    layers = math.ceil(share * depth) if 0 < share < 1 else int(share)
    if not 1 <= layers <= depth:
        raise ValueError(f"the encoder {name} has {depth} layers; cannot keep {layers} of them")
    types = config.to_dict().get("layer_types")
    if types is not None:
        config.layer_types = types[:layers]
    config.num_hidden_layers = layers
