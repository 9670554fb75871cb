"""Charts as a data set: rows of ragged indices, and the record of how they were made."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from datasets import Dataset, Features, List, Value, load_dataset
from datasets.exceptions import DatasetGenerationError
from huggingface_hub import snapshot_download
from numpy.typing import NDArray
from torch import Tensor

from hf_xst.charts.chart import ChartSettings, threshold
from hf_xst.files import CHARTS, check_links, sha256_of
from hf_xst.numerics import require
from hf_xst.records import read_record, write_json
from hf_xst.remote import HUB_ERRORS, explain_hub_error, split_revision

FORMAT_VERSION = 2
"""Of the record."""
ROW_VERSION = 1
_ROUNDING = 0.01  # log-probabilities are stored in half precision
_MISSING = -(2**40)
# Added to the columns of the sentences that the charts were made for.
CHART_FEATURES: dict[str, Any] = {
    "candidates": List(Value("int32")),  # allowed candidates, group after group, ascending within a group
    "offsets": List(Value("int32")),  # where each group starts, and the end: G + 1 numbers
    "source_best": List(List(Value("int32"))),  # a candidate a group for each source, -1 for none
    "pool_best": List(Value("int32")),  # the best structure of the pool
    "log_probs": List(Value("float16")),  # pooled log-probability of each allowed candidate; may be empty
    "words_hash": Value("string"),
    "format_version": Value("int32"),
}


def chart_features(sentence_features: Mapping[str, Any]) -> Features:
    """Return the schema of a chart data set over the given sentence columns."""
    return Features({**sentence_features, **CHART_FEATURES})


def words_hash(words: Sequence[str]) -> str:
    """Identify a sentence by its words: SHA-256 over them, length first, so that no joining is ambiguous."""
    digest = hashlib.sha256()
    for word in words:
        encoded = word.encode("utf-8")
        digest.update(len(encoded).to_bytes(4, "big") + encoded)
    return digest.hexdigest()


def to_ragged(kept: Tensor, groups: int, log_probs: Tensor | None = None) -> dict[str, list[Any]]:
    """Return the columns `candidates`, `offsets` and `log_probs` of one sentence.

    `kept` is bool (G', C), padding after the first `groups` rows; `log_probs` are pooled ones, (G', C).
    """
    real = kept[:groups]
    group, candidate = torch.nonzero(real, as_tuple=True)
    counts = torch.bincount(group, minlength=groups)
    offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    stored = log_probs[:groups][real].tolist() if log_probs is not None else []
    return {"candidates": candidate.tolist(), "offsets": offsets.tolist(), "log_probs": stored}


def from_ragged(rows: Sequence[Mapping[str, Any]]) -> Tensor:
    """Return the allowed candidates of a batch as triples (sentence, group, candidate): (K, 3)."""
    triples = []
    for sentence, row in enumerate(rows):
        offsets = torch.tensor(row["offsets"])
        group = torch.repeat_interleave(torch.arange(len(offsets) - 1), offsets.diff())
        candidate = torch.tensor(row["candidates"], dtype=torch.long)
        triples.append(torch.stack([torch.full_like(group, sentence), group, candidate], dim=1))
    return torch.cat(triples) if triples else torch.zeros(0, 3, dtype=torch.long)


def structure_triples(candidates: Sequence[Sequence[int]]) -> Tensor:
    """Return one structure a sentence as triples (sentence, group, candidate), leaving out -1: (K, 3)."""
    found = [(s, g, c) for s, row in enumerate(candidates) for g, c in enumerate(row) if c >= 0]
    return torch.tensor(found, dtype=torch.long).view(-1, 3)


def to_mask(triples: Tensor, valid: Tensor) -> Tensor:
    """Turn triples (K, 3) into a chart, bool (B, G, C); raise ValueError if one is not in `valid`."""
    columns = triples.unbind(1)
    inside = (triples >= 0).all(1)
    for column, size in zip(columns, valid.shape, strict=True):
        inside = inside & (column < size)
    is_valid = inside & valid[tuple(column.masked_fill(~inside, 0) for column in columns)]
    if valid.is_cuda:
        require(is_valid, "a chart has a candidate that no structure of its sentence contains")
    elif not bool(is_valid.all()):
        sentence, group, candidate = triples[~is_valid][0].tolist()
        raise ValueError(
            f"the chart of sentence {sentence} of the batch (counted from 0) has candidate {candidate} in "
            f"group {group}, which no structure of the sentence contains; rebuild the charts"
        )
    mask = torch.zeros_like(valid)
    mask[tuple(triples.T)] = True
    return mask


def to_log_probs(triples: Tensor, values: Tensor, like: Tensor) -> Tensor:
    """Scatter values at unique triples (K, 3) into (B, G, C), the shape of `like`; -inf elsewhere.

    Triples with a negative candidate (an unknown label) are left out.
    """
    there = triples[:, 2] >= 0
    found = torch.full(like.shape, -torch.inf, dtype=values.dtype, device=like.device)
    found[tuple(triples[there].T)] = values[there]
    return found


def stored_log_probs(rows: Sequence[Mapping[str, Any]]) -> Tensor:
    """Return a batch's pooled log-probabilities, (K,) as in `from_ragged`; ValueError if not stored."""
    for row in rows:
        if len(row["log_probs"]) != len(row["candidates"]):
            raise ValueError(
                f"sentence {row.get('sent_id', '?')}: its chart has no pooled log-probabilities; "
                "make the charts with --keep-log-probs"
            )
    return torch.tensor([value for row in rows for value in row["log_probs"]], dtype=torch.float32)


