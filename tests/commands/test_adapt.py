"""The command `adapt`: tagger, parser and report from text and sources."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from transformers import AutoModel, BartConfig, pipeline

import hf_xst
import hf_xst_cli
from helpers.small_models import RELATIONS, UPOS, WORDS, gold, model_of, vectors
from helpers.tiny_models import save_bert
from hf_xst.commands.adapt_report import MARK, score_with_intervals
from hf_xst.data import ConlluSentence, read_conllu, write_conllu
from hf_xst.inference.pipelines import DependencyParsingPipeline
from hf_xst.metrics import score
from hf_xst.sources.base import LabelledTrees

LENGTHS = (3, 1, 6, 4, 2, 5, 3, 3)
TINY: dict[str, Any] = {"max_steps": 2, "batch_size": 4}


def run(*words: object) -> int:
    return hf_xst_cli.main([str(word) for word in words])


def sentences(lengths: Any, seed: int, *columns: str) -> list[ConlluSentence]:
    return [
        ConlluSentence.from_words(
            row["words"],
            sent_id=row["sent_id"],
            columns={name: list(map(str, row[name])) for name in columns},
        )
        for row in gold(lengths, seed)
    ]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Sources of both tasks, a text, gold, and the output of adapt."""
    folder = tmp_path_factory.mktemp("world")
    for seed in (1, 2):
        model_of("tagger", seed).save_pretrained(folder / f"tagger{seed}")
        model_of("parser", seed).save_pretrained(folder / f"parser{seed}")
    text = folder / "my_text.txt"
    text.write_text("".join(" ".join(each.words) + "\n" for each in sentences(LENGTHS, 5)))
    write_conllu(sentences((3, 4, 2, 5), 6, "upos", "head", "deprel"), folder / "gold.conllu")
    words = ["adapt", "--text", text, "--output", folder / "mine", "--max-steps", 2, "--batch-size", 4]
    words += ["--taggers", *(f"t_{seed}={folder}/tagger{seed}" for seed in (1, 2))]
    words += ["--parsers", *(f"p|{seed}={folder}/parser{seed}" for seed in (1, 2))]
    assert run(*words) == 0
    return SimpleNamespace(folder=folder, text=text, output=folder / "mine", words=words)


def report_of(output: Path) -> str:
    return (output / "report.md").read_text(encoding="utf-8")


def models_in(folder: Path) -> dict[Path, int]:
    kinds = (".safetensors", ".parquet", ".conllu")
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.suffix in kinds}


def test_the_output_is_a_parser_with_its_tagger(world, tmp_path):
    tagger = AutoModel.from_pretrained(world.output / "tagger")
    assert AutoModel.from_pretrained(world.output).names == RELATIONS
    assert sorted(tagger.config.labels) == sorted(UPOS)
    assert {path.name for path in (world.output / "tagger").iterdir()} == {
        "config.json",
        "model.safetensors",
        "words.json",
    }
    predicted = tmp_path / "predicted.conllu"
    assert run("predict", "--model", world.output, "--input", world.text, "--output", predicted) == 0
    parsed = list(read_conllu(predicted))
    assert [each.upos for each in parsed] == [
        columns["upos"] for columns in tagger.predict([{"words": each.words} for each in parsed])
    ]
    parse = pipeline("dependency-parsing", model=str(world.output))
    assert isinstance(parse, DependencyParsingPipeline)
    assert parse([parsed[0].words])[0]["upos"] == parsed[0].upos


def test_the_report_describes_text_sources_models_and_predictions(world):
    report = report_of(world.output)
    assert report.startswith(f"{MARK}\n# Report\n\nText: `my_text.txt`, 8 sentences with 27 words.\n")
    for task in ("Tagger", "Parser"):
        section = report.partition(f"## {task}\n")[2].partition("\n## ")[0]
        assert "The sources read 8 sentences with 27 words of the text and left out\n0 sentences" in section
        rows = re.findall(r"^\| `(.+)` \| (0\.\d{3}) \| ([01]\.\d{3}) \|$", section, re.MULTILINE)
        names = ["t_1", "t_2"] if task == "Tagger" else [r"p\|1", r"p\|2"]
        assert [name for name, *_ in rows] == names
        assert sum(float(weight) for *_, weight in rows) == pytest.approx(1, abs=0.002)
        (confidence,) = re.findall(r"- Mean confidence .*: (0\.\d{3})$", section, re.MULTILINE)
        assert 0 < float(confidence) < 1
        assert re.search(r"majority vote of the sources: \d+\.\d%$", section, re.MULTILINE)
        assert "- Words without a vector: 0.0%" in section
    drawn = report.partition("## 8 sentences of the text, drawn at random")[2]
    assert set(re.findall(r"^`(my_text\.txt:\d)`:$", drawn, re.MULTILINE)) == {
        f"my_text.txt:{number}" for number in range(1, 9)
    }
    assert "►" in drawn
    for command in ("predict", "evaluate", "learn-weights"):
        assert f"hf-xst {command} " in drawn.partition("## Next steps")[2]
    assert "LAS" not in report


