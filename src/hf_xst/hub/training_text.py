"""The sentences that a run has seen, read again so that they can be sought in what is published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from hf_xst.data import load_treebank
from hf_xst.training.chart_folder import load_charts
from hf_xst.training.runs import say

_CONFIG, _EVALUATION = "run/config.yaml", "run/evaluate-config.yaml"
# Arguments of commands that say which sentences are read.
_NAMED = ("charts", "treebank", "dev_treebank")


def training_sentences(folder: Path, *, unsearched: bool = False) -> list[list[str]]:
    """Read the sentences that the model in a folder was trained or tested on.

    Args:
        folder: what train-source or transfer wrote; its `run/config.yaml` says where the sentences are, and
            `run/evaluate-config.yaml`, if it was evaluated there, where those of the test are.
        unsearched: warn of sentences that cannot be read any more, or are not known, instead of refusing.

    Returns:
        Lists of words.

    Raises:
        ValueError: some cannot be read any more, or it is not recorded which they were.
    """
    if not (folder / _CONFIG).is_file():
        _tell(
            f"it is not recorded what this was trained on (there is no {_CONFIG}), so that the files cannot "
            "be searched for training sentences",
            unsearched=unsearched,
        )
    found: list[list[str]] = []
    for place in (folder / _CONFIG, folder / _EVALUATION):
        config = yaml.safe_load(place.read_text(encoding="utf-8")) or {} if place.is_file() else {}
        for name in _NAMED:
            try:
                found += [list(words) for rows in _sentences(name, config) for words in rows]
            except (ValueError, OSError) as problem:
                _tell(
                    f"the sentences of {name} {config[name]} cannot be read again, so that the files cannot "
                    f"be searched for them ({' '.join(str(problem).split())})",
                    unsearched=unsearched,
                )
    return found


def _tell(what: str, *, unsearched: bool) -> None:
    if not unsearched:
        raise ValueError(f"{what}; bring them back, or push without that with --unsearched")
    say(what, "yellow")


def _sentences(name: str, config: dict[str, Any]) -> Iterator[Sequence[Sequence[str]]]:
    source = config.get(name)
    if source and name == "charts":
        yield load_charts(source)[0]["words"]
    elif source:
        for rows in load_treebank(source, data_roots=config.get("data") or ()).values():
            yield rows["words" if "words" in rows.column_names else "tokens"]
