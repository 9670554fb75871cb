"""An output never overwrites an input or a file that a command did not write."""

from __future__ import annotations

import errno
import itertools
import json
import os
import re
import stat
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

import hf_xst_cli
from helpers.small_models import gold, model_of
from hf_xst.commands import options
from hf_xst.commands.demo import DemoArguments
from hf_xst.commands.runs import RunFolder
from hf_xst.data import ConlluSentence, write_conllu
from hf_xst.files import FILE_OPTIONS, atomic_path, write_text
from hf_xst.inference.resuming import ResumableFile

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
        "predict --model {0}/model --input {0}/text.conllu --output {0}/model/run/notes",
        "show --charts {0}/charts --output {0}/charts/data/train-00000-of-00001.parquet",
        "adapt --taggers {0}/model --text {0}/a/run/text.conllu --output {0}/a",
        "build-charts --sources {0}/model --text {0}/text.conllu --exclude {0}/e/data --output {0}/e",
    ],
)
def test_inputs_survive(world, capsys, words):
    for name in ("d", "e", "model/run", "a/run"):
        (world / name).mkdir(parents=True)
    names = (
        "y.part.conllu",
        "d/predictions.conllu",
        "d/weights.yaml",
        "model/run/notes",
        "a/run/text.conllu",
        "e/data",
    )
    for name in names:
        (world / name).write_text(SENTENCES)
    (world / "z.part.conllu.json").write_text(json.dumps({"words": ["w1"]}) + "\n")
    (world / "link.conllu").symlink_to(world / "text.conllu")
    before = contents(world)
    assert run(*words.format(world).split()) == 1
    assert "would overwrite an input of --" in capsys.readouterr().err
    assert contents(world) == before


SOURCES = "--sources {0}/model --treebank test={0}/text.conllu --output {0}/o"
COMMANDS = {
    "vote": f"vote {SOURCES}",
    "evaluate": "evaluate --model {0}/model --treebank test={0}/text.conllu --output {0}/o",
    "learn-weights": f"learn-weights {SOURCES} --split test",
}


@pytest.mark.parametrize(
    ("first", "second"),
    [("vote", "evaluate"), ("evaluate", "vote"), ("demo", "learn-weights"), ("demo", "vote")],
)
def test_the_records_of_another_command_survive(world, capsys, first, second):
    if first == "demo":
        RunFolder(f"{world}/o", DemoArguments(output=f"{world}/o"), "data").begin()
    else:
        assert run(*COMMANDS[first].format(world).split()) == 0
        assert run(*COMMANDS[first].format(world).split()) == 0
    before = contents(world)
    assert run(*COMMANDS[second].format(world).split()) == 1
    assert re.search("a run of another command|was not written by this command", capsys.readouterr().err)
    assert contents(world) == before


def test_an_output_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    """The superuser may write everywhere, so the refusal is a stand-in."""

    def refused(path: Path, *options: object) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(os, "open", refused)
    writers = [lambda path: write_text(path, "x"), lambda path: ResumableFile(path, {}).__enter__()]
    for write, name in itertools.product(writers, ("y.conllu", "y.svg.gz")):
        with pytest.raises(PermissionError) as caught:
            write(tmp_path / name)
        assert caught.value.filename == str(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


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


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("d/predictions.conllu", "vote --sources {0}/model --treebank test={0}/text.conllu --output {0}/d"),
        (
            "d/weights.yaml",
            "learn-weights --sources {0}/model --treebank train={0}/text.conllu --output {0}/d",
        ),
        ("d/sources.svg", "analyse --sources {0}/model --treebank dev={0}/text.conllu --output {0}/d"),
        ("d/data/notes", "build-charts --sources {0}/model --text {0}/text.conllu --output {0}/d"),
        ("d/data/notes", "demo --output {0}/d"),
        ("d/config.json", "transfer --charts {0}/charts --output {0}/d"),
        ("d/report.md", "adapt --taggers {0}/model --text {0}/text.conllu --output {0}/d"),
        ("index.html", "show {0}/text.conllu --output {0}/index.html"),
        ("tree.svg", "show {0}/text.conllu --index 1 --output {0}/tree.svg"),
        ("model/tree.svg", "card {0}/model"),
        ("model/table.svg", "card {0}/model"),
    ],
)
def test_files_of_the_user_survive(world, capsys, name, words):
    (world / name).parent.mkdir(parents=True, exist_ok=True)
    (world / name).write_text("<svg>mine</svg>")
    before = contents(world)
    for _ in range(2):
        assert run(*words.format(world).split()) == 1
        assert " not written by " in capsys.readouterr().err
        assert contents(world) == before


def test_predictions_replace_a_file_on_request_only(world, capsys):
    words = ["predict", "--model", world / "model", "--input", world / "text.conllu"]
    words += ["--output", world / "mine.conllu"]
    (world / "mine.conllu").write_text(SENTENCES)
    before = contents(world)
    assert run(*words) == 1
    assert "mine.conllu exists; choose another output, or pass --overwrite" in capsys.readouterr().err
    assert contents(world) == before
    assert run(*words, "--overwrite") == 0
    assert (world / "mine.conllu").read_text().startswith("# sent_id")


@pytest.mark.parametrize("name", ["page.html", "tree.svg"])
def test_pictures_of_this_package_are_replaced(world, name):
    words = ["show", world / "text.conllu", "--index", 1, "--output", world / name]
    assert [run(*words), run(*words)] == [0, 0]
    (world / name).write_text("<p>mine</p>")
    assert [run(*words), run(*words, "--overwrite")] == [1, 0]
    assert "mine" not in (world / name).read_text()


def test_a_linked_output_is_written_through_and_keeps_its_mode(world):
    (world / "far").mkdir()
    target = world / "far" / "y.conllu"
    target.write_text("old")
    target.chmod(0o600)
    (world / "y.conllu").symlink_to(target)
    (world / "new.conllu").symlink_to(world / "far" / "new.conllu")
    for name in ("y.conllu", "new.conllu"):
        words = ["predict", "--model", world / "model", "--input", world / "text.conllu", "--output"]
        assert run(*words, world / name, "--overwrite") == 0
        assert (world / name).is_symlink()
    assert target.read_text().startswith("# sent_id")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert {path.name for path in (world / "far").iterdir()} == {"new.conllu", "y.conllu"}


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755, 0o400])
def test_a_replaced_file_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(mode)
    with atomic_path(path) as temporary:
        assert stat.S_IMODE(temporary.stat().st_mode) & ~0o200 & ~mode == 0
        temporary.write_text("new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", mode)


def test_a_new_file_has_the_mode_of_the_umask_even_if_a_library_replaces_it(tmp_path):
    with atomic_path(tmp_path / "file") as temporary:
        mode = stat.S_IMODE(temporary.stat().st_mode)
        temporary.chmod(0o600)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


def test_temporary_names_are_new(tmp_path):
    names = set()
    for _ in range(20):
        with atomic_path(tmp_path / "file") as temporary:
            names.add(temporary.name)
            assert {path.name for path in tmp_path.iterdir()} <= {temporary.name, "file"}
    assert len(names) == 20
    write_text("/dev/null", "text")
    assert Path("/dev/null").is_char_device()


def test_files_of_weights_are_inputs_of_every_command():
    kinds = (each for each in vars(options).values() if is_dataclass(each))
    names = {each.name for kind in kinds for each in fields(kind) if each.name.endswith("weights")}
    assert {"weights", "tagger_weights", "parser_weights"} <= names <= FILE_OPTIONS
