"""The sentences that a run has seen, read again so that they can be sought in what is published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from hf_xst.data import load_treebank
from hf_xst.training.jobs.build_charts import load_charts
from hf_xst.training.runs import say

_CONFIG = "run/config.yaml"


def training_sentences(folder: Path) -> list[list[str]]:
    """Read the sentences that the model in a folder was trained or tested on, if they can still be read.

    Args:
        folder: what train-source or transfer wrote; its `run/config.yaml` says where the sentences are.

    Returns:
        Lists of words; none where nothing is recorded. What cannot be read any more is told at the console.
    """
    place = folder / _CONFIG
    if not place.is_file():
        return []
    config: dict[str, Any] = yaml.safe_load(place.read_text(encoding="utf-8")) or {}
    try:
        return [list(words) for rows in _sources(config) for words in rows]
    except (ValueError, OSError) as problem:
        say(
            "the training sentences cannot be read again, so the files are not searched for them "
            f"({' '.join(str(problem).split())})",
            "yellow",
        )
        return []


def _sources(config: dict[str, Any]) -> Iterator[Sequence[Sequence[str]]]:
    if config.get("charts"):
        yield load_charts(config["charts"])[0]["words"]
    if config.get("treebank"):
        for rows in load_treebank(config["treebank"], data_roots=config.get("data") or ()).values():
            yield rows["tokens"]
