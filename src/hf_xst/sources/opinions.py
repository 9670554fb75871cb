"""What all sources say about a batch: computed once, used by every measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from datasets import Dataset
from torch import Tensor

from hf_xst.charts import linear_opinion_pool, log_opinion_pool, stacked_log_marginals, threshold
from hf_xst.charts.chart import kept_by_sources, with_best
from hf_xst.charts.dataset import ChartSettings
from hf_xst.charts.pooling import possible_candidates, with_floor
from hf_xst.console import progress
from hf_xst.models.modeling import Row
from hf_xst.models.running import in_batches
from hf_xst.numerics import log_normalise
from hf_xst.sources.pool import SourcePool
from hf_xst.structures.base import Structure


@dataclass(frozen=True)
class SourceBatch:
    """The opinions of S sources on B sentences.

    Args:
        sources: their distributions over one alphabet.
        log_marginals: (S, B, G, C).
        best: (S, B, G), each source's best candidates, -1 where there is none.
        words: words of all B sentences together.
    """

    sources: list[Structure]
    log_marginals: Tensor
    best: Tensor
    words: int
    _kept: dict[float, Tensor] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def read(cls, pool: SourcePool, rows: Sequence[Row]) -> SourceBatch:
        """Ask all sources about a batch of rows."""
        return cls.of(pool.distributions(rows), sum(len(row["words"]) for row in rows))

    @classmethod
    def of(cls, sources: list[Structure], words: int) -> SourceBatch:
        """Take what is needed of the sources' distributions."""
        best = torch.stack([source.best_candidates() for source in sources])
        return cls(sources, stacked_log_marginals(sources), best, words)

    @cached_property
    def valid(self) -> Tensor:
        """Bool (B, G, C), what any source holds possible."""
        return possible_candidates(self.sources)

    def softened(self, temperature: float) -> SourceBatch:
        """Divide all scores by a temperature; best structures stay what they are."""
        if temperature == 1:
            return self
        sources = [source.with_scores(source.scores / temperature) for source in self.sources]
        return replace(self, sources=sources, log_marginals=stacked_log_marginals(sources))

    def kept(self, sigma: float) -> Tensor:
        """Say what each source alone keeps, bool (S, B, G, C); computed once, since it takes long."""
        if sigma not in self._kept:
            self._kept[sigma] = kept_by_sources(self.log_marginals, sigma, self.valid)
        return self._kept[sigma]

    def chart(self, settings: ChartSettings, weights: Sequence[float] | None) -> Tensor:
        """Make charts as `hf-xst build-charts` does, best structures included: bool (B, G, C).

        Args:
            settings: rule, sigma and floor; the temperature must have been applied.
            weights: of the pool, in the order of the sources.
        """
        return with_best(self.allowed(settings, weights), self.best)

    def allowed(self, settings: ChartSettings, weights: Sequence[float] | None) -> Tensor:
        """Return the charts without best structures: bool (B, G, C); arguments as for `chart`."""
        if settings.rule == "union":
            return self.kept(settings.sigma).any(0)
        return threshold(self.pooled(settings, weights), settings.sigma, self.valid)

    def pooled(self, settings: ChartSettings, weights: Sequence[float] | None) -> Tensor:
        """Return the pooled log-probabilities (B, G, C), of the logarithmic pool for a union."""
        if settings.rule == "linear":
            return linear_opinion_pool(self.log_marginals, weights, valid=self.valid)
        return log_opinion_pool(self.log_marginals, weights, settings.floor, valid=self.valid)


def for_each_batch(
    rows: Dataset | Sequence[Row], visit: Callable[[list[Row]], None], what: str, batch_words: int
) -> None:
    """Show every row to `visit`, in batches of like length, under a progress bar.

    Args:
        rows: sentences; memory does not grow with their number.
        visit: takes the rows of a batch.
        what: is being done, for the person who waits.
        batch_words: see `hf_xst.models.running`.

    Raises:
        ValueError: there is no sentence.
    """
    if not len(rows):
        raise ValueError(f"{what} needs sentences, and there is none")
    with progress(what, len(rows)) as advance:

        def run(batch: list[Row]) -> list[None]:
            visit(batch)
            advance(len(batch))
            return [None] * len(batch)

        for _ in in_batches(rows, run, batch_words):
            pass


def floored(log_marginals: Tensor, floor: float, valid: Tensor) -> Tensor:
    """Add a floor to the probabilities of valid candidates and normalise: (S, B, G, C) as given.

    The pool of these at floor 0 is the pool of the others at that floor.
    """
    return log_normalise(with_floor(log_marginals, floor).masked_fill(~valid, -torch.inf), -1)
