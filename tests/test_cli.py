"""Flags, YAML files, help and errors of the command line."""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import Literal

import datasets
import pytest
import torch.distributed
import transformers.utils.logging
import yaml

import hf_xst_cli
from hf_xst import cli
from hf_xst.commands.options import (
    BuildChartsArguments,
    EvaluateArguments,
    PredictArguments,
    TrainSourceArguments,
    TransferArguments,
    option,
    required,
)
from hf_xst.experiments.workers import FailedCellsError


@pytest.fixture(autouse=True)
def libraries_as_they_were():
    """Commands silence progress bars and, by rank, the console."""
    yield
    cli.console.quiet = False
    transformers.utils.logging.enable_progress_bar()
    datasets.disable_progress_bars()


def parsed(kind, *words):
    return cli.parse(kind, "hf-xst some", "Some command.", words)


@dataclass(kw_only=True)
class Base:
    """Where it goes."""

    output: str = required("Folder.")


@dataclass(kw_only=True)
class Some(Base):
    """Do something to 10 % of it."""

    rate: float | None = option("A rate, at most 100 %.")
    number: int | None = option("A number.", 8)
    keep: bool = option("Keep it.", True)
    more: bool = option("More of it.", False)
    kind: Literal["a", "b"] = option("Which kind.", "a")
    names: list[str] = option("Names.", ["x"])
    long_name: str | None = option("A long name.")


def test_flags_of_every_type():
    found = parsed(
        Some, "--output", "o", "--rate", "1e-3", "--more", "--no-keep", "--names", "p", "q=1", "--kind", "b"
    )
    assert found == Some(output="o", rate=1e-3, more=True, keep=False, names=["p", "q=1"], kind="b")
    for spelling in ("--long-name", "--long_name"):
        assert parsed(Some, "--output", "o", spelling, "n").long_name == "n"
    assert parsed(Some, "--output=-", "--keep", "false", "--number", "-3") == Some(
        output="-", keep=False, number=-3
    )


def write(path, content) -> str:
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(path)


def test_a_yaml_file_stands_in_for_flags_and_flags_have_the_last_word(tmp_path):
    config = write(
        tmp_path / "c.yaml",
        "output: o\nrate: 1e-3\nkeep: false\nmore: true\nnames: [p, 2, 0.5]\nlong-name: x\nnumber: null\n",
    )
    expected = Some(
        output="o", rate=1e-3, keep=False, more=True, names=["p", "2", "0.5"], long_name="x", number=None
    )
    assert parsed(Some, config) == expected
    changed = parsed(Some, config, "--rate", "0.5", "--keep", "--names", "z", "--number", "3")
    assert changed == Some(output="o", rate=0.5, more=True, names=["z"], long_name="x", number=3)


def test_mappings_become_key_value_words(tmp_path):
    config = write(
        tmp_path / "c.yml",
        {"output": "o", "names": {"a": "text", "b": True, "c": None, "d": [1, "y"], "e": 1e-4}},
    )
    assert parsed(Some, config).names == ["a=text", "b=true", "c=null", 'd=[1, "y"]', "e=0.0001"]


def test_empty_lists_and_null_are_said(tmp_path):
    config = write(tmp_path / "c.yaml", {"output": "o", "names": [], "number": None, "rate": None})
    assert parsed(Some, config) == Some(output="o", names=[], number=None)


@pytest.mark.parametrize(
    "arguments",
    [
        TrainSourceArguments(
            output="o", treebank="t", model=["a=1"], updates=3, faulty="error", keep_states=False
        ),
        BuildChartsArguments(output="o", sources=["a=b", "c"], data=["x"], floor=0.0),
        TransferArguments(output="o", charts="c", start="none", updates=None, epochs=2.0, l2=0.0),
        EvaluateArguments(output="o", predictions="p", treebank="t", columns=["upos"]),
        PredictArguments(model="m", input=["-"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_runs_own_configuration_makes_the_same_run(tmp_path, arguments):
    config = {f.name: getattr(arguments, f.name) for f in fields(arguments)}
    assert parsed(type(arguments), write(tmp_path / "config.yaml", config)) == arguments


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--output", "o", "--raet", "3"], "there is no --raet; is --rate meant?"),
        (["--output", "o", "stray"], "there is no stray"),
        (["--rate", "3"], "required: --output"),
        (["--output", "o", "--rate", "high"], "invalid float value: 'high'"),
        (["--output", "o", "--kind", "c"], "invalid choice: 'c'"),
        (["--out", "o"], "there is no --out; is --output meant?"),
        (["--output", "o", "--names", "a", "--names=b"], "--names is given twice; give it once, with all"),
    ],
)
def test_wrong_flags_end_with_status_2_and_a_hint(capsys, words, message):
    with pytest.raises(SystemExit) as caught:
        parsed(Some, *words)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("output: o\nraet: 3\n", "c.yaml: there is no raet; is rate meant? (there are output, rate"),
        ("- output\n", "c.yaml: expected a mapping of names to values, found list"),
        ("", "c.yaml: expected a mapping of names to values, found NoneType"),
        ("output: {\n", "while parsing a flow"),
        ("output: o\nrate: high\n", "invalid float value: 'high'"),
        ("rate: 3\n", "required: --output"),
        ("output: o\nkind: c\n", "invalid choice: 'c'"),
        ("output: o\nkeep: maybe\n", "Truthy value expected"),
    ],
)
def test_wrong_files_end_with_status_2_and_a_hint(tmp_path, capsys, content, message):
    with pytest.raises(SystemExit) as caught:
        parsed(Some, write(tmp_path / "c.yaml", content))
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_a_file_that_is_not_there(tmp_path, capsys):
    with pytest.raises(SystemExit):
        parsed(Some, str(tmp_path / "none.yaml"))
    assert "none.yaml" in capsys.readouterr().err


