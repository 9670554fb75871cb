"""Flags, YAML files, help and errors of the command line."""

from __future__ import annotations

import errno
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, fields
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Literal

import datasets
import pytest
import transformers.utils.logging
import yaml

import hf_xst_cli
from hf_xst import cli
from hf_xst.records import option, required


@pytest.fixture(autouse=True)
def restored_libraries():
    """Commands silence progress bars and, by rank, the console."""
    yield
    cli.console.quiet = False
    transformers.utils.logging.enable_progress_bar()
    datasets.disable_progress_bars()


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """Output options."""

    output: str = required("Folder.")


@dataclass(frozen=True, kw_only=True)
class ExampleOptions(OutputOptions):
    """Process 10 % of the input."""

    rate: float | None = option("A rate, at most 100 %.")
    number: int | None = option("A number.", 8)
    keep: bool = option("Keep it.", True)
    more: bool = option("More of it.", False)
    kind: Literal["a", "b"] = option("Which kind.", "a")
    names: list[str] = option("Names.", ["x", "y"])
    numbers: list[int] = option("Numbers.", [])
    long_name: str | None = option("A long name.")


def parse(*words, kind=ExampleOptions, positional=None):
    return cli.parse(kind, "hf-xst example", "Process an example.", words, positional)


def write(path, content) -> str:
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(path)


def usage_error(capsys, *words) -> str:
    with pytest.raises(SystemExit) as caught:
        parse(*words)
    assert caught.value.code == 2
    return capsys.readouterr().err


def test_flags_of_every_type():
    words = "--output o --rate 1e-3 --more --no-keep --names p q=1 --kind b --numbers 1 -2"
    assert parse(*words.split()) == ExampleOptions(
        output="o", rate=1e-3, more=True, keep=False, names=["p", "q=1"], kind="b", numbers=[1, -2]
    )
    expected = ExampleOptions(output="-", keep=False, number=-3, names=[], long_name="n")
    for name in ("--long-name", "--long_name"):
        assert parse("--output=-", "--keep", "false", "--number", "-3", "--names", name, "n") == expected


def test_flags_take_precedence_over_a_yaml_file(tmp_path):
    config = write(
        tmp_path / "c.yaml",
        "output: o\nrate: 1e-3\nkeep: false\nmore: true\nnames: [p, 2, 0.5]\nlong-name: x\nnumber: null\n",
    )
    in_file = {"output": "o", "more": True, "long_name": "x"}
    assert parse(config) == ExampleOptions(
        **in_file, rate=1e-3, keep=False, names=["p", "2", "0.5"], number=None
    )
    changed = parse(config, "--rate", "0.5", "--keep", "--names", "z", "--number", "3")
    assert changed == ExampleOptions(**in_file, rate=0.5, names=["z"], number=3)


@pytest.mark.parametrize("text", ["no", "on", "1.10", "1e5", "2026-11-29", "0x1F", "Null0", "none"])
def test_yaml_scalars_keep_their_text_in_string_options(tmp_path, text):
    config = write(
        tmp_path / "c.yaml", f"output: {text}\nlong_name: {text}\nnames: [{text}]\nkind: a\nmore: on\n"
    )
    assert parse(config) == ExampleOptions(output=text, long_name=text, names=[text], more=True)
    config = write(tmp_path / "c.yaml", f"output: o\nnames:\n  {text}: models/{text}\n  b: {text}\n")
    assert parse(config).names == [f"{text}=models/{text}", f"b={text}"]


def test_yaml_mappings_become_key_value_words(tmp_path):
    names = {"a": "text", "b": True, "c": None, "d": [1, "y", {"e": 2}], "e": 1e-4}
    config = write(tmp_path / "c.yml", {"output": "o", "names": names})
    assert parse(config).names == ["a=text", "b=true", "c=null", 'd=[1, "y", {"e": 2}]', "e=0.0001"]


