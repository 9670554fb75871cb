"""Charts as rows of a data set: ragged indices that stay valid in any batch and any alphabet order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset, Features, List, Value, load_dataset
from huggingface_hub import snapshot_download
from torch import Tensor

from hf_xst.files import CHARTS, write_text
from hf_xst.remote import HUB_ERRORS, explain_hub_error, split_revision

FORMAT_VERSION = 1
# Added to the columns of the sentences that the charts were made for.
CHART_FEATURES: dict[str, Any] = {
    "candidates": List(Value("int32")),  # allowed candidates, group after group, ascending within a group
    "offsets": List(Value("int32")),  # where each group starts, and the end: G + 1 numbers
    "source_best": List(List(Value("int32"))),  # a candidate a group for each source, -1 for none
    "pool_best": List(Value("int32")),  # the ensemble's own best structure
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
    """Store one sentence's allowed candidates.

    Args:
        kept: bool (G', C) with G' >= groups; rows beyond are padding.
        groups: number of groups G of the sentence.
        log_probs: (G', C), pooled log-probabilities to be stored with the kept ones.

    Returns:
        The columns `candidates`, `offsets` and `log_probs`.
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
    found = [
        (sentence, group, candidate)
        for sentence, row in enumerate(candidates)
        for group, candidate in enumerate(row)
        if candidate >= 0
    ]
    return torch.tensor(found, dtype=torch.long).view(-1, 3)


def to_mask(triples: Tensor, like: Tensor) -> Tensor:
    """Turn triples (K, 3) into a chart: bool in the shape (B, G, C) of `like`."""
    mask = torch.zeros_like(like, dtype=torch.bool)
    mask[triples[:, 0], triples[:, 1], triples[:, 2]] = True
    return mask


def to_log_probs(triples: Tensor, values: Tensor, like: Tensor) -> Tensor:
    """Put values at triples (K, 3), which do not repeat: (B, G, C) in the shape of `like`, -inf elsewhere.

    Triples whose candidate is negative (a label that is not there) are left out.
    """
    there = triples[:, 2] >= 0
    found = torch.full(like.shape, -torch.inf, dtype=values.dtype, device=like.device)
    found[triples[there, 0], triples[there, 1], triples[there, 2]] = values[there]
    return found


def stored_log_probs(rows: Sequence[Mapping[str, Any]]) -> Tensor:
    """Return the pooled log-probabilities of a batch, in the order of `from_ragged`: (K,) in float32.

    Raises:
        ValueError: a row has none.
    """
    for row in rows:
        if len(row["log_probs"]) != len(row["candidates"]):
            raise ValueError(
                f"sentence {row.get('sent_id', '?')}: its chart has no pooled log-probabilities; "
                "make the charts with --keep_log_probs"
            )
    return torch.tensor([value for row in rows for value in row["log_probs"]], dtype=torch.float32)


def narrowed(triples: Tensor, log_probs: Tensor, sigma: float) -> Tensor:
    """Say which stored candidates a smaller chart keeps: the likeliest of each group up to a mass sigma.

    Args:
        triples: (K, 3), see `from_ragged`.
        log_probs: (K,), their pooled log-probabilities.
        sigma: the mass to be covered, at most what the stored chart covers.

    Returns:
        bool (K,); at least one of each group.
    """
    groups = torch.unique_consecutive(triples[:, :2], dim=0, return_inverse=True)[1]
    order = torch.argsort(log_probs, descending=True, stable=True)
    order = order[torch.argsort(groups[order], stable=True)]
    probs = log_probs[order].double().exp()
    before = probs.cumsum(0) - probs
    first = torch.ones_like(order, dtype=torch.bool)
    first[1:] = groups[order][1:] != groups[order][:-1]
    # What came before in one's own group: less what the groups before it hold.
    before = before - before[first][groups[order]]
    kept = torch.zeros_like(first)
    kept[order] = first | (before < sigma)
    return kept


PROVENANCE = CHARTS
DATA = "data"
SHARDS = "train-*.parquet"


def write_provenance(folder: Path, provenance: Mapping[str, Any]) -> None:
    """Write down what charts were made from."""
    write_text(folder / PROVENANCE, json.dumps(provenance, indent=1, ensure_ascii=False) + "\n")


def shards_in(folder: Path) -> list[Path]:
    """Return the files of charts in a folder, in order."""
    return sorted((folder / DATA).glob(SHARDS))


def load_charts(path: str, revision: str | None = None) -> tuple[Dataset, dict[str, Any]]:
    """Load charts and their provenance from a folder or the Hub.

    Args:
        path: a folder, or a data set's id with or without `@REVISION`.
        revision: the revision, if it is not part of the id.

    Raises:
        ValueError: there are no charts, some are missing, or their format is newer than this package.
    """
    rows, place = _local_charts(Path(path) if Path(path).is_dir() else _fetched(path, revision), path)
    provenance: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    if provenance["format_version"] > FORMAT_VERSION:
        raise ValueError(
            f"{path} has format {provenance['format_version']}, this package reads formats up to "
            f"{FORMAT_VERSION}; update it"
        )
    expected = provenance["counts"]["sentences"]
    if len(rows) != expected:
        raise ValueError(
            f"{path} holds charts of {len(rows)} sentences, but {expected} were made; files are missing or "
            "of another run: copy the folder again, or repeat the command that made it"
        )
    return rows, provenance


def _local_charts(folder: Path, name: str) -> tuple[Dataset, Path]:
    place = folder / PROVENANCE
    files = [str(path) for path in shards_in(folder)]
    if not place.exists() or not files:
        lacking = PROVENANCE if not place.exists() else f"{DATA}/{SHARDS}"
        raise ValueError(
            f"{name} has no {lacking}: build-charts has not ended there (repeat it), or it holds no charts"
        )
    return load_dataset("parquet", data_files={"train": files}, split="train"), place


def _fetched(path: str, revision: str | None) -> Path:
    """Bring a data set's charts from the Hub, or from the cache if the Hub is out of reach."""
    name, revision = split_revision(path, revision)
    wanted = [PROVENANCE, f"{DATA}/{SHARDS}"]
    try:
        return Path(snapshot_download(name, repo_type="dataset", revision=revision, allow_patterns=wanted))
    except HUB_ERRORS as error:
        why = explain_hub_error(error, name, "dataset", revision)
        raise ValueError(
            f"no charts {path}: it is neither a folder on this machine nor within reach on the Hub: {why}"
        ) from error


RULES = ("pool", "union", "linear")


@dataclass(frozen=True)
class ChartSettings:
    """How charts are made.

    Args:
        rule: `"pool"` (logarithmic opinion pool), `"linear"` (linear opinion pool) or `"union"` (PPTX).
        sigma: mass that is kept of each group.
        floor: added to every marginal before the logarithm; the published value is 1e-9.
        weights: a weight for each source by name; uniform if not given.
        keep_log_probs: store the pooled log-probabilities of the kept candidates.
        temperature: each source's scores are divided by it before marginals are taken.

    Raises:
        ValueError: the rule is unknown, or sigma, floor or temperature out of range.
    """

    rule: str = "pool"
    sigma: float = 0.95
    floor: float = 1e-9
    weights: Mapping[str, float] | None = None
    keep_log_probs: bool = False
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise ValueError(f"rule is {self.rule!r}; expected one of {', '.join(RULES)}")
        if not 0 < self.sigma <= 1:
            raise ValueError(f"sigma is {self.sigma}; expected a probability in (0, 1]")
        if not 0 <= self.floor < 1:
            raise ValueError(f"floor is {self.floor}; expected a probability in [0, 1)")
        if not self.temperature > 0:
            raise ValueError(f"temperature is {self.temperature}; expected a positive number")
