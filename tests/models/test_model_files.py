"""Saving and loading: nothing is lost, nothing is made up, and what is wrong is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tiny_models import (
    ROWS,
    SENTENCES,
    TAGS,
    UPOS,
    WORDS,
    loud,
    parser,
    parser_config,
    tagger,
    tagger_config,
    word_vectors,
)
from torch.testing import assert_close
from transformers import AutoConfig, AutoModel

from hf_xst import BiaffineParser, BiaffineParserConfig, CrfTagger
from hf_xst.models import StructuredModel
from hf_xst.models.base import register
from hf_xst.models.vector_table import VectorTable

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
    """Fill every tensor with numbers that no initialiser makes."""
    with torch.no_grad():
        for place, tensor in enumerate(model.state_dict().values()):
            numbers = torch.arange(tensor.numel()).view(tensor.shape)
            tensor.copy_((numbers * 7 + place) % 23 / 23 - 0.4)
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


@every_model
def test_nothing_is_forgotten(make: Make, bert: Path, tmp_path: Path) -> None:
    model = with_pattern(make(bert))
    model.save_pretrained(tmp_path)
    by_class, report = type(model).from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report.values())
    by_auto = AutoModel.from_pretrained(str(tmp_path))
    assert type(by_auto) is type(model)
    for loaded in (by_class, by_auto):
        assert not loaded.training
        same(model, loaded)
    by_auto.save_pretrained(tmp_path)  # into the folder that it came from
    same(model, AutoModel.from_pretrained(tmp_path))


@every_model
def test_a_second_copy_has_the_same_files(make: Make, bert: Path, tmp_path: Path) -> None:
    make(bert).save_pretrained(tmp_path / "one")
    AutoModel.from_pretrained(tmp_path / "one").save_pretrained(tmp_path / "two")
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "two").iterdir())
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
    for name in names:
        if name.endswith(".json"):
            assert str(bert) not in (tmp_path / "one" / name).read_text(encoding="utf-8")


FRESH = """
import json
import sys
import hf_xst
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModel

sentences, upos = json.loads(sys.argv[1]), json.loads(sys.argv[2])
for folder in sys.argv[3:]:
    assert AutoConfig.from_pretrained(folder).model_type.startswith("hf_xst_")
    model = AutoModel.from_pretrained(folder)
    scores = model(words=sentences, upos=upos).scores.detach()
    state = {name: value.contiguous() for name, value in model.state_dict().items()}
    save_file(state | {"scores": scores}, folder + "/found.safetensors")