def test_vote_and_confidence_are_those_of_the_models(world):
    tagger = AutoModel.from_pretrained(world.output / "tagger").eval()
    rows = [{"words": each.words} for each in read_conllu(world.output / "run" / "text.conllu")]
    probs = []
    for row in rows:
        marginals = tagger.distribution(tagger(**tagger.featurise([row]))).marginals()
        best = tagger.predict([row])[0]["upos"]
        probs += [
            float(marginals[0, index, :, tagger.names.index(tag)].sum()) for index, tag in enumerate(best)
        ]
    section = report_of(world.output).partition("## Tagger")[2]
    assert f"(probability of each tag): {np.mean(probs):.3f}\n" in section


def test_a_repeated_command_changes_no_model_and_adds_scores(world):
    before, report = models_in(world.output), report_of(world.output)
    assert run(*world.words) == 0
    assert (models_in(world.output), report_of(world.output)) == (before, report)
    assert run(*world.words, "--gold", world.folder / "gold.conllu") == 0
    assert models_in(world.output) == before
    scored = report_of(world.output)
    for method in ("t_1 alone", "majority vote of the sources", "pool of the sources, decoded", "new tagger"):
        assert re.search(rf"^\| {re.escape(method)} \| [\d.]+ \([\d.]+ to [\d.]+\) \|$", scored, re.MULTILINE)
    assert r"| p\|1 alone | " in scored
    scores = json.loads((world.output / "run" / "adapt-scores.json").read_text())
    evaluate = ["evaluate", "--model", world.output, "--tagger", world.output / "tagger"]
    evaluate += ["--treebank", f"test={world.folder}/gold.conllu", "--output", world.folder / "scores"]
    assert run(*evaluate) == 0
    expected = json.loads((world.folder / "scores" / "run" / "scores.json").read_text())
    value, low, high = scores["parser"]["new parser"]["las"]
    assert value == pytest.approx(expected["las"])
    assert low <= value <= high


def test_only_taggers_from_raw_text_with_vectors(world, tmp_path):
    text, known = tmp_path / "raw.txt", vectors(words=WORDS[:6])
    text.write_text("w1 w2, w3. W4 w5 w6!\n")
    numbers = [" ".join(map(str, row)) for row in known.matrix.tolist()]
    lines = [f"{word} {row}\n" for word, row in zip(known.words, numbers, strict=True)]
    (tmp_path / "tiny.xx.vec").write_text(f"6 8\n{''.join(lines)}")
    options = {"text": str(text), "format": "raw", "output": str(tmp_path / "o")}
    sources = [f"a={world.folder}/tagger1"]
    results = hf_xst.adapt(taggers=sources, vectors=str(tmp_path / "tiny.xx.vec"), **options, **TINY)
    assert (results.parser, results.tagger, results.scores) == (None, tmp_path / "o", None)
    assert sorted(AutoModel.from_pretrained(results.tagger).config.labels) == sorted(UPOS)
    report = results.report.read_text()
    assert "| `a` | - | 1.000 |" in report
    assert f"- Words without a vector: {3 / 9:.1%}\n" in report  # punctuation; w6 is looked up as w0
    assert re.search(r"^w1/(NOUN|VERB|ADJ) w2/", report, re.MULTILINE)
    with pytest.raises(ValueError, match="was begun with other --taggers and --parsers"):
        hf_xst.adapt(parsers=sources, **options)


