"""Build the command lines of a study's jobs, and the graph that Snakemake makes of them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import ensembles
import pytest
import token_classifier
import yaml
from configuration import read_study
from jobs import Job, Jobs, flags, merge, train

import hf_xst_cli
from hf_xst.cli import parse
from hf_xst.commands import analyse, learn_weights, options
from hf_xst.sources.loading import SourceSpec

STUDIES = sorted((Path(__file__).parents[2] / "scripts" / "study").glob("*.yaml"))
CLASSES = {
    "train-source": options.TrainSourceArguments,
    "evaluate": options.EvaluateArguments,
    "learn-weights": learn_weights.LearnWeightsArguments,
    "analyse": analyse.AnalyseArguments,
    "build-charts": options.BuildChartsArguments,
    "transfer": options.TransferArguments,
}


def jobs_of(path: Path) -> Jobs:
    return Jobs(read_study(path, "data"))


@cache
def jobs_of_study(path: Path) -> list[Job]:
    return list(all_jobs(jobs_of(path)))


def all_jobs(jobs: Jobs) -> Iterator[Job]:
    for encoder in jobs.study.encoders:
        for task in jobs.study.tasks:
            for name, source in jobs.usable(task).items():
                if not source.place:
                    yield jobs.train_source(encoder, task, name)
                if source.test:
                    yield jobs.evaluate_source(encoder, task, name)
            for target in jobs.study.targets:
                block = (encoder, task, target)
                yield from (jobs.ensembles(*block), jobs.analyse(*block))
                if jobs.study.labelled:
                    yield from (jobs.learn_weights(*block), jobs.other_weights(*block))
                for name, method in jobs.methods(task, target):
                    yield jobs.build_charts(*block, method.charts)
                    yield from (jobs.transfer(*block, name, "42"), jobs.evaluate_target(*block, name, "42"))


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_the_commands_accept_every_command_line(path, monkeypatch):
    seen = set()
    for job in jobs_of_study(path):
        assert not set(job.files) & set(job.needs)
        options = re.sub(r"[^\s=]*/\S*", "/", job.command)  # without paths, which no command parses
        if (form := (job.command.split()[1], options)) in seen:
            continue
        seen.add(form)
        words = shlex.split(job.command.partition(" && ")[0])
        if words[0] == "hf-xst":
            assert words[1] in hf_xst_cli.COMMANDS
            parse(CLASSES[words[1]], "hf-xst", "", words[2:])
        elif words[1].endswith("other_weights.py"):
            parse(CLASSES["learn-weights"], "other_weights.py", "", words[2:])
        else:
            script = {"ensembles.py": ensembles, "token_classifier.py": token_classifier}[Path(words[1]).name]
            monkeypatch.setattr(sys, "argv", words[1:])
            script.parse_arguments()
        values = options_of(job)
        if "--sources" in values:
            SourceSpec.parse_all([*values["--sources"], *values.get("--beside", [])])


def options_of(job: Job) -> dict[str, list[str]]:
    """Return the values of each flag of a command line."""
    values: dict[str, list[str]] = {}
    name = ""
    for word in shlex.split(job.command.partition(" && ")[0])[2:]:
        if word.startswith("--"):
            name, _, value = word.partition("=")
            values[name] = [value] if value else []
        else:
            values[name].append(word)
    return values


def test_studies_that_share_folders_agree_in_their_jobs():
    commands: dict[tuple[str, str], str] = {}
    for path in STUDIES:
        for job in jobs_of_study(path):
            key = (job.command.split()[1], job.command.split(" --output=")[1].split()[0])
            assert commands.setdefault(key, job.command) == job.command, path.stem


ROOT = "runs/study/small"


def test_a_source_is_trained_from_the_encoder_or_from_its_initial_model(write):
    jobs = jobs_of(write())
    first = options_of(jobs.train_source("frozen", "parser", "en"))
    assert first["--encoder"] == ["data/models/e5"]
    assert first["--encoder-layers"] == ["6"]
    assert first["--treebank"] == ["train=data/en.conllu,dev=data/en-dev.conllu"]
    job = jobs.train_source("frozen", "parser", "de")
    second = options_of(job)
    assert second["--init-from"] == [f"{ROOT}/frozen/parser/sources/en"]
    assert second["--max-steps"] == ["5"]
    assert "--encoder" not in second
    assert "--encoder-layers" not in second
    assert list(job.needs) == [f"{ROOT}/frozen/parser/sources/en/run/results.json"]
    assert f" && find {ROOT}/frozen/parser/sources/de/run -maxdepth 1 " in job.command
    vectors = jobs.train_source("vectors", "parser", "de")
    assert options_of(vectors)["--vectors"] == ["data/v.de.vec"]
    assert "data/v.de.vec" in vectors.files


def test_training_jobs_remove_checkpoints_of_the_trainer_only(tmp_path):
    run, elsewhere = tmp_path / "a b" / "run", tmp_path / "elsewhere"
    for name in ("checkpoint-5", "checkpoint-10", "checkpoint-mine", "best"):
        (run / name).mkdir(parents=True)
    elsewhere.mkdir()
    for folder in (run / "checkpoint-5", run / "checkpoint-10", run / "best", elsewhere):
        (folder / "trainer_state.json").touch()
    (run / "checkpoint-7").symlink_to(elsewhere)
    remove = train("transfer", {"output": str(run.parent)}).partition(" && ")[2]
    subprocess.run(remove, shell=True, check=True)
    assert sorted(path.name for path in run.iterdir()) == ["best", "checkpoint-7", "checkpoint-mine"]
    assert [*elsewhere.iterdir()]


def test_a_target_is_never_its_own_source(write):
    jobs = jobs_of(write())
    charts = options_of(jobs.build_charts("frozen", "tagger", "de", "pool"))
    assert charts["--sources"] == [f"en={ROOT}/frozen/tagger/sources/en"]
    assert charts["--init-from"] == ["en"]
    both = options_of(jobs.ensembles("frozen", "tagger", "fo"))
    assert [each.partition("=")[0] for each in both["--sources"]] == ["en", "de"]
    assert [each.partition("=")[0] for each in both["--beside"]] == ["joined"]
    assert "--beside" not in options_of(jobs.ensembles("frozen", "tagger", "de"))


def test_sources_of_other_packages_are_not_trained(write):
    changes = {
        "sources": {
            "spacy": {"place": "spacy:some", "languages": ["fo"]},
            "script": {"train": "x.conllu", "script": "token_classifier.py", "tasks": ["tagger"]},
        }
    }
    jobs = jobs_of(write(changes))
    assert not [path for path in jobs.results() if "sources/spacy" in path]
    assert not [path for path in jobs.results() if "parser/sources/script" in path]
    command = jobs.train_source("frozen", "tagger", "script").command
    assert command.startswith("python scripts/study/token_classifier.py --output=")
    values = options_of(jobs.build_charts("frozen", "tagger", "de", "pool"))
    assert values["--task"] == ["tagger"]
    assert "spacy=spacy:some" in values["--sources"]
    assert jobs.initial("pool", ["spacy", "script"]) is None
    assert "spacy=spacy:some" not in options_of(jobs.ensembles("frozen", "tagger", "fo"))["--sources"]
    beside = jobs_of(write({"sources": {"spacy": {"place": "spacy:some", "pool": False}}}))
    assert options_of(beside.ensembles("frozen", "parser", "fo"))["--task"] == ["parser"]


def test_options_of_the_task_and_the_method_take_precedence(write):
    extra = {"methods": {"mine": {"charts": "pool", "transfer": {"max_steps": 7, "trainer": ["seed=3"]}}}}
    jobs = jobs_of(write(extra))
    tagger = options_of(jobs.transfer("frozen", "tagger", "fo", "pptx", "42"))
    assert (tagger["--max-steps"], tagger["--l2"]) == (["10"], ["0.5"])
    parser = options_of(jobs.transfer("frozen", "parser", "fo", "pptx", "42"))
    assert parser["--max-steps"] == ["20"]
    assert "--l2" not in parser
    mine = options_of(jobs.transfer("frozen", "tagger", "fo", "mine", "43"))
    assert mine["--max-steps"] == ["7"]
    assert mine["--trainer"] == ["save_strategy=no", "seed=3"]
    assert mine["--seed"] == ["43"]


def test_charts_take_their_weights_sources_and_initial_model(write):
    charts = {
        "learned": {"weights": "learned"},
        "published": {"weights": "published"},
        "best": {"init_from": "best", "weights": "agreement"},
        "two": {"build_charts": {"sigma": 0.5, "select": 1}},
        "again": {"sources": ["de"], "add": ["pptx"], "text_split": "text[:5]"},
    }
    jobs = jobs_of(write({"charts": charts}))
    block = ("frozen", "tagger", "fo")
    weights = f"{ROOT}/frozen/tagger/targets/fo/weights"
    for name in ("learned", "published"):
        job = jobs.build_charts(*block, name)
        file = "weights.yaml" if name == "learned" else "published_weights.yaml"
        assert options_of(job)["--weights"] == [f"{weights}/{file}"]
        assert f"{weights}/{file}" in job.needs
    best = options_of(jobs.build_charts(*block, "best"))
    assert (best["--select"], best["--weights"]) == (["2"], ["agreement"])
    assert "--init-from" not in best
    two = options_of(jobs.build_charts(*block, "two"))
    assert (two["--select"], two["--sigma"]) == (["1"], ["0.5"])
    job = jobs.build_charts(*block, "again")
    model = f"{ROOT}/frozen/tagger/targets/fo/models/pptx/42"
    again = options_of(job)
    assert again["--sources"] == [f"de={ROOT}/frozen/tagger/sources/de", f"pptx={model}"]
    assert again["--split"] == ["text[:5]"]
    assert f"{model}/model.safetensors" in job.needs
    with pytest.raises(ValueError, match="targets: de: no source left to pool"):
        jobs.build_charts("frozen", "tagger", "de", "again")


def test_a_model_that_joins_the_sources_may_become_the_initial_model(write):
    extra = {"again": {"add": ["pptx"], "init_from": "best"}}
    jobs = jobs_of(write({"charts": extra, "methods": {"second": {"charts": "again"}}}))
    block = ("frozen", "tagger", "fo")
    charts = options_of(jobs.build_charts(*block, "again"))
    assert charts["--select"] == [str(len(charts["--sources"]))] == ["3"]
    weights = f"{jobs.target(*block)}/models/pptx/42/model.safetensors"  # removed when no job needs it
    assert weights in jobs.transfer(*block, "second", "42").needs


def test_parsers_read_the_tags_of_a_method(write):
    methods = {"gold": {"charts": "pool", "upos": "gold", "tasks": ["parser"]}}
    jobs = jobs_of(write({"upos": "paper-pool", "methods": methods}))
    tagger = f"{ROOT}/frozen/tagger/targets/fo/models/paper-pool/42"
    for job in (
        jobs.ensembles("frozen", "parser", "fo"),
        jobs.build_charts("frozen", "parser", "fo", "pool"),
        jobs.transfer("frozen", "parser", "fo", "pptx", "42"),
        jobs.evaluate_target("frozen", "parser", "fo", "pptx", "42"),
    ):
        assert options_of(job)["--tagger"] == [tagger]
        assert f"{tagger}/model.safetensors" in job.needs
    for job in (
        jobs.build_charts("frozen", "tagger", "fo", "pool"),
        jobs.transfer("frozen", "parser", "fo", "gold", "42"),
    ):
        assert "--tagger" not in options_of(job)


def test_initial_models_and_changed_configurations(write):
    methods = {
        "average": {"charts": "pool", "init_from": "average"},
        "scratch": {"charts": "pool", "init_from": "scratch", "transfer": {"l2": 0.0}},
        "roots": {"charts": "pool", "config": {"single_root": False}},
    }
    jobs = jobs_of(write({"methods": methods}))
    block = ("frozen", "parser", "fo")
    assert options_of(jobs.transfer(*block, "average", "42"))["--init-from"] == ["average"]
    scratch = options_of(jobs.transfer(*block, "scratch", "42"))
    assert scratch["--init-from"] == ["scratch"]
    assert scratch["--like"] == [f"{ROOT}/frozen/parser/sources/en"]
    roots = options_of(jobs.evaluate_target(*block, "roots", "42"))
    assert roots["--sources"] == [f"model={ROOT}/frozen/parser/targets/fo/models/roots/42"]
    assert roots["--config"] == ["single_root=false"]


def test_studies_may_share_folders(write):
    jobs = jobs_of(write({"jobs": "../cpu", "source_models": "../mean"}))
    assert jobs.source("frozen", "parser", "en") == "runs/study/mean/frozen/parser/sources/en"
    assert jobs.target("frozen", "parser", "fo") == "runs/study/cpu/frozen/parser/targets/fo"


def test_flags_and_merged_options():
    options = {"max_steps": 5, "tagger": None, "trainer": ["a=1", "b=2"], "beside": [], "plots": False}
    assert list(flags(options)) == ["--max-steps=5", "--trainer", "a=1", "b=2", "--plots=false"]
    assert merge({"a": [1], "b": 1}, {"a": [2], "b": [2]}) == {"a": [1, 2], "b": [2]}


@pytest.fixture
def snakemake(tmp_path):
    if find_spec("snakemake") is None:
        pytest.skip("snakemake is not installed (extra `study`)")
    script = STUDIES[0].parent / "Snakefile"

    def run(config: Path, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(script), "--configfile", str(config)]
        return subprocess.run(
            [*command, "--cores", "1", *words],
            cwd=tmp_path,
            env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_a_dry_run_lists_the_jobs(write, tmp_path, snakemake):
    small: dict[str, Any] = {
        "encoders": ["vectors"],
        "tasks": ["tagger"],
        "targets": ["fo"],
        "sources": ["en", "de"],
    }
    config = write(small)
    names = ["en", "de", "de2", "en-dev", "en-test", "fo", "fo-dev"]
    for file in (*(f"{name}.conllu" for name in names), *(f"v.{code}.vec" for code in ("en", "de", "fo"))):
        (tmp_path / file).touch()
    done = snakemake(config, "--dry-run", "--quiet", "rules", "--config", "data=.", "output=out")
    assert done.returncode == 0, done.stdout + done.stderr
    counts = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)
    expected = {
        "train_source": 2,
        "evaluate_source": 1,
        "learn_weights": 1,
        "ensembles": 1,
        "build_charts": 2,
        "transfer": 2,
        "evaluate_target": 2,
        "collect": 1,
        "report": 1,
    }
    assert {name: int(counts[name]) for name in expected} == expected
    (tmp_path / "fo.conllu").unlink()
    missing = snakemake(config, "--dry-run", "--config", "data=.", "output=out")
    assert missing.returncode != 0
    assert "fo.conllu" in missing.stdout + missing.stderr


def test_an_invalid_configuration_is_reported_before_any_job(write, tmp_path, snakemake):
    content = yaml.safe_load(write().read_text()) | {"rules": ["majority"]}
    (tmp_path / "bad.yaml").write_text(yaml.safe_dump(content))
    done = snakemake(tmp_path / "bad.yaml", "--dry-run")
    assert done.returncode != 0
    assert "rules: unknown name majority" in done.stdout + done.stderr