@pytest.mark.parametrize("empty", ["[]", "{}"])
def test_empty_lists_and_null_replace_defaults(tmp_path, empty):
    config = write(tmp_path / "c.yaml", f"output: o\nnames: {empty}\nnumber: null\nlong_name:\nrate: ~\n")
    assert parse(config) == ExampleOptions(output="o", names=[], number=None)


def test_a_tilde_is_the_home_folder_wherever_a_path_begins(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/kim")
    config = write(tmp_path / "c.yaml", "output: ~/o\nnames: [a=~/x, 'train=~/y,dev=~']\n")
    expected = ExampleOptions(output="/kim/o", names=["a=/kim/x", "train=/kim/y,dev=/kim"])
    assert parse(config) == expected
    assert parse("--output=~/o", "--long-name", "a~/b~ ~c/~/").output == "/kim/o"
    assert parse("--output=o", "--long-name", "a~/b~ ~c/~/").long_name == "a~/b~ ~c/~/"


@pytest.mark.parametrize("name", ["stdin", "stdout", "stderr"])
def test_standard_streams_may_be_closed(monkeypatch, name):
    monkeypatch.setattr(sys, name, None)
    assert hf_xst_cli.main(["--help"]) == 0
    assert hf_xst_cli.main(["nothing"]) == 2
    getattr(sys, name).close()


@pytest.mark.parametrize("positional", ["long_name", "names"])
def test_first_word_sets_the_positional_option(tmp_path, positional):
    single = positional == "long_name"
    for word in ("a.conllu", "-"):
        options = parse(word, "--output", "o", positional=positional)
        assert getattr(options, positional) == (word if single else [word])
    config = write(tmp_path / "c.yaml", "output: o\nlong_name: from-file\n")
    assert parse(config, positional=positional).long_name == "from-file"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--output o --raet 3", "unknown flag --raet; did you mean --rate?"),
        ("--output o --longname 3", "did you mean --long-name?"),
        ("--out o", "unknown flag --out; did you mean --output?"),
        ("--output o --no-names", "unknown flag --no-names"),
        ("--output o -x", "unexpected -x"),
        ("--output o stray", "unexpected stray"),
        ("--output o c.yaml", "unexpected c.yaml; a YAML file must come first"),
        ("--rate 3", "required: --output"),
        ("--output o --rate high", "--rate: invalid float value: 'high'"),
        ("--output o --kind c", "--kind: invalid choice: 'c'"),
        ("--output o --keep maybe", "--keep: expected true or false, found 'maybe'"),
        ("--output o --names a --names=b", "--names was passed twice; pass it once, followed by all"),
    ],
)
def test_wrong_flags_exit_with_2(capsys, words, message):
    assert message in usage_error(capsys, *words.split())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("output: o\nraet: 3\n", "c.yaml: unknown option raet; did you mean --rate?"),
        ("output: o\nnames: [a]\nnames: [b]\n", "c.yaml: duplicate option names"),
        ("output: [a, b]\n", "c.yaml: output takes a single value"),
        ("- output\n", "c.yaml: expected a mapping of option names to values"),
        ("", "c.yaml: expected a mapping of option names to values"),
        ("output: {\n", "c.yaml is not valid YAML: while parsing a flow"),
        ("output: o\n---\nrate: 3\n", "c.yaml is not valid YAML: expected a single document"),
        ("output: *o\n", "c.yaml is not valid YAML: found undefined alias"),
        ("? [rate]\n: 3\n", 'unknown option ["rate"]'),
        ("output: o\nrate: high\n", "invalid float value: 'high'"),
        ("rate: 3\n", "required: --output"),
        ("output: null\n", "required: --output"),
        ("output: o\nkind: c\n", "invalid choice: 'c'"),
        ("output: o\nkeep: maybe\n", "expected true or false"),
    ],
)
def test_wrong_yaml_files_exit_with_2(tmp_path, capsys, content, message):
    assert message in usage_error(capsys, write(tmp_path / "c.yaml", content))


def test_missing_yaml_file_exits_with_2(tmp_path, capsys):
    assert "missing.yaml" in usage_error(capsys, str(tmp_path / "missing.yaml"))


