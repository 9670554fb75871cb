"""The method step by step on one sentence: marginals, pool, threshold, chart, best structure.

The models run once a sentence. What a person moves afterwards (sources, weights, sigma) is answered from the
marginals that are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from hf_xst.charts.chart import FLOOR, ChartSettings, SourceDistributions, make_chart
from hf_xst.models.modeling import Row, StructuredModel
from hf_xst.sources.pool import SourcePool, joint_names
from hf_xst.structures.base import Structure

KEPT_SENTENCES = 64
LONGEST = 60


@dataclass(frozen=True)
class Reading:
    """What every source says about one sentence.

    Attributes:
        row: the sentence.
        sources: the sources' names.
        distributions: their distributions (S, 1, G, C).
        names: the common alphabet.
    """

    row: Row
    sources: tuple[str, ...]
    distributions: SourceDistributions
    names: tuple[str, ...]

    @property
    def space(self) -> Structure:
        """A distribution over the structures of this sentence; which one does not matter."""
        return self.distributions.sources[0]

    def marginals(self, source: str) -> Tensor:
        """Return a source's probabilities, (G, C)."""
        return self.distributions.log_marginals[self.sources.index(source), 0].exp()

    def of(self, sources: Sequence[str]) -> Reading:
        """Return the same with some of the sources only, in their present order.

        Raises:
            ValueError: none is left, or one is not among the sources.
        """
        unknown = [name for name in sources if name not in self.sources]
        if unknown or not sources:
            raise ValueError(
                f"choose at least one of the sources {', '.join(self.sources)}"
                + (f"; there is no {', '.join(unknown)}" if unknown else "")
            )
        places = [place for place, name in enumerate(self.sources) if name in sources]
        distributions = SourceDistributions([self.distributions.sources[place] for place in places])
        return replace(
            self, sources=tuple(self.sources[place] for place in places), distributions=distributions
        )


@dataclass(frozen=True)
class Steps:
    """What follows from marginals, weights and sigma.

    Attributes:
        pooled: (G, C), the pool's probabilities.
        kept: bool (G, C), the chart: the pool's likeliest candidates and each source's best structure, less
            what every source holds impossible.
        best: (G,), candidates of the pool's best structure within the chart.
    """

    pooled: Tensor
    kept: Tensor
    best: Tensor

    def confidence(self) -> list[float]:
        """Return the pool's probability of each candidate of the best structure."""
        chosen: list[float] = self.pooled.gather(1, self.best.clamp(min=0).unsqueeze(1)).squeeze(1).tolist()
        return chosen


def steps(reading: Reading, weights: Mapping[str, float], sigma: float, floor: float = FLOOR) -> Steps:
    """Pool the sources, keep the likeliest candidates, and find the best structure of what is left.

    Args:
        reading: of the sources that take part.
        weights: a weight for each of them by name, not all zero; scaled to sum to one.
        sigma: the mass that is kept of each group.
        floor: see `log_opinion_pool`.

    Raises:
        ValueError: sigma or the weights are out of range.
    """
    settings = ChartSettings(sigma=sigma, floor=floor)
    given = [weights[name] for name in reading.sources]
    sources = reading.distributions
    chart = make_chart(sources, settings, given)
    assert chart.pooled is not None
    # A floor gives probability to what is impossible too, which a sigma of 1 would keep.
    kept = chart.allowed & (sources.log_marginals > -torch.inf).any(0)
    ensemble = sources.with_pooled(chart.pooled)
    best = ensemble.restricted_to(ensemble.part_view(kept)).best_candidates()
    return Steps(chart.pooled[0].exp(), kept[0], best[0])


class TaskModels:
    """Source models of one kind, at hand for one sentence after another.

    Args:
        models: the models by name.

    Raises:
        ValueError: there is none, or they are of different kinds.
    """

    def __init__(self, models: Mapping[str, StructuredModel]) -> None:
        if not models:
            raise ValueError("there is no source model; at least one is needed")
        self.names = joint_names(list(models.values()))
        self.pool = SourcePool(models, self.names)
        self.sources = list(models)
        self._first = next(iter(models.values()))
        self._kept = lru_cache(maxsize=KEPT_SENTENCES)(self._read)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the models predict."""
        return self._first.columns

    @property
    def input_columns(self) -> tuple[str, ...]:
        """The columns that any of the models reads."""
        found = [column for source in self.pool.sources for column in source.model.input_columns]
        return tuple(dict.fromkeys(found))

    def reading(self, words: Sequence[str], **annotation: Sequence[str]) -> Reading:
        """Ask all models about a sentence, or remember what they said.

        Args:
            words: the words.
            annotation: further columns that the models read, such as coarse tags.

        Raises:
            ValueError: the sentence has no words or too many, or lacks a column.
        """
        if not 0 < len(words) <= LONGEST:
            raise ValueError(f"a sentence of {len(words)} words; expected 1 to {LONGEST}")
        missing = [column for column in self.input_columns if column != "words" and column not in annotation]
        if missing:
            raise ValueError(
                f"the models read {', '.join(missing)} beside the words, which the sentence lacks"
            )
        read = {name: tuple(column) for name, column in annotation.items() if name in self.input_columns}
        return self._kept(tuple(words), tuple(sorted(read.items())))

    def _read(self, words: tuple[str, ...], annotation: tuple[tuple[str, tuple[str, ...]], ...]) -> Reading:
        row = {"words": list(words), **{name: list(column) for name, column in annotation}}
        with torch.no_grad():
            distributions = SourceDistributions(self.pool.distributions([row]))
        return Reading(row, tuple(self.sources), distributions, tuple(self.names))

    def columns_of(self, reading: Reading, candidates: Tensor) -> dict[str, list[Any]]:
        """Return a structure (G,) of candidates as the models' columns."""
        best = reading.space.best_from_candidates(candidates.unsqueeze(0))
        lengths = torch.tensor([len(reading.row["words"])])
        return self._first.decode(best, lengths, self.names)[0]

    def predicted(self, words: Sequence[str]) -> dict[str, list[Any]]:
        """Return the columns of the uniform pool's best structure, for models that read them."""
        reading = self.reading(words)
        sources = reading.distributions
        ensemble = sources.with_pooled(sources.pooled("pool", None, FLOOR))
        return self.columns_of(reading, ensemble.best_candidates()[0])