def narrowed(triples: Tensor, log_probs: Tensor, sigma: float) -> Tensor:
    """Mark the stored candidates that a chart of a smaller mass sigma keeps; see `threshold`.

    Triples (K, 3) and their pooled log-probabilities (K,) are in the order of `from_ragged`, as the result,
    bool (K,), is.
    """
    _, sizes = torch.unique_consecutive(triples[:, :2], dim=0, return_counts=True)
    # One row a group: (M, largest number of candidates)
    is_stored = torch.arange(max(sizes.tolist(), default=1)) < sizes[:, None]
    by_group = torch.zeros(is_stored.shape).masked_scatter(is_stored, log_probs)
    return threshold(by_group, sigma, is_stored)[is_stored]


DATA = "data"
SHARDS = "train-*.parquet"


@dataclass(frozen=True)
class ChartSource:
    """A source of charts: Hub id and revision (None for local files), digest, kind, and licence if known."""

    name: str
    id: str | None = None
    revision: str | None = None
    weights_sha256: str | None = None
    labels_not_in_charts: list[str] = field(default_factory=list)
    kind: str = "model"
    licence: str | None = None


@dataclass(frozen=True)
class ChartCounts:
    """Counts over all sentences of a chart data set.

    `without_support` counts groups in which no label has support from every source; `dropped_mass` is, by
    source, the expected number of candidates whose labels the charts lack.

    Raises:
        ValueError: a count is negative.
    """

    sentences: int = 0
    groups: int = 0
    kept: int = 0
    without_support: int = 0
    dropped_mass: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, count in vars(self).items():
            if name != "dropped_mass" and count < 0:
                raise ValueError(f"{name} is {count}; expected a count of at least 0")

    def __add__(self, other: ChartCounts) -> ChartCounts:
        mine, theirs = self.dropped_mass, other.dropped_mass
        return ChartCounts(
            self.sentences + other.sentences,
            self.groups + other.groups,
            self.kept + other.kept,
            self.without_support + other.without_support,
            {name: mine.get(name, 0.0) + theirs.get(name, 0.0) for name in mine | theirs},
        )


