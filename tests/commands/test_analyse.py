"""The command from models in folders to tables, figures and a file."""

from __future__ import annotations

import json
import sys
from io import StringIO
from pathlib import Path

import pytest
import yaml
from rich.console import Console

import hf_xst_cli
from helpers.small_models import gold, model_of, vectors
from hf_xst.commands.analyse import (
    AnalyseArguments,
    analyse,
    chart_table,
    distance_table,
    plot_sources,
    source_table,
)
from hf_xst.data import ConlluSentence, write_conllu
from hf_xst.sources.analysis import describe, standard_charts
from hf_xst.sources.loading import load_model
from hf_xst.sources.pool import SourcePool, joint_names

LENGTHS = (3, 1, 5, 4, 2, 4)


def run(*words: object) -> int:
    return hf_xst_cli.main([str(word) for word in words])


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("analysis")
    for kind in ("parser", "tagger"):
        for seed in range(3):
            model_of(kind, seed).save_pretrained(folder / f"{kind}{seed}")
    model_of("parser", 1, labels=["obj", "root", "vocative"]).save_pretrained(folder / "other")
    sentences = [
        ConlluSentence.from_words(
            row["words"],
            sent_id=row["sent_id"],
            columns={name: row[name] for name in ("upos", "head", "deprel")},
        )
        for row in gold(LENGTHS)
    ]
    write_conllu(sentences, folder / "dev.conllu")
    table = vectors()
    lines = [
        f"{w} {' '.join(map(str, row))}" for w, row in zip(table.words, table.matrix.tolist(), strict=True)
    ]
    (folder / "tiny.vec").write_text("\n".join([f"{len(table.words)} 8", *lines]) + "\n")
    (folder / "weights.yaml").write_text("parser0: 1\nparser1: 2\nparser2: 1\n")
    return folder


def command(world, kind, *more):
    sources = [world / f"{kind}{seed}" for seed in range(3)]
    return ["analyse", "--sources", *sources, "--treebank", f"dev={world}/dev.conllu", *more]


def test_what_is_written_is_what_describe_returns(world, tmp_path):
    pytest.importorskip("matplotlib")
    words = command(
        world, "parser", "--weights", world / "weights.yaml", "--sigma", "0.8", "--output", tmp_path
    )
    assert run(*words) == 0
    found = json.loads((tmp_path / "analysis.json").read_text())
    assert list(found["charts"]) == ["union", "pool", "pool learned"]
    models = {f"parser{seed}": load_model(str(world / f"parser{seed}")) for seed in range(3)}
    pool = SourcePool(models, joint_names(list(models.values())))
    weights = {"parser0": 1.0, "parser1": 2.0, "parser2": 1.0}
    assert "6 of 6 sentences" in found.pop("data")
    assert found == describe(pool, gold(LENGTHS), standard_charts(0.8, 1e-9, weights))
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {
        "analysis.json",
        "sources.svg",
        "sources.png",
        "run/analyse-config.yaml",
        "run/analyse-command.txt",
        "run/analyse-versions.json",
    }
    assert yaml.safe_load((tmp_path / "run" / "analyse-config.yaml").read_text())["sigma"] == 0.8


def test_sources_with_other_labels_and_predicted_input(world, tmp_path):
    words = ["analyse", "--sources", world / "parser0", world / "other", "--tagger", world / "tagger0"]
    words += ["--treebank", f"dev={world}/dev.conllu", "--no-plots", "--output", tmp_path]
    assert run(*words) == 0
    found = json.loads((tmp_path / "analysis.json").read_text())
    assert set(found["sources"]) == {"parser0", "other"}
    assert found["distance"]["pool"]["unknown_gold"] == 0
    assert not list(tmp_path.glob("sources.*"))


def test_tables_tell_the_numbers(world, tmp_path):
    arguments = AnalyseArguments(
        output=str(tmp_path),
        sources=[str(world / f"tagger{seed}") for seed in range(3)],
        treebank=f"dev={world}/dev.conllu",
        plots=False,
    )
    found = analyse(arguments)
    screen = Console(file=StringIO(), width=100)
    screen.print(chart_table(found), distance_table(found), source_table(found))
    told = screen.file.getvalue()
    for scope in ("with_boundaries", "without_boundaries"):
        assert scope.replace("_", " ") in told
        for chart in found["charts"].values():
            assert f"{100 * chart[scope]['precision']:.1f}" in told
        assert f"{found['distance']['pool'][scope]['kl']:.3f}" in told
    order = sorted(found["sources"], key=lambda name: -found["sources"][name]["agreement"])
    assert [told.index(name) for name in order] == sorted(told.index(name) for name in order)
    assert f"{found['selection']['entropy']['rho']:.3f}" in told


def test_the_plot_names_all_sources_and_equal_numbers_give_equal_bytes(tmp_path):
    pytest.importorskip("matplotlib")
    sources = {"fa": {"agreement": 0.25, "right": 0.5}, "ko": {"agreement": 0.5, "right": 0.75}}
    result = {"sources": sources, "selection": {"agreement": {"rho": 0.5}}}
    for name in ("one", "two"):
        plot_sources(result, tmp_path / name)
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / n).iterdir()} for n in ("one", "two")
    )
    assert first == second
    assert sorted(first) == ["sources.png", "sources.svg"]
    for text in (b">fa<", b">ko<", b">rank correlation 0.50<"):
        assert text in first["sources.svg"]


def test_without_the_extra_there_are_numbers_and_no_figure(world, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert run(*command(world, "tagger", "--output", tmp_path)) == 0
    assert "skipped the plot: matplotlib is not installed" in capsys.readouterr().err
    assert (tmp_path / "analysis.json").exists()
    assert not list(tmp_path.glob("sources.*"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--sources {here}/tagger0 {bank} --tagger {here}/tagger1", "--tagger would replace the gold"),
        ("--sources {here}/parser0 {here}/tagger0 {bank}", "must all predict the same columns"),
        (
            "--sources {here}/parser0 {bank} --weights {here}/weights.yaml",
            "without a source: parser1, parser2",
        ),
        ("--sources {here}/parser0 {bank} --sigma 2", "sigma is 2.0"),
        ("--sources {here}/parser0 {bank} --split test", "no split test; found dev"),
    ],
)
def test_errors_teach(world, tmp_path, capsys, words, message):
    words = words.replace("{bank}", "--treebank dev={here}/dev.conllu").replace("{here}", str(world))
    assert run("analyse", *words.split(), "--output", tmp_path / "o") == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "o").exists()
