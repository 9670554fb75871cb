"""Models of every kind, and a comparison of two models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from helpers.tiny_models import ROWS, SENTENCES, TAGS, UPOS, parser, parser_config, tagger, tagger_config
from hf_xst import BiaffineParser, CrfTagger
from hf_xst.models import StructuredModel

Make = Callable[[Path], StructuredModel]


def parser_over_encoder(bert: Path, **changes: Any) -> BiaffineParser:
    return BiaffineParser.from_encoder(parser_config(context_layers=0, **changes), bert).eval()


MAKERS: dict[str, Make] = {
    "parser-vectors": lambda _: parser(),
    "parser-trained-vectors": lambda _: parser(freeze_word_vectors=False),
    "parser-encoder": parser_over_encoder,
    "parser-partly-frozen": lambda bert: parser_over_encoder(bert, frozen_layers=1),
    "tagger-vectors": lambda _: tagger(),
    "tagger-encoder": lambda bert: CrfTagger.from_encoder(
        tagger_config(uses_upos=True, upos_names=TAGS), bert
    ).eval(),
}
every_model = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


def with_pattern(model: StructuredModel) -> StructuredModel:
    """Fill every tensor with numbers that no initialiser produces."""
    with torch.no_grad():
        for position, tensor in enumerate(model.state_dict().values()):
            numbers = torch.arange(tensor.numel()).view(tensor.shape)
            tensor.copy_((numbers * 7 + position) % 23 / 23 - 0.4)
    return model


def scores_of(model: StructuredModel) -> torch.Tensor:
    with torch.no_grad():
        return model(words=SENTENCES, upos=UPOS).scores


def same(one: StructuredModel, other: StructuredModel) -> None:
    states = one.state_dict(), other.state_dict()
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())
    trained = [{n for n, p in m.named_parameters() if p.requires_grad} for m in (one, other)]
    assert trained[0] == trained[1]
    assert torch.equal(scores_of(one), scores_of(other))
    assert one.predict(ROWS) == other.predict(ROWS)
    assert one.names == other.names