@dataclass(frozen=True)
class ChartInfo:
    """The record of how charts were made, saved beside them as provenance.json.

    Args:
        model_type: type of the models that the charts are for.
        names: labels of the charts.
        sources: the source models, in the order in which they were pooled.
        settings: rule, sigma, floor, weights and so on.
        initial_model: name of the source from which training is initialised.
        from_average: initialise training from the average of the sources instead.
        labels: `"initial"` (labels of the initial model) or `"union"` (of all sources).
        preset: defaults for training.
        weights_by_agreement: the weights were computed from the agreement of the sources.
        vectors: `name` and `sha256` of the word vectors, if the sources read words by vectors.
        annotated_by_model: a model, not the input, provided the tags.
        lost_mass: probability of each group and source that was lost where stored marginals were used.
        bf16: the source models ran in bfloat16.
        label_settings: configuration fields that say what the labels are labels of.
        sentences: summary of the sentences read and left out.
        text: name and licence of each treebank or text, as far as known.
        counts: counts over all sentences.
        versions: package versions.
        format_version: version of this record.
    """

    model_type: str
    names: list[str]
    sources: list[ChartSource]
    settings: ChartSettings
    initial_model: str
    from_average: bool = False
    labels: Literal["initial", "union"] = "initial"
    preset: str = "paper"
    weights_by_agreement: bool = False
    vectors: dict[str, str] | None = None
    annotated_by_model: bool = False
    lost_mass: float = 0.0
    bf16: bool = False
    label_settings: dict[str, Any] = field(default_factory=dict)
    sentences: str = ""
    text: list[dict[str, Any]] = field(default_factory=list)
    counts: ChartCounts = ChartCounts()
    versions: dict[str, str] = field(default_factory=dict)
    format_version: int = FORMAT_VERSION

    def __post_init__(self) -> None:
        """Raise ValueError if names or sources are missing or occur twice."""
        for name, values in (("names", self.names), ("sources", [each.name for each in self.sources])):
            if not values or len({*values}) != len(values):
                raise ValueError(f"{name} is {values!r:.80}; expected at least one name, each once")

    @property
    def chart_kind(self) -> Literal["union", "pool", "learned"]:
        """Kind of charts by which published settings differ; `learned` stands for a weighted pool."""
        if self.settings.rule == "union":
            return "union"
        return "pool" if self.settings.weights is None else "learned"

    def save(self, folder: Path) -> None:
        """Write the record into a folder of charts."""
        write_json(folder / CHARTS, self)

    @classmethod
    def load(cls, folder: Path) -> ChartInfo:
        """Read the record of a folder of charts; raise ValueError if it is broken or has another format."""
        return read_record(cls, folder / CHARTS, FORMAT_VERSION)


def shards_in(folder: Path) -> list[Path]:
    """Return the files of charts in a folder, in order."""
    return sorted((folder / DATA).glob(SHARDS))


def load_charts(path: str, revision: str | None = None) -> tuple[Dataset, ChartInfo]:
    """Load charts and their record from a folder or the Hub (an id with its `revision`, or `ID@REVISION`).

    Raises:
        ValueError: charts are missing, or a row or the record is broken or of another format.
    """
    folder = Path(path) if Path(path).is_dir() else _fetched(path, revision)
    files = [str(file) for file in shards_in(folder)]
    if not (folder / CHARTS).exists() or not files:
        lacking = f"{DATA}/{SHARDS}" if (folder / CHARTS).exists() else CHARTS
        raise ValueError(
            f"{path} has no {lacking}: it holds no charts, or build-charts was interrupted (repeat it)"
        )
    check_links(folder, [folder / CHARTS, *shards_in(folder)])
    info = ChartInfo.load(folder)
    # The name is part of the cache's key, for which the library uses only the files' modification times.
    content = hashlib.sha256("".join(map(sha256_of, files)).encode()).hexdigest()
    try:
        rows = load_dataset("parquet", content, data_files={"train": files}, split="train")
    except (DatasetGenerationError, pa.ArrowException) as error:
        raise ValueError(f"the charts of {path} cannot be read ({error.__cause__ or error})") from error
    if len(rows) != info.counts.sentences:
        raise ValueError(
            f"{path} holds charts of {len(rows)} sentences, but {info.counts.sentences} were made; files are "
            "missing or belong to another run: copy the folder again, or repeat the command that made it"
        )
    check_rows(rows, len(info.sources), path)
    return rows, info


