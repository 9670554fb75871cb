"""Pair predicted with gold rows, and validate both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
"""One sentence: column names (`words`, `head`, `deprel`, `upos`) to lists with an entry for each word."""
MISSING = (None, "_")
"""Entries of a column without a value."""


def sentence_label(index: int, reference: Row) -> str:
    """Name a sentence in an error message: its position from 0 and, if known, its sent_id."""
    name = reference.get("sent_id")
    return f"sentence {index}" if name in MISSING else f"sentence {index} (sent_id {name!r})"


def paired_rows(
    predictions: Sequence[Row], references: Sequence[Row], predicted: Sequence[str], gold: Sequence[str]
) -> Iterator[tuple[str, Row, Row]]:
    """Yield a label of each sentence for messages, its predicted row, and its gold row.

    `predicted` and `gold` are the columns required of the rows of either side.

    Raises:
        ValueError: the two sides differ in sentences or words, or a column is missing.
    """
    if len(predictions) != len(references):
        first = min(len(predictions), len(references))
        longer = max(predictions, references, key=len)
        raise ValueError(
            f"{len(predictions)} predicted sentences for {len(references)} gold sentences; "
            f"{sentence_label(first, longer[first])} has no partner. "
            "Pass one prediction per gold sentence, in the same order."
        )
    for index, (prediction, reference) in enumerate(zip(predictions, references, strict=True)):
        label = sentence_label(index, reference)
        for side, row, columns in (("predicted", prediction, predicted), ("gold", reference, gold)):
            for column in columns:
                if row.get(column) is None or isinstance(row[column], str):
                    raise ValueError(
                        f"{label}: the {side} row has no column {column!r} with a list; it has {sorted(row)}."
                    )
        words = reference["words"] if reference.get("words") is not None else reference[gold[0]]
        guessed = prediction.get("words")
        if guessed is not None and reference.get("words") is not None and [*guessed] != [*words]:
            raise ValueError(
                f"{label}: the predicted row has the words {' '.join(guessed)[:40]!r}, the gold row "
                f"{' '.join(words)[:40]!r}. Pass one prediction per gold sentence, in the same order."
            )
        for side, row, columns in (("gold", reference, gold), ("predicted", prediction, predicted)):
            for column in columns:
                if len(row[column]) != len(words):
                    raise ValueError(
                        f"{label}: {len(row[column])} entries in the {side} column {column!r} for "
                        f"{len(words)} gold words. Score the words of the gold file: no truncated sentences, "
                        "no subword pieces, no added root or boundary symbols."
                    )
        yield label, prediction, reference
