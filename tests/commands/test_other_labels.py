"""Taggers of any labels from files to files: named entities in a language without labels, and XPOS."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from datasets import Dataset
from transformers import AutoModel

import hf_xst_cli
from helpers.small_models import gold, vectors
from hf_xst.commands.sentences import needs_structure, other_labels
from hf_xst.data import ConlluSentence, read_conllu, write_conllu
from hf_xst.data.sentence import misc_attribute
from hf_xst.demo import source_languages, target_language

pytest.importorskip("seqeval")

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "named_entities.py"
SIZES = ["context_layers=1", "attention_heads=2", "key_size=8", "feed_forward_size=16"]
ENTITIES = ["--task", "tagger", "--model", "column=ner_tags", "scheme=bio", *SIZES]
LOOP = ["--batch-size", 16, "--learning-rate", "0.008", "--epochs", 8]
PARTS = {"train": (160, 1), "dev": (20, 2), "test": (160, 3)}
SOURCES, TARGET = source_languages()[:2], target_language()


def run(*words: object) -> int:
    return hf_xst_cli.main([str(word) for word in words])


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("named_entities", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, example: ModuleType) -> SimpleNamespace:
    """Two sources of named entities, and charts of a third language that knows no labels."""
    folder = tmp_path_factory.mktemp("entities")
    for settings in (*SOURCES, TARGET):
        example.write_language(folder, settings, PARTS)
    models = []
    for settings in SOURCES:
        own = folder / settings.name
        treebank = f"train={own}-train.jsonl,dev={own}-dev.jsonl"
        told = ["--treebank", treebank, "--vectors", folder / f"aligned.{settings.name}.vec"]
        assert run("train-source", "--output", own, *told, *LOOP, *ENTITIES) == 0
        models.append(own)
    words = ["--vectors", folder / f"aligned.{TARGET.name}.vec"]
    text = ["--text", folder / f"{TARGET.name}-train.jsonl"]
    assert run("build-charts", "--sources", *models, *text, *words, "--output", folder / "charts") == 0
    tested = ["--treebank", f"test={folder / TARGET.name}-test.jsonl", *words]
    return SimpleNamespace(folder=folder, models=models, words=words, tested=tested)


def scores(folder: Path) -> dict[str, Any]:
    (found,) = folder.glob("run/*scores.json")
    return dict(json.loads(found.read_text()))


def evaluated(world: SimpleNamespace, model: Path, name: str) -> dict[str, Any]:
    output = world.folder / f"scores-{name}"
    assert run("evaluate", "--model", model, *world.tested, "--output", output) == 0
    return scores(output)


@pytest.mark.slow
def test_a_source_is_scored_by_its_spans(world):
    model = AutoModel.from_pretrained(world.models[0])
    assert model.config.labels == ["B-LOC", "B-PER", "I-LOC", "I-PER", "O"]
    assert (model.scheme, model.columns) == ("bio", ("ner_tags",))
    found = json.loads((world.models[0] / "run" / "results.json").read_text())
    assert found["best_dev"] == found["dev"]["eval_f1"] > 50
    assert {"eval_precision", "eval_recall", "eval_accuracy"} <= set(found["dev"])


@pytest.mark.slow
def test_transfer_is_better_than_its_initial_model(world):
    folder = world.folder / "mine"
    told = ["--charts", world.folder / "charts", "--init-from", world.models[0], *world.words]
    loop = ["--epochs", 8, "--batch-size", 16, "--learning-rate", "0.004"]
    assert run("transfer", *told, *loop, "--output", folder) == 0
    start, mine = evaluated(world, world.models[0], "start"), evaluated(world, folder, "mine")
    assert mine["f1"] > start["f1"] + 1
    assert mine["spans"] == start["spans"] == sum(each["support"] for each in mine["per_type"].values())
    assert set(mine["per_type"]) == {"LOC", "PER"}
    predicted = world.folder / "mine.conllu"
    test = world.folder / f"{TARGET.name}-test.jsonl"
    assert run("predict", "--model", folder, "--input", test, *world.words, "--output", predicted) == 0
    of_file = world.folder / "of-file"
    told = ["--predictions", predicted, "--columns", "ner_tags", "--scheme", "bio", *world.tested[:2]]
    assert run("evaluate", *told, "--output", of_file) == 0
    same = {name: value for name, value in scores(of_file).items() if name != "data"}
    assert same == {name: value for name, value in mine.items() if name != "data"}
    assert all(is_legal(labels_of(sentence)) for sentence in read_conllu(predicted))


def labels_of(sentence: ConlluSentence) -> list[str]:
    return [misc_attribute(cell, "ner_tags") for cell in sentence.column("misc")]


def is_legal(labels: list[str]) -> bool:
    pairs = zip(["O", *labels], labels, strict=False)
    return all(not after.startswith("I-") or before[1:] == after[1:] for before, after in pairs)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["majority", "pool"])
def test_votes_are_written_and_scored(world, rule):
    output = world.folder / rule
    sources = ["--sources", *world.models]
    assert run("vote", *sources, *world.tested, "--rule", rule, "--output", output) == 0
    found = scores(output)
    assert 0 < found["f1"] <= found["accuracy"] <= 100
    labels = [labels_of(sentence) for sentence in read_conllu(output / "predictions.conllu")]
    assert {label for each in labels for label in each} <= {"O", "B-PER", "I-PER", "B-LOC", "I-LOC"}
    assert rule == "majority" or all(map(is_legal, labels))


@pytest.mark.slow
def test_json_lines_of_predictions_hold_the_labels(world):
    output, test = world.folder / "out.jsonl", world.folder / f"{TARGET.name}-test.jsonl"
    told = ["--model", world.models[0], "--input", test, *world.words, "--confidence", "true"]
    assert run("predict", *told, "--output", output) == 0
    row = json.loads(output.read_text().splitlines()[0])
    assert len(row["ner_tags"]) == len(row["words"]) == len(row["confidence"]["tag"])


def small_treebank(path: Path, columns: dict[str, list[str]]) -> Path:
    rows = gold((3, 4, 5, 3, 2, 4, 5, 3, 4, 3, 2, 4), seed=3)
    sentences: Iterator[ConlluSentence] = (
        ConlluSentence.from_words(row["words"], sent_id=row["sent_id"]).with_annotation(
            {name: (values * 5)[: len(row["words"])] for name, values in columns.items()}
        )
        for row in rows
    )
    write_conllu(sentences, path)
    return path


@pytest.fixture
def here(tmp_path: Path) -> list[object]:
    table = vectors()
    lines = (f"{word} {' '.join(map(str, row))}" for word, row in zip(table.words, table.matrix, strict=True))
    (tmp_path / "a.vec").write_text("".join(f"{line}\n" for line in lines))
    return ["--task", "tagger", "--epochs", 1, "--vectors", tmp_path / "a.vec", "--model", *SIZES]


@pytest.mark.parametrize(
    ("column", "values"), [("xpos", ["NN", "VB", "JJ"]), ("chunk", ["X", "Y"]), ("upos", ["NOUN", "VERB"])]
)
def test_any_column_of_conllu_is_learned(tmp_path, here, column, values):
    place = small_treebank(tmp_path / "t.conllu", {column: values})
    model = tmp_path / "model"
    told = ["--treebank", f"train={place}", *here, f"column={column}"]
    assert run("train-source", "--output", model, *told) == 0
    assert AutoModel.from_pretrained(model).config.labels == sorted(values)
    assert "eval_accuracy" in json.loads((model / "run" / "results.json").read_text())["dev"]
    predicted = tmp_path / "p.conllu"
    assert run("predict", "--model", model, "--input", place, "--output", predicted) == 0
    (first, *_) = read_conllu(predicted)
    found = (
        first.column(column)
        if column != "chunk"
        else [misc_attribute(c, column) for c in first.column("misc")]
    )
    assert set(found) <= set(values)


def test_labels_in_another_scheme_train_the_same_model(tmp_path, here, capsys):
    written = {"bio": ["B-A", "I-A", "O", "B-B"], "iob1": ["I-A", "I-A", "O", "I-B"]}
    written["bioes"] = ["B-A", "E-A", "O", "S-B"]
    found = []
    for name, labels in written.items():
        place = small_treebank(tmp_path / f"{name}.conllu", {"ner": labels})
        told = ["--treebank", f"train={place}", *here, "column=ner", "scheme=bio"]
        assert run("train-source", "--output", tmp_path / name, *told) == 0
        found.append((tmp_path / name / "model.safetensors").read_bytes())
        assert AutoModel.from_pretrained(tmp_path / name).config.labels == ["B-A", "B-B", "I-A", "I-B", "O"]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (["column=nothing"], "no word has a label in nothing"),
        (["column=head"], "column=head: expected a column with a label for each word"),
        (["column=xpos", "scheme=bio"], "found the labels NN; the scheme bio has O"),
        (["column=xpos", "scheme=iob"], "scheme is 'iob'; expected 'bio'"),
        (["sceme=bio"], "did you mean scheme"),
    ],
)
def test_wrong_columns_and_schemes_are_reported(tmp_path, here, capsys, fields, message):
    columns = {"xpos": ["NN"], "head": ["0", "1", "1", "1", "1"], "deprel": ["root", *["x"] * 4]}
    place = small_treebank(tmp_path / "t.conllu", columns)
    told = ["--treebank", f"train={place}", "--output", tmp_path / "model", *here, *fields]
    assert run("train-source", *told) == 1
    assert message in " ".join(capsys.readouterr().err.split())


def test_columns_that_require_structure_or_other_labels():
    assert not needs_structure(("ner_tags",))
    assert needs_structure(("deprel",))
    assert other_labels(("upos", "ner_tags", "head", "xpos")) == ["ner_tags", "xpos"]
    assert other_labels(None) == []


@pytest.mark.slow
def test_the_example_of_the_docs(tmp_path, example, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert example.main(str(tmp_path)) == 0
    start, mine = scores(tmp_path / "models" / SOURCES[0].name), scores(tmp_path / "models" / "mine")
    assert mine["f1"] > start["f1"] + 3
    assert isinstance(Dataset.from_json(str(tmp_path / f"{TARGET.name}-test.jsonl")), Dataset)