def test_help_of_a_command_is_grouped_by_data_class(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as caught:
        parse("--help", positional="names")
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert "usage: hf-xst example [CONFIG.yaml] [NAMES] [--FLAG VALUE ...]" in shown
    assert 0 < shown.index("Process 10 % of the input:") < shown.index("Output options:")
    lines = {line.split("  ")[1]: line for line in shown.splitlines() if line.startswith("  --")}
    assert lines["--rate RATE"].endswith("A rate, at most 100 %.")
    assert lines["--number NUMBER"].endswith("A number. (default: 8)")
    assert lines["--output OUTPUT"].endswith("Folder. (required)")
    assert lines["--keep, --no-keep"].endswith("Keep it. (default: True)")
    assert lines["--more"].endswith("More of it.")
    assert lines["--names [NAMES ...]"].endswith("Names. (default: x y)")
    assert lines["--kind {a,b}"].endswith("(default: a)")
    assert "--long-name LONG-NAME" in lines


@pytest.mark.parametrize("name", hf_xst_cli.COMMANDS)
def test_every_command_has_help_and_reads_its_own_configuration(name, capsys, tmp_path):
    identifier = name.replace("-", "_")
    module = import_module(f"hf_xst.commands.{identifier}")
    assert callable(vars(module)[identifier])
    with pytest.raises(SystemExit) as caught:
        hf_xst_cli.main([name, "--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert hf_xst_cli.COMMANDS[name].help in " ".join(shown.split())
    kind = vars(module)[f"{name.title().replace('-', '')}Arguments"]
    shown_fields = [field for field in fields(kind) if "help" in field.metadata]
    for field in shown_fields:
        assert re.search(f"^  --{field.name.replace('_', '-')}\\b", shown, re.MULTILINE)
    needed = [field for field in fields(kind) if field.default is field.default_factory]  # both MISSING
    options = kind(**{field.name: ["a=b"] if field.type == "list[str]" else "1e5" for field in needed})
    config = {field.name: getattr(options, field.name) for field in shown_fields}
    assert parse(write(tmp_path / "config.yaml", config), kind=kind) == options


def test_overall_help_lists_all_commands_on_one_screen(capsys):
    assert hf_xst_cli.main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) <= 30
    assert max(map(len, shown.splitlines())) <= 80
    for name, command in hf_xst_cli.COMMANDS.items():
        assert re.search(f"^  {name} +{re.escape(command.help)}$", shown, re.MULTILINE)
    assert hf_xst_cli.main([]) == 2
    assert capsys.readouterr().err == shown
    assert hf_xst_cli.main(["trasnfer"]) == 2
    assert "unknown command trasnfer; did you mean transfer?" in capsys.readouterr().err
    assert hf_xst_cli.main(["--version"]) == 0
    assert re.fullmatch(r"hf-xst [\d.]+\S*\n", capsys.readouterr().out)


def test_overall_help_imports_nothing_slow():
    code = (
        "import sys, hf_xst_cli\n"
        "hf_xst_cli.main(['--help'])\n"
        "slow = {'torch', 'transformers', 'datasets', 'numpy', 'yaml', 'hf_xst'} & set(sys.modules)\n"
        "sys.exit(f'imported {slow}' if slow else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "train-source" in done.stdout


@pytest.fixture
def run_raising(monkeypatch):
    """Run a command that raises an error, or none."""

    def run(error: BaseException | None, resumes: bool = False) -> int:
        def example(arguments):
            if error is not None:
                raise error

        module = ModuleType("hf_xst.commands.example")
        module.example, module.ExampleArguments = example, OutputOptions
        monkeypatch.setitem(sys.modules, module.__name__, module)
        return cli.run("example", hf_xst_cli.Command("Raise.", resumes), ["--output", "o"])

    return run


@pytest.mark.parametrize(
    ("error", "resumes", "status", "message"),
    [
        (ValueError("the reason"), False, 1, "hf-xst example: the reason\n"),
        (FileNotFoundError(2, "No such file", "x.conllu"), False, 1, "x.conllu"),
        (ImportError("install gradio"), False, 1, "hf-xst example: install gradio\n"),
        (RuntimeError("2 jobs failed"), True, 1, "hf-xst example: 2 jobs failed\n"),
        (
            MemoryError(),
            False,
            1,
            "hf-xst example: out of memory; lower the batch size, or the longest length of sentences\n",
        ),
        (
            RuntimeError("CUDA out of memory.\nTried 2 GiB"),
            False,
            1,
            "CUDA out of memory. Tried 2 GiB; lower the batch size",
        ),
        (RuntimeError(), False, 1, "hf-xst example: unexpected RuntimeError: "),
        (RecursionError("too deep"), False, 1, "hf-xst example: an input is nested too deeply (too deep)\n"),
        (KeyError("names"), False, 1, "hf-xst example: unexpected KeyError: 'names'; is an input damaged"),
        (OSError(errno.ENOSPC, "Full", "x"), False, 1, "hf-xst example: x: Full; free disk space\n"),
        (OSError(errno.EMFILE, "Many"), False, 1, "hf-xst example: Many; raise the limit of open files"),
        (ValueError("first\n  second"), False, 1, "hf-xst example: first second\n"),
        (ValueError("a" * 9000 + "do this"), False, 1, "aa ... aa"),
        (ValueError("a" * 9000 + "do this"), False, 1, "do this\n"),
        (KeyboardInterrupt(), False, 130, "\nstopped\n"),
        (KeyboardInterrupt(), True, 130, "\nstopped; run the same command again to resume\n"),
    ],
)
def test_expected_errors_are_one_line_without_traceback(capsys, run_raising, error, resumes, status, message):
    assert run_raising(error, resumes) == status
    captured = capsys.readouterr()
    assert message in captured.err
    assert len(captured.err.strip().splitlines()) == 1
    assert captured.out == ""


def test_traceback_is_shown_on_request(capsys, monkeypatch, run_raising):
    monkeypatch.setenv("HF_XST_TRACEBACK", "1")
    assert run_raising(ValueError("the reason")) == 1
    shown = capsys.readouterr().err
    assert "in example" in shown
    assert shown.endswith("hf-xst example: the reason\n")


def test_only_the_first_process_prints_and_redirected_output_has_no_bars(monkeypatch, run_raising):
    monkeypatch.setattr(cli.console, "quiet", False)  # for the tests after this one
    for rank, quiet in (("0", False), ("1", True)):
        monkeypatch.setenv("RANK", rank)
        assert run_raising(None) == 0
        assert cli.console.quiet is quiet
    assert datasets.are_progress_bars_disabled()
    assert not transformers.utils.logging.is_progress_bar_enabled()


@pytest.mark.slow
def test_closed_pipe_is_not_an_error():
    code = (
        "import sys, hf_xst_cli, hf_xst.commands.predict as command\n"
        "def predict(arguments):\n"
        "    for _ in range(100000):\n"
        "        print('a line')\n"
        "command.predict = predict\n"
        "sys.exit(hf_xst_cli.main(['predict', '--model', 'm', '--input', 'i']))\n"
    )
    shell = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)} | head -n 1"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
    assert done.stdout == "a line\n"
    assert "Broken pipe" not in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="the allocator of glibc")
@pytest.mark.parametrize("name", ["", "MALLOC_ARENA_MAX", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES"])
def test_memory_settings_of_the_user_have_precedence(monkeypatch, name):
    for each in [key for key in os.environ if key.startswith(("MALLOC_", "GLIBC_TUNABLES"))]:
        monkeypatch.delenv(each)
    if name:
        monkeypatch.setenv(name, "1")
    calls = []
    library = SimpleNamespace(mallopt=lambda *setting: calls.append(setting))
    monkeypatch.setattr(cli.ctypes, "CDLL", lambda path: library)
    cli._keep_freed_memory()
    assert len(calls) == (0 if name else 2)
