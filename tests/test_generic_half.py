"""The generic half names nothing of trees and tags, and imports go downwards only."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGE = REPOSITORY / "src" / "hf_xst"
GENERIC = ("charts", "training")
SPECIFIC = ("arc", "head", "dependent", "deprel", "tree", "tag", "upos")
FORBIDDEN = frozenset(SPECIFIC) | {f"{word}s" for word in SPECIFIC}
FILES = [path for folder in GENERIC for path in sorted((PACKAGE / folder).rglob("*.py"))]
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def parts(identifier: str) -> set[str]:
    """Split snake case and camel case: `best_headWord2` is best, head, word and 2."""
    return {part.lower() for part in _PART.findall(identifier)}


def identifiers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every name in a module with its line, from variables to imports."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield line, name
            case ast.keyword(arg=str(name)) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield line, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield line, name
            case ast.alias(name=name, asname=other):
                yield line, name.rsplit(".", 1)[-1]
                yield line, other or ""
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                yield from ((line, name) for name in names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_identifier_speaks_of_trees_or_tags(path):
    found = [
        f"line {line}: {name}"
        for line, name in identifiers(ast.parse(path.read_text(encoding="utf-8")))
        if parts(name) & FORBIDDEN
    ]
    assert not found


def test_the_generic_half_is_there():
    assert {path.relative_to(PACKAGE).parts[0] for path in FILES} >= {"charts", "training"}
    assert len(FILES) > 10


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f(arcScores): pass", "arcScores"),
        ("class BestTree: pass", "BestTree"),
        ("x = row.upos_ids", "upos_ids"),
        ("f(heads=1)", "heads"),
        ("from a import b as HTTPTag", "HTTPTag"),
        ("import a.dependents", "dependents"),
        ("try: pass\nexcept E as deprel: pass", "deprel"),
        ("head_2 = 1", "head_2"),
    ],
)
def test_the_check_finds_names_of_all_kinds(code, expected):
    assert expected in [name for _, name in identifiers(ast.parse(code)) if parts(name) & FORBIDDEN]


@pytest.mark.parametrize(
    "name", ["search", "ahead", "target", "tagger", "treebank", "street", "stage", "archive"]
)
def test_words_that_only_hold_such_a_name_are_free(name):
    assert not parts(name) & FORBIDDEN


def test_imports_go_downwards_only():
    tool = shutil.which("lint-imports", path=str(Path(sys.executable).parent)) or shutil.which("lint-imports")
    if tool is None:
        pytest.skip("import-linter is not installed (pip install -e .[dev])")
    done = subprocess.run([tool, "--no-cache"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
