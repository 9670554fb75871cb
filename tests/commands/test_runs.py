"""Folders of runs, what they refuse, words of settings, and lines for people."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import yaml

from hf_xst.commands import runs
from hf_xst.commands.evaluate import evaluate
from hf_xst.commands.options import EvaluateArguments, LoopArguments
from hf_xst.commands.runs import RunFolder, summary
from hf_xst.commands.training import key_values, training_arguments, warn_if_alone
from hf_xst.console import say
from hf_xst.records import checked_options


@dataclass
class Some:
    output: str
    rate: float = 0.5
    names: list[str] = field(default_factory=lambda: ["a"])
    trainer: list[str] = field(default_factory=list)


def begun(output: Path, **changes) -> RunFolder:
    folder = RunFolder(str(output), Some(str(output), **changes))
    folder.begin()
    return folder


@pytest.mark.parametrize(
    ("option", "secret"),
    [
        ("trainer", "hub_token=abc"),
        ("trainer", "HUB_TOKEN=abc"),
        ("trainer", 'deepspeed={"db_password": "abc"}'),
        ("trainer", "accelerator_config={api_key: abc}"),
        ("trainer", "run_name=hf_AbCdEfGhIjKlMnOpQrStUv"),
        ("names", "hf_AbCdEfGhIjKlMnOpQrStUv"),
        ("names", "train=https://kim:hunter2@host/x.conllu"),
        ("names", "AKIAIOSFODNN7EXAMPLE"),
    ],
)
def test_secrets_are_not_recorded(option: str, secret: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"--{option}.* is a secret, .* log in with") as caught:
        begun(tmp_path / "x", **{option: ["a", secret]})
    assert not any(part in str(caught.value) for part in ("abc", "hf_A", "hunter2", "AKIA"))
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "setting", ["include_num_input_tokens_seen=true", "average_tokens_across_devices=false", "run_name=a"]
)
def test_other_settings_are_no_secrets(setting: str, tmp_path: Path) -> None:
    begun(tmp_path / "x", trainer=[setting])


def add_checkpoint(folder: RunFolder, step: int, *, whole: bool = True) -> Path:
    path = folder.run / f"checkpoint-{step}"
    path.mkdir()
    if whole:
        (path / "trainer_state.json").write_text("{}")
    return path


def test_a_run_folder_records_configuration_command_and_versions(tmp_path):
    folder = begun(tmp_path / "out", rate=0.25)
    assert yaml.safe_load((folder.run / "config.yaml").read_text())["rate"] == 0.25
    assert (folder.run / "command.txt").read_text().strip()
    assert "torch" in (folder.run / "versions.json").read_text()
    assert [path.name for path in folder.path.iterdir()] == ["run"]


def test_a_link_to_a_folder_that_does_not_exist_is_followed(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "new" / "out")
    begun(tmp_path / "link")
    assert (tmp_path / "new" / "out" / "run" / "config.yaml").is_file()


def test_only_the_main_process_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "process_index", lambda: 1)
    folder = RunFolder(str(tmp_path / "out"), Some("out"))
    folder.begin()
    folder.write_json("results.json", {})
    assert not folder.path.exists()


def test_the_last_whole_checkpoint_counts(tmp_path):
    folder = begun(tmp_path / "out")
    assert folder.last_checkpoint() is None
    add_checkpoint(folder, 9)
    last = add_checkpoint(folder, 100)
    add_checkpoint(folder, 200, whole=False)
    for copy in ("checkpoint-100 (copy)", "checkpoint-best", "checkpoint-300-old"):
        shutil.copytree(last, folder.run / copy)
    assert folder.last_checkpoint() == str(last)


def test_an_interrupted_run_resumes_and_a_finished_one_is_reported(tmp_path, capsys):
    folder = begun(tmp_path / "out")
    assert not folder.is_finished()
    add_checkpoint(folder, 1)
    assert not RunFolder(str(folder.path), Some("elsewhere")).is_finished()
    folder.write_json("results.json", {"dev": 1})
    assert RunFolder(str(folder.path), Some("elsewhere")).is_finished()
    assert "already finished" in capsys.readouterr().err


@pytest.mark.parametrize("how_far", ["checkpoint", "results"])
def test_another_configuration_is_rejected_with_the_differences(tmp_path, how_far):
    folder = begun(tmp_path / "out")
    if how_far == "checkpoint":
        add_checkpoint(folder, 1)
    else:
        folder.write_json("results.json", {})
    other = RunFolder(str(folder.path), Some("out", rate=0.75, names=["a", "b"]))
    with pytest.raises(
        ValueError, match=r"names \(\['a'\] there, \['a', 'b'\] now\); rate \(0.5 there, 0.75 now\)"
    ):
        other.is_finished()
    (folder.run / "config.yaml").unlink()
    with pytest.raises(ValueError, match=r"rate .unknown there"):
        other.is_finished()


@dataclass
class Inputs:
    output: str
    vectors: str | None = None
    charts: str | None = None
    sources: list[str] = field(default_factory=list)
    treebank: str | None = None
    split: str = "train[:5]"
    dev_treebank: str | None = None
    dev_split: str = "dev"
    data: list[str] = field(default_factory=list)


@pytest.fixture
def inputs(tmp_path, monkeypatch):
    """A finished run with every kind of input."""
    monkeypatch.chdir(tmp_path)
    bank = [f"data/UD_Some-One/xx_one-ud-{split}.conllu" for split in ("train", "dev", "test")]
    for name in (
        "some.vec",
        "charts/data/train-0.parquet",
        "charts/provenance.json",
        "one/config.json",
        *bank,
    ):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("before")
    options = Inputs("out", "some.vec", "charts", ["a=one", "user/b"], "xx", data=["data"])
    folder = RunFolder("out", options)
    folder.begin()
    folder.write_json("results.json", {})
    return options


@pytest.mark.parametrize(
    ("path", "option"),
    [
        ("some.vec", "vectors"),
        ("charts/data/train-0.parquet", "charts"),
        ("charts/data/train-1.parquet", "charts"),
        ("charts/provenance.json", "charts"),
        ("one/config.json", "sources"),
        ("data/UD_Some-One/xx_one-ud-train.conllu", "treebank"),
        ("data/UD_Some-One/xx_one-ud-dev.conllu", "treebank"),
        ("data/UD_Some-One/xx_one-ud-test.conllu", None),  # not read
        ("one/README.md", None),
        ("one/run/scores.json", None),
        ("one/.lock", None),
    ],
)
def test_a_run_whose_inputs_have_changed_is_not_finished(inputs, path, option):
    path = Path(path)
    before = path.read_text() if path.exists() else None
    path.parent.mkdir(exist_ok=True)
    path.write_text("after")
    if option is None:
        assert RunFolder("out", inputs).is_finished()
        return
    with pytest.raises(ValueError, match=rf"another configuration: {option} \(its content has changed\)"):
        RunFolder("out", inputs).is_finished()
    path.unlink() if before is None else path.write_text(before)
    assert RunFolder("out", inputs).is_finished()


def test_a_finished_run_does_not_require_its_inputs(inputs):
    for name in ("charts", "data", "one"):
        shutil.rmtree(name)
    Path("some.vec").unlink()
    assert RunFolder("out", inputs).is_finished()


def test_inputs_may_be_moved(inputs):
    Path("new").mkdir()
    moved = {
        name: str(Path(path).rename(f"new/{path}"))
        for name, path in vars(inputs).items()
        if name in ("vectors", "charts")
    }
    assert RunFolder("out", replace(inputs, **moved)).is_finished()
    assert RunFolder("out", replace(inputs, charts=str(Path("new/charts").resolve()))).is_finished()
    shutil.copytree("one", "two/a")
    bank = "UD_Some-One/xx_one-ud-train.conllu"
    for same in (
        {"sources": ["a=./one", "user/b"]},
        {"sources": [f"a={Path('one').resolve()}", "user/b"]},
        {"sources": ["two/a/", "user/b"]},
        {"data": ["./data"]},
        {"treebank": "data/UD_Some-One"},
        {"treebank": f"train=./data/{bank},dev={Path('data').resolve()}/{bank.replace('train', 'dev')}"},
    ):
        assert RunFolder("out", replace(inputs, **same)).is_finished(), same
    for changes in (
        {"sources": ["b=one", "user/b"]},
        {"sources": ["one", "user/b"]},
        {"sources": ["a=charts", "user/b"]},
        {"sources": ["a=one", "user/c"]},
        {"sources": ["a=one"]},
        {"sources": ["user/b", "a=one"]},
        {"charts": "two"},
        {"treebank": "user/c"},
    ):
        with pytest.raises(ValueError, match=rf"configuration: {next(iter(changes))} "):
            RunFolder("out", replace(inputs, **changes)).is_finished()


@pytest.mark.parametrize("place", ["charts/model", "one/next/charts"])
def test_outputs_inside_of_an_input_are_not_part_of_it(inputs, place):
    Path(place, "run").mkdir(parents=True)
    Path(place, "config.json").write_text("{}")
    assert RunFolder("out", inputs).is_finished()


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("output", "", "output is empty: leave it out"),
        ("data", [""], "data is empty"),
        ("treebank", "\udcfc.conllu", "not UTF-8: rename the file"),
        ("seed", "7", "seed is '7'; expected int"),
        ("data", "folder", r"data is 'folder'; expected list\[str\]"),
        ("columns", None, r"columns is 'None'; expected list\[str\]"),
        ("faulty", "drop", "faulty is 'drop'; expected 'error' or 'skip'"),
    ],
)
def test_options_of_another_type_are_rejected(option, value, message):
    with pytest.raises(ValueError, match=message):
        evaluate(**{"output": "o", "treebank": "t", option: value})


def test_python_callers_may_pass_paths_and_tuples():
    paths = {"output": Path("o"), "treebank": Path("t"), "data": (Path("d"),)}
    given = EvaluateArguments(**paths, columns=np.array(["head"]), seed=np.int64(3))
    checked = checked_options(given)
    assert checked == EvaluateArguments(output="o", treebank="t", data=["d"], columns=["head"], seed=3)
    assert type(checked.seed) is int


def test_a_run_that_never_began_to_train_may_be_changed(tmp_path):
    begun(tmp_path / "out")
    assert not RunFolder(str(tmp_path / "out"), Some("out", rate=0.75)).is_finished()


def test_another_command_leaves_the_runs_own_files(tmp_path):
    folder = begun(tmp_path / "out")
    RunFolder(str(folder.path), Some("out", rate=0.75), prefix="evaluate-").begin()
    assert yaml.safe_load((folder.run / "config.yaml").read_text())["rate"] == 0.5
    assert yaml.safe_load((folder.run / "evaluate-config.yaml").read_text())["rate"] == 0.75


def test_words_of_settings_are_read_as_yaml():
    words = ["a=true", "b=3", "c=1e-4", "d=0.5", "e=word", "f=[1, x]", "g=", "h=x=y", "i=null", "j=-2E+3"]
    found = key_values(words, "abcdefghij")
    assert found == {
        "a": True,
        "b": 3,
        "c": 1e-4,
        "d": 0.5,
        "e": "word",
        "f": [1, "x"],
        "g": None,
        "h": "x=y",
        "i": None,
        "j": -2000.0,
    }


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("learning_rate", "found 'learning_rate'; expected KEY=VALUE"),
        ("warmup_step=3", "unknown setting 'warmup_step' .*did you mean .*warmup_steps"),
        ("zzz=3", "unknown setting 'zzz' in 'zzz=3'$"),
        ("seed={", "cannot read the value of 'seed={' as YAML"),
        ("seed=1.5", "--trainer seed=1.5: found float, expected int$"),
        ("fp16=x", "--trainer fp16=x: found str, expected bool$"),
        ("adam_beta1=true", "adam_beta1=true: found bool, expected float$"),
        ("label_names=a", r"label_names=a: found str, expected list\[str\] \| None$"),
        ("lr_scheduler_type=cosin", "--trainer lr_scheduler_type=cosin: cosin is not a valid SchedulerType"),
        ("optim=adm", "--trainer optim=adm: adm is not a valid OptimizerNames"),
        ("accelerator_config={zzz: true}", "accelerator_config=.*unexpected keyword argument 'zzz'"),
    ],
)
def test_bad_trainer_settings_are_rejected(tmp_path, word, message):
    folder = RunFolder(str(tmp_path), Some("out"))
    with pytest.raises(ValueError, match=message):
        training_arguments(folder, LoopArguments(trainer=[word]), 1)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("lr_scheduler_type=cosine", "cosine"),
        ("lr_scheduler_kwargs={}", {}),
        ("logging_steps=0.5", 0.5),
        ("learning_rate=1", 1),
        ("run_name=3", "3"),
        ("run_name=null", None),
        ("label_names=[a, b]", ["a", "b"]),
        ("activation_checkpointing_kwargs={use_reentrant: false}", {"use_reentrant": False}),
        ("save_strategy=no", "no"),
        ("bf16=false", False),
        ("report_to=none", []),
    ],
)
def test_every_kind_of_trainer_setting_can_be_passed(tmp_path, word, value):
    folder = RunFolder(str(tmp_path), Some("out"))
    settings = training_arguments(folder, LoopArguments(trainer=[word]), 1)
    assert getattr(settings, word.partition("=")[0]) == value


def test_the_default_is_plain_adam_and_the_trainer_flag_takes_precedence(tmp_path):
    folder = RunFolder(str(tmp_path), Some("out"))
    plain = training_arguments(folder, LoopArguments(batch_size=7, max_steps=5), 3, learning_rate=0.1)
    assert (plain.optim, plain.weight_decay, plain.max_grad_norm) == ("adamw_torch", 0.0, 0.0)
    assert (plain.lr_scheduler_type, plain.warmup_steps, plain.seed) == ("constant", 0, 3)
    assert (plain.per_device_train_batch_size, plain.max_steps, plain.learning_rate) == (7, 5, 0.1)
    assert plain.output_dir == str(tmp_path / "run")
    changed = training_arguments(
        folder, LoopArguments(trainer=["learning_rate=1e-3", "optim=sgd"]), 3, learning_rate=0.1
    )
    assert (changed.learning_rate, changed.optim, changed.max_steps) == (1e-3, "sgd", -1)


def test_processes_that_the_trainer_does_not_see_are_rejected(tmp_path, monkeypatch):
    folder = RunFolder(str(tmp_path), Some("out"))
    assert not training_arguments(folder, LoopArguments(), 1).use_cpu
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(
        ValueError, match=r"2 processes were started, but the Trainer sees 1; .* use_cpu=true"
    ):
        training_arguments(folder, LoopArguments(trainer=["use_cpu=false"]), 1)


def test_a_line_of_scores_holds_scores_only(capsys):
    summary(
        "out",
        {"eval_las": 81.234, "eval_runtime": 3.0, "eval_steps_per_second": 2.0, "epoch": 1.0, "words": 7},
    )
    assert capsys.readouterr().err.strip() == "out: las 81.23"


def test_brackets_and_long_lines_are_printed_literally(capsys):
    text = "id dev[:500] [bold]x[/bold] " + "word " * 60
    say(text, "yellow")
    assert capsys.readouterr().err == text + "\n"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["accelerate", "launch", "--cpu", "--num_processes", "2", "s.py"], True),
        (["accelerate", "launch", "--num-processes=3", "s.py"], True),
        (["accelerate", "launch", "--num_processes", "1", "s.py"], False),
        (["torchrun", "--nproc_per_node", "2", "s.py"], False),
        (["accelerate", "launch", "--num_processes"], False),
    ],
)
def test_a_launcher_that_started_too_few_processes_is_reported(monkeypatch, capsys, command, expected):
    parent = SimpleNamespace(cmdline=lambda: command)
    monkeypatch.setattr(psutil, "Process", lambda: SimpleNamespace(parent=lambda: parent))
    warn_if_alone(1)
    assert ("torchrun --nproc_per_node" in capsys.readouterr().err) is expected


def test_no_warning_without_a_parent_process(monkeypatch, capsys):
    monkeypatch.setattr(psutil, "Process", lambda: SimpleNamespace(parent=lambda: None))
    warn_if_alone(1)
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_accelerate_launch_on_a_cpu_is_recognised(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from hf_xst.commands.training import warn_if_alone\nwarn_if_alone(1)\n")
    command = [
        sys.executable,
        "-m",
        "accelerate.commands.accelerate_cli",
        "launch",
        "--cpu",
        "--num_processes",
        "2",
    ]
    done = subprocess.run([*command, str(script)], capture_output=True, text=True, timeout=300, check=True)
    assert "2 processes were requested, but 1 started" in done.stderr


def test_a_truncated_checkpoint_is_skipped(tmp_path):
    folder = begun(tmp_path / "out")
    whole = add_checkpoint(folder, 10)
    for step, left in ((20, ""), (30, '{"global_step": 3')):
        (add_checkpoint(folder, step) / "trainer_state.json").write_text(left)
    assert folder.last_checkpoint() == str(whole)


def test_a_run_resumes_only_with_the_same_inputs(tmp_path):
    folder = begun(tmp_path / "out")
    folder.check_inputs({"sentences": "a", "initial parameters": "b"}, resumed=False)
    folder.check_inputs({"sentences": "a", "initial parameters": "b"}, resumed=True)
    with pytest.raises(ValueError, match=r"was begun with other sentences; restore them to resume"):
        folder.check_inputs({"sentences": "c", "initial parameters": "b"}, resumed=True)
    folder.check_inputs({"sentences": "c", "initial parameters": "b"}, resumed=False)  # begun anew
    folder.check_inputs({"sentences": "c", "initial parameters": "b"}, resumed=True)
