"""Compute chart size and quality exactly (Kurniawan et al. 2021, equations 9 to 11)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from hf_xst.numerics import safe_log
from hf_xst.structures.base import Structure

_LOG_SUMS = ("log_precision_numerator", "log_precision_denominator")
_COUNTS = ("recall_numerator", "recall_denominator")


def chart_quality(distribution: Structure, chart: Tensor, gold: Tensor) -> dict[str, Any]:
    """Compare charts with gold structures.

    Precision is the share of gold candidates among all candidates of all structures of all charts, so a
    sentence counts by the number of its structures. Recall is the share of gold candidates that occur in some
    structure of their sentence's chart; candidates of the chart that no structure can use do not count.

    Args:
        distribution: any distribution over the structures of the B sentences; its scores do not matter.
        chart: bool (B, G, C).
        gold: (B, G), index of the right candidate, -1 for none.

    Returns:
        `precision` and `recall` (floats; precision is NaN when no chart holds a structure, recall when there
        is no gold), `log_size` (B,) log of the number of structures, and the terms that `combine_quality`
        adds up: `log_precision_numerator`, `log_precision_denominator`, `recall_numerator`,
        `recall_denominator`.
    """
    valid = distribution.valid
    gold = gold.to(valid.device)
    flat = distribution.with_scores(distribution.part_view(torch.where(valid, 0.0, -torch.inf).double()))
    allowed = flat.restricted_to(flat.part_view(chart.bool() & valid))
    log_size = allowed.log_count().double()
    shares = allowed.group_view(allowed.marginals()).double()
    has_gold = gold >= 0
    gold_share = shares.gather(-1, gold.clamp(min=0)[..., None])[..., 0] * has_gold
    groups = has_gold.sum(-1)
    right = log_size + safe_log(gold_share.sum(-1))
    occurs = gold_share > 0
    occurs |= _underflowed(allowed, chart, gold, occurs)
    terms = {
        "log_precision_numerator": torch.logsumexp(right, 0).item(),
        "log_precision_denominator": torch.logsumexp(log_size + safe_log(groups.double()), 0).item(),
        "recall_numerator": int(occurs.sum()),
        "recall_denominator": int(has_gold.sum()),
    }
    return {**_ratios(terms), "log_size": log_size, **terms}


def _underflowed(allowed: Structure, chart: Tensor, gold: Tensor, occurs: Tensor) -> Tensor:
    """Find gold candidates whose share of an enormous chart is positive but rounds to zero."""
    inside = chart.gather(-1, gold.clamp(min=0)[..., None])[..., 0] & (gold >= 0)
    doubtful = inside & ~occurs
    found = torch.zeros_like(occurs)
    for group in torch.nonzero(doubtful.any(0))[:, 0].tolist():
        forced = torch.ones_like(chart, dtype=torch.bool)
        only = torch.zeros_like(forced[:, group]).scatter(-1, gold[:, group].clamp(min=0)[:, None], True)
        forced[:, group] = only
        possible = allowed.restricted_to(allowed.part_view(forced)).log_count() > -torch.inf
        found[:, group] = doubtful[:, group] & possible
    return found


def combine_quality(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up what `chart_quality` returned for several batches; the result has the same entries."""
    collected = list(parts)
    terms: dict[str, Any] = {
        key: torch.logsumexp(torch.tensor([part[key] for part in collected], dtype=torch.float64), 0).item()
        for key in _LOG_SUMS
    }
    terms |= {key: sum(part[key] for part in collected) for key in _COUNTS}
    sizes = torch.cat([part["log_size"] for part in collected])
    return {**_ratios(terms), "log_size": sizes, **terms}


def _ratios(terms: Mapping[str, Any]) -> dict[str, float]:
    log_all = terms["log_precision_denominator"]
    precision = math.exp(terms["log_precision_numerator"] - log_all) if log_all > -math.inf else math.nan
    found, gold = (terms[key] for key in _COUNTS)
    return {"precision": precision, "recall": found / gold if gold else math.nan}
