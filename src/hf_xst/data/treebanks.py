"""Load treebanks from files, folders, language codes and the Hub, in one layout.

Known layouts on the Hub are the current one of Universal Dependencies (UPOS as class labels, heads as
strings), its variants (UPOS as strings, heads as integers), and that of the old loading script, detected by
its column ``idx``: ranges and empty nodes among the words, and FEATS, DEPS and MISC as Python literals.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import datasets
from datasets import Dataset, DatasetDict, concatenate_datasets

from hf_xst.data.conllu import read_conllu
from hf_xst.data.folders import PathLike, TreebankSource, canonical_split, ordered, treebank_files
from hf_xst.data.labels import LabelColumn, label_column
from hf_xst.data.layout import (
    COMMENT_MARKERS,
    STRINGS,
    TREEBANK_FEATURES,
    UPOS_INDEX,
    UPOS_TAGS,
    Row,
    cached_rows,
    file_key,
    map_rows,
    sentence_to_row,
)
from hf_xst.data.sentence import BLANK
from hf_xst.data.text import read_labelled_jsonl

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_LEGACY_COLUMN = "idx"
_LISTS = ("lemmas", "xpos", "feats", "head", "deprel", "deps", "misc")
_LITERALS = ("feats", "misc", "deps")
_BLANKS = {"lemmas": BLANK, "head": BLANK, "deprel": BLANK}


def load_treebank(
    source: TreebankSource,
    *,
    splits: Sequence[str] | None = None,
    data_roots: PathLike | Sequence[PathLike] = (),
    revision: str | None = None,
    config: str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
) -> DatasetDict:
    """Load a treebank in the treebank layout (`hf_xst.data.layout`).

    A Hub data set of words and labels without the columns of Universal Dependencies keeps its own layout;
    `hf_xst.data.prepare` selects its columns. Files are read without network access or remote code, streamed
    to a cache and found there again until they change.

    Args:
        source: Files, a folder, a treebank or a language, in the forms of `hf_xst.data.folders`; or the id of
            a data set on the Hub (``namespace/name``).
        splits: Names of the splits to load; "validation" is the same as "dev".
        data_roots: The folder or folders that contain the folders of treebanks.
        revision: Branch, tag or commit of a Hub data set.
        config: The treebank within a Hub data set (``en_ewt``).
        cache_dir: The cache; defaults to a folder in the cache of `datasets`.

    Returns:
        The splits; train, dev and test first.

    Raises:
        ValueError: The source is unknown or ambiguous, or lacks a requested split.
        FileNotFoundError: A file does not exist.
        ConlluError: Malformed CoNLL-U.
    """
    files = treebank_files(source, data_roots=data_roots)
    if files is None:
        loaded = _load_from_hub(source, config, revision, cache_dir)
        return DatasetDict({split: _convert(loaded[split]) for split in _selected(loaded, splits)})
    if revision is not None or config is not None:
        raise ValueError(f"revision and config apply to Hub data sets only, not to {source!r}")
    selected = {split: files[split] for split in _selected(files, splits)}
    return DatasetDict(
        {
            split: concatenate_datasets([_load_file(path, cache_dir) for path in paths])
            for split, paths in selected.items()
        }
    )


def to_treebank_layout(dataset: Dataset) -> Dataset:
    """Convert one split from any known layout to the treebank layout.

    The layout of the old loading script has no IDs: rows without a head are ranges or empty nodes, and are
    dropped. Unknown layouts raise ValueError.
    """
    if dataset.features == TREEBANK_FEATURES:
        return dataset
    missing = [name for name in ("tokens", "upos", "head", "deprel") if name not in dataset.features]
    if missing:
        raise ValueError(
            f"found the columns {', '.join(dataset.features)}, expected the Universal Dependencies layout: "
            f"{', '.join(missing)} missing; download CoNLL-U files of a repository and pass them as files"
        )
    options = {"upos": label_column(dataset, "upos"), "legacy": _LEGACY_COLUMN in dataset.features}
    return map_rows(dataset, _canonical_row, TREEBANK_FEATURES, fn_kwargs=options)


def _load_file(path: Path, cache_dir: PathLike | None) -> Dataset:
    def rows() -> Iterator[Row]:
        is_json = path.name.removesuffix(".gz").endswith(".jsonl")
        return map(sentence_to_row, read_labelled_jsonl(path) if is_json else read_conllu(path))

    return cached_rows(file_key(path), rows, TREEBANK_FEATURES, kind="treebanks", cache_dir=cache_dir)


def _load_from_hub(
    source: TreebankSource, config: str | None, revision: str | None, cache_dir: PathLike | None
) -> dict[str, Dataset]:
    if not isinstance(source, str) or not _HUB_ID.fullmatch(source):
        raise ValueError(
            f"{str(source)!r} not found; expected a .conllu file, SPLIT=PATH,..., a folder with "
            "*-ud-(train|dev|test).conllu, a language code (pt, pt:Bosque+GSD) or a treebank name with data "
            "roots, or a Hub id (namespace/name)"
        )
    cache = None if cache_dir is None else str(cache_dir)
    loaded = datasets.load_dataset(source, name=config, revision=revision, cache_dir=cache)
    by_split = {canonical_split(name): dataset for name, dataset in loaded.items()}
    if len(by_split) < len(loaded):
        raise ValueError(f"{source}: found both 'validation' and 'dev', expected one of them")
    return by_split


def _convert(dataset: Dataset) -> Dataset:
    """Convert to the treebank layout, unless there are only words and labels."""
    has_words = any(dataset.features.get(name) == STRINGS for name in ("words", "tokens"))
    has_words_only = has_words and not {"head", "deprel"} & set(dataset.features)
    return dataset if has_words_only else to_treebank_layout(dataset)


def _selected(available: Mapping[str, object], splits: Sequence[str] | None) -> list[str]:
    if splits is None:
        return ordered(available)
    selected = [canonical_split(name) for name in ([splits] if isinstance(splits, str) else splits)]
    missing = [name for name in selected if name not in available]
    if missing:
        names = ", ".join(ordered(available)) or "no split"
        hint = "; use 'data', the split of a single file, or pass train=FILE" if names == "data" else ""
        raise ValueError(f"no split {' and '.join(missing)}; found {names}{hint}")
    return selected


def _canonical_row(row: Row, upos: LabelColumn, legacy: bool) -> Row:
    if legacy:
        row = _legacy_words(row)
    name, count = f"sentence {row.get('sent_id')}", len(row["tokens"])
    tags = upos.labels(row)
    if unknown := sorted(set(tags) - set(UPOS_INDEX)):
        raise ValueError(f"{name}: found UPOS {unknown[0]!r}, expected one of {' '.join(sorted(UPOS_TAGS))}")
    comments = row.get("comments")
    if comments is None:
        comments = [marker for key, marker in COMMENT_MARKERS.items() if row.get(key) is not None]
    result: Row = {
        "sent_id": row.get("sent_id"),
        "text": row.get("text"),
        "comments": comments,
        "tokens": row["tokens"],
        "upos": [UPOS_INDEX[tag] for tag in tags],
        "mwt": row.get("mwt") or [],
        "empty_nodes": row.get("empty_nodes") or [],
    }
    for column in _LISTS:
        values = row.get(column) or [None] * count
        if len(values) != count:
            raise ValueError(f"{name}: found {len(values)} values of {column}, expected {count}")
        result[column] = [_BLANKS.get(column) if value is None else str(value) for value in values]
    return result


def _legacy_words(row: Row) -> Row:
    """Keep the words of a legacy row, convert literals to CoNLL-U text, and use ``idx`` as ``sent_id``."""
    words = [index for index, head in enumerate(row["head"]) if head not in (None, "None")]
    if row["tokens"] and not words:
        raise ValueError(f"row idx {row[_LEGACY_COLUMN]}: found no heads, which identify the words")
    result: Row = {"sent_id": str(row[_LEGACY_COLUMN]), "text": row.get("text")}
    for name in ("tokens", "upos", *_LISTS):
        if row.get(name) is not None:
            values = [row[name][index] for index in words]
            if name in ("xpos", *_LITERALS):
                values = [None if value in ("None", BLANK) else value for value in values]
            result[name] = list(map(_from_literal, values)) if name in _LITERALS else values
    return result


def _from_literal(value: str | None) -> str | None:
    """Convert a Python literal of a legacy row to CoNLL-U text; other text is returned unchanged."""
    if not value:
        return None
    try:
        literal = ast.literal_eval(str(value))
        if isinstance(literal, dict):
            return "|".join(key if item is None else f"{key}={item}" for key, item in literal.items()) or None
        if isinstance(literal, list):  # enhanced relations; the head of an empty node is a tuple: (8, '.', 1)
            pairs = [("".join(map(str, h)) if isinstance(h, tuple) else h, name) for name, h in literal]
            return "|".join(f"{head}:{name}" for head, name in pairs) or None
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        pass
    return value
