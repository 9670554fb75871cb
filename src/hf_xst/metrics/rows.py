"""Predicted and gold rows side by side, checked before anything is counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
"""One sentence: a mapping from column names (`words`, `head`, `deprel`, `upos`) to lists, an entry a word."""

MISSING = (None, "_")
"""What stands in a column that has no value."""


def sentence_place(index: int, reference: Row) -> str:
    """Name a sentence for an error message: its position from 0 and, if there is one, its sent_id."""
    name = reference.get("sent_id")
    return f"sentence {index}" if name in MISSING else f"sentence {index} (sent_id {name!r})"


def paired_rows(
    predictions: Sequence[Row], references: Sequence[Row], predicted: Sequence[str], gold: Sequence[str]
) -> Iterator[tuple[str, Row, Row]]:
    """Go through both sides together.

    Args:
        predictions: the predicted rows, in the order of the references.
        references: the gold rows.
        predicted: columns that every predicted row must have.
        gold: columns that every gold row must have.

    Yields:
        The sentence's place for messages, the predicted row, the gold row.

    Raises:
        ValueError: the two sides differ in sentences or words, or a column is absent.
    """
    if len(predictions) != len(references):
        shorter = min(len(predictions), len(references))
        longer = references if len(references) > shorter else predictions
        raise ValueError(
            f"{len(predictions)} predicted sentences for {len(references)} gold ones; "
            f"{sentence_place(shorter, longer[shorter])} has no partner. "
            "Give one prediction per gold sentence, in the same order."
        )
    for index, (prediction, reference) in enumerate(zip(predictions, references, strict=True)):
        place = sentence_place(index, reference)
        _check_columns(place, prediction, predicted, "predicted")
        _check_columns(place, reference, gold, "gold")
        _check_lengths(place, prediction, reference, predicted, gold)
        yield place, prediction, reference


def _check_columns(place: str, row: Row, columns: Sequence[str], side: str) -> None:
    for column in columns:
        if row.get(column) is None:
            raise ValueError(f"{place}: the {side} row has no column {column!r}; it has {sorted(row)}.")


def _check_lengths(
    place: str, prediction: Row, reference: Row, predicted: Sequence[str], gold: Sequence[str]
) -> None:
    expected = len(reference["words"] if reference.get("words") is not None else reference[gold[0]])
    for side, row, columns in (("gold", reference, gold), ("predicted", prediction, predicted)):
        for column in columns:
            if len(row[column]) != expected:
                raise ValueError(
                    f"{place}: {len(row[column])} entries in the {side} column {column!r} for {expected} "
                    "gold words. Score over the words of the gold file: no cut sentences, no subword pieces, "
                    "no added root or boundary symbols."
                )
