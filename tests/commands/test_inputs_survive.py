"""An output never overwrites an input or a file that a command did not write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hf_xst_cli
from helpers.small_models import gold, model_of
from hf_xst.data import ConlluSentence, write_conllu

SENTENCES = "1\tw1\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"


@pytest.fixture
def world(tmp_path) -> Path:
    model_of("tagger", 1).save_pretrained(tmp_path / "model")
    sentences = (
        ConlluSentence.from_words(
            row["words"],
            sent_id=row["sent_id"],
            columns={name: row[name] for name in ("upos", "head", "deprel")},
        )
        for row in gold((3, 2))
    )
    write_conllu(sentences, tmp_path / "text.conllu")
    charts = ["build-charts", "--sources", tmp_path / "model", "--text", tmp_path / "text.conllu"]
    assert run(*charts, "--output", tmp_path / "charts") == 0
    return tmp_path


def run(*words: object) -> int:
    return hf_xst_cli.main([str(word) for word in words])


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "words",
    [
        "predict --model {0}/model --input {0}/y.part.conllu --output {0}/y.conllu",
        "predict --model {0}/model --input {0}/text.conllu --output {0}/text.conllu",
        "predict --model {0}/model --input {0}/text.conllu --output {0}/model/config.json",
        "predict --model {0}/model --input {0}/text.conllu --output {0}/link.conllu",
        "predict --model {0}/model --input {0}/z.part.conllu.json --format jsonl --output {0}/z.conllu",
        "vote --sources {0}/model --treebank test={0}/d/predictions.conllu --output {0}/d",
        "show --charts {0}/charts --output {0}/charts/provenance.json",
        "show --input {0}/text.conllu --output {0}/text.conllu",
        "learn-weights --sources {0}/model --treebank train={0}/d/weights.yaml --output {0}/d",
        "train-source --task tagger --init-from {0}/model --treebank train={0}/d.conllu --output {0}/model",
    ],
)
def test_inputs_survive(world, capsys, words):
    (world / "d").mkdir()
    for name in ("y.part.conllu", "d/predictions.conllu", "d/weights.yaml"):
        (world / name).write_text(SENTENCES)
    (world / "z.part.conllu.json").write_text(json.dumps({"words": ["w1"]}) + "\n")
    (world / "link.conllu").symlink_to(world / "text.conllu")
    before = contents(world)
    assert run(*words.format(world).split()) == 1
    assert "would overwrite an input of --" in capsys.readouterr().err
    assert contents(world) == before


@pytest.mark.parametrize("name", ["y.part.conllu", "y.part.conllu.json"])
@pytest.mark.parametrize("content", ["my notes", "{}", '{"bytes": 3}'])
def test_files_of_the_user_with_the_name_of_a_partial_file_survive(world, capsys, name, content):
    (world / name).write_text(content)
    before = contents(world)
    words = ["predict", "--model", world / "model", "--input", world / "text.conllu"]
    assert run(*words, "--output", world / "y.conllu") == 1
    assert f"{name} exists and was not left by an interrupted run" in capsys.readouterr().err
    assert contents(world) == before


def test_a_command_repeats_in_a_folder_with_the_name_of_an_option(world, monkeypatch):
    monkeypatch.chdir(world)
    words = ["train-source", "--task", "tagger", "--init-from", "model", "--treebank", "train=text.conllu"]
    for name in ("tagger", "train"):  # also the values of --task and --split
        for _ in range(2):
            assert run(*words, "--max-steps", 1, "--output", name) == 0