def check_rows(rows: Dataset, sources: int, where: str) -> None:
    """Raise ValueError if charts of a number of sources, read from `where`, are damaged."""
    features = rows.features  # a deep copy
    for name, feature in chart_features({"words": List(Value("string"))}).items():
        if features.get(name) != feature:
            raise ValueError(f"{where}: the column {name} is {features.get(name)}; expected {feature}")
    for batch in rows.data.table.to_batches():
        for what, row, is_faulty in _faults(batch, sources):
            if is_faulty.any():
                index = int(row[is_faulty.argmax()])
                name = batch["sent_id"][index] if "sent_id" in batch.schema.names else index
                raise ValueError(f"{where}: the chart of sentence {name} is damaged: {what}; rebuild it")


def _faults(batch: pa.RecordBatch, sources: int) -> Iterator[tuple[str, NDArray[Any], NDArray[Any]]]:
    """Yield faults with the row of each value, and whether it is faulty; later ones rely on earlier ones."""
    rows, columns = np.arange(len(batch)), ("words", *CHART_FEATURES)
    for name in columns:
        yield f"{name} is missing", rows, np.asarray(pc.is_null(batch[name]))
    words, kept, ends, lists, groups, stored = (
        np.asarray(pc.list_value_length(batch[name])) for name in columns[:6]
    )
    yield "it was written by a newer version", rows, np.asarray(batch["format_version"]) > ROW_VERSION
    yield "it has no groups", rows, groups < 1
    # A group for each word (and a constant number of others), or for each span of words.
    follows = (groups - words == groups[0] - words[0]) | (groups == words * (words + 1) // 2)
    yield "its groups do not follow from its words", rows, ~follows
    yield "offsets and pool_best differ in length", rows, ends != groups + 1
    yield f"source_best does not list {sources} sources", rows, lists != sources
    yield "log_probs and candidates differ in length", rows, (stored != kept) & (stored > 0)
    candidates, offsets = _numbers(batch["candidates"].flatten()), _numbers(batch["offsets"].flatten())
    steps, first = np.diff(offsets, prepend=0), ends.cumsum() - ends
    steps[first] = -np.abs(offsets[first])
    yield "offsets do not rise from 0", np.repeat(rows, ends), steps < 0
    yield "offsets end elsewhere than candidates", rows, offsets[ends.cumsum() - 1] != kept
    is_first = np.zeros(len(candidates) + 1, dtype=bool)
    is_first[np.repeat(kept.cumsum() - kept, ends) + offsets] = True
    rises = np.diff(candidates, prepend=-1) > 0
    what = "candidates are negative, or do not rise within a group"
    yield what, np.repeat(rows, kept), (candidates < 0) | ~(rises | is_first[:-1])
    yield "pool_best is below -1", np.repeat(rows, groups), _numbers(batch["pool_best"].flatten()) < -1
    source_row, bests = np.repeat(rows, lists), batch["source_best"].flatten()
    lengths = _numbers(pc.list_value_length(bests))
    yield "source_best and pool_best differ in length", source_row, lengths != groups[source_row]
    yield "source_best is below -1", np.repeat(source_row, lengths), _numbers(bests.flatten()) < -1
    log_probs = _numbers(batch["log_probs"].flatten())
    yield "log_probs are NaN or positive", np.repeat(rows, stored), ~(log_probs <= _ROUNDING)


def _numbers(values: pa.Array) -> NDArray[Any]:
    """Return numbers in a wider type; missing ones become NaN or a number below all others."""
    if pa.types.is_floating(values.type):
        return np.asarray(values.cast(pa.float32()).fill_null(math.nan))
    return np.asarray(values.cast(pa.int64()).fill_null(_MISSING))


def _fetched(path: str, revision: str | None) -> Path:
    """Download a data set's charts from the Hub, or find them in the cache."""
    name, revision = split_revision(path, revision)
    wanted = [CHARTS, f"{DATA}/{SHARDS}"]
    try:
        return Path(snapshot_download(name, repo_type="dataset", revision=revision, allow_patterns=wanted))
    except HUB_ERRORS as error:
        why = explain_hub_error(error, name, "dataset", revision)
        raise ValueError(
            f"no charts {path}: it is neither a local folder nor within reach on the Hub: {why}"
        ) from error
