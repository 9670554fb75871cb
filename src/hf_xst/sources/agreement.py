"""Which sources suit a language, told without labels.

Each measure compares a source with the pool of all the others, or looks at how sure it is of itself. Sources
that suit a language tend to agree with each other, and those that do not err in different ways.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import yaml
from datasets import Dataset
from torch import Tensor

from hf_xst.charts import log_opinion_pool
from hf_xst.charts.chart import candidates_mask
from hf_xst.files import write_text
from hf_xst.models.modeling import Row
from hf_xst.models.running import BATCH_WORDS
from hf_xst.sources.opinions import SourceBatch, floored, for_each_batch
from hf_xst.sources.pool import SourcePool
from hf_xst.sources.statistics import spearman

MEASURES = {"agreement": 1, "divergence": -1, "entropy": -1, "chart_size": -1}
"""The label-free measures, and whether more (1) or less (-1) of them speaks for a source."""
SELECTION_SENTENCES = 300
"""So many sentences are enough to compare sources on."""
AGREEMENT_POWER = 4
"""Pool weights are in proportion to this power of the agreement: who is far from all others counts little."""


@dataclass
class _Sums:
    agreement: float = 0.0
    divergence: float = 0.0
    entropy: float = 0.0
    chart_size: float = 0.0
    right: int = 0


@dataclass
class SourceMeasures:
    """Label-free measures of each source, added up over batches.

    Args:
        names: of the sources, in the order of the pool.
        sigma: mass that a source's own chart keeps.
        floor: added to every marginal before the logarithm.
    """

    names: Sequence[str]
    sigma: float = 0.95
    floor: float = 1e-9
    _sums: list[_Sums] = field(init=False)
    _words: int = field(default=0, init=False)
    _groups: int = field(default=0, init=False)
    _judged: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._sums = [_Sums() for _ in self.names]

    def add(self, batch: SourceBatch, gold: Tensor | None = None) -> None:
        """Count a batch; with gold (B, G) also how often each source is right."""
        inside = batch.valid.any(-1)
        self._words += batch.words
        self._groups += int(inside.sum())
        for source, candidates, alone, sums in zip(
            batch.sources, batch.best, batch.kept(self.sigma), self._sums, strict=True
        ):
            sums.entropy += float(source.entropy().sum(dtype=torch.float64))
            kept = alone | candidates_mask(candidates, batch.valid)
            size = source.restricted_to(source.part_view(kept)).log_count()
            sums.chart_size += float(size[size > -torch.inf].sum(dtype=torch.float64))
            if gold is not None:
                sums.right += int(((candidates == gold) & (gold >= 0)).sum())
        self._judged += 0 if gold is None else int(inside.sum())
        if len(self.names) > 1:
            self._compare(batch, inside)

    def _compare(self, batch: SourceBatch, inside: Tensor) -> None:
        """Compare each source with the pool of the others."""
        opinions = floored(batch.log_marginals, self.floor, batch.valid)
        for place, sums in enumerate(self._sums):
            others = [other for other in range(len(self.names)) if other != place]
            pooled = log_opinion_pool(opinions[others], valid=batch.valid)
            probs, best = pooled.exp(), batch.best[place]
            agreed = probs.gather(-1, best.clamp(min=0)[..., None])[..., 0].masked_fill(best < 0, 0)
            sums.agreement += float(agreed[inside].sum(dtype=torch.float64))
            apart = torch.where(probs > 0, probs * (pooled - opinions[place]), 0.0)
            sums.divergence += float(apart.sum(dtype=torch.float64))

    def result(self) -> dict[str, dict[str, float]]:
        """Return each source's measures.

        These are `agreement`, the probability that the pool of the others gives to the source's best
        candidates, and `divergence`, that pool's Kullback-Leibler divergence from the source, means over
        groups (NaN for a single source); `entropy` of the source and `chart_size`, the log of the number
        of structures in a chart of its own, in nats per word; and with gold `right`, the share of groups
        whose best candidate is right.
        """
        alone = len(self.names) == 1
        found = {}
        for name, sums in zip(self.names, self._sums, strict=True):
            found[name] = {
                "agreement": math.nan if alone else sums.agreement / max(1, self._groups),
                "divergence": math.nan if alone else sums.divergence / max(1, self._groups),
                "entropy": sums.entropy / max(1, self._words),
                "chart_size": sums.chart_size / max(1, self._words),
            }
            if self._judged:
                found[name]["right"] = sums.right / self._judged
        return found


def rank_sources(found: Mapping[str, Mapping[str, float | None]], measure: str = "agreement") -> list[str]:
    """Order sources by a label-free measure, the one it speaks for most first; equal ones as given.

    Args:
        found: measures by source, see `SourceMeasures.result`.
        measure: one of `MEASURES`.

    Raises:
        ValueError: there is no such measure.
    """
    sign = _sign(measure)

    def worth(name: str) -> float:
        value = found[name][measure]
        return -math.inf if value is None or math.isnan(value) else sign * value

    return sorted(found, key=worth, reverse=True)


def agreement_weights(found: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Weigh sources without labels: in proportion to `AGREEMENT_POWER` of their agreement with the others.

    Args:
        found: measures by source, see `SourceMeasures.result`.

    Returns:
        Weights by source that sum to 1 but for rounding: to six digits, so that machines which differ in the
        last bit of a sum weigh alike; equal ones where no source agrees with any other.
    """
    powers = {name: max(measures["agreement"], 0.0) ** AGREEMENT_POWER for name, measures in found.items()}
    total = sum(powers.values())
    if math.isnan(total) or total <= 0:
        return dict.fromkeys(found, 1 / len(found))
    return {name: round(power / total, 6) for name, power in powers.items()}