def test_only_parsers_read_the_tags_of_the_text(world, tmp_path):
    text = tmp_path / "text.conllu"
    write_conllu(sentences(LENGTHS, 5, "upos"), text)
    output = tmp_path / "o"
    results = hf_xst.adapt(text=str(text), parsers=[f"a={world.folder}/parser1"], output=str(output), **TINY)
    assert (results.parser, results.tagger) == (output, None)
    assert not (output / "tagger").exists()
    rows = [{"words": each.words, "upos": each.upos} for each in read_conllu(text)]
    source, new = (AutoModel.from_pretrained(path) for path in (world.folder / "parser1", output))
    differing = [
        pair[0] != pair[1]
        for one, other in zip(source.predict(rows), new.predict(rows), strict=True)
        for pair in zip(zip(*one.values(), strict=True), zip(*other.values(), strict=True), strict=True)
    ]
    assert f"majority vote of the sources: {np.mean(differing):.1%}\n" in report_of(output)
    assert " VERB" in report_of(output)
    text.write_text(text.read_text() + text.read_text())
    with pytest.raises(ValueError, match="was begun with other text"):
        hf_xst.adapt(text=str(text), parsers=[f"a={world.folder}/parser1"], output=str(output), **TINY)


def test_weights_and_temperature_are_recorded_and_reported(world, tmp_path):
    weights = tmp_path / "weights.yaml"
    weights.write_text("a: 0.75\nb: 0.25\n")
    options: dict[str, Any] = {
        "text": str(world.text),
        "taggers": [f"{name}={world.folder}/tagger{seed}" for name, seed in (("a", 1), ("b", 2))],
        "tagger_weights": str(weights),
        "temperature": 3.0,
        "output": str(tmp_path / "o"),
        **TINY,
    }
    report = hf_xst.adapt(**options).report.read_text()
    settings = hf_xst.load_charts(str(tmp_path / "o" / "run" / "tagger" / "charts"))[1].settings
    assert (settings.weights, settings.temperature) == ({"a": 0.75, "b": 0.25}, 3.0)
    assert re.search(r"weights .*weights\.yaml and temperature 3:\n", report)
    assert [row[-2:] for row in re.findall(r"^\| `([ab])` \| (.*) \| (.*) \|$", report, re.MULTILINE)] == [
        (agreement, weight) for agreement, weight in re.findall(r"\| (0\.\d+) \| (0\.750|0\.250) \|", report)
    ]
    weights.write_text("a: 0.5\nb: 0.5\n")
    with pytest.raises(ValueError, match=r"holds charts that differ in: settings"):
        hf_xst.adapt(**options)
    weights.write_text("a: 1\n")
    with pytest.raises(ValueError, match=r"expected weights for exactly a, b; missing: b"):
        hf_xst.adapt(**options | {"output": str(tmp_path / "p")})


def test_entities_are_recognised_instead_of_tags(world, tmp_path):
    pytest.importorskip("seqeval")
    labels = ["B-PER", "I-PER", "O"]
    model_of("tagger", 3, labels=labels, column="ner_tags", scheme="bio").save_pretrained(tmp_path / "names")
    known = [
        ConlluSentence.from_words(
            each.words, sent_id="s", columns={"misc": ["ner_tags=B-PER"] * len(each.words)}
        )
        for each in sentences((3, 2), 6)
    ]
    write_conllu(known, tmp_path / "gold.conllu")
    options: dict[str, Any] = {
        "text": str(world.text),
        "taggers": [f"a={tmp_path}/names", f"b={tmp_path}/names"],
        "output": str(tmp_path / "o"),
        "gold": str(tmp_path / "gold.conllu"),
        **TINY,
    }
    with pytest.raises(ValueError, match="the source a predicts ner_tags; expected the column upos"):
        hf_xst.adapt(**options | {"gold": None})
    with pytest.raises(ValueError, match="--column ner_tags is for --taggers alone"):
        hf_xst.adapt(**options, column="ner_tags", parsers=[f"a={world.folder}/parser1"])
    results = hf_xst.adapt(**options, column="ner_tags")
    assert results.scores is not None
    assert "accuracy" in results.scores["tagger"]["new tagger"]
    report = results.report.read_text()
    assert "--column ner_tags" in report
    assert re.search(r"^w\d+/(B-PER|O)( w\d+/(B-PER|I-PER|O))*$", report, re.MULTILINE)


