"""Names in the documents exist, the README starts with two commands, and no file contains local paths."""

from __future__ import annotations

import ast
import importlib
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hf_xst_cli import COMMANDS

REPOSITORY = Path(__file__).resolve().parent.parent
PAPER_MAP = REPOSITORY / "docs" / "paper_map.md"
# Written in two parts, so that this file holds none of them itself.
LOCAL_ROOTS = [f"/{folder}/" for folder in ("work", "root", "home", "Users")]
FIRST_LINES = 40


def quoted(pattern: str) -> list[str]:
    """Return what stands between backticks in the map and has a form, each once, in order."""
    found = re.findall(r"`([^`\n]+)`", PAPER_MAP.read_text(encoding="utf-8"))
    return list(dict.fromkeys(name for name in found if re.fullmatch(pattern, name)))


@cache
def functions_of(path: Path) -> set[str]:
    """Return the names of a file's functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def resolve(dotted: str) -> Any:
    """Import the longest part of a name that is a module, and take the rest from it."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for name in parts[count:]:
            found = getattr(found, name)
        return found
    raise ModuleNotFoundError(dotted)


@pytest.mark.parametrize("name", quoted(r"hf_xst(\.\w+)+"))
def test_every_function_of_the_map_exists(name):
    assert resolve(name) is not None


@pytest.mark.parametrize("name", quoted(r"[\w/]+\.py::\w+"))
def test_every_test_of_the_map_exists(name):
    path, function = name.split("::")
    assert (REPOSITORY / path).is_file(), f"{PAPER_MAP.name} names {path}, which is not there"
    assert function in functions_of(REPOSITORY / path), f"{path} has no {function}; it was renamed or removed"


@pytest.mark.parametrize("name", quoted(r"hf-xst [\w-]+"))
def test_every_command_of_the_map_exists(name):
    assert name.removeprefix("hf-xst ") in COMMANDS


def test_the_map_names_functions_tests_and_commands():
    assert len(quoted(r"hf_xst(\.\w+)+")) > 30
    assert len(quoted(r"[\w/]+\.py::\w+")) > 30
    assert quoted(r"hf-xst [\w-]+")


def test_the_readme_begins_with_two_commands():
    lines = (REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()[:FIRST_LINES]
    blocks = re.findall(r"^```sh\n(.*?)\n```$", "\n".join(lines), flags=re.MULTILINE | re.DOTALL)
    first = [block.splitlines() for block in blocks[:2]]
    assert len(first) == 2, f"README.md: expected two sh blocks within the first {FIRST_LINES} lines"
    for block, word in zip(first, ("hf-xst demo", "pytest"), strict=True):
        assert len(block) == 1, f"README.md: its first two sh blocks hold one command each, found {block}"
        assert block[0].endswith(word), f"README.md: expected {word!r} at the end of {block[0]!r}"


def test_no_file_holds_a_path_of_somebodys_machine():
    git = shutil.which("git")
    if git is None or not (REPOSITORY / ".git").exists():
        pytest.skip("not a git checkout: the tracked files are unknown")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, check=True)
    found = []
    for name in filter(None, listed.stdout.decode().split("\0")):
        path = REPOSITORY / name
        content = path.read_bytes() if path.is_file() else b""
        for number, line in enumerate(content.splitlines(), 1):
            found += [f"{name}:{number}: {root}" for root in LOCAL_ROOTS if local(root).search(line)]
    assert not found, "absolute paths of a machine:\n" + "\n".join(found)


@cache
def local(root: str) -> re.Pattern[bytes]:
    """Match a path that begins with the root; not one that has it in the middle, as `run/work/` does."""
    return re.compile(rb"(?<![\w.}~-])" + re.escape(root.encode()))


@pytest.mark.parametrize(
    ("line", "is_local"),
    [
        (f"see {LOCAL_ROOTS[0]}main", True),
        (f'"{LOCAL_ROOTS[1]}x"', True),
        (f"--data={LOCAL_ROOTS[2]}me", True),
        (f"run{LOCAL_ROOTS[0]}x", False),
        (f"https://example.org{LOCAL_ROOTS[2]}page", False),
    ],
)
def test_paths_of_a_machine_are_recognised(line, is_local):
    assert any(local(root).search(line.encode()) for root in LOCAL_ROOTS) == is_local
