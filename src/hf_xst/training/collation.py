"""From prepared rows to the tensors of one batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from hf_xst.charts.alphabet import Relabelling
from hf_xst.charts.storage import from_ragged, structure_triples, words_hash
from hf_xst.models.base import Row, StructuredModel

from .frozen import WordStates

# A row that only fills a last batch up carries this column with the value true and weighs nothing.
FILLER = "filler"


class Collator:
    """Turn rows into what `model.forward` takes, and what a loss needs beside it.

    Args:
        model: the model that will see the batch.
        states: ready states of a frozen encoder; the words are then not encoded again.
        gold: add `labels` and `units` from the model's gold columns where a row has them.
    """

    def __init__(
        self, model: StructuredModel, states: WordStates | None = None, *, gold: bool = True
    ) -> None:
        self.model, self.states, self.gold = model, states, gold

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that a row must have in training."""
        return ("words", *self.model.columns) if self.gold else ("words",)

    def __call__(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Return `lengths`, the word tensors, and with gold `labels` (B, N, ...) and `units` (B,)."""
        batch: dict[str, Any] = self.model.featurise(rows, words=self.states is None)
        if self.states is not None:
            batch["word_states"] = self.states.batch([row["words"] for row in rows])
        if self.gold and all(column in rows[0] for column in self.model.columns):
            batch["labels"] = self.model.encode_gold(rows)
            batch["units"] = self.model.units(batch["labels"]) * _kept(rows)
        return batch


class ChartCollator(Collator):
    """Add each sentence's chart in the model's alphabet.

    Args:
        model: the model that will be trained.
        names: the charts' alphabet, all of it among the model's names.
        states: see `Collator`.
        with_best: whether each source's best structure joins the chart.

    Raises:
        ValueError: the charts name labels that the model does not have.
    """

    def __init__(
        self,
        model: StructuredModel,
        names: Sequence[str],
        states: WordStates | None = None,
        *,
        with_best: bool = True,
    ) -> None:
        super().__init__(model, states, gold=False)
        self.relabelling = Relabelling.between(names, model.names, model.structure)
        self.with_best = with_best
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
        fallback is the pool's best structure, for sentences whose chart holds none.

        Raises:
            ValueError: a sentence's words are not those that its chart was made for.
        """
        for index, row in enumerate(rows):
            if row["words_hash"] != words_hash(row["words"]):
                raise ValueError(
                    f"sentence {row.get('sent_id', index)}: its chart was made for other words than "
                    f"{' '.join(row['words'])[:60]!r}; make the charts anew for this text"
                )
        batch = super().__call__(rows)
        triples = [from_ragged(rows)]
        if self.with_best:
            number = max(len(row["source_best"]) for row in rows)
            triples += [structure_triples([_nth(row, source) for row in rows]) for source in range(number)]
        batch["chart"] = self._moved(torch.cat(triples))
        batch["fallback"] = self._moved(structure_triples([row["pool_best"] for row in rows]))
        batch["units"] = _kept(rows)
        batch["sent_ids"] = [str(row.get("sent_id", "?")) for row in rows]
        return batch

    def _moved(self, triples: Tensor) -> Tensor:
        return torch.cat([triples[:, :2], self.relabelling.candidates(triples[:, 2:])], dim=1)


def _nth(row: Mapping[str, Any], source: int) -> Sequence[int]:
    best: Sequence[Sequence[int]] = row["source_best"]
    return best[source] if source < len(best) else ()


def _kept(rows: Sequence[Row]) -> Tensor:
    return torch.tensor([0 if row.get(FILLER, False) else 1 for row in rows])
