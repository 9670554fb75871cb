"""Model folders written by version 0.1.0 keep loading and predicting the same."""

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModel

from hf_xst import BiaffineParser, CrfTagger

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.mark.parametrize(("name", "model_class"), [("parser", BiaffineParser), ("tagger", CrfTagger)])
def test_a_saved_folder_loads_and_predicts_as_recorded(name, model_class):
    record = json.loads((FIXTURES / name / "predictions.json").read_text(encoding="utf-8"))
    model = AutoModel.from_pretrained(FIXTURES / name).eval()
    assert type(model) is model_class
    assert model.predict(record["rows"]) == record["predictions"]
    upos = [row["upos"] for row in record["rows"]]
    with torch.no_grad():
        output = model(words=[row["words"] for row in record["rows"]], upos=upos)
    log_partition = model.distribution(output).log_partition()
    torch.testing.assert_close(log_partition, torch.tensor(record["log_partition"]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["parser", "tagger"])
def test_a_saved_folder_is_written_again_unchanged(name, tmp_path):
    AutoModel.from_pretrained(FIXTURES / name).save_pretrained(tmp_path)
    for file in ("config.json", "words.json"):
        before, after = (
            json.loads((folder / file).read_text(encoding="utf-8")) for folder in (FIXTURES / name, tmp_path)
        )
        assert after | {"transformers_version": None} == before | {"transformers_version": None}
    assert (tmp_path / "model.safetensors").read_bytes() == (
        FIXTURES / name / "model.safetensors"
    ).read_bytes()
