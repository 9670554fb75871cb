"""Escaping of names for Markdown, and commands without paths."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_xst.hub.markdown import Markdown, block, cell, code, plain, strip_command, strip_paths, to_markdown

# In two parts, so that this file contains no absolute path.
HOME = "/home" + "/me"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (f"/opt/x/bin/hf-xst demo --output {HOME}/runs/demo", "hf-xst demo --output demo"),
        ("hf-xst a --sources en=/a/b/en de=user/de@v1 c/d", "hf-xst a --sources en=en de=user/de@v1 d"),
        (
            "hf-xst a --treebank train=/a/x.conllu,dev=b/y.conllu",
            "hf-xst a --treebank train=x.conllu,dev=y.conllu",
        ),
        ("hf-xst a --output ./runs/x/ --data ../ud ~/v.vec", "hf-xst a --output x --data ud v.vec"),
        ("hf-xst a --text '/a b/c d.txt'", "hf-xst a --text 'c d.txt'"),
        (r"hf-xst a --text 'C:\Users\me\t.txt' C:\\Users\\me", "hf-xst a --text t.txt '~'"),
        (f"hf-xst a --output {HOME}", "hf-xst a --output '~'"),
        (
            "hf-xst a --trainer hub_token=hf_abc learning_rate=1e-3",
            "hf-xst a --trainer hub_token=... learning_rate=1e-3",
        ),
        ("python scripts/train.py file:///a/b/c", "python train.py c"),
        ("hf-xst a 'two\nlines' --split 'train[:500]'", "hf-xst a 'two lines' --split 'train[:500]'"),
        ("", ""),
    ],
)
def test_strip_command(command: str, expected: str) -> None:
    assert strip_command(command, {"user/de"}) == expected


@given(st.lists(st.text("ab/\\.~-", min_size=1, max_size=6), min_size=1, max_size=4))
def test_strip_paths_removes_every_folder(segments: list[str]) -> None:
    assert not set("/\\") & set(strip_paths("/" + "/".join(segments)))


@given(st.text())
def test_names_contain_no_marks_and_no_line_breaks(text: str) -> None:
    for style in (plain, code, cell):
        assert "\n" not in style(text)
        assert "<!--" not in style(text)
    assert "|" not in cell(text).replace("\\|", "")
    assert "<!--" not in block(text)


@given(st.text("a`", max_size=8))
def test_inline_code_is_fenced_by_more_ticks_than_it_contains(text: str) -> None:
    markdown = str(code(text))
    fence = markdown[: len(markdown) - len(markdown.lstrip("`"))]
    inner = markdown[len(fence) : -len(fence)]
    assert markdown.endswith(fence)
    assert inner.strip(" ") == text.strip(" ")
    assert fence not in inner


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_missing_values_raise(value: float | None) -> None:
    with pytest.raises(ValueError, match="expected a fact"):
        to_markdown(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, "yes"),
        (12345, "12,345"),
        (1e-9, "1e-09"),
        (0.95, "0.95"),
        ("it_isdt", "it_isdt"),
        ("_x_", "\\_x\\_"),
        ("a*b|c<d>&", "a\\*b\\|c&lt;d&gt;&amp;"),
        (Markdown("*x*"), "*x*"),
    ],
)
def test_to_markdown(value: object, expected: str) -> None:
    assert to_markdown(value) == expected
