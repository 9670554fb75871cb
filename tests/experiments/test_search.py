"""Random search: what is tried, what is kept when it is killed, and what becomes of the best values."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict
from math import log10
from pathlib import Path
from typing import Any

import pytest
import yaml
from scipy.stats import kstest

from helpers.small_models import RELATIONS, WORDS, gold, model_of, vectors
from hf_xst import cli
from hf_xst.commands.build_charts import build_charts
from hf_xst.commands.options import BuildChartsArguments, TransferArguments
from hf_xst.commands.transfer import transfer
from hf_xst.data import ConlluSentence, write_conllu
from hf_xst.experiments import search as job
from hf_xst.experiments.search import SearchArguments, kind_of, search, search_space
from hf_xst.experiments.trials import TrialTrainer, recorded

optuna = pytest.importorskip("optuna")

PARSER, TAGGER = "hf_xst_biaffine_parser", "hf_xst_crf_tagger"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of an invented language, two parsers, and their charts of its sentences."""
    folder = tmp_path_factory.mktemp("world")
    rows = []
    for row in gold((3, 5, 1, 4, 2, 6), seed=3):
        columns = {name: row[name] for name in ("upos", "head", "deprel")}
        rows.append(ConlluSentence.from_words(row["words"], sent_id=row["sent_id"], columns=columns))
    write_conllu(rows, folder / "all.conllu")
    table = vectors().matrix.tolist()
    lines = [f"{word} {' '.join(map(repr, row))}" for word, row in zip(WORDS, table, strict=True)]
    (folder / "tiny.vec").write_text("\n".join(lines) + "\n")
    for seed in (1, 2):
        model_of("parser", seed, labels=RELATIONS, output_dropout=0.1).save_pretrained(folder / f"m{seed}")
    build_charts(
        BuildChartsArguments(
            output=str(folder / "charts"),
            recipe="published",
            sources=[str(folder / "m1"), str(folder / "m2")],
            text=str(folder / "all.conllu"),
            vectors=str(folder / "tiny.vec"),
        )
    )
    return folder


@pytest.fixture
def wanted(world: Path, tmp_path: Path) -> Callable[..., SearchArguments]:
    def arguments(output: str = "found", **changes: Any) -> SearchArguments:
        settings: dict[str, Any] = {
            "output": str(tmp_path / output),
            "charts": str(world / "charts"),
            "start": str(world / "m1"),
            "vectors": str(world / "tiny.vec"),
            "treebank": f"dev={world}/all.conllu",
            "updates": 2,
            "batch_size": 4,
            "trials": 3,
            "log_learning_rate": [-3.0, -0.5],
        }
        return SearchArguments(**(settings | changes))

    return arguments


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float]]:
    """The learning rates and strengths of the pull with which a Trainer has really trained."""
    seen: list[tuple[float, float]] = []
    inner = TrialTrainer._inner_training_loop

    def record(self: TrialTrainer, *args: Any, **kwargs: Any) -> Any:
        seen.append((self.args.learning_rate, 0.0 if self.pull is None else self.pull.strength))
        return inner(self, *args, **kwargs)

    monkeypatch.setattr(TrialTrainer, "_inner_training_loop", record)
    return seen


def told(arguments: SearchArguments) -> list[dict[str, Any]]:
    """What trials.json says of the trials, without times."""
    report = json.loads((Path(arguments.output) / "trials.json").read_text())
    return [{key: trial[key] for key in ("place", "values", "score")} for trial in report["trials"]]


def test_trials_train_with_their_values_and_the_best_one_is_a_configuration_of_transfer(
    wanted, trained, tmp_path, capsys
):
    arguments = wanted()
    report = search(arguments)
    assert trained == [(t["values"]["learning_rate"], t["values"]["l2"]) for t in report["trials"]]
    assert len(set(trained)) == 3
    best = report["best"]
    assert best["score"] == max(trial["score"] for trial in report["trials"])
    assert len({trial["score"] for trial in report["trials"]}) > 1
    folder = Path(arguments.output)
    assert {path.name for path in folder.iterdir()} == {"best.yaml", "trials.json", "run"}
    assert not list(folder.rglob("*.safetensors"))
    shown = capsys.readouterr()
    assert f"{best['score']:.2f}" in shown.err
    assert not shown.out
    flags = ["--charts", arguments.charts, "--start", arguments.start, "--vectors", arguments.vectors]
    flags += ["--output", str(tmp_path / "again"), "--treebank", arguments.treebank]
    read = cli.parse(TransferArguments, "hf-xst transfer", "", [str(folder / "best.yaml"), *flags])
    assert (read.learning_rate, read.l2) == (best["values"]["learning_rate"], best["values"]["l2"])
    assert (read.updates, read.batch_size) == (2, 4)
    assert transfer(read)["dev"]["eval_las"] == best["score"]


