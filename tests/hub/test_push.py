"""What goes and what stays, without any network: dry runs tell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import hf_xst_cli
from helpers.recorded_runs import record_run, save_charts, save_model
from hf_xst.console import console
from hf_xst.hub.allowed_files import allowed_files, gather, is_allowed
from hf_xst.hub.publish import Choices, push_folder, sized
from hf_xst.hub.upload import Destination
from hf_xst.hub.vocabulary import keep_public_words


def dry_run(*words: object) -> str:
    with console.capture() as shown:
        assert hf_xst_cli.main(["push", *map(str, words), "--to", "tester/en", "--dry-run"]) == 0
    return shown.get()


def refusal(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert hf_xst_cli.main(["push", *map(str, words), "--to", "tester/en", "--dry-run"]) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    return told


def test_a_dry_run_lists_what_would_go_with_sizes(tmp_path: Path) -> None:
    save_model(tmp_path)
    record_run(tmp_path)
    shown = dry_run(tmp_path)
    assert "would go to the private model tester/en" in shown
    size = sized((tmp_path / "model.safetensors").stat().st_size)
    assert [line.split() for line in shown.splitlines() if "model.safetensors" in line] == [
        [*size.split(), "model.safetensors"]
    ]
    assert "words.json: the 12 words of the vector file tiny" in shown
    assert "public model" in dry_run(tmp_path, "--public")


def test_what_is_not_on_the_list_stays(tmp_path: Path) -> None:
    save_model(tmp_path)
    save_model(tmp_path / "tagger", "tagger")
    stays = ["training_args.bin", "optimizer.pt", "rng_state.pth", "notes.txt", ".env", "pytorch_model.bin"]
    for name in stays:
        (tmp_path / name).write_bytes(b"private")
    for name in (
        "run/config.yaml",
        "run/checkpoint-3/optimizer.pt",
        "tagger/run/log.json",
        "other/config.json",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    files = set(allowed_files(tmp_path).files)
    model = {"config.json", "model.safetensors", "words.json"}
    assert files == model | {f"tagger/{name}" for name in model}
    shown = dry_run(tmp_path)
    assert "stay here:" in shown
    assert all(name in shown.split("stay here:")[1] for name in ("run/", "training_args.bin", "other/"))


def test_pictures_go_if_the_card_shows_them(tmp_path: Path) -> None:
    save_model(tmp_path)
    for name in ("tree.svg", "scores.png", "private.png"):
        (tmp_path / name).write_text("<svg></svg>")
    (tmp_path / "README.md").write_text('![a tree](tree.svg)\n<img src="./scores.png">\n')
    assert {"tree.svg", "scores.png", "README.md"} <= set(allowed_files(tmp_path).files)
    assert "private.png" in allowed_files(tmp_path).left


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
def test_the_list_of_names(name: str, kind: str, allowed: bool) -> None:
    assert is_allowed(name, kind) == allowed


def test_folders_with_nothing_to_push(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no folder" in refusal(capsys, tmp_path / "nothing")
    assert "neither a whole model" in refusal(capsys, tmp_path)
    model = save_model(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    assert "pickled weights are never sent" in refusal(capsys, tmp_path)


def test_a_pickle_under_another_name_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_model(tmp_path)
    record_run(tmp_path)
    (tmp_path / "words.json").rename(tmp_path / "kept")
    torch.save({"a": 1}, tmp_path / "tokenizer.json")
    (tmp_path / "kept").rename(tmp_path / "words.json")
    assert "tokenizer.json: it is no json file" in refusal(capsys, tmp_path)


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    save_model(tmp_path)
    record_run(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    dry_run(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_folder_of_both_kinds_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_model(tmp_path)
    save_charts(tmp_path)
    assert "holds a model (config.json) and charts (provenance.json)" in refusal(capsys, tmp_path)


def test_what_a_model_was_trained_on_must_be_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_model(tmp_path)
    assert "not recorded what this was trained on" in refusal(capsys, tmp_path)
    assert "not recorded what this was trained on" in dry_run(tmp_path, "--unsearched")


def test_charts_go_as_a_data_set(tmp_path: Path) -> None:
    save_charts(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "building.json").write_text("{}")
    shown = dry_run(tmp_path)
    assert "private data set tester/en" in shown
    assert "data/train-00000-of-00001.parquet" in shown
    assert "words are part of the data set" in shown
    assert "building.json" not in shown


def test_words_that_the_public_file_lacks_stay(tmp_path: Path) -> None:
    model = save_model(tmp_path / "model")
    public = tmp_path / "public.vec"
    public.write_text("".join(f"{word} 1 2 3\n" for word in ["w3", "w1", "elsewhere", "w7"]))
    aside = tmp_path / "aside"
    gather(tmp_path / "model", aside)
    assert "3 words that public.vec has too; 9 others stay here" in keep_public_words(aside, str(public))
    assert json.loads((aside / "words.json").read_text())["words"] == ["w1", "w3", "w7"]
    kept = load_file(aside / "model.safetensors")["encoder.words.vectors"]
    assert torch.equal(kept, model.encoder.words.vectors[[1, 3, 7]])
    assert json.loads((aside / "config.json").read_text())["vocabulary_size"] == 3
    assert len(json.loads((tmp_path / "model" / "words.json").read_text())["words"]) == 12


def test_vectors_that_were_trained_tell_the_training_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_model(tmp_path, freeze_word_vectors=False)
    record_run(tmp_path)
    assert "the word vectors were trained" in refusal(capsys, tmp_path)
    assert "all words of the model" in dry_run(tmp_path, "--vocabulary", "all")


def test_names_that_are_links_go_with_their_content(tmp_path: Path) -> None:
    save_model(tmp_path / "cache")
    (tmp_path / "model").mkdir()
    for path in (tmp_path / "cache").iterdir():
        (tmp_path / "model" / path.name).symlink_to(path)
    record_run(tmp_path / "model")
    assert push_folder(tmp_path / "model", Destination("tester/en"), Choices(dry_run=True)) is None


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (24_000_000, "24.0 MB"), (3e9, "3.0 GB")]
)
def test_sizes_for_people(size: float, text: str) -> None:
    assert sized(size) == text
