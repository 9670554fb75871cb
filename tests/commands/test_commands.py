"""The commands from files to files: sources, charts, vote, transfer, scores, predictions."""

from __future__ import annotations

import io
import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file
from transformers import AutoModel

import hf_xst
import hf_xst_cli
from helpers.small_models import RELATIONS, UPOS, gold, vectors
from helpers.tiny_models import save_bert
from hf_xst.charts.dataset import load_charts
from hf_xst.commands.options import TrainSourceArguments, TransferArguments
from hf_xst.commands.train_source import train_source
from hf_xst.commands.transfer import transfer
from hf_xst.data import ConlluSentence, read_conllu, write_conllu
from hf_xst.files import CHARTS
from hf_xst.sources.loading import load_model
from hf_xst.training.transfer import InitialPull

SIZES = ["context_layers=1", "attention_heads=2", "key_size=4", "feed_forward_size=8"]
PARSER = [*SIZES, "arc_size=6", "label_size=5", "upos_size=4"]
LABELS = {"one": RELATIONS, "two": ["obj", "root", "vocative"], "tags": sorted(UPOS)}
LENGTHS = (3, 5, 1, 4, 2, 6, 3, 2, 5, 4)


def run(*words: object) -> int:
    return hf_xst_cli.main([str(word) for word in words])


def sentences(lengths: Any, seed: int, relations: dict[str, str] | None = None) -> list[ConlluSentence]:
    made = []
    for row in gold(lengths, seed):
        columns = {name: row[name] for name in ("upos", "head", "deprel")}
        columns["deprel"] = [(relations or {}).get(name, name) for name in columns["deprel"]]
        made.append(ConlluSentence.from_words(row["words"], sent_id=row["sent_id"], columns=columns))
    return made


