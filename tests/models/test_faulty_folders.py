"""Errors for incomplete, mixed and pickled model folders."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModel

from helpers.saved_models import MAKERS, parser_over_encoder
from helpers.tiny_models import parser, word_vectors
from hf_xst import BiaffineParser, BiaffineParserConfig
from hf_xst.models.modeling import register
from hf_xst.models.words import VectorTable


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    model = parser()
    model.save_pretrained(tmp_path / "sub")
    (tmp_path / "sub" / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "sub" / "pytorch_model.bin")
    for arguments in ((tmp_path / "sub", {}), (tmp_path, {"subfolder": "sub"})):
        with pytest.raises(ValueError, match=r"has no model\.safetensors: .*pickled"):
            BiaffineParser.from_pretrained(arguments[0], **arguments[1])
    with pytest.raises(ValueError, match="pickled weights"):
        AutoModel.from_pretrained(tmp_path / "sub")
    with pytest.raises(ValueError, match="safetensors only"):
        AutoModel.from_pretrained(tmp_path / "sub", use_safetensors=False)


def test_pickled_encoders_are_refused_with_a_remedy(bert: Path, tmp_path: Path) -> None:
    shutil.copytree(bert, tmp_path / "bert")
    (tmp_path / "bert" / "model.safetensors").unlink()
    torch.save({}, tmp_path / "bert" / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"has no model\.safetensors: .*pickled .*save_pretrained\(FOLDER\)"):
        parser_over_encoder(tmp_path / "bert")


@pytest.mark.parametrize("mask", [0o022, 0o027])
def test_all_files_of_a_model_are_readable_by_the_same_users(tmp_path: Path, mask: int) -> None:
    old = os.umask(mask)
    try:
        parser().save_pretrained(tmp_path)
        parser().save_pretrained(tmp_path / "large", max_shard_size="1KB")
    finally:
        os.umask(old)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*.*")}
    assert modes == {0o666 & ~mask}


def test_folders_without_a_model_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has no model\.safetensors: it is incomplete"):
        BiaffineParser.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("parser-vectors", "words.json"),
        ("parser-encoder", "tokenizer.json"),
        ("parser-encoder", "tokenizer_config.json"),
    ],
)
def test_folders_without_words_are_refused(name: str, file: str, bert: Path, tmp_path: Path) -> None:
    MAKERS[name](bert).save_pretrained(tmp_path)
    (tmp_path / file).unlink()
    with pytest.raises(ValueError, match=rf"has no {file}; save it again"):
        AutoModel.from_pretrained(tmp_path)


def test_word_lists_of_another_model_are_refused(tmp_path: Path) -> None:
    parser().save_pretrained(tmp_path)
    parser(word_vectors(["x", "y"])).encoder.words.save_assets(tmp_path)
    with pytest.raises(
        ValueError, match="lists 2 words, but the weights hold 6 vectors; the folder mixes two models"
    ):
        AutoModel.from_pretrained(tmp_path)


def test_models_without_a_tokenizer_are_not_saved(bert: Path, tmp_path: Path) -> None:
    fresh = BiaffineParser(parser_over_encoder(bert).config)
    with pytest.raises(ValueError, match="has no tokenizer"):
        fresh.save_pretrained(tmp_path / "model")
    assert not list((tmp_path / "model").iterdir())


def test_the_configuration_selects_the_encoder(bert: Path) -> None:
    with pytest.raises(ValueError, match="encoder='pretrained'; expected 'vectors'"):
        BiaffineParser.from_vectors(parser_over_encoder(bert).config, word_vectors())


def test_registering_twice_is_allowed(tmp_path: Path) -> None:
    register(BiaffineParserConfig, BiaffineParser)
    register(BiaffineParserConfig, BiaffineParser)
    parser().save_pretrained(tmp_path)
    assert isinstance(AutoModel.from_pretrained(tmp_path), BiaffineParser)


def test_saved_folders_contain_no_code(bert: Path, tmp_path: Path) -> None:
    parser_over_encoder(bert).save_pretrained(tmp_path)
    assert not list(tmp_path.glob("*.py"))
    content = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    assert "auto_map" not in content
    assert "custom_pipelines" not in content


def test_save_pretrained_pushes_words_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(
        BiaffineParser, "push_to_hub", lambda _, *args, **kwargs: calls.append((args, kwargs))
    )
    parser().save_pretrained(tmp_path / "mine", push_to_hub=True, private=True)
    parser().save_pretrained(tmp_path / "mine", push_to_hub=True, repo_id="me/it", token="t")
    assert calls == [(("mine",), {"private": True}), (("me/it",), {"token": "t"})]
    assert isinstance(AutoModel.from_pretrained(tmp_path / "mine").encoder.words, VectorTable)
