"""Size and quality of charts over a whole data set (Kurniawan et al. 2021, "Chart Size", "Chart Quality")."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hf_xst.charts import chart_quality, combine_quality
from hf_xst.numerics import logsumexp, safe_log
from hf_xst.structures.base import Structure

_RATIOS = ("precision", "recall")


class QualityTotals:
    """Size, precision and recall of one kind of chart, added up over batches.

    Of a sentence it keeps one number, the log of its chart's size, for the median.

    Args:
        added: how many groups the model adds at a sentence's start and end.
    """

    def __init__(self, added: tuple[int, int] = (0, 0)) -> None:
        self._added = added
        self._log_sizes = array("d")
        self._totals: dict[str, dict[str, Any]] = {}

    def add(self, distribution: Structure, chart: Tensor, gold: Tensor) -> None:
        """Count a batch.

        A gold candidate that the alphabet lacks is in no structure: it counts in the denominators.

        Args:
            distribution: any distribution over the structures of the B sentences; its scores do not matter.
            chart: bool (B, G, C).
            gold: (B, G), index of the right candidate, -1 where the alphabet lacks it.
        """
        for scope, counted in counted_groups(distribution, self._added).items():
            part = _terms(distribution, chart, gold, counted)
            if scope == SCOPES[0]:
                self._log_sizes.extend(part["log_size"].tolist())
            part["log_size"] = part["log_size"][:0]
            before = [self._totals[scope]] if scope in self._totals else []
            self._totals[scope] = combine_quality([*before, part])

    def result(self) -> dict[str, Any]:
        """Return `median_log_size`, `empty_charts`, and `precision` and `recall` of both scopes."""
        ratios = {scope: {key: total[key] for key in _RATIOS} for scope, total in self._totals.items()}
        none = {SCOPES[0]: dict.fromkeys(_RATIOS, math.nan)}
        return {
            "median_log_size": median_log(self._log_sizes),
            "empty_charts": sum(size == -math.inf for size in self._log_sizes),
            **by_scope(ratios or none),
        }


def _terms(distribution: Structure, chart: Tensor, gold: Tensor, counted: Tensor) -> dict[str, Any]:
    part = chart_quality(distribution, chart, gold.masked_fill(~counted, -1))
    unknown = (counted & (gold < 0)).sum(-1)
    if bool(unknown.any()):
        more = logsumexp(part["log_size"] + safe_log(unknown.double()), 0).item()
        part["log_precision_denominator"] = float(np.logaddexp(part["log_precision_denominator"], more))
        part["recall_denominator"] += int(unknown.sum())
    return part


def median_log(log_sizes: Iterable[float]) -> float:
    """Return the log of the median of numbers given by their logs; of an even number, the middle two's mean.

    It is NaN where there is none.
    """
    ordered = sorted(log_sizes)
    if not ordered:
        return math.nan
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return low if low == high else float(np.logaddexp(low, high)) - math.log(2)


def compare(found: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """Put one kind of chart beside another, as the paper's tables do.

    Args:
        found: what `QualityTotals.result` gave, e.g. of the pool.
        base: the same of the other kind, e.g. of the union.

    Returns:
        `size_ratio`, of the median sizes (and `log_size_ratio`), and by scope the differences of `precision`
        and `recall`; positive means that `found` is higher.
    """
    both_empty = found["median_log_size"] == base["median_log_size"] == -math.inf
    ratio = math.nan if both_empty else found["median_log_size"] - base["median_log_size"]
    with np.errstate(over="ignore"):
        size_ratio = float(np.exp(ratio))
    differences = {scope: {key: found[scope][key] - base[scope][key] for key in _RATIOS} for scope in SCOPES}
    return {"size_ratio": size_ratio, "log_size_ratio": ratio, **differences}


def size_text(log_size: float) -> str:
    """Write a number given by its log as the paper's table does: 1.6e6; plain below a thousand."""
    if not math.isfinite(log_size):
        return "0" if log_size == -math.inf else "?"
    power = math.floor(log_size / math.log(10))
    if power < 3:
        return f"{math.exp(log_size):.3g}"
    mantissa = f"{math.exp(log_size - power * math.log(10)):.1f}"
    return f"1.0e{power + 1}" if mantissa == "10.0" else f"{mantissa}e{power}"


SCOPES = ("with_boundaries", "without_boundaries")
"""Whether the groups that a model adds at a sentence's ends count (see `StructuredModel.added_groups`)."""


def counted_groups(distribution: Structure, added: tuple[int, int]) -> dict[str, Tensor]:
    """Say which groups count in each scope: bool (B, G) by name; one scope only if no group is added.

    Args:
        distribution: any distribution over the sentences' structures.
        added: how many groups a model adds at the start and the end of a sentence.
    """
    inside = distribution.valid.any(-1)
    scopes = {SCOPES[0]: inside}
    if any(added):
        group = torch.arange(inside.shape[1], device=inside.device)
        end = (distribution.group_lengths.to(inside.device) - added[1])[:, None]
        scopes[SCOPES[1]] = inside & (group >= added[0]) & (group < end)
    return scopes


def by_scope(found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Give both scopes; where no group is added they are one and the same."""
    return {scope: found.get(scope, found[SCOPES[0]]) for scope in SCOPES}