def write_vectors(path: Path, seed: int = 0) -> None:
    table = vectors(seed=seed)
    lines = [
        f"{word} {' '.join(map(str, row))}"
        for word, row in zip(table.words, table.matrix.tolist(), strict=True)
    ]
    path.write_text("\n".join([f"{len(table.words)} 8", *lines]) + "\n")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Files of two invented languages, two parsers and a tagger trained on them, and charts."""
    folder = tmp_path_factory.mktemp("world")
    write_conllu(sentences(LENGTHS, 1), folder / "one-train.conllu")
    write_conllu(sentences(LENGTHS[:4], 2), folder / "one-dev.conllu")
    write_conllu(sentences(LENGTHS, 3, {"amod": "vocative"}), folder / "two-train.conllu")
    write_conllu(sentences(LENGTHS[2:], 4), folder / "test.conllu")
    write_vectors(folder / "one.vec")
    write_vectors(folder / "target.vec", seed=5)
    (folder / "space.yaml").write_text("")
    shutil.copy(folder / "target.vec", folder / "one.target.vec")
    one = f"train={folder}/one-train.conllu,dev={folder}/one-dev.conllu"
    loop = ["--epochs", 2, "--batch-size", 4, "--learning-rate", "0.01", "--vectors", folder / "one.vec"]
    here = ["--treebank", one, *loop]
    there = ["--treebank", f"train={folder}/two-train.conllu", *loop]
    assert run("train-source", "--output", folder / "one", *here, "--model", *PARSER, "upos_dropout=0.1") == 0
    assert run("train-source", "--output", folder / "two", *there, "--model", *PARSER) == 0
    assert run("train-source", "--task", "tagger", "--output", folder / "tags", *here, "--model", *SIZES) == 0
    sources = ["--sources", folder / "one", f"other={folder / 'two'}"]
    text = ["--treebank", f"train={folder}/test.conllu", "--vectors", folder / "one.target.vec"]
    paper = ["--preset", "paper"]
    assert run("build-charts", "--output", folder / "charts", *sources, *text, *paper) == 0
    return SimpleNamespace(folder=folder, one=one, sources=sources, text=text, here=here)


def results(folder: Path) -> Any:
    return json.loads((folder / "run" / "results.json").read_text())


@pytest.mark.parametrize("name", LABELS)
def test_a_source_folder_holds_a_model_and_its_run(world, name):
    folder = world.folder / name
    assert {path.name for path in folder.iterdir()} == {
        "config.json",
        "model.safetensors",
        "words.json",
        "run",
    }
    model = AutoModel.from_pretrained(folder)
    assert model.config.labels == LABELS[name]
    assert {"config.yaml", "command.txt", "versions.json", "log.json", "results.json"} <= {
        path.name for path in (folder / "run").iterdir()
    }
    found = results(folder)
    assert found["updates"] == 6  # two epochs of 10 (or 9) sentences, 4 a batch
    assert any(key.startswith("eval_") for key in found["dev"])


def test_without_a_dev_split_the_last_tenth_is_held_out(world):
    found = results(world.folder / "two")
    assert (found["train_sentences"], found["dev_sentences"]) == (9, 1)
    assert found["data"][0].startswith("held out from the end of")
    assert results(world.folder / "one")["dev_sentences"] == 4


def test_a_faulty_dev_split_is_not_treated_as_missing(world, tmp_path, capsys):
    dev = tmp_path / "dev.conllu"
    dev.write_text("1\tw1\t_\tNOUN\t_\t_\t_\t_\t_\t_\n\n")
    treebank = f"train={world.folder}/one-train.conllu,dev={dev}"
    loop = ["--vectors", world.folder / "one.vec", "--model", *PARSER]
    assert (
        run("train-source", "--output", tmp_path / "a", "--treebank", treebank, *loop, "--faulty", "error")
        == 1
    )
    assert "HEAD is blank" in capsys.readouterr().err
    assert run("train-source", "--output", tmp_path / "b", "--treebank", treebank, *loop) == 1
    assert "no sentence is left" in capsys.readouterr().err
    dev.write_text("no CoNLL-U\n")
    assert run("train-source", "--output", tmp_path / "c", "--treebank", treebank, *loop) == 1
    assert str(dev) in capsys.readouterr().err


def test_a_finished_command_repeated_changes_nothing(world, capsys):
    folder = world.folder / "one"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    words = ["train-source", "--output", folder, *world.here, "--model", *PARSER, "upos_dropout=0.1"]
    assert run(*words) == 0
    assert "is already finished; nothing to do" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert run(*words, "--patience", 3) == 1
    assert "another configuration: patience (50 there, 3 now)" in capsys.readouterr().err
    assert run("train-source", folder / "run" / "config.yaml") == 0
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_charts_record_their_sources_but_no_local_paths(world):
    rows, info = load_charts(str(world.folder / "charts"))
    assert list(rows["words"]) == [s.words for s in read_conllu(world.folder / "test.conllu")]
    assert "head" not in rows.column_names
    assert info.names == RELATIONS
    assert [source.name for source in info.sources] == ["one", "other"]
    assert all(source.id is None for source in info.sources)  # local paths are not published
    assert info.sources[1].labels_not_in_charts == ["vocative"]
    assert info.counts.dropped_mass["other"] > 0
    assert (info.settings.rule, info.settings.sigma, info.settings.floor) == ("pool", 0.95, 1e-9)
    assert str(world.folder) not in repr(info)


def test_charts_are_reused_and_other_settings_rejected(world, tmp_path, capsys):
    folder = world.folder / "charts"
    files = sorted((folder / "data").iterdir())
    before = [(path.read_bytes(), path.stat().st_mtime_ns) for path in files]
    make = ["build-charts", *world.sources, *world.text, "--preset", "paper"]
    assert run(*make, "--output", folder) == 0
    assert [(path.read_bytes(), path.stat().st_mtime_ns) for path in files] == before
    assert run(*make, "--output", folder, "--sigma", "0.5", "--floor", 0) == 1
    assert "holds charts that differ in: settings" in capsys.readouterr().err
    assert run(*make, "--output", tmp_path / "fresh") == 0
    (fresh,) = (tmp_path / "fresh" / "data").iterdir()
    assert fresh.read_bytes() == before[0][0]
    told = capsys.readouterr().err
    assert "candidates kept per group" in told
    assert "other: " in told
    assert "labels that the charts lack" in told


def test_unlabelled_text_predicted_tags_and_all_labels(world, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("w1 w2 w3\n\nw4\n")
    words = ["build-charts", *world.sources, "--text", text, "--vectors", world.folder / "one.target.vec"]
    words += ["--preset", "paper"]
    assert (
        run(*words, "--output", tmp_path / "o", "--tagger", world.folder / "tags", "--labels", "union") == 0
    )
    rows, info = load_charts(str(tmp_path / "o"))
    assert info.names == [*RELATIONS, "vocative"]
    assert info.annotated_by_model is True
    assert info.counts.dropped_mass == {}
    assert [len(tags) for tags in rows["upos"]] == [3, 1]
    assert all(tag in UPOS for tags in rows["upos"] for tag in tags)
    assert not any(name.startswith("gold_") for name in rows.column_names)
    moved = ["transfer", "--charts", tmp_path / "o", "--init-from", world.folder / "one", "--max-steps", 1]
    moved += ["--vectors", world.folder / "one.target.vec"]
    assert run(*moved, "--output", tmp_path / "m") == 0
    assert AutoModel.from_pretrained(tmp_path / "m").names == [*RELATIONS, "vocative"]


def test_the_recommended_preset_applies_from_charts_to_training(world, tmp_path, capsys):
    charts, moved = tmp_path / "charts", tmp_path / "moved"
    assert run("build-charts", "--output", charts, *world.sources, *world.text) == 0
    rows, info = load_charts(str(charts))
    assert info.preset == "recommended"
    assert (info.settings.sigma, info.settings.keep_log_probs) == (0.999, True)
    assert sum(info.settings.weights.values()) == pytest.approx(1)
    told = capsys.readouterr().err
    order = re.search(r"agreement with the pool of the others: (\w+) ([0-9.]+), (\w+) ([0-9.]+)", told)
    assert order is not None
    assert float(order[2]) >= float(order[4])
    assert info.initial_model == order[1]
    assert f"initial model: {order[1]}" in told
    # Without a start, training begins from the one that the charts were made for.
    transfer = ["transfer", "--charts", charts, "--max-steps", 2, "--batch-size", 4]
    assert run(*transfer, "--vectors", world.folder / "one.target.vec", "--output", moved) == 0
    assert f"initialising from {order[1]}, which the charts were made for" in capsys.readouterr().err
    assert results(moved)["use"] == {"best": "pool", "sigma": 0.95, "soft": 0.5}
    assert results(moved)["batch_size"] == 4
    # Options take precedence over the preset.
    words = ["--vectors", world.folder / "one.target.vec", "--output", tmp_path / "told", "--soft", 0]
    assert run(*transfer, *words, "--best", "sources") == 0
    assert results(tmp_path / "told")["use"] == {"best": "sources", "sigma": 0.95, "soft": 0.0}
    assert len(rows) == 8


def test_charts_from_elsewhere_require_an_initial_model(world, tmp_path, capsys):
    shutil.copytree(world.folder / "charts", tmp_path / "charts", ignore=shutil.ignore_patterns("run"))
    words = ["transfer", "--charts", tmp_path / "charts", "--output", tmp_path / "m"]
    assert run(*words, "--vectors", world.folder / "one.target.vec") == 1
    assert (
        "made from a source called one, whose place is not recorded: give --init-from"
        in capsys.readouterr().err
    )


def test_a_union_and_uniform_weights_are_paper(world, tmp_path):
    words = ["build-charts", *world.sources, *world.text]
    assert run(*words, "--rule", "union", "--output", tmp_path / "union") == 0
    _, union = load_charts(str(tmp_path / "union"))
    assert (union.preset, union.settings.sigma, union.settings.keep_log_probs) == ("paper", 0.95, False)
    told = ["--rule", "linear", "--preset", "recommended"]
    assert run(*words, *told, "--output", tmp_path / "linear") == 0
    _, linear = load_charts(str(tmp_path / "linear"))
    assert (linear.preset, linear.settings.sigma, linear.settings.keep_log_probs) == (
        "recommended",
        0.999,
        True,
    )
    assert run(*words, "--weights", "uniform", "--init-from", "other", "--output", tmp_path / "even") == 0
    _, even = load_charts(str(tmp_path / "even"))
    assert (even.preset, even.settings.weights, even.initial_model) == ("recommended", None, "other")


def test_charts_of_sources_in_bfloat16_say_so(world, tmp_path, capsys):
    words = ["build-charts", *world.sources, *world.text, "--output", tmp_path / "charts"]
    assert run(*words, "--bf16") == 0
    assert load_charts(str(tmp_path / "charts"))[1].bf16
    assert run(*words) == 1
    assert "bf16; choose another --output" in " ".join(capsys.readouterr().err.split())


def transferring(world, output: Path, *words: object) -> list[object]:
    found = [
        "transfer",
        "--output",
        output,
        "--charts",
        world.folder / "charts",
        "--init-from",
        world.folder / "one",
    ]
    return [*found, "--vectors", world.folder / "one.target.vec", "--batch-size", 4, *words]


def test_transfer_evaluate_and_repeat(world, tmp_path, capsys):
    output = tmp_path / "moved"
    dev = ["--treebank", world.one, "--eval-every", 2]
    words = transferring(world, output, "--max-steps", 4, *dev, "--train-words", "--l2", "0.01")
    assert run(*words) == 0
    assert {path.name for path in output.iterdir()} == {
        "config.json",
        "model.safetensors",
        "words.json",
        "run",
    }
    found = results(output)
    assert (found["updates"], found["empty_charts"], found["empty_chart_ids"], found["l2"]) == (
        4,
        0,
        [],
        0.01,
    )
    curve = [
        entry["eval_las"]
        for entry in json.loads((output / "run" / "log.json").read_text())
        if "eval_las" in entry
    ]
    assert len(curve) >= 2
    told = capsys.readouterr()
    assert "on the development split: uas" in told.err
    for noise in ("Loading weights", "Map:", "Creating parquet", "runtime"):
        assert noise not in told.err
    before = load_file(output / "model.safetensors")
    assert "encoder.words.vectors" in before
    evaluation = ["evaluate", "--model", output, "--treebank", f"test={world.folder}/test.conllu"]
    assert run(*evaluation, "--output", output) == 0
    scores = json.loads((output / "run" / "scores.json").read_text())
    assert scores["words"] == sum(LENGTHS[2:])
    assert run(*words) == 0  # evaluating into the folder has not hidden what was run there
    assert "already finished" in capsys.readouterr().err
    assert run(*words[:-1], "0.5") == 1
    assert "l2 (0.01 there, 0.5 now)" in capsys.readouterr().err
    provenance = world.folder / "charts" / CHARTS
    kept = provenance.read_text()
    provenance.write_text(kept.replace('"sigma": 0.', '"sigma": 0.0'))
    assert run(*words) == 1
    assert "charts (its content has changed)" in capsys.readouterr().err
    provenance.write_text(kept)


def test_an_interrupted_transfer_resumes_to_the_same_model(world, tmp_path, monkeypatch, capsys):
    words = ["--max-steps", 6, "--eval-every", 2, "--l2", "0.01"]
    assert run(*transferring(world, tmp_path / "whole", *words)) == 0
    usual = InitialPull.on_pre_optimizer_step

    def stopping(self, args, state, control, **kwargs):
        if state.global_step == 3:
            raise KeyboardInterrupt
        usual(self, args, state, control, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(InitialPull, "on_pre_optimizer_step", stopping)
        assert run(*transferring(world, tmp_path / "parts", *words)) == 130
    assert "run the same command again to resume" in capsys.readouterr().err
    assert not (tmp_path / "parts" / "model.safetensors").exists()
    assert run(*transferring(world, tmp_path / "parts", *words, "--max-steps", 7)) == 1
    assert "max_steps (6 there, 7 now)" in capsys.readouterr().err
    assert run(*transferring(world, tmp_path / "parts", *words)) == 0
    assert "resuming from" in capsys.readouterr().err
    whole, parts = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "parts"))
    assert all((whole[name] == parts[name]).all() for name in whole)


@pytest.mark.slow
def test_two_processes_make_the_model_of_one_with_twice_the_batch(world, tmp_path):
    start = tmp_path / "start"
    shutil.copytree(world.folder / "one", start, ignore=shutil.ignore_patterns("run"))
    config = json.loads((start / "config.json").read_text())
    # No rate of dropout, or the processes would draw other numbers.
    config |= {name: 0.0 for name in config if name.endswith("_dropout")}
    (start / "config.json").write_text(json.dumps(config))
    words = transferring(
        world, tmp_path / "one", "--max-steps", 4, "--eval-every", 2, "--treebank", world.one
    )
    words += ["--learning-rate", "0.1", "--trainer", "optim=sgd"]  # Adam would blow rounding up
    words[words.index("--init-from") + 1] = start
    assert run(*words) == 0
    words[2], words[words.index("--batch-size") + 1] = tmp_path / "two", 2
    script = Path(__file__).resolve().parents[2] / "scripts" / "transfer.py"
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "--", str(script)]
    source = str(Path(hf_xst_cli.__file__).parent)
    done = subprocess.run(
        [sys.executable, *launcher, *map(str, words[1:])],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": source},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stderr.count("on the development split") == 1  # the second process is silent
    one, two = (results(tmp_path / name) for name in ("one", "two"))
    assert two["dev"]["eval_las"] == one["dev"]["eval_las"]
    alone, together = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    for name, value in alone.items():
        torch.testing.assert_close(together[name], value, rtol=1e-4, atol=1e-6)


def test_transfer_from_scratch_with_the_configuration_of_another_model(world, tmp_path, capsys):
    words = transferring(world, tmp_path / "fresh", "--epochs", 1)
    words[words.index("--init-from") + 1] = "scratch"
    without = words.index("--vectors")
    assert run(*words[:without], *words[without + 2 :]) == 1
    assert "give either --vectors (word vectors) or --encoder" in capsys.readouterr().err
    assert run(*words, "--like", world.folder / "one", "--l2", "0.1") == 1
    assert "leave --l2 out" in capsys.readouterr().err
    assert run(*words, "--like", world.folder / "one") == 0
    found = results(tmp_path / "fresh")
    assert (found["l2"], found["updates"]) == (0.0, 2)  # one pass over 8 sentences, 4 a batch
    start = load_file(world.folder / "one" / "model.safetensors")
    fresh = load_file(tmp_path / "fresh" / "model.safetensors")
    assert not (start["scorer.arc_weight"] == fresh["scorer.arc_weight"]).any()


def test_sources_that_share_an_initialisation_are_averaged(world, tmp_path, capsys):
    two = ["--treebank", f"train={world.folder}/two-train.conllu", *world.here[2:]]
    start = ["--init-from", world.folder / "one"]
    assert run("train-source", "--output", tmp_path / "tuned", *two, *start) == 0
    assert "labels added to the initial model: vocative" in capsys.readouterr().err
    tuned = AutoModel.from_pretrained(tmp_path / "tuned")
    assert tuned.config.labels == [*RELATIONS, "vocative"]
    assert results(tmp_path / "tuned")["initial_model"] == {"id": None, "revision": None, "name": "one"}
    sources = ["--sources", f"one={world.folder}/one", f"two={tmp_path}/tuned"]
    assert run("build-charts", "--output", tmp_path / "charts", *sources, *world.text) == 0
    assert "initial model: average of the sources" in capsys.readouterr().err
    info = load_charts(str(tmp_path / "charts"))[1]
    weights = info.settings.weights
    assert (info.preset, info.from_average) == ("recommended", True)
    words = ["--charts", tmp_path / "charts", "--vectors", world.folder / "one.target.vec", "--epochs", 0]
    assert run("transfer", "--output", tmp_path / "mean", *words) == 0
    assert "initialising from the average of the sources: one, two" in capsys.readouterr().err
    mean, one = (AutoModel.from_pretrained(path) for path in (tmp_path / "mean", world.folder / "one"))
    expected = weights["one"] * one.scorer.arc_weight + weights["two"] * tuned.scorer.arc_weight
    torch.testing.assert_close(mean.scorer.arc_weight, expected)
    told = [*sources, *world.text, "--init-from", "one", "--output", tmp_path / "told"]
    assert run("build-charts", *told) == 0
    assert not load_charts(str(tmp_path / "told"))[1].from_average


def test_fine_tuning_can_unfreeze_encoder_layers(world, tmp_path):
    bert = save_bert(tmp_path / "bert")
    here = [word for word in world.here if word not in ("--vectors", world.folder / "one.vec")]
    sizes = ["--model", "context_layers=0", *PARSER[4:]]
    assert run("train-source", "--output", tmp_path / "a", *here, "--encoder", bert, *sizes) == 0
    words = ["train-source", *here, "--init-from", tmp_path / "a", "--model", "frozen_layers=1"]
    assert run(*words, "--output", tmp_path / "b") == 0
    before, after = (
        AutoModel.from_pretrained(tmp_path / name).encoder.words.model.encoder.layer for name in "ab"
    )
    kept, trained = (
        all(torch.equal(*pair) for pair in zip(one.parameters(), other.parameters(), strict=True))
        for one, other in zip(before, after, strict=True)
    )
    assert (kept, trained) == (True, False)
    assert AutoModel.from_pretrained(tmp_path / "b").config.frozen_layers == 1


@pytest.mark.parametrize("rule", ["majority", "pool"])
def test_vote(world, tmp_path, rule, capsys):
    words = ["vote", *world.sources, "--treebank", f"test={world.folder}/test.conllu", "--rule", rule]
    weights = tmp_path / "weights.yaml"
    weights.write_text("one: 0.3\nother: 0.7\n")
    words += [
        "--vectors",
        world.folder / "one.target.vec",
        *(["--weights", weights] if rule == "pool" else []),
    ]
    assert run(*words, "--output", tmp_path / "o") == 0
    predicted = list(read_conllu(tmp_path / "o" / "predictions.conllu"))
    assert [s.words for s in predicted] == [s.words for s in read_conllu(world.folder / "test.conllu")]
    scores = json.loads((tmp_path / "o" / "run" / "scores.json").read_text())
    evaluation = ["evaluate", "--treebank", f"test={world.folder}/test.conllu", "--output", tmp_path / "e"]
    assert run(*evaluation, "--predictions", tmp_path / "o" / "predictions.conllu") == 0
    again = json.loads((tmp_path / "e" / "run" / "scores.json").read_text())
    assert again["las"] == scores["las"]
    file = tmp_path / "o" / "predictions.conllu"
    file.write_text(file.read_text().replace(f"\t{predicted[1].words[0]}\t", "\tother\t"))
    assert run(*evaluation, "--predictions", file) == 1
    assert "word 1 is 'other' there" in capsys.readouterr().err


VOTED = """\
# newdoc id = d
# note = kept
# tree_log_prob = -1.5
# text = w1w2 w3.
1-2	w1w2	_	_	_	_	_	_	_	Gloss=x
1	w1	l1	NOUN	N	Case=Nom	2	nsubj:pass	2:nsubj	SpaceAfter=No|ArcProb=0.5000
2	w2	l2	VERB	V	_	0	root	0:root	Id=7
2.1	gone	_	_	_	_	_	_	2:obj	_
3	w3	l3	ADJ	_	_	2	obj	_	_

