"""Small invented sentences for the tests of reading and preparing data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

Row = tuple[str, str, str, str]  # form, UPOS, head, relation


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Write a file below the test's temporary folder and return its path."""

    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


def conllu(rows: Sequence[Row], sent_id: str | None = None) -> str:
    """Format one sentence as CoNLL-U."""
    comment = "" if sent_id is None else f"# sent_id = {sent_id}\n"
    lines = [
        f"{n}\t{form}\t_\t{upos}\t_\t_\t{head}\t{deprel}\t_\t_\n"
        for n, (form, upos, head, deprel) in enumerate(rows, 1)
    ]
    return f"{comment}{''.join(lines)}\n"


@pytest.fixture
def sentence_text() -> Callable[..., str]:
    return conllu


@pytest.fixture
def tiny() -> str:
    """Two sentences, the second without a sent_id."""
    first = [
        ("Mira", "PROPN", "2", "nsubj:pass"),
        ("lauft", "VERB", "0", "root"),
        (".", "PUNCT", "2", "punct"),
    ]
    return conllu(first, "one") + conllu([("Ja", "INTJ", "0", "root")])
