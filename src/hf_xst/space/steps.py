"""Compute the method step by step for one sentence: marginals, pool, chart, best structure.

Models run once per sentence; results for other sources, weights and sigma come from the cached marginals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Lock
from typing import Any

import torch
from torch import Tensor

from hf_xst.charts.chart import ChartSettings, SourceDistributions, make_chart
from hf_xst.models.modeling import Row, StructuredModel
from hf_xst.sources.pool import AnySource, SourcePool
from hf_xst.sources.word_checks import check_tags
from hf_xst.structures.base import Structure

CACHED_SENTENCES = 64
LONGEST = 60


@dataclass(frozen=True)
class SentenceDistributions:
    """The distributions (S, 1, G, C) of all sources for one sentence, over common labels `names`."""

    row: Row
    sources: tuple[str, ...]
    distributions: SourceDistributions
    names: tuple[str, ...]

    @property
    def space(self) -> Structure:
        """Any distribution over the structures of the sentence."""
        return self.distributions.sources[0]

    def marginals(self, source: str) -> Tensor:
        """Return the marginal probabilities of a source, (G, C)."""
        return self.distributions.log_marginals[self.sources.index(source), 0].exp()

    def select(self, sources: Sequence[str]) -> SentenceDistributions:
        """Keep the named sources; raise ValueError if one is unknown, or if there are no names."""
        unknown = [name for name in sources if name not in self.sources]
        if unknown or not sources:
            raise ValueError(
                f"choose at least one of the sources {', '.join(self.sources)}"
                + (f"; unknown: {', '.join(unknown)}" if unknown else "")
            )
        by_name = dict(zip(self.sources, self.distributions.sources, strict=True))
        selected = {name: source for name, source in by_name.items() if name in sources}
        distributions = SourceDistributions(list(selected.values()))
        return replace(self, sources=tuple(selected), distributions=distributions)


@dataclass(frozen=True)
class Steps:
    """Results of the steps that follow the marginals.

    Attributes:
        pooled: Pooled probabilities, (G, C).
        kept: The chart, bool (G, C), without candidates that every source considers impossible.
        best: Candidates of the best structure in the chart, (G,).
    """

    pooled: Tensor
    kept: Tensor
    best: Tensor

    def confidence(self) -> list[float]:
        """Return the pooled probability of each candidate of the best structure."""
        return [float(row[candidate]) for row, candidate in zip(self.pooled, self.best, strict=True)]


def run_steps(sentence: SentenceDistributions, weights: Mapping[str, float], sigma: float) -> Steps:
    """Pool the selected sources by their weights, make the chart, and find its best structure.

    Raises:
        ValueError: Sigma or the weights are out of range.
    """
    sources = sentence.distributions
    pool_weights = [weights[name] for name in sentence.sources]
    chart = make_chart(sources, ChartSettings(sigma=sigma), pool_weights)
    # A floor gives probability to impossible candidates too, which a sigma of 1 would keep.
    kept = chart.allowed & (sources.log_marginals > -torch.inf).any(0)
    ensemble = sources.with_pooled(chart.pooled)
    best = ensemble.restricted_to(ensemble.part_view(kept)).best_candidates()
    return Steps(chart.pooled[0].exp(), kept[0], best[0])


class TaskModels:
    """Sources by name, at least one and of one kind, applied to single sentences."""

    def __init__(self, models: Mapping[str, AnySource]) -> None:
        self.pool = SourcePool(models)
        self.names = self.pool.names
        self.sources = list(models)
        self.columns = self.pool.kind.columns
        self._lock = Lock()  # spaCy and third parties do not promise to run in several threads
        self._cached = lru_cache(maxsize=CACHED_SENTENCES)(self._run)

    @property
    def input_columns(self) -> tuple[str, ...]:
        """The columns that any of the models reads."""
        models = [each.source for each in self.pool.sources if isinstance(each.source, StructuredModel)]
        columns = [column for model in models for column in model.input_columns]
        return tuple(dict.fromkeys(["words", *columns]))

    def distributions(self, words: Sequence[str], **annotation: Sequence[str]) -> SentenceDistributions:
        """Run all models on a sentence, with the columns that they read, or return cached distributions.

        Raises:
            ValueError: The sentence is empty or too long, or a column is missing.
        """
        if not 0 < len(words) <= LONGEST:
            raise ValueError(f"the sentence has {len(words)} words; expected 1 to {LONGEST}")
        missing = [column for column in self.input_columns if column not in ("words", *annotation)]
        if missing:
            raise ValueError(f"the models read {', '.join(missing)}, which the sentence lacks")
        row = {
            "words": words,
            **{name: annotation[name] for name in annotation if name in self.input_columns},
        }
        return self._cached(*((name, tuple(values)) for name, values in sorted(row.items())))

    def _run(self, *columns: tuple[str, tuple[str, ...]]) -> SentenceDistributions:
        row = {name: list(values) for name, values in columns}
        for each in self.pool.sources:
            check_tags(each.source, [row.get("upos")], each.name)
        with self._lock, torch.no_grad():
            distributions = SourceDistributions(self.pool.distributions([row]))
        return SentenceDistributions(row, tuple(self.sources), distributions, tuple(self.names))

    def decode(self, sentence: SentenceDistributions, candidates: Tensor) -> dict[str, list[Any]]:
        """Return the columns of a structure given as candidates (G,)."""
        best = sentence.space.best_from_candidates(candidates.unsqueeze(0))
        lengths = torch.tensor([len(sentence.row["words"])])
        return self.pool.kind.decode(best, lengths, self.names)[0]

    def predict(self, words: Sequence[str]) -> dict[str, list[Any]]:
        """Return the columns of the uniform pool's best structure, for models that read words only."""
        sentence = self.distributions(words)
        return self.decode(sentence, run_steps(sentence, dict.fromkeys(self.sources, 1.0), 1.0).best)
