"""The input of models: word vectors, special words, UPOS tags and dropout."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from helpers.tiny_models import ROWS, SENTENCES, TAGS, UPOS, WORDS, loud, parser, tagger, word_vectors
from hf_xst.models.encoders import UposEmbeddings, WordEncoder
from hf_xst.models.words import VectorTable


def word_encoder(**changes: float) -> WordEncoder:
    """A parser's encoder without context, so that its output is its input."""
    return parser(context_layers=0, uses_upos=False, **changes).encoder


def encode(encoder: WordEncoder, sentences: list[list[str]]) -> Tensor:
    lengths = torch.tensor([len(words) for words in sentences])
    return encoder(lengths, encoder.featurise(sentences))


def test_words_follow_the_root_symbol() -> None:
    encoder, vectors = word_encoder(), word_vectors()
    output = encode(encoder, SENTENCES)
    for index, words in enumerate(SENTENCES):
        assert_close(output[index, 0], encoder.special_vectors[1])
        for position, word in enumerate(words, start=1):
            if word in WORDS:
                expected = torch.from_numpy(vectors.matrix[WORDS.index(word)])
            else:
                expected = encoder.special_vectors[0]
            assert_close(output[index, position], expected)


def test_taggers_add_a_symbol_at_each_end() -> None:
    encoder = tagger(context_layers=0).encoder
    output = encode(encoder, SENTENCES)
    for index, words in enumerate(SENTENCES):
        assert_close(output[index, 0], encoder.special_vectors[1])
        assert_close(output[index, len(words) + 1], encoder.special_vectors[2])


def test_lookup_falls_back_to_lower_case_and_digits_as_zero() -> None:
    table = parser(word_vectors(["the", "The", "00", "v0"])).encoder.words
    ids = table.featurise([["The", "THE", "47", "V8", "8"]])["word_ids"]
    assert ids.tolist() == [[3, 2, 4, 5, 1]]


def test_word_dropout_replaces_words_in_training_only() -> None:
    encoder = word_encoder(word_dropout=0.5)
    sentences = [["dog"] * 50] * 20
    assert_close(encode(encoder, sentences), encode(encoder, sentences), atol=0, rtol=0)
    encoder.train()
    output = encode(encoder, sentences)
    dropped = (output[:, 1:] == encoder.special_vectors[0]).all(-1)
    kept = (output[:, 1:] == torch.from_numpy(word_vectors().matrix[1])).all(-1)
    assert (dropped ^ kept).all()
    assert 0.4 < dropped.float().mean() < 0.6
    assert_close(output[:, 0], encoder.special_vectors[1].expand(20, -1))  # the root symbol is never dropped


def test_unknown_and_special_words_are_trained() -> None:
    encoder = word_encoder()
    encode(encoder, [["zebra"]]).sum().backward()
    assert (encoder.special_vectors.grad == 1).all()


def test_upos_embeddings() -> None:
    tags = UposEmbeddings(TAGS, 3, dropout=0.0)
    ids = tags.featurise(ROWS)
    assert ids.tolist() == [[2, 3, 4, 2, 3], [3, 0, 0, 0, 0], [2, 3, 0, 0, 0]]  # PUNCT is unknown
    output = tags(ids, torch.tensor([5, 1, 3]), 1, 1)
    rows = tags.embeddings.weight
    assert_close(output[0], rows[[1, 2, 3, 4, 2, 3, 1]])
    assert_close(output[1, :3], rows[[1, 3, 1]])
    assert_close(output[2, :5], rows[[1, 2, 3, 0, 1]])


def test_upos_dropout_replaces_tags_in_training_only() -> None:
    tags = UposEmbeddings(TAGS, 3, dropout=0.5)
    ids, lengths = torch.full((20, 50), 3), torch.full((20,), 50)
    output = tags.train()(ids, lengths, 1, 0)
    dropped = (output[:, 1:] == tags.embeddings.weight[0]).all(-1)
    kept = (output[:, 1:] == tags.embeddings.weight[3]).all(-1)
    assert (dropped ^ kept).all()
    assert 0.4 < dropped.float().mean() < 0.6
    assert (output[:, 0] == tags.embeddings.weight[1]).all()
    assert_close(tags.eval()(ids, lengths, 1, 0)[:, 1:], tags.embeddings.weight[3].expand(20, 50, 3))


def test_the_unknown_tag_is_zero_unless_trained() -> None:
    assert (parser().coarse_tags.embeddings.weight[0] == 0).all()
    assert (parser(upos_dropout=0.2).coarse_tags.embeddings.weight[0] != 0).any()