def measure_sources(
    pool: SourcePool,
    rows: Dataset | Sequence[Row],
    *,
    sigma: float = 0.95,
    floor: float = 1e-9,
    batch_words: int = BATCH_WORDS,
) -> dict[str, dict[str, float]]:
    """Take the label-free measures of all sources.

    Args:
        pool: the sources, over one alphabet.
        rows: prepared rows; no gold is read.
        sigma: mass kept in the charts whose size is measured.
        floor: added to every marginal before the logarithm.
        batch_words: see `hf_xst.models.running`.

    Returns:
        See `SourceMeasures.result`.

    Raises:
        ValueError: there is no sentence.
    """
    measures = SourceMeasures([source.name for source in pool.sources], sigma, floor)

    def visit(batch: list[Row]) -> None:
        measures.add(SourceBatch.read(pool, batch))

    for_each_batch(rows, visit, "comparing sources", batch_words)
    return measures.result()


def select_sources(
    pool: SourcePool,
    rows: Dataset | Sequence[Row],
    count: int,
    measure: str = "agreement",
    **settings: Any,
) -> list[str]:
    """Choose the sources that suit unlabelled sentences best.

    Args:
        pool: all candidates for a source, over one alphabet.
        rows: prepared rows; no gold is read.
        count: how many sources to choose.
        measure: one of `MEASURES`.
        settings: of `measure_sources`.

    Returns:
        The names of the chosen ones, best first.

    Raises:
        ValueError: there is no such measure, there are not so many sources, or no sentence.
    """
    names = [source.name for source in pool.sources]
    if not 1 <= count <= len(names):
        raise ValueError(f"{count} sources are to be chosen of {len(names)}: {', '.join(names)}")
    _sign(measure)  # a wrong name is told before the work
    return rank_sources(measure_sources(pool, rows, **settings), measure)[:count]


def _sign(measure: str) -> int:
    if measure not in MEASURES:
        raise ValueError(f"there is no measure {measure!r}; expected one of {', '.join(MEASURES)}")
    return MEASURES[measure]


def read_weights(path: str) -> dict[str, float]:
    """Read a weights file: YAML, one `NAME: WEIGHT` a line.

    Raises:
        ValueError: the file has another form.
    """
    # Read as text: to YAML itself a source called `no` is a truth value.
    try:
        content = yaml.load(Path(path).read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
        if isinstance(content, dict) and isinstance(content.get("weights"), dict):
            content = content["weights"]
        if not isinstance(content, dict):
            raise ValueError(f"found {str(content)[:80]!r}")
        return {name: float(weight) for name, weight in content.items()}
    except (yaml.YAMLError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: expected YAML with one NAME: WEIGHT a line ({error})") from error


def write_weights(path: str | Path, weights: Mapping[str, float]) -> None:
    """Write a weights file as `read_weights` reads it."""
    write_text(path, yaml.safe_dump(dict(weights), sort_keys=False, allow_unicode=True))


def rank_correlations(
    found: Mapping[str, Mapping[str, float | None]], truth: Mapping[str, float]
) -> dict[str, dict[str, Any]]:
    """Say how well each label-free measure orders sources by their true scores.

    Args:
        found: measures by source, see `hf_xst.sources.agreement.SourceMeasures`.
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
