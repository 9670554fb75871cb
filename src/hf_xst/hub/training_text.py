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
# Arguments of commands that say which sentences are read.
_NAMED = ("charts", "treebank", "dev_treebank")


def training_sentences(folder: Path, *, unsearched: bool = False) -> list[list[str]]:
    """Read the sentences that the model in a folder was trained or tested on.

    Args:
        folder: what train-source or transfer wrote; its `run/config.yaml` says where the sentences are.
        unsearched: warn of sentences that cannot be read any more, instead of refusing.

    Returns:
        Lists of words; none where nothing is recorded.

    Raises:
        ValueError: some cannot be read any more.
    """
    place = folder / _CONFIG
    if not place.is_file():
        return []
    config: dict[str, Any] = yaml.safe_load(place.read_text(encoding="utf-8")) or {}
    found: list[list[str]] = []
    for name in _NAMED:
        try:
            found += [list(words) for rows in _sentences(name, config) for words in rows]
        except (ValueError, OSError) as problem:
            told = (
                f"the sentences of {name} {config[name]} cannot be read again, so that the files cannot be "
                f"searched for them ({' '.join(str(problem).split())})"
            )
            if not unsearched:
                raise ValueError(f"{told}; bring them back, or push without that with --unsearched") from None
            say(told, "yellow")
    return found


def _sentences(name: str, config: dict[str, Any]) -> Iterator[Sequence[Sequence[str]]]:
    source = config.get(name)
    if source and name == "charts":
        yield load_charts(source)[0]["words"]
    elif source:
        for rows in load_treebank(source, data_roots=config.get("data") or ()).values():
            yield rows["words" if "words" in rows.column_names else "tokens"]
