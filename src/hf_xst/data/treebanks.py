"""Treebanks from files, folders, language codes and the Hub, all in one layout."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import datasets
import datasets.config
from datasets import Dataset, DatasetDict, concatenate_datasets

from hf_xst.data.cache import cached_dataset
from hf_xst.data.conllu import read_conllu
from hf_xst.data.folders import PathLike, TreebankSource, canonical_split, ordered, treebank_files
from hf_xst.data.hub_layouts import to_treebank_layout
from hf_xst.data.label_columns import holds_words_only
from hf_xst.data.layout import TREEBANK_FEATURES, Row, sentence_to_row
from hf_xst.data.text import labelled_lines

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


def load_treebank(
    source: TreebankSource,
    *,
    splits: Sequence[str] | None = None,
    data_roots: PathLike | Sequence[PathLike] = (),
    revision: str | None = None,
    config: str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
) -> DatasetDict:
    """Load a treebank in the treebank layout (`hf_xst.data.layout`), split by split.

    A data set on the Hub that has words and labels, but no columns of Universal Dependencies, keeps its own
    layout, from which `hf_xst.data.prepare` takes what is wanted.

    Files are read by our own reader, without network and without code from elsewhere, and cached by content:
    a second load reads the cache, an edited file is read anew. Nothing is held in memory.

    Args:
        source: files, a folder, a treebank or a language, as `hf_xst.data.folders` lists them; else the id of
            a data set on the Hub (``namespace/name``).
        splits: load these only, by name; "validation" means "dev".
        data_roots: the folder or folders in which treebanks' folders lie.
        revision: branch, tag or commit of a Hub data set (there, a release of UD).
        config: the treebank within a Hub data set (``en_ewt``).
        cache_dir: where to cache, by default within the cache of `datasets`.

    Returns:
        The splits, train, dev and test first.

    Raises:
        ValueError: the source cannot be understood, is ambiguous, or lacks a split that is wanted.
        FileNotFoundError: a file is missing.
        ConlluError: a file breaks the format.
    """
    files = treebank_files(source, data_roots=data_roots)
    if files is None:
        return _from_hub(source, splits, revision, config, cache_dir)
    if revision is not None or config is not None:
        raise ValueError(f"found a revision or config for {source!r}, expected them with a Hub data set only")
    parts = {split: files[split] for split in _chosen(files, splits)}
    return DatasetDict({split: _joined(paths, cache_dir) for split, paths in parts.items()})


def _joined(paths: Sequence[Path], cache_dir: PathLike | None) -> Dataset:
    loaded = [
        cached_dataset(
            path, partial(_rows_of, path), TREEBANK_FEATURES, kind="treebanks", cache_dir=cache_dir
        )
        for path in paths
    ]
    return loaded[0] if len(loaded) == 1 else concatenate_datasets(loaded)


def _rows_of(path: Path) -> Iterator[Row]:
    is_json = path.name.removesuffix(".gz").endswith(".jsonl")
    return map(sentence_to_row, labelled_lines(path) if is_json else read_conllu(path))


def _from_hub(
    source: TreebankSource,
    splits: Sequence[str] | None,
    revision: str | None,
    config: str | None,
    cache_dir: PathLike | None,
) -> DatasetDict:
    if not isinstance(source, str) or not _HUB_ID.fullmatch(source):
        raise ValueError(
            f"found {str(source)!r}, which is not here; expected a .conllu file, SPLIT=PATH,..., "
            "a folder with *-ud-(train|dev|test).conllu, a language code (pt, pt:Bosque+GSD) or a treebank's "
            "name with data roots, or a Hub id (namespace/name)"
        )
    found = datasets.load_dataset(
        source, name=config, revision=revision, cache_dir=None if cache_dir is None else str(cache_dir)
    )
    by_name: dict[str, Dataset] = {}
    for name, dataset in found.items():
        split = canonical_split(name)
        if split in by_name:
            raise ValueError(f"{source}: found both 'validation' and 'dev', expected one of them")
        by_name[split] = dataset
    return DatasetDict({split: _in_layout(by_name[split]) for split in _chosen(by_name, splits)})


def _in_layout(dataset: Dataset) -> Dataset:
    return dataset if holds_words_only(dataset.features) else to_treebank_layout(dataset)


def _chosen(available: dict[str, list[Path]] | dict[str, Dataset], splits: Sequence[str] | None) -> list[str]:
    if splits is None:
        return ordered(available)
    wanted = [canonical_split(name) for name in ([splits] if isinstance(splits, str) else splits)]
    missing = [name for name in wanted if name not in available]
    if missing:
        found = ", ".join(ordered(available)) or "no split"
        plain = "; a file without a part's name is the split data: name it so, or say train=FILE"
        raise ValueError(f"no split {' and '.join(missing)}; found {found}{plain if found == 'data' else ''}")
    return wanted