def test_files_of_predictions_train_a_parser_from_scratch(world, tmp_path):
    predictions = tmp_path / "a.conllu"
    write_conllu(sentences(LENGTHS, 5, "upos", "head", "deprel"), predictions)
    options: dict[str, Any] = {"text": str(world.text), "parsers": [str(predictions)], **TINY}
    with pytest.raises(ValueError, match=r"no source in --parsers is a model .* give --encoder"):
        hf_xst.adapt(output=str(tmp_path / "o"), **options)
    bert, known = str(save_bert(tmp_path / "bert")), str(world.folder / "gold.conllu")
    results = hf_xst.adapt(output=str(tmp_path / "o"), encoder=bert, gold=known, **options)
    assert results.parser == tmp_path / "o"
    assert results.scores is not None
    assert list(results.scores["parser"]) == ["new parser"]  # the file lacks the sentences of the gold
    assert re.search(r"- Pieces of words that the encoder does not know: 0\.0%", results.report.read_text())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "give --taggers, --parsers, or both"),
        (
            {"parsers": ["a=parser1"]},
            "a reads UPOS tags, which .*my_text.txt does not have: give --taggers",
        ),
        ({"parsers": ["a=parser1"], "gold": "untagged.conllu"}, "no sentence is left"),
        ({"taggers": ["a=tagger1"], "text": "empty.txt"}, "empty.txt has no sentences"),
        (
            {"taggers": ["a=tagger1"], "output": "parser1"},
            "parser1.config.json was not written by this command",
        ),
        (
            {"taggers": ["a=tagger1"], "parsers": ["b=tagger2"]},
            "the source b predicts upos; expected a parser",
        ),
        ({"taggers": ["a=tagger1"], "parsers": ["b=parser1", "c=empty.txt"]}, "empty.txt is a file"),
        (
            {"taggers": ["a=tagger1"], "encoder": "bart"},
            r"an encoder-decoder model \(bart\); expected an",
        ),
    ],
)
def test_mistakes_are_found_before_any_training(world, tmp_path, changes, message):
    folder = world.folder
    write_conllu(sentences((2,), 1), folder / "untagged.conllu")
    (folder / "empty.txt").write_text("\n")
    BartConfig().save_pretrained(folder / "bart")
    options = {"text": str(world.text), "output": str(tmp_path / "o")}
    for name, value in changes.items():
        is_list = isinstance(value, list)
        options[name] = (
            [each.replace("=", f"={folder}/") for each in value] if is_list else f"{folder}/{value}"
        )
    with pytest.raises(ValueError, match=message):
        hf_xst.adapt(**options)
    assert not list(tmp_path.rglob("*.parquet"))
    if changes.get("output") is None:  # corrected, the same command works
        options |= {"text": str(world.text), "taggers": [f"a={folder}/tagger1"], "parsers": [], "gold": None}
        options["encoder"] = None
        assert hf_xst.adapt(**options, **TINY).tagger == tmp_path / "o"


def test_a_report_of_somebody_else_is_kept(world, tmp_path):
    (tmp_path / "report.md").write_text("# My report\n")
    with pytest.raises(ValueError, match=r"report\.md exists and was not written by hf-xst"):
        hf_xst.adapt(text=str(world.text), taggers=[f"a={world.folder}/tagger1"], output=str(tmp_path))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"report.md": "# My report\n"}


def test_a_replaced_source_is_noticed(world, tmp_path):
    source, output = tmp_path / "source", tmp_path / "o"
    model_of("tagger", 1).save_pretrained(source)
    options: dict[str, Any] = {"text": str(world.text), "taggers": [f"a={source}"], "output": str(output)}
    hf_xst.adapt(**options, **TINY)
    model_of("tagger", 2).save_pretrained(source)
    with pytest.raises(ValueError, match=r"tagger/charts holds charts that differ in: sources"):
        hf_xst.adapt(**options, **TINY)


def test_intervals_contain_the_score_of_all_sentences():
    rows = [dict(row) for row in gold((3, 4, 2, 5, 6, 2), 1)]
    rows[0]["upos"] = ["PUNCT"] * 3  # a sentence that is not scored
    predictions = [{**row, "head": [0] * len(row["head"])} for row in rows]
    found = score_with_intervals(LabelledTrees(()), predictions, rows, seed=1)
    expected = score(predictions, rows, ("head", "deprel"))
    for name in ("las", "uas"):
        value, low, high = found[name]
        assert value == pytest.approx(expected[name])
        assert low <= value <= high
        assert low < high
    perfect = score_with_intervals(LabelledTrees(()), rows, rows, seed=1)
    assert perfect == {"las": [100.0] * 3, "uas": [100.0] * 3}
