"""Records of training runs, saved as OUTPUT/run/results.json."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from hf_xst.charts.dataset import ChartInfo
from hf_xst.files import RESULTS
from hf_xst.records import read_record
from hf_xst.remote import split_revision
from hf_xst.training.collation import ChartUse

FORMAT_VERSION = 2
Results = TypeVar("Results", bound="TrainingResults")


@dataclass(frozen=True)
class ModelOrigin:
    """A model that another one was made from; a local folder has no public id."""

    id: str | None = None
    revision: str | None = None
    name: str | None = None

    @classmethod
    def of(cls, place: str) -> ModelOrigin:
        """Describe a folder or Hub id."""
        path, revision = split_revision(place)
        is_local = Path(path).exists()
        return cls(None if is_local else path, revision, Path(path).name)


@dataclass(frozen=True, kw_only=True)
class TrainingResults:
    """Results of any training run; treebanks by name and licence, as far as known."""

    updates: int
    learning_rate: float  # at the beginning
    dev: dict[str, float] | None = None  # development scores
    initial_model: ModelOrigin | None = None  # if it was a folder or Hub id
    dev_treebanks: list[dict[str, Any]] = field(default_factory=list)
    format_version: int = FORMAT_VERSION

    @classmethod
    def load(cls: type[Results], run: Path) -> Results:
        """Read the record of a run; raise ValueError if it is broken, or of another command or format."""
        return read_record(cls, run / RESULTS, FORMAT_VERSION)


@dataclass(frozen=True, kw_only=True)
class SourceResults(TrainingResults):
    """Results of train-source."""

    data: list[str]  # summaries of the sentences read and left out
    treebanks: list[dict[str, Any]]
    encoder: ModelOrigin | None = None
    train_sentences: int
    dev_sentences: int
    best_dev: float | None = None


@dataclass(frozen=True, kw_only=True)
class TransferResults(TrainingResults):
    """Results of transfer."""

    sentences: int
    empty_charts: int  # how often a chart contained no structure
    empty_chart_ids: list[str]  # the first such sentences
    l2: float
    use: ChartUse
    charts: ChartInfo
    batch_size: int | None = None  # per process
    initialised_from: Literal["model", "average", "scratch"] | None = None
