"""From prepared rows to the tensors of one batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from hf_xst.charts.alphabet import Relabelling
from hf_xst.charts.dataset import from_ragged, narrowed, stored_log_probs, structure_triples, words_hash
from hf_xst.models.cached_states import WordStates
from hf_xst.models.collation import Collator, row_units
from hf_xst.models.modeling import Row, StructuredModel

Bests = Literal["sources", "pool", "none"]


@dataclass(frozen=True)
class ChartUse:
    """What of a stored chart a model is trained on.

    Args:
        best: which best structures join the chart: each source's (as published), the pool's alone, or none.
        sigma: keep only the likeliest stored candidates of each group, up to this mass; all if not given.
            With 0 the best structures are all of the chart: of one source, self-training.
        soft: share of the loss that is the cross-entropy against the pool itself (distillation); the rest is
            the chart loss.

    Raises:
        ValueError: a value is out of range.
    """

    best: Bests = "sources"
    sigma: float | None = None
    soft: float = 0.0

    def __post_init__(self) -> None:
        if self.best not in get_args(Bests):
            raise ValueError(f"best is {self.best!r}; expected one of {', '.join(get_args(Bests))}")
        if self.sigma is not None and not 0 <= self.sigma <= 1:
            raise ValueError(f"sigma is {self.sigma}; expected a probability")
        if self.sigma == 0 and self.best == "none":
            raise ValueError(
                "sigma is 0 and best is 'none', which allows nothing; name whose best structures"
            )
        if not 0 <= self.soft <= 1:
            raise ValueError(f"soft is {self.soft}; expected a share between 0 and 1")

    @property
    def needs_log_probs(self) -> bool:
        """Whether charts must have been made with pooled log-probabilities."""
        return bool(self.sigma) or self.soft > 0


class ChartCollator(Collator):
    """Add each sentence's chart in the model's alphabet.

    Args:
        model: the model that will be trained.
        names: the charts' alphabet, all of it among the model's names.
        states: see `Collator`.
        use: what of the stored charts counts.

    Raises:
        ValueError: the charts name labels that the model does not have.
    """

    def __init__(
        self,
        model: StructuredModel,
        names: Sequence[str],
        states: WordStates | None = None,
        *,
        use: ChartUse | None = None,
    ) -> None:
        super().__init__(model, states, gold=False)
        self.relabelling = Relabelling.between(names, model.names, model.structure)
        self.use = use or ChartUse()
        if self.relabelling.dropped:
            raise ValueError(
                f"the charts use labels that the model does not have: {', '.join(self.relabelling.dropped)}; "
                "start from the model that the charts were made for, or extend it with --labels union"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that a row must have in training."""
        return ("words", "candidates", "offsets", "source_best", "pool_best", "words_hash")

    def __call__(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Return the model's input and what the chart loss needs.

        That is `chart` (K, 3) and `fallback` (K', 3) as triples, `units` (B,), one each, and `sent_ids`. The
        fallback is the pool's best structure, for sentences whose chart holds none. For a soft loss there are
        `soft` (K, 3) and `soft_log_probs` (K,) as well.

        Raises:
            ValueError: a sentence's words are not those that its chart was made for, or pooled
                log-probabilities are needed and not stored.
        """
        for index, row in enumerate(rows):
            if row["words_hash"] != words_hash(row["words"]):
                raise ValueError(
                    f"sentence {row.get('sent_id', index)}: its chart was made for other words than "
                    f"{' '.join(row['words'])[:60]!r}; make the charts anew for this text"
                )
        batch = super().__call__(rows)
        fallback = structure_triples([row["pool_best"] for row in rows])
        batch |= self._allowed(rows, fallback)
        batch["fallback"] = self._moved(fallback)
        batch["units"] = row_units(rows)
        batch["sent_ids"] = [str(row.get("sent_id", "?")) for row in rows]
        return batch

    def _allowed(self, rows: Sequence[Row], pool_best: Tensor) -> dict[str, Tensor]:
        stored, found = from_ragged(rows), {}
        kept = stored
        if self.use.needs_log_probs:
            log_probs = stored_log_probs(rows)
            if self.use.soft > 0:
                found = {"soft": self._moved(stored), "soft_log_probs": log_probs}
            if self.use.sigma:
                kept = stored[narrowed(stored, log_probs, self.use.sigma)]
        if self.use.sigma == 0:
            kept = stored[:0]
        triples = [kept]
        if self.use.best == "sources":
            number = max(len(row["source_best"]) for row in rows)
            triples += [structure_triples([_nth(row, source) for row in rows]) for source in range(number)]
        elif self.use.best == "pool":
            triples.append(pool_best)
        return {"chart": self._moved(torch.cat(triples)), **found}

    def _moved(self, triples: Tensor) -> Tensor:
        return torch.cat([triples[:, :2], self.relabelling.candidates(triples[:, 2:])], dim=1)


def _nth(row: Mapping[str, Any], source: int) -> Sequence[int]:
    best: Sequence[Sequence[int]] = row["source_best"]
    return best[source] if source < len(best) else ()
