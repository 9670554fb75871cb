"""Collate rows of a chart data set into the tensors of one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

import torch
from torch import Tensor

from hf_xst.charts.alphabet import Relabelling
from hf_xst.charts.dataset import from_ragged, narrowed, stored_log_probs, structure_triples, words_hash
from hf_xst.models.modeling import Row, StructuredModel
from hf_xst.models.running import Collator, EmbeddingSource, row_units
from hf_xst.records import checked

Bests = Literal["sources", "pool", "none"]


@dataclass(frozen=True)
class ChartUse:
    """How stored charts are used in training.

    With `sigma` 0 only the best structures remain (self-training, with one source).

    Raises:
        ValueError: a value is out of range.
    """

    best: Bests = "sources"  # best structures that are added to the chart; in the paper of each source
    sigma: float | None = None  # mass of each group that a narrowed chart keeps; None keeps the stored chart
    soft: float = 0.0  # weight of the cross-entropy against the pool; the chart loss gets the rest

    def __post_init__(self) -> None:
        checked(Bests, self.best, "best")
        if self.sigma is not None and not 0 <= self.sigma <= 1:
            raise ValueError(f"sigma is {self.sigma}; expected a probability")
        if self.sigma == 0 and self.best == "none":
            raise ValueError("with sigma 0 and best 'none' every chart is empty; set best to sources or pool")
        if not 0 <= self.soft <= 1:
            raise ValueError(f"soft is {self.soft}; expected a number between 0 and 1")


class ChartCollator(Collator):
    """Add the chart of each sentence, whose labels are `names`, with the labels of the model.

    Raises:
        ValueError: the charts use labels that the model does not have.
    """

    def __init__(
        self,
        model: StructuredModel,
        names: Sequence[str],
        embeddings: EmbeddingSource | None = None,
        *,
        use: ChartUse | None = None,
    ) -> None:
        super().__init__(model, embeddings, gold=False)
        self.relabelling = Relabelling.between(names, model.names, model.structure)
        self.use = use or ChartUse()
        if self.relabelling.dropped:
            raise ValueError(
                f"the charts use labels that the model does not have: {', '.join(self.relabelling.dropped)}; "
                "initialise from the model that the charts were built for, or extend it with --labels union"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that a training row must have."""
        return ("words", "candidates", "offsets", "source_best", "pool_best", "words_hash")

    def __call__(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Return the model's input and what the chart loss reads.

        These are triples (sentence, group, candidate): the chart as `chart` (K, 3) and the pool's best
        structures as `fallback` (K', 3), for sentences whose chart is empty; `units` (B,); `sent_ids`; and
        for a soft loss `soft` (K'', 3) and `soft_log_probs` (K'',).

        Raises:
            ValueError: a sentence differs from the one its chart was built for, or pooled log-probabilities
                are required and not stored.
        """
        if not all("candidates" in row for row in rows):  # development sentences have no charts
            return super().__call__(rows)
        for index, row in enumerate(rows):
            if row["words_hash"] != words_hash(row["words"]):
                raise ValueError(
                    f"sentence {row.get('sent_id', index)}: its chart was built for other words than "
                    f"{' '.join(row['words'])[:60]!r}; rebuild the charts for this text"
                )
        batch = super().__call__(rows)
        batch |= self._charts(rows)
        batch["units"] = row_units(rows)
        batch["sent_ids"] = [str(row.get("sent_id", "?")) for row in rows]
        return batch

    def _charts(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        stored = chart = from_ragged(rows)
        pool_best = structure_triples([row["pool_best"] for row in rows])
        batch = {"fallback": self._relabelled(pool_best)}
        if self.use.sigma or self.use.soft > 0:
            log_probs = stored_log_probs(rows)
            if self.use.soft > 0:
                batch |= {"soft": self._relabelled(stored), "soft_log_probs": log_probs}
            if self.use.sigma:
                chart = stored[narrowed(stored, log_probs, self.use.sigma)]
        triples = [chart[:0] if self.use.sigma == 0 else chart]
        if self.use.best == "sources":
            bests = zip_longest(*(row["source_best"] for row in rows), fillvalue=())
            triples += map(structure_triples, bests)
        elif self.use.best == "pool":
            triples.append(pool_best)
        return batch | {"chart": self._relabelled(torch.cat(triples))}

    def _relabelled(self, triples: Tensor) -> Tensor:
        return torch.cat([triples[:, :2], self.relabelling.candidates(triples[:, 2:])], dim=1)
