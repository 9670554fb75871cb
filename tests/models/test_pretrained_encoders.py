"""Encoder B: loading encoders and freezing their layers."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.testing import assert_close
from transformers import AutoModel, GPT2Config

from helpers.tiny_models import (
    byte_tokenizer,
    loud,
    model_over,
    piece_tokenizer,
    save_encoder,
    tagger_config,
    word_states,
)
from hf_xst import CrfTagger
from hf_xst.models.pretrained_words import PretrainedWords


def trained_parts(model: CrfTagger) -> set[str]:
    model.train()
    output = model(words=[["the", "dog"]], labels=torch.tensor([[0, 1]]))
    output.loss.backward()
    parts = set()
    for name, parameter in model.encoder.words.model.named_parameters():
        if parameter.grad is not None and parameter.grad.any():
            assert parameter.requires_grad
            parts.add(name.split(".")[2] if name.startswith("encoder.layer.") else name.split(".")[0])
    return parts


@pytest.mark.parametrize(
    ("frozen", "parts"), [(-1, set()), (0, {"embeddings", "0", "1"}), (1, {"1"}), (2, set())]
)
def test_unfrozen_layers_get_gradients(bert: Path, frozen: int, parts: set[str]) -> None:
    model = loud(model_over(bert, frozen_layers=frozen))
    assert model.encoder.words.is_frozen == (not parts)
    assert trained_parts(model) == parts


def test_modules_after_the_layers_are_trained(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path, GPT2Config, byte_tokenizer(), n_layer=2, n_head=2, n_embd=16)
    model = model_over(folder, frozen_layers=1).encoder.words.model
    trained = {name.partition(".")[0] for name, p in model.named_parameters() if p.requires_grad}
    assert trained == {"h", "ln_f"}
    assert not any(parameter.requires_grad for parameter in model.h[0].parameters())


@pytest.mark.parametrize("nested", [False, True])
def test_words_are_tokenised_as_in_running_text(tmp_path: Path, nested: bool) -> None:
    """Byte-level tokenizers mark the space before a word: without it, words are cut like their insides."""
    tokenizer = byte_tokenizer(nested=nested)
    folder = save_encoder(tmp_path, GPT2Config, tokenizer, n_layer=2, n_head=2, n_embd=16)
    words = model_over(folder).encoder.words
    running = tokenizer(" the dog")["input_ids"]
    assert words.featurise([["the", "dog"]])["input_ids"].tolist() == [running]
    assert words.featurise([["the", "dog"]])["piece_slots"].tolist() == [[0, 0, 0, 1, 1, 1]]


def test_too_many_frozen_layers_are_refused(bert: Path) -> None:
    with pytest.raises(ValueError, match="frozen_layers is 3; the encoder has 2 layers"):
        model_over(bert, frozen_layers=3)


@pytest.mark.parametrize("frozen", [-1, 0])
def test_frozen_encoders_have_no_dropout(bert: Path, frozen: int) -> None:
    model = model_over(bert, frozen_layers=frozen).train()
    twice = [word_states(model, [["the", "dog"]]) for _ in range(2)]
    assert torch.equal(*twice) == (frozen == -1)
    model.eval()
    assert torch.equal(*(word_states(model, [["the", "dog"]]) for _ in range(2)))


def test_freezing_during_training_disables_dropout(bert: Path) -> None:
    words = model_over(bert, frozen_layers=-1).train().encoder.words
    words.freeze(False)
    assert words.model.training
    words.freeze()
    assert not words.model.training


def test_keep_the_first_layers(bert: Path) -> None:
    model = model_over(bert, layers=1)
    complete = AutoModel.from_pretrained(bert).eval()
    ids = torch.tensor([[2, 5, 6, 3]])
    expected = complete(ids, output_hidden_states=True).hidden_states[1]
    assert_close(model.encoder.words.model(ids).last_hidden_state, expected)
    assert model.config.encoder_config["num_hidden_layers"] == 1


@pytest.mark.parametrize("layers", [0, 3])
def test_invalid_numbers_of_layers_are_refused(bert: Path, layers: int) -> None:
    with pytest.raises(ValueError, match=f"has 2 layers; cannot keep {layers}"):
        model_over(bert, layers=layers)


def test_the_weights_are_those_of_the_encoder_without_pooler(bert: Path) -> None:
    model, complete = model_over(bert), AutoModel.from_pretrained(bert).state_dict()
    own = model.encoder.words.model.state_dict()
    assert not any("pooler" in name for name in own)
    assert all(torch.equal(value, complete[name]) for name, value in own.items())
    assert "_name_or_path" not in model.config.encoder_config


def test_encoders_with_missing_weights_are_refused(bert: Path, tmp_path: Path) -> None:
    complete = AutoModel.from_pretrained(bert)
    state = {name: value for name, value in complete.state_dict().items() if ".layer.1.attention" not in name}
    complete.save_pretrained(tmp_path, state_dict=state)
    piece_tokenizer().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"lack 10 weights.*: encoder\.layer\.1\.attention"):
        model_over(tmp_path)


def test_models_built_from_a_configuration_have_no_tokenizer(bert: Path) -> None:
    fresh = CrfTagger(model_over(bert).config)
    assert isinstance(fresh.encoder.words, PretrainedWords)
    with pytest.raises(ValueError, match="has no tokenizer; build it with from_encoder"):
        fresh.predict([{"words": ["a"]}])
    with pytest.raises(ValueError, match="requires encoder_config; build the model with from_encoder"):
        CrfTagger(tagger_config(encoder="pretrained"))


def test_the_dtype_of_the_model_decides(bert: Path) -> None:
    config = model_over(bert).config
    config.encoder_config["dtype"] = "bfloat16"  # as in the files of an encoder that was saved so
    assert {parameter.dtype for parameter in CrfTagger(config).parameters()} == {torch.float32}


def test_encoder_b_has_no_word_vectors(bert: Path) -> None:
    with pytest.raises(ValueError, match="and no word vectors"):
        model_over(bert).train_word_vectors()


def test_half_precision(bert: Path) -> None:
    model = loud(model_over(bert)).to(torch.bfloat16)
    assert model(words=[["the", "dog"], ["\u200f"]]).scores.dtype == torch.float32