@pytest.mark.parametrize("upos", [None, ["_", "_"]])
def test_sentences_without_tags_require_upos_dropout(upos: list[str] | None) -> None:
    row = {"sent_id": "x7", "words": ["the", "dog"], "upos": upos}
    with pytest.raises(ValueError, match=r"sentence x7: .* UPOS tags .* tag it first"):
        parser().predict([row])
    model = loud(parser(upos_dropout=0.2))
    unknown = {**row, "upos": ["NEW", "NEW"]}
    assert model.predict([row]) == model.predict([unknown])


def test_upos_tags_change_the_scores() -> None:
    model = loud(parser())
    scores = model(words=SENTENCES, upos=UPOS).scores
    other = [["X"] * len(words) for words in SENTENCES]
    another = [["Y"] * len(words) for words in SENTENCES]
    assert not torch.allclose(scores, model(words=SENTENCES, upos=other).scores)
    assert_close(model(words=SENTENCES, upos=other).scores, model(words=SENTENCES, upos=another).scores)


def test_uses_upos_requires_names() -> None:
    with pytest.raises(ValueError, match="upos_names"):
        parser(upos_names=[])


def test_replace_word_vectors() -> None:
    model = loud(parser())
    target = word_vectors(["der", "hund"], seed=3)
    model.replace_word_vectors(target)
    table = model.encoder.words
    assert isinstance(table, VectorTable)
    assert_close(table.vectors, torch.from_numpy(target.matrix))
    assert table.featurise([["Hund", "dog"]])["word_ids"].tolist() == [[3, 1]]
    assert model.config.vocabulary_size == 2
    assert model.config.vector_space == {"name": "space", "dimension": 8, "sha256": target.sha256}


@pytest.mark.parametrize(
    ("size", "name", "message"),
    [
        (8, "other", "space 'space' .8 dimensions., found 'other'"),
        (9, "space", r"found 'space' \(9 dimensions\)"),
    ],
)
def test_vectors_of_another_space_are_refused(size: int, name: str, message: str) -> None:
    model = parser()
    before = model.encoder.words.vectors
    with pytest.raises(ValueError, match=message):
        model.replace_word_vectors(word_vectors(["x"], size=size, name=name))
    assert model.encoder.words.vectors is before
    assert model.config.vocabulary_size == len(WORDS)


def test_replaced_vectors_keep_the_dtype() -> None:
    model = parser().to(torch.bfloat16)
    model.replace_word_vectors(word_vectors(seed=2))
    assert model.encoder.words.vectors.dtype == torch.bfloat16
    assert model(words=SENTENCES, upos=UPOS).scores.isfinite().all()


def test_from_vectors_copies_the_configuration() -> None:
    config = parser().config
    before = config.to_dict()
    one = type(parser()).from_vectors(config, word_vectors(["x"], seed=1))
    assert config.to_dict() == before
    assert one.config.vocabulary_size == 1


def test_frozen_vectors_are_shared_and_trained_vectors_copied() -> None:
    vectors = word_vectors()
    frozen, trained = parser(vectors), parser(vectors, freeze_word_vectors=False)
    address = vectors.matrix.__array_interface__["data"][0]
    assert frozen.encoder.words.vectors.data_ptr() == address
    assert trained.encoder.words.vectors.data_ptr() != address
    assert "encoder.words.vectors" not in dict(frozen.named_parameters())
    assert dict(trained.named_parameters())["encoder.words.vectors"].requires_grad
    assert frozen.state_dict().keys() == trained.state_dict().keys()
    frozen.train_word_vectors()
    assert frozen.encoder.words.vectors.data_ptr() != address
    assert not frozen.config.freeze_word_vectors
    parameter = frozen.encoder.words.vectors
    frozen.train_word_vectors()
    assert frozen.encoder.words.vectors is parameter  # an optimiser may hold it
    frozen.train_word_vectors(False)
    assert "encoder.words.vectors" in dict(frozen.named_buffers())


def test_trained_vectors_get_gradients() -> None:
    model = loud(parser(freeze_word_vectors=False))
    model(**model.featurise(ROWS[1:2]), labels=model.encode_gold(ROWS[1:2])).loss.backward()
    model.zero_grad()
    model(**model.featurise(ROWS[:1]), labels=model.encode_gold(ROWS[:1])).loss.backward()
    touched = model.encoder.words.vectors.grad.any(-1)
    assert touched.tolist() == [word in SENTENCES[0] for word in WORDS]


def test_read_only_and_transposed_matrices() -> None:
    matrix = np.ascontiguousarray(word_vectors().matrix.T).T
    matrix.flags.writeable = False
    model = parser(replace(word_vectors(), matrix=matrix))
    assert model.encoder.words.vectors.is_contiguous()
    assert_close(model.encoder.words.vectors, torch.tensor(matrix))


def test_empty_word_tables() -> None:
    model = loud(parser())
    model.replace_word_vectors(word_vectors([]))
    assert model.predict(ROWS)
