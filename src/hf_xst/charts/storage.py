"""Charts as rows of a data set: ragged indices that stay valid in any batch and any alphabet order."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from datasets import Features, List, Value
from torch import Tensor

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
