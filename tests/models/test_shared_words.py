"""Models that share a word module or vectors, or save views (P24)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from transformers import AutoModel

from helpers.saved_models import parser_over_encoder, same, scores_of
from helpers.tiny_models import WORDS, loud, parser, tagger, tagger_config, word_vectors
from hf_xst import CrfTagger
from hf_xst.data import WordVectors


def test_models_with_a_shared_word_table_are_saved_completely(tmp_path: Path) -> None:
    first, second = loud(parser()), loud(tagger(labels=["A", "B"]))
    second.encoder.words = first.encoder.words
    first.replace_word_vectors(word_vectors([*WORDS, "new"], seed=5))
    first.train_word_vectors()
    for name, model in (("one", first), ("two", second)):
        model.save_pretrained(tmp_path / name)
        with safe_open(tmp_path / name / "model.safetensors", "pt") as file:
            assert [key for key in file.keys() if "vectors" in key] == [
                "encoder.special_vectors",
                "encoder.words.vectors",
            ]
        same(model, AutoModel.from_pretrained(tmp_path / name))
    assert AutoModel.from_pretrained(tmp_path / "two").config.vocabulary_size == len(WORDS) + 1
    copy = AutoModel.from_pretrained(tmp_path / "one")
    with torch.no_grad():
        copy.encoder.words.vectors.zero_()
    same(second, AutoModel.from_pretrained(tmp_path / "two"))


def test_models_with_a_shared_encoder_are_saved_completely(bert: Path, tmp_path: Path) -> None:
    first, second = loud(parser_over_encoder(bert)), CrfTagger.from_encoder(tagger_config(), bert).eval()
    second.encoder.words = first.encoder.words
    assert not torch.equal(
        second.encoder.words.model.get_input_embeddings().weight,
        AutoModel.from_pretrained(bert).get_input_embeddings().weight,
    )
    for name, model in (("one", first), ("two", second)):
        model.save_pretrained(tmp_path / name)
    same(first, AutoModel.from_pretrained(tmp_path / "one"))
    same(second, AutoModel.from_pretrained(tmp_path / "two"))


def test_training_vectors_does_not_change_other_models() -> None:
    vectors = word_vectors()
    first, second = loud(parser(vectors)), loud(parser(vectors))
    before, numbers = scores_of(second), vectors.matrix.copy()
    first.train_word_vectors()
    with torch.no_grad():
        first.encoder.words.vectors.zero_()
    assert torch.equal(scores_of(second), before)
    assert (vectors.matrix == numbers).all()


VIEWS = {
    "columns": lambda matrix: matrix[:, 4:12],
    "every other row": lambda matrix: matrix[::2, :8],
    "transposed": lambda matrix: matrix[:8].T,
    "by columns": np.asfortranarray,
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views_of_a_matrix_are_saved(tmp_path: Path, view: Callable) -> None:
    matrix = view(np.random.default_rng(0).standard_normal((16, 16)).astype(np.float32))[:, :8]
    words = [f"w{number}" for number in range(len(matrix))]
    models = [loud(tagger(WordVectors(words, matrix, "space", "0"))) for _ in range(2)]
    assert torch.equal(models[0].encoder.words.vectors, torch.from_numpy(matrix.copy()))
    for number, model in enumerate(models):
        model.save_pretrained(tmp_path / str(number))
        same(model, AutoModel.from_pretrained(tmp_path / str(number)))


def test_transposed_parameters_are_saved(tmp_path: Path) -> None:
    model = loud(tagger())
    model.transitions = torch.nn.Parameter(torch.randn(5, 5).T)
    model.save_pretrained(tmp_path)
    same(model, AutoModel.from_pretrained(tmp_path))
