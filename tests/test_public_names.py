"""The package's public names: typed for whoever checks types, and the same ones when it runs."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import hf_xst

PACKAGE = Path(hf_xst.__file__).parent


def test_type_checkers_see_the_names_that_there_are():
    block = next(
        node for node in ast.parse((PACKAGE / "__init__.py").read_text()).body if isinstance(node, ast.If)
    )
    seen = {
        alias.asname: getattr(import_module(str(node.module)), alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(seen) == hf_xst.__all__
    assert all(getattr(hf_xst, name) is found for name, found in seen.items())
    assert (PACKAGE / "py.typed").exists()
