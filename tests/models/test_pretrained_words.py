"""Encoder B: pool pieces to words, for all tokenizers and long sentences."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from transformers import AutoModel, AutoTokenizer, BertConfig, GPT2Config

from helpers.tiny_models import (
    TAGS,
    byte_tokenizer,
    loud,
    model_over,
    piece_tokenizer,
    save_bert,
    save_encoder,
    save_roberta,
    save_xlm_roberta,
    sentence_tokenizer,
    word_states,
)
from hf_xst import CrfTagger
from hf_xst.data import read_conllu
from hf_xst.models.pretrained_words import window_starts

ROOM = 18  # 20 pieces less [CLS] and [SEP]


def piece_states(folder: Path, ids: list[int]) -> Tensor:
    with torch.no_grad():
        return AutoModel.from_pretrained(folder).eval()(torch.tensor([ids])).last_hidden_state[0]


@pytest.mark.parametrize("pooling", ["mean", "first"])
@pytest.mark.parametrize("save", [save_bert, save_xlm_roberta], ids=["bert", "xlm-roberta"])
def test_short_sentences_pool_the_encoder_output(
    tmp_path: Path, save: Callable[[Path], Path], pooling: str
) -> None:
    folder, words = save(tmp_path), ["the", "dog", "a", "sees"]
    encoded = AutoTokenizer.from_pretrained(folder)([words], is_split_into_words=True)
    states = piece_states(folder, encoded["input_ids"][0])
    got = word_states(model_over(folder, piece_pooling=pooling), [words])[0]
    for index in range(4):
        pieces = [position for position, word in enumerate(encoded.word_ids(0)) if word == index]
        expected = states[pieces].mean(0) if pooling == "mean" else states[pieces[0]]
        assert_close(got[index], expected, atol=1e-5, rtol=1e-5)


def test_long_sentences_are_read_in_windows(bert: Path) -> None:
    words = ["abcdefg", "hij", "k", "lmnopqrstu", "v"] * 5  # 22 pieces a round
    ids = AutoTokenizer.from_pretrained(bert)([words], is_split_into_words=True, add_special_tokens=False)
    starts = window_starts(len(ids["input_ids"][0]), ROOM)
    windows = [
        piece_states(bert, [2, *ids["input_ids"][0][start : start + ROOM], 3])[1:-1] for start in starts
    ]
    got = word_states(model_over(bert), [words])[0]
    for index, word in enumerate(words):
        pieces = [position for position, owner in enumerate(ids.word_ids(0)) if owner == index]
        middle, chosen = sum(pieces) / len(pieces), []
        for position in pieces:
            aim = position if len(word) > ROOM // 2 else middle
            gap = [abs(start + (ROOM - 1) / 2 - aim) for start in starts]
            window = gap.index(min(gap))
            chosen.append(windows[window][position - starts[window]])
        assert_close(got[index], torch.stack(chosen).mean(0), atol=1e-5, rtol=1e-5)


def test_every_word_of_a_long_sentence_has_an_embedding(tmp_path: Path, shared: Callable) -> None:
    long, short = [s.words for s in read_conllu(shared("fieldcases", "files", "p14_long_sentence.conllu"))]
    assert (len(long), len(short)) == (240, 2)
    tokenizer = piece_tokenizer(model_max_length=512)
    model = model_over(save_encoder(tmp_path, BertConfig, tokenizer, max_position_embeddings=64))
    features = model.encoder.words.featurise([long, short])
    assert features["input_ids"].shape[1] == 64
    states = word_states(model, [long, short])
    assert states[0].any(-1).all()
    assert states[1, :2].any(-1).all()
    assert not states[1, 2:].any()
    result = model.predict([{"words": long}, {"words": short}])
    assert [len(columns["upos"]) for columns in result] == [240, 2]


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_sentences_of_a_batch_are_independent(bert: Path, pooling: str) -> None:
    model = model_over(bert, piece_pooling=pooling)
    sentences = [["dog"], ["abcdefghijk"] * 9, ["the", "x"], ["abcdefghijklmnopqrstuvwxyz"]]
    together = word_states(model, sentences)
    for index, words in enumerate(sentences):
        alone = word_states(model, [words])[0]
        assert_close(together[index, : len(words)], alone, atol=1e-5, rtol=1e-5)


def test_words_without_pieces_are_unknown(bert: Path, shared: Callable) -> None:
    model = model_over(bert)
    odd_words = [2, 1, 1]
    path = shared("fieldcases", "files", "p13_zero_subwords.conllu")
    for sentence, odd in zip(read_conllu(path), odd_words, strict=True):
        words = [word.lower() if word.isascii() else word for word in sentence.words]
        states = word_states(model, [words])[0]
        assert not states[odd].any()
        without = word_states(model, [[*words[:odd], *words[odd + 1 :]]])[0]
        assert_close(torch.cat([states[:odd], states[odd + 1 :]]), without, atol=1e-5, rtol=1e-5)
        lengths = torch.tensor([len(words)])
        encoded = model.encoder(lengths, model.encoder.featurise([words]))[0, 1:-1]
        assert_close(encoded[odd], model.encoder.special_vectors[0])
        assert len(model.predict([{"words": words}])[0]["upos"]) == len(words)


@pytest.mark.parametrize("sentences", [[["\u200f"]], [["\u200f", ""], ["dog"]], [["", ""], [""]]])
def test_sentences_without_pieces(bert: Path, sentences: list[list[str]]) -> None:
    model = loud(model_over(bert)).train()
    output = model(words=sentences, labels=torch.zeros(len(sentences), 2 - (len(sentences[0]) == 1)).long())
    assert output.loss.isfinite()
    output.loss.backward()
    assert model.encoder.special_vectors.grad.isfinite().all()


@pytest.mark.parametrize("make", [piece_tokenizer, sentence_tokenizer], ids=["wordpiece", "unigram"])
def test_text_cannot_spell_special_pieces(tmp_path: Path, make: Callable) -> None:
    folder = save_encoder(tmp_path, BertConfig, make(model_max_length=20))
    words = model_over(folder).encoder.words
    text = ["</s>", "[SEP]", "a<pad>b", "[PAD]", "x"]
    features = words.featurise([text])
    used = features["input_ids"][features["piece_slots"] >= 0].tolist()
    special = set(words.tokenizer.all_special_ids) - {words.tokenizer.unk_token_id}
    assert not special & set(used)
    assert set(features["piece_slots"].flatten().tolist()) == {-1, 0, 1, 2, 3, 4}


def test_truncation_and_padding_of_the_tokenizer_are_ignored(tmp_path: Path) -> None:
    tokenizer = piece_tokenizer(model_max_length=20)
    tokenizer.backend_tokenizer.enable_truncation(6)
    tokenizer.backend_tokenizer.enable_padding(length=6)
    words = model_over(save_encoder(tmp_path, BertConfig, tokenizer)).encoder.words
    features = words.featurise([["abcdefghij", "k"], ["a"]])
    assert (features["piece_slots"] >= 0).sum(1).tolist() == [11, 1]
    assert features["attention_mask"].sum(1).tolist() == [13, 3]


def test_byte_level_words_start_with_a_space(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "encoder", GPT2Config, byte_tokenizer(), n_layer=2, n_head=2, n_embd=16)
    model = model_over(folder, labels=TAGS)
    model.save_pretrained(tmp_path / "model")
    for one in (model, CrfTagger.from_pretrained(tmp_path / "model")):
        ids = one.encoder.words.featurise([["ab", "c"]])["input_ids"]
        assert one.encoder.words.tokenizer.convert_ids_to_tokens(ids[0].tolist()) == ["Ġa", "b", "Ġc"]


@pytest.mark.parametrize(
    ("save", "limit"),
    [(save_bert, 20), (save_roberta, 15), (save_xlm_roberta, 18)],
    ids=["bert", "roberta", "xlm-roberta"],
)
def test_max_pieces_is_limited_by_the_positions(
    tmp_path: Path, save: Callable[..., Path], limit: int
) -> None:
    # Padding is piece 1 in the two RoBERTa-like encoders, so that two positions are never used.
    positions = {"max_position_embeddings": limit + 2} if save is not save_bert else {}
    model = model_over(save(tmp_path, **positions))
    assert model.config.max_pieces == limit
    features = model.encoder.words.featurise([["abcdefghij"] * 10])
    assert features["input_ids"].shape[1] == limit
    assert word_states(model, [["abcdefghij"] * 10]).isfinite().all()


def test_max_pieces_can_be_lowered(bert: Path) -> None:
    assert model_over(bert, max_pieces=7).encoder.words.featurise([["ab"] * 30])["input_ids"].shape[1] == 7
    with pytest.raises(ValueError, match="max_pieces is 2, but the tokenizer adds 2 pieces"):
        model_over(bert, max_pieces=2).predict([{"words": ["a"]}])
