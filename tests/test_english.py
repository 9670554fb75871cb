"""The prose of the project keeps to the field's terms."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
# Phrases that read as translated, each with what to write instead.
PHRASES = {
    r"\b(is|are|was|were|be) told\b": "given, passed, reported, logged",
    r"\btells? of\b": "warns, reports",
    r"\bas (it|they) stands?\b": "decoded pool, unchanged",
    r"\b(there|that) is none\b": "missing, empty, not found",
    r"\bis none of\b": "is not one of",
    r"\bnumbers? that (is|are) none\b": "NaN or infinite",
    r"\bno number\b": "not a number, NaN",
    r"\bin the mean\b": "on average",
    r"\bhas the last word\b": "takes precedence",
    r"\(needed\)": "(required)",
    r"\bwithout a word\b": "silently",
    r"\bof two minds\b": "mixed inputs",
    r"\bstands? twice\b": "duplicate",
    r"\bopinions of (the )?(source|model)s?\b": "source distributions",
    r"\b(kept|ready) states?\b": "cached embeddings",
    r"(?<![\"_])\brecipes?\b(?!: published)": "preset",
    r"\bcoarse tags?\b": "UPOS tags",
    r"(?<!geometric )(?<!arithmetic )mean of (the|its|their) sources\b": "average of the sources",
    r"\bfresh(ly)? (made )?model\b": "model from scratch",
    r"\bgoes on (from|where|with)\b": "resumes, continues",
    r"\bwhat (it|they|this) (says?|is told)\b": "name the thing",
}
EXEMPT = {"tests/test_english.py", "CHANGELOG.md", "LICENSE"}


def prose() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.md", "*.yaml", "*.toml", "*.smk", "Snakefile"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    return [REPOSITORY / name for name in listed if name not in EXEMPT and (REPOSITORY / name).is_file()]


@pytest.mark.parametrize(("phrase", "instead"), PHRASES.items(), ids=list(PHRASES.values()))
def test_phrases_that_read_as_translated_stay_away(phrase, instead):
    files = prose()
    if not files:
        pytest.skip("not a git checkout: the tracked files are unknown")
    pattern = re.compile(phrase, flags=re.IGNORECASE)
    uses = [
        f"{path.relative_to(REPOSITORY)}:{number}: {line.strip()[:80]}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]
    assert not uses, f"write {instead!r} instead:\n" + "\n".join(uses)