"""


def test_a_fresh_process_finds_the_same_model(bert: Path, tmp_path: Path) -> None:
    models = {name: with_pattern(MAKERS[name](bert)) for name in ("parser-vectors", "tagger-encoder")}
    folders = [str(tmp_path / name) for name in models]
    for folder, model in zip(folders, models.values(), strict=True):
        model.save_pretrained(folder)
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", FRESH, json.dumps(SENTENCES), json.dumps(UPOS), *folders],
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join(sys.path),
            "OMP_NUM_THREADS": str(torch.get_num_threads()),
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert not run.stdout
    assert "LOAD REPORT" not in run.stderr
    for folder, model in zip(folders, models.values(), strict=True):
        found = load_file(f"{folder}/found.safetensors")
        assert torch.equal(found.pop("scores"), scores_of(model))
        state = model.state_dict()
        assert found.keys() == state.keys()
        assert all(torch.equal(value, state[name]) for name, value in found.items())


def without(folder: Path, *names: str) -> None:
    path = folder / "model.safetensors"
    state = {name: value for name, value in load_file(path).items() if not name.startswith(names)}
    save_file(state, path, metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("name", "lacking"),
    [
        ("parser-vectors", "scorer.arc_weight"),
        ("parser-vectors", "scorer.label_head.bias"),
        ("parser-vectors", "coarse_tags.embeddings.weight"),
        ("parser-vectors", "encoder.context.layers.0.attention.key_distances"),
        ("parser-encoder", "scorer.label_weight"),
        ("parser-encoder", "encoder.words.model.encoder.layer.1.output.dense.weight"),
        ("tagger-vectors", "transitions"),
        ("tagger-encoder", "emissions.weight"),
        ("tagger-encoder", "encoder.special_vectors"),
    ],
)
def test_a_missing_head_alone_is_fresh_and_is_reported(
    name: str, lacking: str, bert: Path, tmp_path: Path
) -> None:
    model = with_pattern(MAKERS[name](bert))
    model.save_pretrained(tmp_path)
    without(tmp_path, lacking)
    loaded, report = AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    assert report["missing_keys"] == {lacking}
    assert not report["unexpected_keys"]
    for key, value in loaded.state_dict().items():
        assert torch.equal(value, model.state_dict()[key]) == (key != lacking)
    fresh = loaded.state_dict()[lacking]
    assert fresh.isfinite().all()
    assert fresh.abs().max() < 5


def test_missing_vectors_leave_every_word_unknown(tmp_path: Path) -> None:
    model = loud(parser())
    model.save_pretrained(tmp_path)
    without(tmp_path, "encoder.words.vectors")
    loaded, report = AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    assert report["missing_keys"] == {"encoder.words.vectors"}
    unknown = model(words=[["?"] * len(words) for words in SENTENCES], upos=UPOS)
    assert_close(scores_of(loaded), unknown.scores)


@pytest.mark.parametrize("name", ["parser-vectors", "tagger-encoder"])
@pytest.mark.parametrize("dtype", ["bfloat16", torch.float16])
def test_half_precision_on_request(name: str, dtype: Any, bert: Path, tmp_path: Path) -> None:
    model = loud(MAKERS[name](bert))
    model.save_pretrained(tmp_path)
    loaded = AutoModel.from_pretrained(tmp_path, dtype=dtype)
    assert {value.dtype for value in loaded.state_dict().values()} == {loaded.dtype}
    assert loaded.dtype in (torch.bfloat16, torch.float16)
    output = loaded(words=SENTENCES, upos=UPOS, labels=loaded.encode_gold(ROWS))
    assert output.scores.dtype == output.losses.dtype == torch.float32
    for index, words in enumerate(SENTENCES):
        assert loaded.distribution(output).log_partition()[index].isfinite(), words
    loaded.save_pretrained(tmp_path)
    assert AutoModel.from_pretrained(tmp_path).dtype == loaded.dtype


def test_trained_and_frozen_vectors_have_one_file_format(tmp_path: Path) -> None:
    model = loud(parser())
    model.save_pretrained(tmp_path)
    trained = BiaffineParser.from_pretrained(tmp_path, freeze_word_vectors=False)
    assert trained.encoder.words.vectors.requires_grad
    assert torch.equal(scores_of(model), scores_of(trained))
    with torch.no_grad():
        trained.encoder.words.vectors.mul_(2)
    trained.save_pretrained(tmp_path)
    loaded = AutoModel.from_pretrained(tmp_path)
    assert isinstance(loaded.encoder.words.vectors, torch.nn.Parameter)
    frozen = BiaffineParser.from_pretrained(tmp_path, freeze_word_vectors=True)
    assert not frozen.encoder.words.vectors.requires_grad
    assert torch.equal(frozen.encoder.words.vectors, 2 * model.encoder.words.vectors)


def test_subfolder_and_configuration(bert: Path, tmp_path: Path) -> None:
    models = {"tagger": loud(tagger()), "parser": loud(parser_over_encoder(bert))}
    for name, model in models.items():
        model.save_pretrained(tmp_path / name)
    for name, model in models.items():
        loaded = type(model).from_pretrained(tmp_path, subfolder=name)
        same(model, loaded)
        assert AutoConfig.from_pretrained(tmp_path / name).labels == model.config.labels


def test_another_language_s_words_are_saved(tmp_path: Path) -> None:
    model = loud(parser())
    model.replace_word_vectors(word_vectors(["der", "hund", "Å"], seed=3))
    model.save_pretrained(tmp_path)
    loaded = AutoModel.from_pretrained(tmp_path)
    same(model, loaded)
    assert loaded.config.vector_space["sha256"] == f"{3:064d}"
    with pytest.raises(ValueError, match="space 'space'"):
        loaded.replace_word_vectors(word_vectors(name="elsewhere"))


# -- two names, one tensor --------------------------------------------------------------------------------


def test_models_over_one_word_table_are_whole_each(tmp_path: Path) -> None:
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


def test_models_over_one_encoder_are_whole_each(bert: Path, tmp_path: Path) -> None:
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


def test_training_one_of_two_models_over_one_vector_file_leaves_the_other_alone() -> None:
    vectors = word_vectors()
    first, second = loud(parser(vectors)), loud(parser(vectors))
    before, numbers = scores_of(second), vectors.matrix.copy()
    first.train_word_vectors()
    with torch.no_grad():
        first.encoder.words.vectors.zero_()
    assert torch.equal(scores_of(second), before)
    assert (vectors.matrix == numbers).all()


def test_transposed_parameters_are_saved(tmp_path: Path) -> None:
    model = loud(tagger())
    model.transitions = torch.nn.Parameter(torch.randn(5, 5).T)
    model.save_pretrained(tmp_path)
    same(model, AutoModel.from_pretrained(tmp_path))


# -- what is wrong is said --------------------------------------------------------------------------------


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    model = parser()
    model.save_pretrained(tmp_path / "sub")
    (tmp_path / "sub" / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "sub" / "pytorch_model.bin")
    for arguments in ((tmp_path / "sub", {}), (tmp_path, {"subfolder": "sub"})):
        with pytest.raises(OSError, match=r"holds pickled weights \(pytorch_model\.bin\)"):
            BiaffineParser.from_pretrained(arguments[0], **arguments[1])
    with pytest.raises(OSError, match="pickled weights"):
        AutoModel.from_pretrained(tmp_path / "sub")
    with pytest.raises(ValueError, match="safetensors only"):
        AutoModel.from_pretrained(tmp_path / "sub", use_safetensors=False)


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"no file named model\.safetensors"):
        BiaffineParser.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("parser-vectors", "words.json"),
        ("parser-encoder", "tokenizer.json"),
        ("parser-encoder", "tokenizer_config.json"),
    ],
)
def test_a_folder_without_words(name: str, file: str, bert: Path, tmp_path: Path) -> None:
    MAKERS[name](bert).save_pretrained(tmp_path)
    (tmp_path / file).unlink()
    with pytest.raises(ValueError, match=rf"has no {file}; save it again"):
        AutoModel.from_pretrained(tmp_path)


def test_a_word_list_of_another_model(tmp_path: Path) -> None:
    parser().save_pretrained(tmp_path)
    parser(word_vectors(["x", "y"])).encoder.words.save_assets(tmp_path)
    with pytest.raises(
        ValueError, match="names 2 words, the weights hold 6 vectors; the folder mixes two models"
    ):
        AutoModel.from_pretrained(tmp_path)


def test_a_model_without_its_tokenizer_is_not_saved(bert: Path, tmp_path: Path) -> None:
    fresh = BiaffineParser(parser_over_encoder(bert).config)
    with pytest.raises(ValueError, match="has no tokenizer"):
        fresh.save_pretrained(tmp_path / "model")
    assert not list((tmp_path / "model").iterdir())


def test_the_configuration_says_which_words_a_model_has(bert: Path) -> None:
    with pytest.raises(ValueError, match="encoder='pretrained'; expected 'vectors'"):
        BiaffineParser.from_vectors(parser_over_encoder(bert).config, word_vectors())


def test_registering_twice_is_harmless(tmp_path: Path) -> None:
    register(BiaffineParserConfig, BiaffineParser)
    register(BiaffineParserConfig, BiaffineParser)
    parser().save_pretrained(tmp_path)
    assert isinstance(AutoModel.from_pretrained(tmp_path), BiaffineParser)


def test_no_code_is_written_beside_the_weights(bert: Path, tmp_path: Path) -> None:
    parser_over_encoder(bert).save_pretrained(tmp_path)
    assert not list(tmp_path.glob("*.py"))
    content = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    assert "auto_map" not in content
    assert "custom_pipelines" not in content


def test_pushing_while_saving_pushes_words_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(
        BiaffineParser, "push_to_hub", lambda _, *args, **kwargs: calls.append((args, kwargs))
    )
    parser().save_pretrained(tmp_path / "mine", push_to_hub=True, private=True)
    parser().save_pretrained(tmp_path / "mine", push_to_hub=True, repo_id="me/it", token="t")
    assert calls == [(("mine",), {"private": True}), (("me/it",), {"token": "t"})]
    assert isinstance(AutoModel.from_pretrained(tmp_path / "mine").encoder.words, VectorTable)
