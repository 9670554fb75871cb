"""A real multilingual encoder: long sentences, unusual words, first layers only."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close
from transformers import AutoModel, AutoTokenizer

from helpers.tiny_models import parser_config, word_states
from hf_xst import BiaffineParser
from hf_xst.data import read_conllu

pytestmark = pytest.mark.real
LAYERS = 3


@pytest.fixture(scope="module")
def encoder(shared: Callable[..., Path]) -> Path:
    return shared("models", "multilingual-e5-small-ud")


@pytest.fixture(scope="module")
def model(encoder: Path) -> BiaffineParser:
    config = parser_config(context_layers=0, uses_upos=False)
    return BiaffineParser.from_encoder(config, encoder, layers=LAYERS).eval()


def test_long_sentence(model: BiaffineParser, shared: Callable[..., Path]) -> None:
    path = shared("fieldcases", "files", "p14_long_sentence.conllu")
    sentences = [list(sentence.words) for sentence in read_conllu(path)]
    features = model.encoder.words.featurise(sentences)
    windows, width = features["input_ids"].shape
    assert width == model.config.max_pieces == 512
    assert windows > 4
    states = word_states(model, sentences)
    assert states[0].any(-1).all()
    assert_close(states[1, :2], word_states(model, sentences[1:])[0], atol=1e-4, rtol=1e-4)
    result = model.predict([{"words": words} for words in sentences])
    assert [len(columns["head"]) for columns in result] == [240, 2]


def test_embeddings_belong_to_their_words(
    model: BiaffineParser, encoder: Path, shared: Callable[..., Path]
) -> None:
    complete, tokenizer = AutoModel.from_pretrained(encoder).eval(), AutoTokenizer.from_pretrained(encoder)
    for sentence in read_conllu(shared("fieldcases", "files", "p13_zero_subwords.conllu")):
        words = list(sentence.words)
        encoded = tokenizer([words], is_split_into_words=True, return_tensors="pt")
        with torch.no_grad():
            pieces = complete(**encoded, output_hidden_states=True).hidden_states[LAYERS][0]
        output = word_states(model, [words])[0]
        for index in range(len(words)):
            positions = [position for position, word in enumerate(encoded.word_ids(0)) if word == index]
            expected = pieces[positions].mean(0) if positions else torch.zeros(pieces.shape[1])
            assert_close(output[index], expected, atol=1e-4, rtol=1e-4)


def test_save_and_load(model: BiaffineParser, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path)
    loaded = AutoModel.from_pretrained(tmp_path)
    words = [["Das", "ist", "ein", "Satz", "."], ["これ", "は", "文", "です"]]
    assert torch.equal(loaded(words=words).scores, model(words=words).scores)
    assert loaded.encoder.words.is_frozen
    assert loaded.predict([{"words": row} for row in words]) == model.predict(
        [{"words": row} for row in words]
    )
