"""The tutorials run, in small, as they are printed."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import shutil
from pathlib import Path
from types import ModuleType

import pytest

import hf_xst_cli
from hf_xst.data import read_conllu
from hf_xst.demo import TARGET, source_languages, write_languages
from hf_xst.demo.small_models import size_options

REPOSITORY = Path(__file__).resolve().parent.parent
TUTORIALS = REPOSITORY / "docs" / "tutorials"


@pytest.fixture
def tutorial(monkeypatch, tmp_path):
    """Import a tutorial as Python finds it when it is run, and work in an empty folder."""
    monkeypatch.syspath_prepend(str(TUTORIALS))
    monkeypatch.chdir(tmp_path)

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    return load


def test_a_structure_of_ones_own_can_be_pooled_and_trained_on(tutorial):
    assert 0 <= tutorial("add_a_structure").main() < 0.2


def test_a_source_of_ones_own_can_be_pooled(tutorial, tmp_path):
    assert tutorial("add_a_source").main(str(tmp_path)) == ["DET", "NOUN", "VERB"]


@pytest.mark.slow
def test_a_model_over_a_structure_of_ones_own(tutorial, tmp_path):
    tutorial("train_a_structure").main(24)
    assert "LabelProb=" in (tmp_path / "tagged.conllu").read_text(encoding="utf-8")


@pytest.mark.slow
def test_from_running_text_to_trees(tutorial, tmp_path):
    tutorial("a_parser_for_my_language").main(24)
    text = (tmp_path / "new.conllu").read_text(encoding="utf-8")
    assert text.count("\n\n") >= 4
    assert "ArcProb=" in text
    for name in ("tree.svg", "chart.svg"):
        assert (tmp_path / name).read_text(encoding="utf-8").lstrip().startswith("<svg")


def readme_blocks(language: str) -> list[str]:
    """Return the README's blocks below its first screen."""
    page = (
        (REPOSITORY / "README.md").read_text(encoding="utf-8").split("\n## A parser for your language\n")[1]
    )
    return re.findall(rf"^```{language}\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)


def what_the_readme_asks_for(folder: Path) -> None:
    """Put invented languages where the README has real ones."""
    write_languages(folder, 12, seed=1)
    places = ("UD_English-EWT/en_ewt", "UD_German-GSD/de_gsd")
    for place, settings in zip(places, source_languages(), strict=False):
        code = place.split("/")[1][:2]
        shutil.move(folder / f"demo.{settings.name}.vec", folder / f"wiki.{code}.align.vec")
        (folder / "ud-treebanks" / place).parent.mkdir(parents=True)
        for part in ("train", "dev"):
            target = folder / "ud-treebanks" / f"{place}-ud-{part}.conllu"
            shutil.move(folder / f"{settings.name}-{part}.conllu", target)
    shutil.move(folder / f"demo.{TARGET}.vec", folder / "wiki.id.align.vec")
    shutil.move(folder / f"{TARGET}-test.conllu", folder / "my-gold.conllu")
    text = "\n".join(" ".join(row.words) for row in read_conllu(folder / f"{TARGET}-train.conllu"))
    (folder / "my-text.txt").write_text(text + "\n", encoding="utf-8")


def test_the_readme_runs_as_it_is_printed(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    what_the_readme_asks_for(tmp_path)
    (steps,) = readme_blocks("sh")
    commands = [shlex.split(line, comments=True) for line in steps.replace("\\\n", " ").splitlines()]
    sizes = [*size_options("tagger"), "arc_size=16", "label_size=8"]
    small = {"train-source": ["--epochs", "1", "--batch-size", "8"], "transfer": ["--epochs", "1"]}
    for words in filter(None, commands):
        assert words[0] == "hf-xst"
        words = [part for word in words for part in ([word, *sizes] if word == "uses_upos=false" else [word])]
        assert hf_xst_cli.main([*words[1:], *small.get(words[1], [])]) == 0, words
    assert "HeadProb" in Path("parsed.conllu").read_text(encoding="utf-8")
    assert json.loads(Path("scores/run/scores.json").read_text(encoding="utf-8"))["words"]
    python = readme_blocks("python")
    assert len(python) == 2
    capsys.readouterr()
    for block in python:
        exec(compile(block, "README.md", "exec"), {})
    assert "Saya" in capsys.readouterr().out
