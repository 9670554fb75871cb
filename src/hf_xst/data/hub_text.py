"""Stream text from data sets on the Hub into the cache."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path, PurePath
from typing import Any

from datasets import Dataset, load_dataset
from huggingface_hub import HfApi

from hf_xst.data.layout import Row, cached_rows, file_key
from hf_xst.data.preparation import prepared_features
from hf_xst.data.segmentation import paragraph_sentences, paragraphs
from hf_xst.data.sentence import BLANK
from hf_xst.data.text import SUFFIXES
from hf_xst.remote import HUB_ERRORS, explain_hub_error

_PLACE = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(:(?P<config>[\w.-]+))?(@(?P<revision>[\w./-]+))?")
_COMMIT = re.compile(r"[0-9a-f]{40}")


def is_hub_text(source: object) -> bool:
    """Return whether a text is named by a data set: a folder, or `OWNER/NAME[:CONFIG][@REVISION]`."""
    name = str(source)
    if Path(name).exists():
        return Path(name).is_dir()
    is_file_name = PurePath(name.removesuffix(".gz")).suffix in SUFFIXES
    return not is_file_name and _PLACE.fullmatch(name) is not None


def stream_from_hub(
    source: str,
    split: str = "train",
    start: int = 0,
    end: int | None = None,
    *,
    cache_dir: str | os.PathLike[str] | None = None,
) -> Dataset:
    """Stream a data set into the cache, in the prepared layout; it is never in memory or on disk as a whole.

    Rows have the words of a sentence (`words` or `tokens`, and `upos` as strings), or running text (`text`),
    which is segmented. Rows without words are skipped.

    The source is a folder, or `OWNER/NAME[:CONFIG][@REVISION]` on the Hub. With a commit hash as revision,
    cached text is found again without a network. The cache defaults to a folder in that of `datasets`.

    Raises:
        ValueError: The data set or its split is not found, or has no text.
    """
    match = _PLACE.fullmatch(source)
    if Path(source).is_dir() or match is None:
        place: dict[str, Any] = {"path": source}
        version = [file_key(path) for path in sorted(Path(source).rglob("*")) if path.is_file()]
    else:
        revision = _commit(match["name"], match["revision"])
        place, version = {"path": match["name"], "name": match["config"], "revision": revision}, [revision]

    def rows() -> Iterator[Row]:
        try:
            stream = load_dataset(**place, split=split, streaming=True)
        except (*HUB_ERRORS, ValueError) as error:
            raise ValueError(f"{source} {split} cannot be read: {error}") from error
        for number, row in enumerate(islice(stream, start, end), start + 1):
            yield from _sentences(row, f"{PurePath(place['path']).name}:{number}")

    key = f"{place} {version} {split} {start} {end}"
    return cached_rows(key, rows, prepared_features(gold=False), kind="streamed", cache_dir=cache_dir)


def _commit(name: str, revision: str | None) -> str:
    """Return the commit that a revision stands for now."""
    if revision is not None and _COMMIT.fullmatch(revision):
        return revision
    try:
        return str(HfApi().dataset_info(name, revision=revision).sha)
    except HUB_ERRORS as error:
        raise ValueError(explain_hub_error(error, name, "dataset", revision)) from error


def _sentences(row: Mapping[str, Any], place: str) -> Iterator[Row]:
    """Yield the sentences of a row; `place` names it."""
    words, tags = row.get("words", row.get("tokens")), row.get("upos")
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        is_tagged = isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)
        if words:
            tags = tags if is_tagged else [BLANK] * len(words)
            yield {"sent_id": row.get("sent_id") or place, "words": words, "upos": tags}
    elif isinstance(row.get("text"), str):
        sentences = (each for part in paragraphs(row["text"]) for each in paragraph_sentences(part))
        for index, each in enumerate(sentences, 1):
            yield {"sent_id": f"{place}.{index}", "words": each.words, "upos": each.upos}
    else:
        raise ValueError(
            f"{place} has the columns {', '.join(row)}; expected words or tokens (lists of strings), or text"
        )
