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