def test_a_killed_search_runs_only_what_is_missing(wanted, trained, monkeypatch):
    whole, parts = wanted("whole", trials=3), wanted("parts", trials=3)
    search(whole)
    expected = told(whole)
    assert len({trial["score"] for trial in expected}) > 1
    evaluate = TrialTrainer.evaluate

    def stopped(self: TrialTrainer, *args: Any, **kwargs: Any) -> Any:
        if len(trained) == 2:
            raise KeyboardInterrupt
        return evaluate(self, *args, **kwargs)

    trained.clear()
    monkeypatch.setattr(TrialTrainer, "evaluate", stopped)
    with pytest.raises(KeyboardInterrupt):
        search(parts)
    monkeypatch.setattr(TrialTrainer, "evaluate", evaluate)
    assert len(trained) == 2
    assert not (Path(parts.output) / "best.yaml").exists()
    leave_a_running_trial(parts, expected[1]["values"])
    trained.clear()
    search(parts)
    assert told(parts) == expected
    assert trained == [(t["values"]["learning_rate"], t["values"]["l2"]) for t in expected[1:]]


def leave_a_running_trial(arguments: SearchArguments, values: dict[str, float]) -> None:
    """What a process that is killed at once leaves behind: nobody has said that its trial failed."""
    storage = optuna.storages.RDBStorage(f"sqlite:///{arguments.output}/run/trials.sqlite3")
    study = optuna.load_study(study_name="search", storage=storage)
    study.enqueue_trial(values, user_attrs={"place": 1})
    study.ask()
    assert study.trials[-1].state == optuna.trial.TrialState.RUNNING
    storage.remove_session()
    storage.engine.dispose()


def test_a_trial_that_waited_when_the_search_was_killed_runs_once(wanted, trained):
    arguments = wanted(trials=1)
    space = {"learning_rate": (-3.0, -0.5), "l2": (-4.0, 1.0)}
    with recorded(Path(arguments.output) / "run" / "trials.sqlite3", space, arguments.seed) as trials:
        draw = trials.draws(1)[0]
        trials._enqueue(0, draw)
    search(arguments)
    assert trained == [(draw["learning_rate"], draw["l2"])]


def test_more_trials_begin_with_those_that_are_there(wanted, trained, capsys):
    search(wanted(trials=2))
    few = told(wanted())
    search(wanted(trials=4))
    assert told(wanted())[:2] == few
    assert len(trained) == 4
    search(wanted(trials=4))
    assert len(trained) == 4
    assert "nothing was run" in capsys.readouterr().err


def test_another_search_is_refused_in_the_same_folder(wanted, world, tmp_path):
    search(wanted(trials=1))
    with pytest.raises(ValueError, match="differs in: batch_size, soft"):
        search(wanted(trials=1, batch_size=3, soft=0.5))
    shutil.copytree(world / "charts", tmp_path / "charts")
    provenance = json.loads((tmp_path / "charts" / "provenance.json").read_text())
    (tmp_path / "charts" / "provenance.json").write_text(json.dumps({**provenance, "sigma": 0.5}))
    with pytest.raises(ValueError, match="differs in: charts, charts' provenance"):
        search(wanted(trials=1, charts=str(tmp_path / "charts")))
    (tmp_path / "other" / "run").mkdir(parents=True)
    (tmp_path / "other" / "run" / "config.yaml").write_text("")
    with pytest.raises(ValueError, match="holds a run of another command"):
        search(wanted("other"))


def test_what_is_settled_is_not_searched(wanted, trained, world):
    report = search(wanted("rate", trials=1, l2=0.25))
    assert [strength for _, strength in trained] == [0.25]
    assert all(set(trial["values"]) == {"learning_rate"} for trial in report["trials"])
    assert yaml.safe_load((Path(wanted("rate").output) / "best.yaml").read_text())["l2"] == 0.25
    trained.clear()
    search(wanted("pull", trials=1, learning_rate=0.125, log_learning_rate=[]))
    assert [rate for rate, _ in trained] == [0.125]
    trained.clear()
    search(wanted("fresh", trials=1, start="none", like=str(world / "m1")))
    assert [strength for _, strength in trained] == [0.0]
    assert yaml.safe_load((Path(wanted("fresh").output) / "best.yaml").read_text())["l2"] == 0.0


