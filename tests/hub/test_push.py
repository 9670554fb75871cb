"""Which files are pushed, by dry runs without a network."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
import torch
from rich.filesize import decimal
from safetensors.torch import load_file

import hf_xst_cli
from helpers.recorded_runs import record_run, save_charts, save_model
from hf_xst.console import console
from hf_xst.hub.contents import Contents, is_allowed, keep_public_words, link_files
from hf_xst.hub.publish import push_folder
from hf_xst.hub.upload import PushOptions


def dry_run(*words: object) -> str:
    with console.capture() as output:
        assert hf_xst_cli.main(["push", *map(str, words), "--to", "tester/en", "--dry-run"]) == 0
    return output.get()


def error_of(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert hf_xst_cli.main(["push", *map(str, words), "--to", "tester/en", "--dry-run"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def test_dry_run_lists_files_with_sizes(tmp_path: Path) -> None:
    save_model(tmp_path)
    record_run(tmp_path)
    output = dry_run(tmp_path)
    assert "to the private model tester/en" in output
    size = decimal((tmp_path / "model.safetensors").stat().st_size)
    assert [line.split() for line in output.splitlines() if "model.safetensors" in line] == [
        [*size.split(), "model.safetensors"]
    ]
    assert "words.json: the 12 words of the vector file tiny" in output
    assert "public model" in dry_run(tmp_path, "--public")


def test_only_listed_files_are_pushed(tmp_path: Path) -> None:
    save_model(tmp_path)
    save_model(tmp_path / "tagger", "tagger")
    private = ["training_args.bin", "optimizer.pt", "rng_state.pth", "notes.txt", ".env", "pytorch_model.bin"]
    for name in private:
        (tmp_path / name).write_bytes(b"private")
    for name in (
        "run/config.yaml",
        "run/checkpoint-3/optimizer.pt",
        "tagger/run/log.json",
        "other/config.json",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    files = set(Contents.of(tmp_path).files)
    model = {"config.json", "model.safetensors", "words.json"}
    assert files == model | {f"tagger/{name}" for name in model}
    output = dry_run(tmp_path)
    assert "not pushed:" in output
    assert all(name in output.split("not pushed:")[1] for name in ("run/", "training_args.bin", "other/"))


def test_pictures_in_the_card_are_pushed(tmp_path: Path) -> None:
    save_model(tmp_path)
    for name in ("tree.svg", "scores.png", "private.png"):
        (tmp_path / name).write_text("<svg></svg>")
    (tmp_path / "README.md").write_text('![a tree](tree.svg)\n<img src="./scores.png">\n')
    assert {"tree.svg", "scores.png", "README.md"} <= set(Contents.of(tmp_path).files)
    assert "private.png" in Contents.of(tmp_path).excluded


@pytest.mark.parametrize(
    ("name", "kind", "allowed"),
    [
        ("model-00001-of-00003.safetensors", "model", True),
        ("model.safetensors.index.json", "model", True),
        ("tagger/tokenizer.json", "model", True),
        ("data/train-00000-of-00001.parquet", "dataset", True),
        ("provenance.json", "dataset", True),
        ("data/train-00000-of-00001.parquet", "model", False),
        ("model.safetensors", "dataset", False),
        ("data/other.parquet", "dataset", False),
        ("tagger/tagger/config.json", "model", False),
        ("xconfig.json", "model", False),
        ("config.json.bak", "model", False),
        ("model.safetensors/evil", "model", False),
    ],
)
def test_allowed_names(name: str, kind: str, allowed: bool) -> None:
    assert is_allowed(name, kind) == allowed


def test_folders_that_cannot_be_pushed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "does not exist" in error_of(capsys, tmp_path / "nothing")
    assert "neither a complete model" in error_of(capsys, tmp_path)
    model = save_model(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    assert "pickled weights are never pushed" in error_of(capsys, tmp_path)


def test_pickle_under_another_name_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_model(tmp_path)
    record_run(tmp_path)
    (tmp_path / "words.json").rename(tmp_path / "kept")
    torch.save({"a": 1}, tmp_path / "tokenizer.json")
    (tmp_path / "kept").rename(tmp_path / "words.json")
    assert "tokenizer.json: not a valid json file" in error_of(capsys, tmp_path)


def test_dry_run_changes_nothing(tmp_path: Path) -> None:
    save_model(tmp_path)
    record_run(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    dry_run(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_folder_with_model_and_charts_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_model(tmp_path)
    save_charts(tmp_path)
    assert "contains a model (config.json) and charts (provenance.json)" in error_of(capsys, tmp_path)


def test_unrecorded_training_data_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_model(tmp_path)
    assert "the training data is not recorded" in error_of(capsys, tmp_path)
    assert "the training data is not recorded" in dry_run(tmp_path, "--unsearched")


def test_charts_are_pushed_as_a_data_set(tmp_path: Path) -> None:
    save_charts(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "building.json").write_text("{}")
    output = dry_run(tmp_path)
    assert "private data set tester/en" in output
    assert "data/train-00000-of-00001.parquet" in output
    assert "contains the words of the sentences" in output
    assert "building.json" not in output


def test_words_missing_in_the_public_file_are_removed(tmp_path: Path) -> None:
    model = save_model(tmp_path / "model")
    public = tmp_path / "public.vec"
    public.write_text("".join(f"{word} 1 2 3\n" for word in ["w3", "w1", "elsewhere", "w7"]))
    work = tmp_path / "work"
    link_files(tmp_path / "model", work)
    note = keep_public_words(work, str(public))
    assert note == "3 words that public.vec contains too; 9 others are not pushed"
    assert json.loads((work / "words.json").read_text())["words"] == ["w1", "w3", "w7"]
    kept = load_file(work / "model.safetensors")["encoder.words.vectors"]
    assert torch.equal(kept, model.encoder.words.vectors[[1, 3, 7]])
    assert json.loads((work / "config.json").read_text())["vocabulary_size"] == 3
    assert len(json.loads((tmp_path / "model" / "words.json").read_text())["words"]) == 12


def test_trained_vectors_are_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_model(tmp_path, freeze_word_vectors=False)
    record_run(tmp_path)
    assert "the word vectors were trained" in error_of(capsys, tmp_path)
    assert "all words of the model" in dry_run(tmp_path, "--vocabulary", "all")


@pytest.mark.parametrize("name", ["LICENSE", "README.md", "a.svg", "b.png", "pictures/c.svg"])
def test_links_in_place_of_texts_and_pictures_are_rejected(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, private = tmp_path / "model", tmp_path / "private"
    save_model(folder)
    record_run(folder)
    for path in (folder / "README.md", private):
        path.write_text("![](a.svg) ![](b.png) ![](pictures/c.svg)\n")
    (folder / "pictures").mkdir()
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(private)
    assert f"{name} is a link; replace it by the file" in error_of(capsys, folder)


def test_the_text_of_pictures_is_not_pushed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_model(tmp_path)
    record_run(tmp_path)
    (tmp_path / "README.md").write_text("![](a.png)\n")
    path = tmp_path / "a.png"
    pytest.importorskip("matplotlib.figure").Figure().savefig(path, metadata={"Author": "Kim"})
    before = path.read_bytes()
    with tempfile.TemporaryDirectory() as work:
        link_files(tmp_path, Path(work))
        contents = Contents.of(Path(work))
        contents.secure(tmp_path)
        assert b"Kim" in before
        assert b"Kim" not in contents.files["a.png"].read_bytes()
    assert path.read_bytes() == before
    path.write_bytes(before[:-9])
    assert "a.png is not a valid PNG picture" in error_of(capsys, tmp_path)


def test_dry_run_says_what_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_model(tmp_path)
    record_run(tmp_path)
    monkeypatch.setenv("DB_PASSWORD", "Xk9-vT4!q")
    monkeypatch.setenv("OTHER_PASSWORD", "short")
    output = dry_run(tmp_path, "--allow", "kim@host.de")
    searched, missing = (line for line in output.splitlines() if "searched for" in line)
    assert all(name in searched for name in ("detect-secrets", "DB_PASSWORD", "paths", "e-mail addresses"))
    assert all(
        name in missing for name in ("OTHER_PASSWORD", "words.json", "training sentences", "kim@host.de")
    )
    assert "Xk9" not in output


def test_links_are_pushed_with_their_content(tmp_path: Path) -> None:
    save_model(tmp_path / "cache")
    (tmp_path / "model").mkdir()
    for path in (tmp_path / "cache").iterdir():
        (tmp_path / "model" / path.name).symlink_to(path)
    record_run(tmp_path / "model")
    assert push_folder(tmp_path / "model", "tester/en", PushOptions(dry_run=True)) is None
