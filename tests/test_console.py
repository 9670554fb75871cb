"""Hostile names and words neither control the terminal nor reorder text, at every exit."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from rich.table import Table

import hf_xst_cli
from hf_xst import cli
from hf_xst.console import FilteredConsole, print_table, printable
from hf_xst.drawing import tree_text
from hf_xst.drawing.views import ChartView
from hf_xst.structures import LinearChainCRF

HOSTILE = {
    "colour": "a\x1b[31mb",
    "title of the window": "a\x1b]0;x\x07b",
    "C1 control": "a\x9b2Jb",
    "backspace": "a\x08b",
    "carriage return": "a\rb",
    "override": "a\u202eb",
    "embedding": "a\u202bb",
    "isolate": "a\u2067b",
    "line separator": "a\u2028b",
    "half of a pair": "a\udc9bb",
}
MARKUP = ["[red]a[/red]", "[/]", "[link=file:///x]a"]


def shown_on_a_console(content: object) -> str:
    stream = io.StringIO()
    FilteredConsole(file=stream, width=200).print(content)
    return stream.getvalue()


def line(text: str) -> str:
    return shown_on_a_console(text)


def table(text: str) -> str:
    content = Table(text, title=text)
    content.add_row(text)
    return shown_on_a_console(content)


def tree(text: str) -> str:
    return tree_text([text], [0], [text], [text])


def chart(text: str) -> str:
    names = [text, "<start>", "<end>"]
    space = LinearChainCRF(torch.zeros(1, 2, 3, 3))
    return ChartView(space, names, torch.ones(2, 9, dtype=torch.bool), [text]).drawing().text


def error(text: str) -> str:
    return cli.explain(ValueError(f"{text}: expected another"))


def log(text: str) -> str:
    return cli._Record("x", logging.WARNING, "", 1, "%s", (text,), None).getMessage()


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("exit_of", [line, table, tree, chart, error, log])
def test_controls_are_replaced(exit_of: Callable[[str], str], kind: str) -> None:
    shown = exit_of(HOSTILE[kind])
    assert printable(shown, "\n") == shown
    assert "b" in shown.replace("table", "")


@pytest.mark.parametrize("text", MARKUP)
@pytest.mark.parametrize("exit_of", [line, table])
def test_markup_is_shown_literally(exit_of: Callable[[str], str], text: str) -> None:
    assert text in exit_of(text)


@pytest.mark.parametrize(
    "text", ["naïve café", "می\u200cخواهم", "שלום\u200f!", "👩\u200d💻", "क्\u200dष", "王芳"]
)
def test_texts_of_any_language_stay(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize("kind", ["colour", "override", "C1 control", "backspace"])
def test_commands_show_no_controls(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = HOSTILE[kind]
    path = tmp_path / "x.conllu"
    tail = "_\tX\t_\t_\t0\troot\t_\t_\n\n"
    path.write_text(f"# sent_id = {name}\n1\t{name}\t{tail}", encoding="utf-8", newline="\n")
    monkeypatch.setenv("HF_XST_TRACEBACK", "1")
    for words in (
        ["show", str(path)],
        ["show", str(tmp_path / name)],
        ["show", f"--{name}"],
        ["show", "--format", name],
        ["show", str(path), "--sent-id", name, "missing"],
        [f"sho{name}"],
    ):
        try:
            hf_xst_cli.main(words)
        except SystemExit:
            pass
    captured = capsys.readouterr()
    assert captured.out
    assert captured.err
    for shown in captured:
        assert printable(shown, "\n") == shown


@pytest.mark.parametrize("columns", [1, 3, 30])
@pytest.mark.parametrize("width", [1, 10, 80, 300])
def test_no_number_of_a_table_is_cut(columns: int, width: int) -> None:
    numbers = [f"{index}.123456789" for index in range(columns)]
    content = Table("a source with a long name", *numbers, title="title")
    content.add_row("en", *(f"-{number}" for number in numbers))
    stream = io.StringIO()
    print_table(content, FilteredConsole(file=stream, width=width))
    assert set(stream.getvalue().split()) >= {*numbers, *(f"-{number}" for number in numbers)}
