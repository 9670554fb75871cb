"""How well sources are chosen without labels: the label-free orders beside the true one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hf_xst.analysis.statistics import spearman
from hf_xst.training.selection import MEASURES, rank_sources


def rank_correlations(
    found: Mapping[str, Mapping[str, float | None]], truth: Mapping[str, float]
) -> dict[str, dict[str, Any]]:
    """Say how well each label-free measure orders sources by their true scores.

    Args:
        found: measures by source, see `hf_xst.training.selection.SourceMeasures`.
        truth: true scores of the sources, e.g. of direct transfer; more is better.

    Returns:
        By measure: Spearman's `rho`, signed so that 1 is the true order, its `p` and number `n` of sources;
        the source `chosen` first, the truly `best` one, and the `regret`, the score lost by that choice.

    Raises:
        ValueError: a source has no true score, or there is no source.
    """
    missing = [name for name in found if name not in truth]
    if missing or not found:
        raise ValueError(f"true scores are needed for every source; missing: {', '.join(missing) or 'all'}")
    best = max(found, key=lambda name: truth[name])
    table = {}
    for measure, sign in MEASURES.items():
        values = {name: found[name][measure] for name in found}
        usable = {name: v * sign for name, v in values.items() if v is not None and math.isfinite(v)}
        rho, p, n = spearman(list(usable.values()), [truth[name] for name in usable])
        chosen = rank_sources(found, measure)[0]
        regret = truth[best] - truth[chosen]
        table[measure] = {"rho": rho, "p": p, "n": n, "chosen": chosen, "best": best, "regret": regret}
    return table