def test_the_configuration_carries_the_settings_that_the_values_were_found_with(wanted):
    arguments = wanted(soft=0.5, trainer=["adam_beta2=0.9"], epochs=1.0, updates=None)
    report = {
        "trials": [1],
        "treebank": "fa",
        "split": "dev",
        "rule": "pool",
        "best": {"score": 50.0, "values": {"learning_rate": 1e-05, "l2": 10.0}},
    }
    text = job._config(arguments, report)
    assert text.startswith("# Best of 1 trials on fa dev, charts by pool: 50.00\n")
    assert yaml.safe_load(text) == {
        "learning_rate": 1e-05,
        "l2": 10.0,
        "epochs": 1.0,
        "batch_size": 4,
        "trainer": ["adam_beta2=0.9"],
        "soft": 0.5,
    }


@pytest.mark.parametrize(
    ("model_type", "rule", "weights", "rate"),
    [
        (PARSER, "union", None, (-6, -3)),
        (PARSER, "pool", None, (-6.5, -3.5)),
        (PARSER, "pool", {"a": 1.0}, (-6, -3)),
        (TAGGER, "union", None, (-6, -4)),
        (TAGGER, "pool", None, (-6.5, -3.5)),
        (TAGGER, "pool", {"a": 1.0}, (-6, -3)),
    ],
)
def test_published_ranges(wanted, model_type, rule, weights, rate):
    provenance = {"model_type": model_type, "rule": rule, "weights": weights}
    space = search_space(wanted(log_learning_rate=[]), provenance)
    assert space == {"learning_rate": rate, "l2": (-4, 1)}
    assert kind_of(provenance) == ("learned" if weights else rule)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": 0.1, "log_learning_rate": [], "l2": 0.0}, "nothing is left to search"),
        ({"learning_rate": 0.1}, "--log_learning_rate is given, but learning_rate is not searched"),
        ({"log_l2": [1.0]}, r"--log_l2 is \[1.0\]; expected two numbers"),
        ({"log_l2": [1.0, -1.0]}, "expected two numbers, the smaller one first"),
        ({"log_learning_rate": []}, "no range of learning_rate is published for other, pool"),
    ],
)
def test_ranges_that_are_none(wanted, changes, message):
    with pytest.raises(ValueError, match=message):
        search_space(wanted(**changes), {"model_type": "other", "rule": "pool"})


def test_arguments_that_do_not_go(wanted):
    with pytest.raises(ValueError, match="give --treebank"):
        search(wanted(treebank=None))
    with pytest.raises(ValueError, match="--trials is 0"):
        search(wanted(trials=0))


def test_draws_are_uniform_in_the_logarithm_and_repeat(tmp_path):
    space = {"learning_rate": (-6.0, -3.0), "l2": (-4.0, 1.0)}
    with recorded(tmp_path / "r.sqlite3", space, 7) as trials:
        draws = trials.draws(400)
        assert trials.draws(30) == draws[:30]
    for name, (low, high) in space.items():
        found = [draw[name] for draw in draws]
        assert 10**low <= min(found)
        assert max(found) <= 10**high
        assert kstest([(log10(value) - low) / (high - low) for value in found], "uniform").pvalue > 1e-3
    with recorded(tmp_path / "s.sqlite3", space, 8) as trials:
        assert trials.draws(1) != draws[:1]


def test_the_extra_is_named_where_optuna_is_missing(wanted, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ImportError, match=r"hf_xst\[search\]"):
        search(wanted())


def test_flags_of_ranges(wanted):
    words = ["--output", "o", "--charts", "c", "--start", "s", "--log_l2", "-4", "0.5", "--trials", "7"]
    found = cli.parse(SearchArguments, "hf-xst search", "", words)
    assert (found.log_l2, found.trials, found.log_learning_rate) == ([-4.0, 0.5], 7, [])
    assert set(asdict(found)) > set(asdict(TransferArguments(output="o", charts="c", start="s")))


def test_a_trial_that_diverges_ends_with_a_score_as_any_other(wanted):
    report = search(wanted(log_learning_rate=[30.0, 38.0], updates=3, trials=1))
    assert all(0 <= trial["score"] <= 100 for trial in report["trials"])
