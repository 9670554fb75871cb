"""Precision, recall and F1 of spans with a type, such as names of persons, by seqeval (Nakayama 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hf_xst.data.bio import OUTSIDE, span_kind, to_bio
from hf_xst.extras import import_optional
from hf_xst.metrics.rows import MISSING, Row, paired_rows

_TOTAL = "micro avg"
_AVERAGES = (_TOTAL, "macro avg", "weighted avg")


def span_scores(predictions: Sequence[Row], references: Sequence[Row], column: str) -> dict[str, Any]:
    """Score predicted spans against gold ones: right are those with the same words and the same type.

    Both sides are read as `hf_xst.data.to_bio` reads them, so they may be in any scheme that it knows, and a
    majority of labels that goes on with no span begins one.

    Args:
        predictions: rows with the column.
        references: rows with the column, in the same order.
        column: the column of labels that mark spans.

    Returns:
        `precision`, `recall` and `f1` over all spans in percent, `spans` (how many there are in the gold),
        and `per_type`: the same three and `support` for each type that occurs on either side. A type never
        predicted has precision 0, one never in the gold recall 0.

    Raises:
        ValueError: sentences or words do not match, a gold label is missing or of no scheme, or there is no
            span to count.
        ImportError: seqeval is not installed.
    """
    seqeval = import_optional("seqeval.metrics", "ner")
    guessed: list[list[str]] = []
    gold: list[list[str]] = []
    for place, prediction, reference in paired_rows(predictions, references, (column,), (column,)):
        _check_gold(place, reference[column], column)
        gold.append(_labels(reference[column]))
        guessed.append(_labels(prediction[column]))
    if all(label == OUTSIDE for labels in gold for label in labels):
        raise ValueError(
            f"There is no span to score: {len(gold)} sentences, column {column!r}. F1 needs at least one "
            "gold span; check the path, the split and the length limit."
        )
    report = seqeval.classification_report(gold, guessed, output_dict=True, zero_division=0)
    total = _percent(report[_TOTAL])
    return {
        **{name: total[name] for name in ("precision", "recall", "f1")},
        "spans": total["support"],
        "per_type": {kind: _percent(found) for kind, found in report.items() if kind not in _AVERAGES},
    }


def as_bio(rows: Sequence[Row], column: str) -> list[Row]:
    """Return rows whose labels in a column are read as BIO; see `hf_xst.data.to_bio`."""
    return [{**row, column: to_bio(row[column])} for row in rows]


def _labels(labels: Sequence[str | None]) -> list[str]:
    """Read labels as BIO; what marks no span is outside."""
    return [label if label and span_kind(label) else OUTSIDE for label in to_bio(labels)]


def _check_gold(place: str, labels: Sequence[str | None], column: str) -> None:
    for position, label in enumerate(labels, start=1):
        if label in MISSING or (label != OUTSIDE and span_kind(label) is None):
            raise ValueError(
                f"{place}: word {position} has {label!r} in column {column!r}, expected {OUTSIDE}, B-X or "
                "I-X for spans of the type X."
            )


def _percent(found: dict[str, Any]) -> dict[str, Any]:
    """Take seqeval's numbers of one type, as plain ones."""
    return {
        "precision": 100.0 * float(found["precision"]),
        "recall": 100.0 * float(found["recall"]),
        "f1": 100.0 * float(found["f1-score"]),
        "support": int(found["support"]),
    }
