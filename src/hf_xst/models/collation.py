"""Turn prepared rows into the tensors of one batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from hf_xst.models.cached_states import WordStates
from hf_xst.models.modeling import Row, StructuredModel

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
            batch["units"] = self.model.units(batch["labels"]) * row_units(rows)
        return batch


def row_units(rows: Sequence[Row]) -> Tensor:
    """Return the weight of each row, 0 for fillers: (B,)."""
    return torch.tensor([0 if row.get(FILLER, False) else 1 for row in rows])
