"""The tutorials run, in small, as they are printed."""

from __future__ import annotations

import importlib
import json
import math
import re
import shlex
import shutil
from pathlib import Path
from types import ModuleType

import pytest
import torch
from datasets import Dataset

import hf_xst_cli
from helpers.small_models import WORDS, arguments, losses_of, vectors
from helpers.structure_spaces import SPACES
from hf_xst import ChartTrainer
from hf_xst.charts.chart import ChartSettings
from hf_xst.charts.dataset import chart_features, check_rows, to_mask
from hf_xst.data import read_conllu
from hf_xst.data.preparation import prepared_features
from hf_xst.demo import TARGET, source_languages, write_languages
from hf_xst.demo.small_models import size_options
from hf_xst.sources.building import ChartMaker
from hf_xst.sources.pool import SourcePool

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


@pytest.fixture
def phrases(tutorial):
    return tutorial("constituency_trees")


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ([2, 0, 2], {"0 0 A", "1 1 B", "2 2 C", "1 2 B", "0 2 B"}),
        ([0, 1, 1], {"0 0 A", "1 1 B", "2 2 C", "0 1 A", "0 2 A"}),
        ([0], {"0 0 A"}),
        ([2, 3, 0], {"0 0 A", "1 1 B", "2 2 C", "0 1 B", "0 2 C"}),
        ([3, 4, 0, 3], set()),  # not projective
    ],
)
def test_constituents_of_a_dependency_tree(phrases, head, expected):
    found = phrases.constituents({"upos": list("ABCD"[: len(head)]), "head": head})
    assert set(found) == expected
    assert len(found) in (0, 2 * len(head) - 1)


def test_the_trainer_computes_the_enumerated_chart_loss_of_constituency_trees(phrases, tmp_path):
    torch.manual_seed(0)
    rows = [{"sent_id": f"s{n}", "words": WORDS[:n], "upos": ["A"] * n} for n in (1, 3, 4)]
    config = {"labels": ["-", "A", "B"], "uses_upos": False, "context_layers": 1, "attention_heads": 2}
    first, second, model = (
        phrases.PhraseParser.from_vectors(phrases.PhraseConfig(**config), vectors()) for _ in range(3)
    )
    maker = ChartMaker(SourcePool({"first": first, "second": second}), ChartSettings(sigma=0.7))
    charts = Dataset.from_list(maker(rows)[0], chart_features(prepared_features(gold=False)))
    check_rows(charts, 2, "the charts")
    trainer = ChartTrainer(model, arguments(tmp_path, batch=3, max_steps=1), charts)
    batch = trainer.data_collator(list(charts))
    model.train(False)
    distribution = model.distribution(trainer.run_model(model, batch))
    kept = to_mask(batch["chart"], distribution.valid)
    expected = []
    for index in range(len(rows)):
        one = SPACES["constituency"].enumerated(distribution, index)
        inside = [
            tree for tree in one.structures if all(kept[index, group, c] for group, c in enumerate(tree))
        ]
        expected.append(-math.log(math.fsum(map(one.probability, inside))))
    assert min(expected) >= 0 < max(expected)
    losses = trainer.sentence_losses(trainer.run_model(model, batch), batch)
    assert losses.tolist() == pytest.approx(expected, rel=1e-4)
    trainer.train()
    assert math.isfinite(losses_of(trainer)[0])


@pytest.mark.slow
def test_phrases_of_a_language_without_a_treebank(phrases):
    scores = phrases.main(24)
    assert list(scores) == [*phrases.SOURCES, "mine"]
    assert all(0 < score < 100 for score in scores.values())


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
