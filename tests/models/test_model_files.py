"""Save and load models (P23)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModel

from helpers.saved_models import MAKERS, Make, every_model, parser_over_encoder, same, scores_of, with_pattern
from helpers.tiny_models import ROWS, SENTENCES, UPOS, loud, parser, tagger, word_vectors
from hf_xst import BiaffineParser


@every_model
def test_loaded_models_are_equal(make: Make, bert: Path, tmp_path: Path) -> None:
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
def test_saving_a_loaded_model_writes_the_same_files(make: Make, bert: Path, tmp_path: Path) -> None:
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


@pytest.mark.slow
def test_another_process_loads_an_equal_model(bert: Path, tmp_path: Path) -> None:
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
        result = load_file(f"{folder}/found.safetensors")
        assert torch.equal(result.pop("scores"), scores_of(model))
        state = model.state_dict()
        assert result.keys() == state.keys()
        assert all(torch.equal(value, state[name]) for name, value in result.items())


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


def test_trained_and_frozen_vectors_have_the_same_file_format(tmp_path: Path) -> None:
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


def test_replaced_word_vectors_are_saved(tmp_path: Path) -> None:
    model = loud(parser())
    model.replace_word_vectors(word_vectors(["der", "hund", "Å"], seed=3))
    model.save_pretrained(tmp_path)
    loaded = AutoModel.from_pretrained(tmp_path)
    same(model, loaded)
    assert loaded.config.vector_space["sha256"] == f"{3:064d}"
    with pytest.raises(ValueError, match="space 'space'"):
        loaded.replace_word_vectors(word_vectors(name="elsewhere"))