def test_help_is_grouped_and_tells_only_defaults_that_say_something(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as caught:
        parsed(Some, "--help")
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert "Do something to 10 % of it:" in shown
    assert shown.index("Do something") < shown.index("Where it goes:")
    assert "A rate, at most 100 %.\n" in shown
    assert "A number. (default: 8)" in shown
    assert "Folder. (needed)" in shown
    assert "The opposite of --keep." in shown
    assert "--long-name LONG_NAME" in shown
    assert "long_name" not in shown
    assert "None" not in shown


def arguments_of(name):
    command = hf_xst_cli.COMMANDS[name]
    return import_module(command.module).__dict__[command.arguments]


@pytest.mark.parametrize("name", hf_xst_cli.COMMANDS)
def test_every_command_is_there_and_helps(name, capsys):
    command = hf_xst_cli.COMMANDS[name]
    assert callable(import_module(command.module).__dict__[command.function])
    with pytest.raises(SystemExit) as caught:
        hf_xst_cli.main([name, "--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert command.help.split(".")[0][:30] in shown
    for one in fields(arguments_of(name)):
        assert one.metadata["help"]
        assert f"--{one.name.replace('_', '-')}" in shown


def test_overall_help_lists_all_commands(capsys):
    for words, code in ((["--help"], 0), ([], 2), (["nonsense"], 2)):
        with pytest.raises(SystemExit) as caught:
            hf_xst_cli.main(words)
        assert caught.value.code == code
    told = capsys.readouterr()
    for name, command in hf_xst_cli.COMMANDS.items():
        assert name in told.out
        assert command.help[:20] in told.out
    assert "train-source" in told.err


def test_help_imports_nothing_heavy():
    """What takes its time is torch and transformers; without them help answers at once."""
    code = (
        "import sys, hf_xst_cli\n"
        "try: hf_xst_cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'transformers', 'datasets', 'numpy', 'yaml', 'hf_xst'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "train-source" in done.stdout


@dataclass(kw_only=True)
class Raising:
    """Raise something."""

    output: str = option("Folder.", "o")
    flags: list[str] = field(default_factory=list, metadata={"help": "Any."})


class Raised:
    """A command that raises what it was made with."""

    help = "Raise."
    module = __name__
    function = "raise_it"
    arguments = "Raising"

    def __init__(self, resumes: bool = False) -> None:
        self.resumes = resumes


ERROR: list[BaseException] = []


def raise_it(arguments: Raising) -> None:
    if ERROR:
        raise ERROR.pop()


@pytest.mark.parametrize(
    ("error", "resumes", "status", "told"),
    [
        (ValueError("what was found"), False, 1, "hf-xst some: what was found\n"),
        (FileNotFoundError(2, "No such file", "x.conllu"), False, 1, "x.conllu"),
        (ImportError("gradio is needed"), False, 1, "hf-xst some: gradio is needed\n"),
        (FailedCellsError("2 cells failed"), True, 1, "hf-xst some: 2 cells failed\n"),
        (KeyboardInterrupt(), False, 130, "\nstopped\n"),
        (KeyboardInterrupt(), True, 130, "the same command goes on from here"),
    ],
)
def test_errors_are_told_without_a_traceback(capsys, error, resumes, status, told):
    ERROR.append(error)
    assert cli.run(Raised(resumes), "some", []) == status
    captured = capsys.readouterr()
    assert told in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_where_an_error_was_raised_is_shown_on_request(capsys, monkeypatch):
    monkeypatch.setenv("HF_XST_TRACEBACK", "1")
    ERROR.append(ValueError("what was found"))
    assert cli.run(Raised(), "some", []) == 1
    told = capsys.readouterr().err
    assert "in raise_it" in told
    assert told.endswith("hf-xst some: what was found\n")


def test_a_mistake_of_the_programs_own_is_not_hidden():
    ERROR.append(KeyError("internal"))
    with pytest.raises(KeyError):
        cli.run(Raised(), "some", [])


def test_only_the_first_process_speaks_and_files_get_no_bars(monkeypatch):
    for rank, quiet in (("0", False), ("1", True)):
        monkeypatch.setenv("RANK", rank)
        assert cli.run(Raised(), "some", []) == 0
        assert cli.console.quiet is quiet
    assert datasets.are_progress_bars_disabled()
    assert not transformers.utils.logging.is_progress_bar_enabled()


def test_a_process_group_is_left_in_order(monkeypatch):
    left = []
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "destroy_process_group", lambda: left.append(True))
    ERROR.append(ValueError("any"))
    assert cli.run(Raised(), "some", []) == 1
    assert left == [True]


@pytest.mark.slow
def test_a_reader_that_stops_early_is_no_error(monkeypatch, tmp_path):
    code = (
        "import sys, hf_xst_cli, hf_xst.commands.predict as job\n"
        "def predict(arguments):\n"
        "    for _ in range(100000):\n"
        "        print('a line')\n"
        "job.predict = predict\n"
        "sys.exit(hf_xst_cli.main(['predict', '--model', 'm', '--input', 'i']))\n"
    )
    shell = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)} | head -n 1"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
    assert done.stdout == "a line\n"
    assert "Broken pipe" not in done.stderr
