"""A model is checked before it is believed: hostile and damaged folders are rejected, and run no code."""

from __future__ import annotations

import json
import math
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import CONFIG_MAPPING, AutoConfig, AutoModel, BartConfig, BertConfig, T5Config, XmodConfig

from helpers.saved_models import MAKERS
from helpers.tiny_models import piece_tokenizer, save_encoder, tagger_config
from hf_xst import CrfTagger
from hf_xst.models.model_checks import encoder_config
from hf_xst.models.pretrained_files import load_tokenizer

Tensors = dict[str, Tensor]
EVIL = {"AutoConfig": "evil.Evil", "AutoModel": "evil.Evil", "AutoTokenizer": ["evil.Evil", None]}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One saved model of each kind of encoder, and the encoder."""
    folder = tmp_path_factory.mktemp("saved")
    bert = save_encoder(folder / "bert", BertConfig, piece_tokenizer())
    MAKERS["parser-vectors"](bert).save_pretrained(folder / "vectors")
    MAKERS["tagger-encoder"](bert).save_pretrained(folder / "encoder")
    return folder


def copy_of(saved: Path, name: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved / name, tmp_path / name))


def change_json(path: Path, **changes: Any) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content | changes))


def change_weights(folder: Path, change: Callable[[Tensors], Any]) -> None:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def fill(name: str, value: float) -> Callable[[Tensors], None]:
    return lambda weights: weights[name].view(-1)[-1:].fill_(value) and None


def replace(name: str, make: Callable[[Tensor], Tensor]) -> Callable[[Tensors], None]:
    return lambda weights: weights.update({name: make(weights[name]).contiguous()})


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("vectors", lambda w: w.pop("scorer.arc_weight"), r"lack 1 weights.*scorer\.arc_weight"),
        ("vectors", lambda w: w.pop("encoder.words.vectors"), r"lack 1 weights.*encoder\.words\.vectors"),
        ("vectors", lambda w: [w.pop(k) for k in [*w] if "scorer" in k], "lack 8 weights"),
        ("encoder", lambda w: w.pop("transitions"), "lack 1 weights.*transitions"),
        ("encoder", lambda w: w.pop("encoder.special_vectors"), "lack 1 weights"),
        ("vectors", lambda w: w.update(more=torch.zeros(2)), "also hold 1 weights.*more"),
        ("encoder", lambda w: w.update({"encoder.words.model.x": torch.zeros(1)}), "also hold 1 weights"),
        ("vectors", replace("scorer.arc_weight", lambda x: x[:, :-1]), r"another shape: scorer\.arc_weight"),
        ("vectors", replace("scorer.arc_bias", lambda x: x[None]), r"another shape: scorer\.arc_bias"),
        ("encoder", replace("transitions", lambda x: x[:0]), "another shape: transitions"),
        ("vectors", fill("scorer.arc_bias", math.nan), "NaN or infinite"),
        ("vectors", fill("encoder.words.vectors", math.inf), "NaN or infinite"),
        ("encoder", fill("transitions", -math.inf), "NaN or infinite"),
        ("encoder", fill("encoder.words.model.embeddings.LayerNorm.bias", math.nan), "NaN or infinite"),
        ("vectors", replace("scorer.arc_weight", Tensor.int), r"not floating point: scorer\.arc_weight"),
        ("vectors", replace("encoder.words.vectors", Tensor.bool), "not floating point"),
        ("encoder", replace("transitions", lambda x: x.to(torch.float8_e4m3fn)), "not floating point"),
        ("encoder", replace("transitions", Tensor.char), "not floating point: transitions"),
    ],
)
def test_faulty_weights_are_rejected(
    saved: Path, tmp_path: Path, kind: str, change: Callable[[Tensors], Any], message: str
) -> None:
    folder = copy_of(saved, kind, tmp_path)
    change_weights(folder, change)
    with pytest.raises(ValueError, match=message):
        AutoModel.from_pretrained(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"context_layers": 10**7}, "context_layers is 10000000; expected at least 0 and at most 1000"),
        ({"attention_heads": 10**6}, "attention_heads is 1000000"),
        ({"vocabulary_size": 10**12}, "vocabulary_size is 1000000000000"),
        ({"vocabulary_size": 10**9}, r"describes [\d,]+ numbers, its weights hold"),
        ({"arc_size": 10**6}, "describes [0-9,]+ numbers"),
        ({"label_size": 10**9}, "describes no model|numbers"),
        ({"arc_size": 0}, "arc_size is 0"),
        ({"num_labels": 10**9}, None),
        ({"labels": "abc"}, "labels is 'abc'; expected list"),
        ({"labels": [1, 2]}, "labels is '1'; expected str"),
        ({"word_size": "8"}, "word_size is '8'; expected int"),
        ({"word_size": 8.0}, "word_size is '8.0'; expected int"),
        ({"word_size": True}, "word_size is 'True'; expected int"),
        ({"word_size": None}, "word_size is 'None'; expected int"),
        ({"word_dropout": math.nan}, "word_dropout is nan"),
        ({"word_dropout": "0.1"}, "word_dropout is '0.1'; expected float"),
        ({"single_root": "no"}, "single_root is 'no'; expected bool"),
        ({"encoder": ["vectors"]}, "expected 'vectors' or 'pretrained'"),
        ({"vector_space": "x"}, "expected dict"),
        ({"dtype": "int8"}, "dtype is 'int8'"),
        ({"dtype": "load"}, "dtype is 'load'"),
        ({"id2label": {"0": "obj", "1": "det", "2": "nsubj", "3": "root"}}, "id2label or num_labels contrad"),
        ({"id2label": {"0": "det"}}, "id2label or num_labels contradicts"),
        ({"id2label": {"x": "det"}}, "."),
    ],
)
def test_faulty_configurations_are_rejected(
    saved: Path, tmp_path: Path, changes: dict[str, Any], message: str | None
) -> None:
    folder = copy_of(saved, "vectors", tmp_path)
    change_json(folder / "config.json", **changes)
    if message is None:
        assert AutoModel.from_pretrained(folder).config.num_labels == 4
        return
    with pytest.raises(ValueError, match=message):
        AutoModel.from_pretrained(folder)


def test_large_alphabets_take_linear_time() -> None:
    names = [f"label{index}" for index in range(60_000)]  # minutes, if each were compared with all others
    assert CONFIG_MAPPING["hf_xst_biaffine_parser"](labels=names).num_labels == 60_000
    with pytest.raises(ValueError, match="labels has 100001 entries; expected at most 100000"):
        tagger_config(labels=list(map(str, range(100_001))))


@pytest.mark.parametrize(
    "column",
    ["form", "words", "head", "deprel", "misc", "id", "", "a=b", "../x", [], ["upos"], {}, 3],
)
def test_taggers_write_columns_of_tags_only(column: Any) -> None:
    with pytest.raises(ValueError, match=r"column is .*; expected upos, xpos, feats, or the name of an attr"):
        tagger_config(column=column)


@pytest.mark.parametrize("column", ["upos", "xpos", "feats", "ner_tags", "NER", "Sémantique"])
def test_columns_of_tags(column: str) -> None:
    assert tagger_config(column=column).column == column


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_hidden_layers": 10**7}, "num_hidden_layers is 10000000"),
        ({"num_attention_heads": 10**5}, "num_attention_heads is 100000"),
        ({"hidden_size": 10**12}, "hidden_size is 1000000000000"),
        ({"vocab_size": 10**8}, "describes [0-9,]+ numbers"),
        ({"hidden_size": "16"}, "describes no model"),
        ({"hidden_size": -16}, "describes no model"),
        ({"model_type": "evil"}, "describes no encoder"),
        ({"model_type": ["bert"]}, "describes no encoder"),
        ({"model_type": "bart"}, r"is an encoder-decoder model \(bart\)"),
        ({"is_encoder_decoder": True}, r"is an encoder-decoder model \(bert\)"),
        ({"auto_map": EVIL}, "sets auto_map"),
        ({"attn_implementation": "someone/kernel"}, "sets attn_implementation"),
        ({"_attn_implementation": "flash_attention_2"}, "sets _attn_implementation"),
        ({"experts_implementation": "someone/kernel"}, "sets experts_implementation"),
        ({"quantization_config": {"quant_method": "awq"}}, "sets quantization_config"),
        ({"text_config": {"auto_map": EVIL}}, "sets auto_map"),
    ],
)
def test_faulty_nested_configurations_are_rejected(
    saved: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    folder = copy_of(saved, "encoder", tmp_path)
    nested = json.loads((folder / "config.json").read_text(encoding="utf-8"))["encoder_config"]
    change_json(folder / "config.json", encoder_config=nested | changes)
    with pytest.raises(ValueError, match=message):
        AutoModel.from_pretrained(folder)


def test_only_fields_of_a_configuration_count(saved: Path, tmp_path: Path) -> None:
    folder = copy_of(saved, "encoder", tmp_path)
    code = {"auto_map": EVIL, "attn_implementation": "someone/kernel", "quantization_config": {"a": 1}}
    change_json(folder / "config.json", **code, transformers_weights="adapter_model.bin", forward="x")
    model = AutoModel.from_pretrained(folder, trust_remote_code=False)
    assert not {*code, "transformers_weights", "forward"} & {*vars(model.config)}
    assert model.encoder.words.model.config._attn_implementation in ("sdpa", "eager")
    nested = encoder_config(model.config.encoder_config | {"forward": "x", "_name_or_path": "/home"})
    assert "forward" not in vars(nested)


@pytest.mark.parametrize(
    "kind",
    ["bert", "xlm-roberta", "distilbert", "deberta-v2", "albert", "modernbert", "gpt2", "xlm", "funnel"],
)
def test_nested_configurations_of_encoders_stay(kind: str) -> None:
    settings = CONFIG_MAPPING[kind](layer_norm_eps=1e-3).to_dict()
    known = CONFIG_MAPPING[kind]().to_dict()
    rebuilt = encoder_config(settings).to_dict()
    assert rebuilt == {name: value for name, value in settings.items() if name in known}


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("CODE RAN",))


@pytest.mark.parametrize(
    "shard",
    [
        "weights.bin",
        "pytorch_model.bin",
        "../model.safetensors",
        "/etc/passwd",
        "model.bin",
        "sub/model.safetensors",
    ],
)
@pytest.mark.parametrize("kind", ["vectors", "bert"])
def test_an_index_names_only_safetensors_beside_it(
    saved: Path, tmp_path: Path, kind: str, shard: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copy_of(saved, kind, tmp_path)
    (folder / "model.safetensors").unlink()
    for name in ("weights.bin", "pytorch_model.bin", "model.bin"):
        (folder / name).write_bytes(pickle.dumps(Bomb()))
    index = {"metadata": {}, "weight_map": {"scorer.arc_bias": shard}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match=r"the index of the weights of .* names"):
        load(kind, folder)
    assert "CODE RAN" not in capsys.readouterr().out


def load(kind: str, folder: Path) -> Any:
    if kind == "bert":
        return CrfTagger.from_encoder(tagger_config(), folder)
    return AutoModel.from_pretrained(folder)


def test_shards_load(saved: Path, tmp_path: Path) -> None:
    model = AutoModel.from_pretrained(saved / "vectors")
    model.save_pretrained(tmp_path, max_shard_size="1KB")
    assert len([*tmp_path.glob("model-*.safetensors")]) > 1
    loaded = AutoModel.from_pretrained(tmp_path)
    assert all(torch.equal(value, model.state_dict()[key]) for key, value in loaded.state_dict().items())


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "words.json", "generation_config.json"])
def test_links_out_of_a_model_are_rejected(saved: Path, tmp_path: Path, file: str) -> None:
    folder = copy_of(saved, "vectors", tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes((folder / file).read_bytes() if (folder / file).exists() else b"{}")
    (folder / file).unlink(missing_ok=True)
    (folder / file).symlink_to(elsewhere)
    with pytest.raises(ValueError, match=r"leads to .*elsewhere, outside of its folder"):
        AutoModel.from_pretrained(folder)


@pytest.mark.parametrize("parent", ["snapshots", "snapshots/a1b2"])  # the tagger of a parser
def test_links_to_blobs_of_the_cache_are_followed(saved: Path, tmp_path: Path, parent: str) -> None:
    folder = copy_of(saved, "vectors", tmp_path / parent)
    (tmp_path / "blobs").mkdir()
    (folder / "config.json").rename(tmp_path / "blobs" / "0")
    (folder / "config.json").symlink_to(tmp_path / "blobs" / "0")
    AutoModel.from_pretrained(folder)


def test_adapters_and_other_formats_are_rejected(saved: Path, tmp_path: Path) -> None:
    folder = copy_of(saved, "vectors", tmp_path)
    with pytest.raises(ValueError, match=r"read from model\.safetensors only"):
        AutoModel.from_pretrained(folder, variant="fp16")
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "someone/else"}')
    with pytest.raises(ValueError, match="is an adapter"):
        AutoModel.from_pretrained(folder)


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
@pytest.mark.parametrize("model_type", ["bert", "evil"])
def test_encoders_with_code_are_rejected_without_a_question(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, model_type: str
) -> None:
    folder = copy_of(saved, "bert", tmp_path)
    (folder / "evil.py").write_text("raise SystemExit('CODE RAN')")
    change_json(folder / file, auto_map=EVIL)
    if file == "config.json":
        change_json(folder / file, model_type=model_type)

    def asked(*_: Any) -> str:
        raise AssertionError("asked at the terminal")

    monkeypatch.setattr("builtins.input", asked)
    for trust in ({}, {"trust_remote_code": True}):
        with pytest.raises(ValueError, match=f"{file} of .* is refused: it sets auto_map"):
            CrfTagger.from_encoder(tagger_config(), folder, **trust)


SIZES = {
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "vocab_size": 90,
    "num_layers": 1,
    "d_kv": 4,
}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (BartConfig(**SIZES), r"is an encoder-decoder model \(bart\); expected an encoder"),
        (T5Config(**SIZES), r"is an encoder-decoder model \(t5\)"),
        (CONFIG_MAPPING["mbart"](**SIZES), r"is an encoder-decoder model \(mbart\)"),
        (
            XmodConfig(
                hidden_size=16,
                num_hidden_layers=1,
                num_attention_heads=2,
                vocab_size=90,
                languages=["a", "b"],
            ),
            r"\(xmod\) cannot be used as an encoder of text: Input language unknown",
        ),
        (
            CONFIG_MAPPING["vit"](hidden_size=16, num_hidden_layers=1, num_attention_heads=2),
            r"\(vit\) cannot be",
        ),
    ],
    ids=lambda value: getattr(value, "model_type", ""),
)
def test_models_that_are_no_encoders_of_text_are_rejected_by_name(
    tmp_path: Path, config: Any, message: str
) -> None:
    AutoModel.from_config(config).save_pretrained(tmp_path)
    piece_tokenizer().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=f"{tmp_path}.*{message}"):
        CrfTagger.from_encoder(tagger_config(), tmp_path)


@pytest.mark.parametrize("value", [math.nan, -math.inf])
def test_encoders_with_nan_are_rejected(saved: Path, tmp_path: Path, value: float) -> None:
    folder = copy_of(saved, "bert", tmp_path)
    change_weights(folder, fill("encoder.layer.1.output.dense.bias", value))
    with pytest.raises(ValueError, match="contain NaN or infinite values"):
        CrfTagger.from_encoder(tagger_config(), folder)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tokenizer_file", "{0}/elsewhere"),
        ("merges_file", "{0}/elsewhere"),
        ("vocab_file", "../elsewhere"),
        ("gguf_file", "./../elsewhere"),
        ("fast_tokenizer_files", ["tokenizer.json", "../elsewhere"]),
    ],
)
@pytest.mark.parametrize("kind", ["encoder", "bert"])
def test_tokenizers_name_no_files_outside_their_folder(
    saved: Path, tmp_path: Path, kind: str, field: str, value: Any
) -> None:
    folder = copy_of(saved, kind, tmp_path)
    (tmp_path / "elsewhere").write_text("secret")
    path = folder / "tokenizer_config.json"
    text = path.read_text()
    change_json(path, **json.loads(json.dumps({field: value}).replace("{0}", str(tmp_path))))
    with pytest.raises(ValueError, match=r"tokenizer_config.json of .* is refused: .*leads to .*elsewhere"):
        load(kind, folder)
    path.write_text(text)
    own = {"tokenizer_file": "tokenizer.json", "vocab_file": "/maker/vocab.txt", "merges_file": None}
    change_json(path, **own, special_tokens_map_file=__file__)
    load(kind, folder)


def test_tokenizers_of_saved_models_run_no_code(saved: Path, tmp_path: Path) -> None:
    folder = copy_of(saved, "encoder", tmp_path)
    change_json(folder / "tokenizer_config.json", auto_map=EVIL)
    with pytest.raises(ValueError, match="sets auto_map"):
        AutoModel.from_pretrained(folder)
    with pytest.raises(ValueError, match="sets auto_map"):
        load_tokenizer(str(folder), trust_remote_code=True)
    assert AutoConfig.from_pretrained(folder).labels


def test_parts_of_a_distributed_run_do_not_replace_checked_weights(saved: Path, tmp_path: Path) -> None:
    folder = copy_of(saved, "vectors", tmp_path)
    shutil.copy(folder / "model.safetensors", folder / "shard-00000-model-00001-of-00001.safetensors")
    with pytest.raises(ValueError, match="holds weights of a distributed run"):
        AutoModel.from_pretrained(folder)
