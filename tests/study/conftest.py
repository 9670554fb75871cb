"""A small study for tests of its configuration and its jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from configuration import overlay

SMALL: dict[str, Any] = {
    "sources": {
        "en": {"train": "en.conllu", "dev": "en-dev.conllu", "test": "en-test.conllu"},
        "de": {"train": ["de.conllu", "de2.conllu"], "init_from": "en", "train_source": {"max_steps": 5}},
        "joined": {"train": "joined.conllu", "pool": False, "languages": ["en", "de"]},
    },
    "targets": {
        "fo": {"text": "fo.conllu", "text_split": "text[:600]", "test": "fo.conllu", "dev": "fo-dev.conllu"},
        "de": {"text": "de.conllu", "test": "de-test.conllu", "dev": "de-dev.conllu"},
    },
    "encoders": {
        "frozen": {
            "encoder": "models/e5",
            "train_source": {"encoder_layers": 6, "model": ["context_layers=1"], "max_steps": 100},
            "transfer": {"max_steps": 20, "trainer": ["save_strategy=no"]},
            "tagger": {"transfer": {"max_steps": 10}, "methods": {"pptx": {"l2": 0.5}}},
        },
        "vectors": {"vectors": "v.{code}.vec"},
    },
    "tasks": {"tagger": {}, "parser": {}},
    "labelled": 50,
}


@pytest.fixture
def write(tmp_path):
    def write_study(changes: dict[str, Any] | None = None, name: str = "small.yaml") -> Path:
        content = overlay(SMALL, changes or {}, "test")
        (tmp_path / name).write_text(yaml.safe_dump(content, sort_keys=False))
        return tmp_path / name

    return write_study
