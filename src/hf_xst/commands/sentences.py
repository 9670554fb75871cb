"""Load the sentences that a command names as prepared rows."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import datasets.config
import numpy as np
import torch
from datasets import Dataset, concatenate_datasets

from hf_xst.charts.dataset import words_hash
from hf_xst.commands.options import SourceArguments, TextArguments, VectorArguments
from hf_xst.console import say
from hf_xst.data import (
    WordVectors,
    is_hub_text,
    iterate_unlabelled,
    load_treebank,
    prepare,
    prepared_features,
    read_unlabelled,
    read_vectors,
    stream_from_hub,
    treebank_files,
)
from hf_xst.data.folders import canonical_split
from hf_xst.data.layout import content_hash
from hf_xst.data.preparation import PreparationReport
from hf_xst.data.sentence import BLANK
from hf_xst.files import name_in_errors
from hf_xst.inference.annotation import NO_TAGGER, load_tagger
from hf_xst.models.modeling import StructuredModel
from hf_xst.models.running import WINDOW, predict_rows
from hf_xst.processes import main_first, process_count, process_index
from hf_xst.sources.loading import model_digest, source_digest
from hf_xst.sources.pool import AnySource, SourcePool
from hf_xst.sources.stored import MarginalsStore
from hf_xst.structures.dependency import is_tree
from hf_xst.training.trainer import GOLD

_ALWAYS = frozenset(prepared_features(gold=False))
_SPLIT = re.compile(r"(?P<name>\w+)(?:\[(?P<start>\d*%?):(?P<end>\d*%?)\])?")


def split_of(treebank: str, split: str, data: Sequence[str]) -> Dataset:
    """Load a split of a treebank, or a slice of it such as `dev[:500]` or `train[90%:]`.

    A percentage is taken of each file, so that a slice has sentences of all treebanks of the split.

    Raises:
        ValueError: the split does not exist, is empty, or is written in another form.
    """
    found = _parse_split(split)
    name = canonical_split(found["name"])
    files = treebank_files(treebank, data_roots=list(data)) if "%" in split else None
    parts: list[Any] = [{name: path} for path in (files or {}).get(name, ())] or [treebank]
    slices, sizes = [], []
    for part in parts:
        rows = load_treebank(part, splits=[name], data_roots=list(data))[name]
        sizes.append(len(rows))
        start, end = _index(found["start"], len(rows), 0), _index(found["end"], len(rows), len(rows))
        slices.append(rows if end - start == len(rows) else rows.select(range(start, max(start, end))))
    dataset = concatenate_datasets(slices)
    if not len(dataset):
        raise ValueError(f"{treebank} {split} is empty: the whole split has {sum(sizes)} sentences")
    return dataset


def has_split(treebank: str, split: str, data: Sequence[str]) -> bool:
    """Return whether a treebank has a split, from file names alone where possible."""
    name = canonical_split(_parse_split(split)["name"])
    files = treebank_files(treebank, data_roots=list(data))
    return name in (load_treebank(treebank) if files is None else files)


def _parse_split(split: str) -> re.Match[str]:
    found = _SPLIT.fullmatch(split)
    if found is None:
        raise ValueError(f"cannot read the split {split!r}; expected e.g. dev, dev[:500] or train[90%:]")
    return found


def _index(text: str | None, total: int, default: int) -> int:
    if not text:
        return default
    if text.endswith("%"):
        return min(total, total * int(text[:-1]) // 100)
    return min(int(text), total)


def needs_structure(columns: Sequence[str] | None) -> bool:
    """Return whether gold for these columns is more than labels of words."""
    return columns is None or bool(set(columns) & (set(prepared_features(gold=True)) - _ALWAYS))


def other_labels(columns: Sequence[str] | None) -> list[str]:
    """Return those columns that prepared rows have on request only."""
    return [column for column in columns or () if column not in prepared_features(gold=True)]


def prepare_gold(
    rows: Dataset,
    name: str,
    columns: Sequence[str] | None = None,
    *,
    labelled: Literal["any", "all"] | None = None,
    **options: Any,
) -> tuple[Dataset, str]:
    """Prepare rows with the gold of these columns, all by default; print and return a summary.

    If the columns are no more than labels of words, `labelled` leaves out sentences without any label, or
    those that do not have all. For the options see `hf_xst.data.prepare`.

    Raises:
        ValueError: no sentence is left.
    """
    is_structure = needs_structure(columns)
    prepared, report = prepare(rows, gold=is_structure, labels=other_labels(columns), **options)
    note = f"{name}: {report}"
    if labelled is not None and not is_structure:  # structures are checked when they are prepared
        enough = any if labelled == "any" else all
        kept = [
            index
            for index, labels in enumerate(zip(*(prepared[column] for column in columns or ()), strict=True))
            if all(enough(label != BLANK for label in each) for each in labels)
        ]
        if len(kept) < len(prepared):
            lacking = "have no label" if labelled == "any" else "have words without a label"
            note += f", {len(prepared) - len(kept)} of them left out because they {lacking}"
            prepared = prepared.select(kept)
    return report_sentences(prepared, note)


def gold_rows(
    treebank: str, split: str, data: Sequence[str], columns: Sequence[str] | None = None, **options: Any
) -> tuple[Dataset, str]:
    """Load a split of a treebank, as `split_of` does, and prepare it with `prepare_gold`."""
    return prepare_gold(split_of(treebank, split, data), f"{treebank} {split}", columns, **options)


def unlabelled_rows(arguments: TextArguments, **limits: Any) -> tuple[Dataset, str]:
    """Load rows without gold from one of `--text` and `--treebank`, else ValueError; print their summary."""
    if (arguments.text is None) == (arguments.treebank is None):
        raise ValueError("give either --treebank (with --split) or --text")
    split = arguments.split

    def read() -> tuple[Dataset, PreparationReport]:
        if arguments.treebank is not None:
            rows = split_of(arguments.treebank, split, arguments.data)
        else:
            rows = read_text(str(arguments.text), split)
        return prepare(rows, gold=False, **limits)

    dataset, report = main_first(read)
    has_split = arguments.treebank is not None or is_hub_text(arguments.text)
    name = f"{arguments.treebank or arguments.text}{f' {split}' if has_split else ''}"
    return report_sentences(dataset, f"{name}: {report}")


def leave_out(rows: Dataset, files: Sequence[str]) -> Dataset:
    """Leave out sentences that also occur in these files, compared by their words; print how many."""
    known = {words_hash(sentence.words) for path in files for sentence in iterate_unlabelled(path)}
    kept = np.flatnonzero(np.fromiter((words_hash(words) not in known for words in rows["words"]), bool))
    if len(kept) == len(rows):
        return rows
    note = f"{len(rows) - len(kept)} of {len(rows)} sentences left out: they occur in {', '.join(files)}"
    return report_sentences(rows.select(kept), note)[0]


def read_text(text: str, split: str) -> Dataset:
    """Read a file, or stream a split of a data set on the Hub, or a slice such as `train[:1000000]`.

    Raises:
        ValueError: see `read_unlabelled` and `stream_from_hub`; a slice of the latter has a percentage.
    """
    if not is_hub_text(text):
        return read_unlabelled(text)
    found = _parse_split(split)
    bounds = [found[name] or None for name in ("start", "end")]
    if any(bound and bound.endswith("%") for bound in bounds):
        raise ValueError(
            f"{text} is streamed, so {split} cannot have a percentage; expected e.g. train[:1000]"
        )
    start, end = (bound and int(bound) for bound in bounds)
    return stream_from_hub(text, found["name"], start or 0, end)


def report_sentences(dataset: Dataset, note: str) -> tuple[Dataset, str]:
    """Print the summary of rows, and return both; raise ValueError with it if no sentence is left."""
    if not len(dataset):
        raise ValueError(f"no sentence is left: {note}")
    say(note)
    return dataset, note


def report_crossing(model: StructuredModel, gold: Dataset, name: str) -> list[str]:
    """Report how many gold trees a projective parser cannot predict; return the message, if any."""
    if not getattr(model.config, "projective", False):
        return []
    crossing = 0
    for heads in gold["head"]:
        length = torch.tensor([len(heads)])
        crossing += int(~is_tree(torch.tensor([heads]), length, single_root=False, projective=True))
    fact = "have crossing arcs, which a projective parser cannot predict"
    note = f"{crossing} of {len(gold)} {name} sentences {fact}"
    if crossing:
        say(note, "yellow")
    return [note] if crossing else []


def read_word_vectors(arguments: VectorArguments) -> WordVectors | None:
    """Read the word vectors that a command names, if any."""
    if arguments.vectors is None:
        if arguments.vector_rows is not None:
            raise ValueError("--vector-rows limits the file of --vectors: give --vectors, or leave it out")
        return None
    if arguments.vector_rows is not None and arguments.vector_rows < 1:
        raise ValueError(f"vector_rows is {arguments.vector_rows}; expected at least 1")
    return read_vectors(arguments.vectors, limit=arguments.vector_rows)


def source_pool(
    options: SourceArguments, sources: Mapping[str, AnySource], names: Sequence[str] | None = None
) -> SourcePool:
    """Pool sources, in the precision and with the store of their marginals that a command names.

    Raises:
        ValueError: see `SourcePool` and `MarginalsStore`; or the store cannot identify a source.
    """
    pool = SourcePool(sources, names, bf16=options.bf16)
    if options.marginals_cache is None:
        return pool
    digests: list[str | None] = []
    columns = {"words"}
    for name, source in sources.items():
        if isinstance(source, StructuredModel):
            columns.update(source.input_columns)
            digests.append(model_digest(source))
        else:  # may read tags
            columns.add("upos")
            digests.append(source_digest(source))
        if digests[-1] is None:
            raise ValueError(f"the source {name} has no digest to be stored by: leave out --marginals-cache")
    identity = [digests, pool.names, pool.kind.label_settings, *["bf16"] * options.bf16]
    folder = Path(options.marginals_cache)
    structure = pool.kind.structure
    pool.store = MarginalsStore(folder, identity, structure, sorted(columns), options.lost_mass)
    return pool


def annotate(
    dataset: Dataset, annotator: str | None, vectors: WordVectors | None, *, keep_gold: bool = False
) -> Dataset:
    """Annotate prepared rows with a model given by folder or Hub id, if one is given; `datasets` caches them.

    With `keep_gold`, replaced values stay in a separate column, for scores that depend on them.
    """
    if annotator is None or annotator == NO_TAGGER:
        return dataset
    model = load_tagger(annotator, vectors)
    about = [model_digest(model), content_hash(dataset), keep_gold, dataset.column_names]
    if process_count() > 1:  # each process annotates its share, and stores the whole
        about.append(process_index())
    identity = json.dumps(about)
    kept = {GOLD + column: dataset.features[column] for column in model.columns if keep_gold}

    def predict(batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
        rows = [dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True)]
        found = list(predict_rows(model, rows))
        gold = {name: batch[name.removeprefix(GOLD)] for name in kept}
        return gold | {column: [columns[column] for columns in found] for column in model.columns}

    with name_in_errors(datasets.config.HF_DATASETS_CACHE):
        return dataset.map(
            predict,
            batched=True,
            batch_size=WINDOW,
            features=type(dataset.features)({**dataset.features, **kept}),
            new_fingerprint=hashlib.sha256(identity.encode()).hexdigest()[:32],
            load_from_cache_file=process_count() == 1,
            desc="annotating",
        )