"""


def test_crossing_gold_of_a_projective_parser_is_counted(world, tmp_path, capsys):
    made = sentences((4, 4, 3), 1)
    crossing = {"head": ["3", "4", "0", "3"], "deprel": ["obj", "obj", "root", "obj"]}
    write_conllu([made[0].with_annotation(crossing), *made[1:]], tmp_path / "gold.conllu")
    treebank = f"train={tmp_path}/gold.conllu,dev={tmp_path}/gold.conllu"
    words = ["train-source", "--treebank", treebank, *world.here[2:], "--max-steps", 1]
    for projective, count in ((True, 2), (False, 0)):
        settings = [*PARSER, f"projective={str(projective).lower()}"]
        assert run(*words, "--output", tmp_path / str(projective), "--model", *settings) == 0
        assert capsys.readouterr().err.count("sentences have crossing arcs") == count
        notes = results(tmp_path / str(projective))["data"]
        assert sum("of 3" in note and "crossing arcs" in note for note in notes) == count
    evaluation = ["evaluate", "--model", tmp_path / "True", "--treebank", treebank, "--split", "dev"]
    evaluation += ["--vectors", world.folder / "one.vec", "--output", tmp_path / "e"]
    assert run(*evaluation) == 0
    assert "of 3 gold sentences have crossing arcs, which a projective parser" in capsys.readouterr().err


@pytest.mark.parametrize("scheduler", ["cosine", "linear", "constant"])
def test_another_scheduler_replaces_the_default_one(world, tmp_path, scheduler):
    words = ["train-source", "--output", tmp_path / "o", *world.here, "--model", *PARSER, "--max-steps", 2]
    assert run(*words, "--trainer", f"lr_scheduler_type={scheduler}") == 0
    assert results(tmp_path / "o")["updates"] == 2


@pytest.mark.parametrize("option", ["--treebank", "--text"])
@pytest.mark.parametrize("rule", ["majority", "pool"])
@pytest.mark.parametrize("tagged", [False, True])
def test_vote_fills_in_its_input(world, tmp_path, option, rule, tagged):
    file = tmp_path / "in.conllu"
    file.write_text(VOTED)
    words = ["vote", *world.sources, option, f"test={file}" if option == "--treebank" else file]
    words += ["--vectors", world.folder / "one.target.vec", "--rule", rule]
    words += ["--tagger", world.folder / "tags"] if tagged else []
    assert run(*words, "--output", tmp_path / "o") == 0
    (given,), (voted,) = read_conllu(file), read_conllu(tmp_path / "o" / "predictions.conllu")
    predicted = {name: voted.column(name) for name in ("head", "deprel", *(["upos"] if tagged else []))}
    expected = given.with_annotation(predicted, drop=["ArcProb"]).with_comments([], drop=["# tree_log_prob"])
    assert voted == expected
    udeval = pytest.importorskip("udtools.udeval")
    assert len(udeval.load_conllu(io.StringIO(voted.raw), "voted", {}).words) == 3


@pytest.mark.parametrize("sent_ids", [["s", "s", "s"], ["a", "b", "c"], [None, None, None]])
@pytest.mark.parametrize("complete", [True, False])
def test_repeated_sentences_are_scored_against_their_own_gold(tmp_path, sent_ids, complete):
    trees = [("2", "0"), ("0", "1"), ("2", "0")]
    made = [
        ConlluSentence.from_words(["w", "w"], sent_id=name).with_annotation(
            {"upos": ["X", "X"], "head": heads, "deprel": ["root" if head == "0" else "x" for head in heads]}
        )
        for name, heads in zip(sent_ids, trees, strict=True)
    ]
    gold = [made[0].with_annotation({"head": ["_", "_"]}), *made[1:]]
    write_conllu(gold, tmp_path / "gold.conllu")
    write_conllu(made if complete else made[1:], tmp_path / "found.conllu")
    files = ["--predictions", tmp_path / "found.conllu", "--treebank", f"test={tmp_path}/gold.conllu"]
    assert run("evaluate", *files, "--output", tmp_path / "e", "--faulty", "skip") == 0
    scores = json.loads((tmp_path / "e" / "run" / "scores.json").read_text())
    assert (scores["words"], scores["las"]) == (4, 100.0)


def test_predictions_with_cycles_and_skipped_gold_are_scored(tmp_path, capsys):
    made = sentences((3, 4, 2), 3)
    gold_file, file = tmp_path / "gold.conllu", tmp_path / "found.conllu"
    write_conllu(made, file)
    cyclic = {"head": ["2", "1", "0", "3"], "deprel": ["obj", "obj", "root", "obj"]}
    write_conllu([made[0], made[1].with_annotation(cyclic), made[2]], gold_file)
    evaluation = ["evaluate", "--predictions", file, "--output", tmp_path / "e", "--treebank"]
    assert run(*evaluation, f"test={gold_file}", "--faulty", "skip") == 0
    scores = json.loads((tmp_path / "e" / "run" / "scores.json").read_text())
    assert (scores["words"], scores["las_punct"]) == (5, 100.0)
    # A parser without a search for trees may predict a cycle: its words count as they are.
    evaluation[2] = gold_file
    assert run(*evaluation, f"test={file}") == 0
    scores = json.loads((tmp_path / "e" / "run" / "scores.json").read_text())
    assert scores["words"] == 9
    assert 100 * 5 / 9 <= scores["uas_punct"] < 100
    write_conllu([each.with_annotation({"head": ["_"] * len(each.words)}) for each in made], gold_file)
    assert run(*evaluation, f"test={file}") == 1
    assert f"{gold_file}:1: sentence s0: word 1" in (told := capsys.readouterr().err)
    assert "word 1 has head '_', expected a non-negative integer" in told


def test_taggers_vote_on_text_without_gold(world, tmp_path, capsys):
    text = tmp_path / "text.txt"
    text.write_text("w1 w2 w3\n")
    words = ["vote", "--sources", world.folder / "tags", f"again={world.folder / 'tags'}"]
    assert run(*words, "--text", text, "--output", tmp_path / "o") == 0
    (sentence,) = read_conllu(tmp_path / "o" / "predictions.conllu")
    assert set(sentence.column("upos")) <= set(UPOS)
    blank = tmp_path / "blank.conllu"
    blank.write_text("1\tw1\t_\tNOUN\t_\t_\t_\t_\t_\t_\n\n")
    assert run(*words, "--treebank", f"test={blank}", "--output", tmp_path / "p") == 0
    assert json.loads((tmp_path / "p" / "run" / "scores.json").read_text())["words"] == 1
    evaluation = ["evaluate", "--model", world.folder / "tags", "--treebank", f"test={blank}"]
    assert run(*evaluation, "--output", tmp_path / "q") == 0
    blank.write_text("1\tw1\t_\tNOUN\t_\t_\t_\t_\t_\t_\n2\tw2\t_\t_\t_\t_\t_\t_\t_\t_\n\n")
    assert run(*evaluation, "--output", tmp_path / "q") == 0
    assert "1 words without a gold tag not scored" in " ".join(capsys.readouterr().err.split())


def test_training_on_a_corrected_treebank_is_not_finished(world, tmp_path, capsys):
    bank = tmp_path / "train.conllu"
    shutil.copy(world.folder / "two-train.conllu", bank)
    words = ["train-source", "--task", "tagger", "--treebank", f"train={bank}", "--epochs", 1]
    words += ["--vectors", world.folder / "one.vec", "--output", tmp_path / "o", "--model", *SIZES]
    assert run(*words) == 0
    assert run(*words) == 0
    assert "already finished" in capsys.readouterr().err
    bank.write_text(bank.read_text().replace("NOUN", "PROPN", 1))
    assert run(*words) == 1
    assert "treebank (its content has changed)" in " ".join(capsys.readouterr().err.split())


def test_predict_text_conllu_and_streams(world, tmp_path, monkeypatch, capsysbinary):
    model = ["--model", world.folder / "one", "--vectors", world.folder / "one.vec"]
    text = tmp_path / "text.txt"
    text.write_text("w1 w2 w3\nw4\n")
    assert run("predict", *model, "--input", text, "--output", tmp_path / "p.conllu") == 0
    predicted = list(read_conllu(tmp_path / "p.conllu"))
    assert [len(s.words) for s in predicted] == [3, 1]
    assert all(sorted(s.heads).count("0") == 1 for s in predicted)
    assert run("predict", *model, "--input", tmp_path / "p.conllu", "--output", tmp_path / "q.conllu.gz") == 0
    assert [s.heads for s in read_conllu(tmp_path / "q.conllu.gz")] == [s.heads for s in predicted]
    capsysbinary.readouterr()
    stdin = SimpleNamespace(buffer=io.BytesIO((tmp_path / "p.conllu").read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert run("predict", *model, "--input", "-") == 0
    assert capsysbinary.readouterr().out == (tmp_path / "p.conllu").read_bytes()


def test_predict_warns_when_most_words_are_unknown(world, tmp_path, capsys):
    text = tmp_path / "text.txt"
    text.write_text("w1 uhu\nyhy\n")
    model = ["--model", world.folder / "one", "--vectors", world.folder / "one.vec"]
    assert run("predict", *model, "--input", text, "--output", tmp_path / "p.conllu") == 0
    told = " ".join(capsys.readouterr().err.split())
    assert "only 1 of 3 words of the text are in the word vectors" in told


def test_predict_leaves_no_half_file(world, tmp_path, capsys):
    broken = tmp_path / "broken.conllu"
    broken.write_text("1\tw1\t_\tNOUN\t_\t_\t_\t_\t_\t_\n\n2\tw2\n\n")
    output = tmp_path / "out.conllu"
    output.write_text("old")
    model = ["--model", world.folder / "one", "--vectors", world.folder / "one.vec"]
    assert run("predict", *model, "--input", broken, "--output", output, "--overwrite") == 1
    assert f"{broken}:3" in capsys.readouterr().err
    assert output.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.conllu", "out.conllu"]


def test_heads_in_the_input_never_matter(world, tmp_path, shared):
    model = ["--model", world.folder / "one", "--vectors", world.folder / "one.vec"]
    found = []
    for kind in ("blank", "stale"):
        given = shared("fieldcases", "files", f"p06_heads_{kind}.conllu")
        assert run("predict", *model, "--input", given, "--output", tmp_path / kind) == 0
        found.append([(s.words, s.heads, s.deprels) for s in read_conllu(tmp_path / kind)])
    assert found[0] == found[1]
    assert [len(heads) for _, heads, _ in found[0]] == [5, 4]


def test_blank_heads_cannot_be_scored(world, tmp_path, shared, capsys):
    given = shared("fieldcases", "files", "p06_heads_blank.conllu")
    words = ["evaluate", "--model", world.folder / "one", "--treebank", f"test={given}", "--output", tmp_path]
    assert run(*words) == 1
    assert "HEAD is blank" in capsys.readouterr().err


def test_a_parser_uses_the_tagger_in_its_folder(world, tmp_path, capsys):
    text = tmp_path / "text.txt"
    text.write_text("w1 w2 w3\n")
    folder = tmp_path / "two"
    shutil.copytree(world.folder / "two", folder, ignore=shutil.ignore_patterns("run"))
    words = ["predict", "--model", folder, "--input", text, "--output", tmp_path / "o.conllu"]
    assert run(*words) == 1
    assert "--tagger" in capsys.readouterr().err
    assert run(*words, "--tagger", world.folder / "one") == 1
    assert "predicts head and deprel; expected a tagger of UPOS tags" in capsys.readouterr().err
    shutil.copytree(world.folder / "tags", folder / "tagger", ignore=shutil.ignore_patterns("run"))
    assert run(*words) == 0
    (sentence,) = read_conllu(tmp_path / "o.conllu")
    assert set(sentence.column("upos")) <= set(UPOS)
    beside = sentence.heads
    assert run(*words, "--tagger", world.folder / "tags", "--overwrite") == 0
    assert next(iter(read_conllu(tmp_path / "o.conllu"))).heads == beside


def test_evaluate_and_predict_read_the_same_tags(world, tmp_path, capsys):
    folder, gold = tmp_path / "two", world.folder / "test.conllu"
    shutil.copytree(world.folder / "two", folder, ignore=shutil.ignore_patterns("run"))
    shutil.copytree(world.folder / "tags", folder / "tagger", ignore=shutil.ignore_patterns("run"))
    chosen = {
        "tags by the tagger saved with the model": [],
        f"tags by {world.folder / 'tags'}": ["--tagger", world.folder / "tags"],
        "tags of the treebank": ["--tagger", "none"],
    }
    for tags, option in chosen.items():
        bank = ["--treebank", f"test={gold}", "--output"]
        capsys.readouterr()
        assert run("evaluate", "--model", folder, *bank, tmp_path / "e", *option) == 0
        assert f"{tags}:" in " ".join(capsys.readouterr().err.split())
        predicted = tmp_path / "predicted.conllu"
        words = ["--input", gold, "--output", predicted, "--overwrite", *option]
        assert run("predict", "--model", folder, *words) == 0
        assert run("evaluate", "--predictions", predicted, *bank, tmp_path / "f") == 0
        scores = [json.loads((tmp_path / each / "run" / "scores.json").read_text()) for each in "ef"]
        assert [scores[0]["las"], scores[0]["tags"]] == [scores[1]["las"], tags]


def test_commands_reject_a_text_whose_tags_no_model_knows(world, tmp_path, capsys):
    text, rare = (world.folder / "test.conllu").read_text(), {"NOUN": "X", "VERB": "INTJ", "ADJ": "ADV"}
    path = tmp_path / "rare.conllu"
    path.write_text(re.sub("|".join(rare), lambda tag: rare[tag[0]], text))
    bank = ["--treebank", f"test={path}", "--split", "test", "--output", tmp_path / "o"]
    sources = ["--sources", world.folder / "one", world.folder / "two"]
    model = ["--model", world.folder / "one"]
    for words in (
        ["evaluate", *model, *bank],
        ["vote", *sources, *bank],
        ["build-charts", *sources, *bank],
        ["learn-weights", *sources, *bank, "--sentences", "2"],
        ["analyse", *sources, *bank],
        ["predict", *model, "--input", path, "--output", tmp_path / "p"],
    ):
        assert run(*words) == 1, words
        told = " ".join(capsys.readouterr().err.split())
        assert re.search(r"does not know the UPOS tags of (\d+) of \1 words: (X|INTJ|ADV) ", told), words
    assert not (tmp_path / "p").exists()


def test_predicted_tags_in_training(world, tmp_path, capsys):
    words = ["--output", tmp_path / "o", *world.here, "--epochs", 1, "--tagger", world.folder / "tags"]
    assert run("train-source", *words, "--model", *PARSER) == 0
    assert results(tmp_path / "o")["dev"]["eval_las"] >= 0
    assert run("train-source", "--task", "tagger", *words, "--output", tmp_path / "p", "--model", *SIZES) == 1
    assert "--tagger would replace the gold" in capsys.readouterr().err


def test_a_yaml_file_for_a_command(world, tmp_path):
    config = tmp_path / "charts.yaml"
    sources = {"one": str(world.folder / "one"), "other": str(world.folder / "two")}
    content = {"output": str(tmp_path / "o"), "sources": sources, "sigma": 0.5, "keep_log_probs": True}
    content |= {"treebank": f"train={world.folder}/test.conllu", "weights": None}
    config.write_text(yaml.safe_dump(content | {"vectors": str(world.folder / "one.target.vec")}))
    assert run("build-charts", config, "--rule", "union") == 0
    rows, info = load_charts(str(tmp_path / "o"))
    assert (info.settings.rule, info.settings.sigma, info.settings.keep_log_probs) == ("union", 0.5, True)
    assert [len(row["log_probs"]) for row in rows] == [len(row["candidates"]) for row in rows]


ERRORS = [
    ("train-source {one}", "give either --vectors"),
    ("train-source {one} {vec} --split trian", "no split trian; found train, dev"),
    ("train-source {one} {vec} --split train[:0]", "is empty: the whole split has 10"),
    ("train-source {one} {vec} --split train[a]", "cannot read the split 'train[a]'"),
    ("train-source {one} {vec} --model context_layer=1", "unknown setting 'context_layer'"),
    ("train-source {one} {vec} --model column=xpos --task tagger", "no word has a label in xpos"),
    ("train-source {one} {vec} --trainer warmup=1", "unknown setting 'warmup'"),
    ("train-source {vec} --treebank {here}/none.conllu", "none.conllu does not exist"),
    ("build-charts {text} --sources a@b@c", "cannot read the source 'a@b@c'"),
    ("build-charts {text} --sources {here}/one one={here}/two", "two sources are called one"),
    ("build-charts {text} {source} --init-from en", "--init-from en is not a source; expected one of one"),
    ("build-charts {text} {source} --sigma 2", "sigma is 2.0"),
    ("build-charts {source}", "give either --treebank (with --split) or --text"),
    ("build-charts {text} {source} {here}/tags", "must all predict the same columns"),
    ("build-charts {text} --sources {here}/nothing", "neither a local folder nor within reach"),
    ("build-charts {text} --sources some/where@v1", "no model some/where at revision v1"),
    ("build-charts {text} --sources {here}/charts", "holds no complete model: config.json"),
    ("build-charts {text} {source} --weights {here}/none.yaml", "none.yaml"),
    ("build-charts {text} {source} --weights {here}/space.yaml", "one NAME: WEIGHT per line"),
    ("build-charts {source} --text {here}/none.txt", "none.txt"),
    ("build-charts {text} {source} --max-length 1", "no sentence is left"),
    ("build-charts {text} {source} --vectors {here}/target.vec", "the space 'one'"),
    ("transfer --charts {here}/nothing {start}", "no charts"),
    ("transfer --charts {here}/one {start}", "has no provenance.json"),
    (
        "transfer {charts} --init-from {here}/tags",
        "charts are for a hf_xst_biaffine_parser, the initial model is a hf_xst_crf",
    ),
    ("transfer {charts} {vec} --init-from {here}/two", "labels that the model does not have: amod"),
    (
        "transfer {charts} {vec} {start} --encoder x",
        "has its own encoder and configuration: leave out --encoder",
    ),
    ("transfer {charts} {start}", "of the text's language (one), but the initial model reads"),
    ("transfer {charts} {vec} {start} --sigma 0.99", "the charts hold 0.95 of the mass"),
    (
        "train-source {one} {start} --model context_layers=2 frozen_layers=0",
        "only frozen_layers can be changed: leave out --model context_layers",
    ),
    ("train-source {one} {vec} {start} --model frozen_layers=0", "the initial model reads word vectors"),
    (
        "train-source {one} {vec} {start} --task tagger",
        "--task is tagger, the initial model is a hf_xst_biaffine_parser",
    ),
    (
        "train-source {one} {vec} --model context_layers=x",
        "context_layers is 'x'; expected int",
    ),
    (
        "train-source {one} {vec} --trainer max_grad_norm=x",
        "max_grad_norm=x: found str, expected float",
    ),
    ("train-source {one} {vec} --trainer report_to=wandb", "report_to=wandb: unknown or not installed"),
    ("train-source {one} {vec} --model uses_upos=no", "--model uses_upos=no: expected true or false"),
    ("train-source {one} {vec} --dev-split dve", "no split dve; found train, dev"),
    ("train-source {one} {vec} --max-steps 3 --learning-rate 1e30", "NaN"),
    (
        "evaluate {one} --model {here}/one/config.json",
        "config.json is a file; expected the folder of a model",
    ),
    ("evaluate {one} --model {here}/cut", "cannot be read"),
    ("evaluate {one} --model {here}/nan", "contain NaN or infinite values"),
    (
        "transfer --charts {here}/moved/charts {vec}",
        "the source one is not the one that the charts were made from",
    ),
    ("train-source {one} {vec} --max-steps 0", "max_steps is 0; expected at least 1"),
    ("train-source {one} {vec} --batch-size 0", "batch_size is 0; expected at least 1"),
    ("train-source {one} {vec} --patience 0", "patience is 0; expected at least 1"),
    ("train-source {one} {vec} --plateau -1", "plateau is -1; expected at least 1"),
    ("train-source {one} {vec} --vector-rows 0", "vector_rows is 0; expected at least 1"),
    ("train-source {one} --vector-rows 9", "--vector-rows limits the file of --vectors"),
    ("build-charts {text} {source} --vector-rows 9", "--vector-rows limits the file of --vectors"),
    ("evaluate {one} --model {here}/one --vector-rows 9", "--vector-rows limits the file of --vectors"),
    ("evaluate {one} --predictions x.conllu --vector-rows 9", "--vector-rows and --tagger are for --model"),
    (
        "train-source {vec} --treebank {here}/one-dev.conllu",
        "no split train; found data",
    ),
    ("build-charts {text} {source} --max-length 0", "max_length is 0; expected at least 1"),
    ("evaluate {one}", "give either --model or --predictions"),
    ("evaluate {one} --model {here}/one", "no split test; found train, dev"),
    (
        "vote {source} {one} --split dev --rule pool --weights {here}/weights.yaml",
        "missing: one; without a source: en",
    ),
    (
        "vote {source} {one} --weights {here}/weights.yaml",
        "--weights requires --rule pool or linear, found majority",
    ),
]
SHORT = {
    "{one}": "--treebank train={here}/one-train.conllu,dev={here}/one-dev.conllu",
    "{vec}": "--vectors {here}/one.vec",
    "{text}": "--text {here}/one-dev.conllu",
    "{source}": "--sources {here}/one",
    "{start}": "--init-from {here}/one",
    "{charts}": "--charts {here}/charts",
}


def damaged_models(folder: Path) -> None:
    """A model cut off, one whose training has diverged, and charts beside which a source is another one."""
    if (folder / "moved").exists():
        return
    for name in ("cut", "nan"):
        shutil.copytree(folder / "one", folder / name)
    weights = folder / "cut" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:200])
    broken = load_model(str(folder / "nan"))
    next(iter(broken.parameters())).data.fill_(math.nan)
    broken.save_pretrained(folder / "nan")
    shutil.copytree(folder / "charts", folder / "moved" / "charts")
    config = folder / "moved" / "charts" / "run" / "config.yaml"
    config.write_text(config.read_text().replace(str(folder / "one"), f"one={folder / 'two'}"))


@pytest.mark.parametrize(("words", "message"), ERRORS)
def test_errors_teach(world, tmp_path, capsys, words, message):
    (world.folder / "weights.yaml").write_text("en: 1\n")
    damaged_models(world.folder)
    for name, long in SHORT.items():
        words = words.replace(name, long)
    assert run(*words.replace("{here}", str(world.folder)).split(), "--output", tmp_path / "o") == 1
    told = capsys.readouterr().err
    assert message in told
    assert "Traceback" not in told
    assert not (tmp_path / "o" / "config.json").exists()


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("build-charts {text} {source} --output {here}/two", "already holds a model"),
        ("vote {source} {one} --split dev --output {here}/two", "already holds a model"),
        ("learn-weights {source} {one} --split dev --output {here}/charts", "already holds charts"),
        ("transfer {charts} {start} --output {here}/charts", "already holds charts"),
        ("build-charts {text} {source} --output {here}/weights", "already holds weights"),
        ("learn-weights {source} {one} --split dev --output {here}/votes", "already holds predictions"),
        ("train-source {one} {vec} --output {here}/one.vec", "is a file; expected a folder"),
        (
            "evaluate {one} --model {here}/one --output {here}/one.vec",
            "is a file; expected a folder",
        ),
    ],
)
def test_outputs_of_other_commands_are_never_overwritten(world, capsys, words, what):
    for name, long in SHORT.items():
        words = words.replace(name, long)
    for name in ("weights/weights.yaml", "votes/predictions.conllu"):
        (world.folder / name).parent.mkdir(exist_ok=True)
        (world.folder / name).touch()
    before = {path: path.stat().st_mtime_ns for path in world.folder.rglob("*") if path.is_file()}
    assert run(*words.replace("{here}", str(world.folder)).split()) == 1
    assert what in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in world.folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("content", ["en: [1]", "- 1", "en: true", "en: one", "a: {", "\xff"])
def test_broken_weight_files_are_rejected(world, tmp_path, capsys, content):
    path = tmp_path / "weights.yaml"
    path.write_bytes(content.encode("latin-1"))
    words = ["build-charts", "--sources", world.folder / "one", "--text", "x.txt", "--weights", path]
    assert run(*words, "--output", tmp_path / "o") == 1
    assert f"{path}: expected YAML with one NAME: WEIGHT per line" in capsys.readouterr().err


def test_incomplete_charts_are_rejected(world, tmp_path):
    folder = tmp_path / "charts"
    shutil.copytree(world.folder / "charts", folder)
    provenance = json.loads((folder / "provenance.json").read_text())
    for change, message in (
        ({"format_version": 99}, "has format 99; this package reads format 2; update it"),
        ({"counts": {"sentences": 5000}}, "holds charts of 8 sentences, but 5000 were made"),
    ):
        (folder / "provenance.json").write_text(json.dumps(provenance | change))
        with pytest.raises(ValueError, match=message):
            load_charts(str(folder))
    shutil.rmtree(folder / "data")
    with pytest.raises(ValueError, match="has no data/train-"):
        load_charts(str(folder))


def test_the_functions_return_the_same_results_when_repeated(world, tmp_path):
    given = {"treebank": world.one, "vectors": str(world.folder / "one.vec"), "epochs": 1.0}
    arguments = TrainSourceArguments(output=str(tmp_path / "s"), model=PARSER, **given)
    first = train_source(arguments)
    assert first == train_source(arguments)
    assert "eval_las" in first.dev
    moved = TransferArguments(
        output=str(tmp_path / "t"),
        charts=str(world.folder / "charts"),
        init_from=str(world.folder / "one"),
        vectors=str(world.folder / "one.target.vec"),
        max_steps=2,
    )
    found = transfer(moved)
    assert found == transfer(moved) == hf_xst.transfer(**vars(moved))
    with pytest.raises(TypeError, match="a TransferArguments or keyword arguments, not both"):
        transfer(moved, l2=0.5)
    assert (found.updates, found.sentences, found.l2) == (2, 8, 1.6e-4)
