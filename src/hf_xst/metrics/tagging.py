"""Compute scores of tags without regrouping them, and of spans that tags mark (seqeval, Nakayama 2018)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hf_xst.data.labels import OUTSIDE, span_type, to_bio
from hf_xst.extras import import_optional
from hf_xst.metrics.rows import MISSING, Row, paired_rows

_TOTAL = "micro avg"
_AVERAGES = (_TOTAL, "macro avg", "weighted avg")


def tag_scores(predictions: Sequence[Row], references: Sequence[Row], column: str = "upos") -> dict[str, Any]:
    """Score predicted tags against gold tags in the same order. Words without a gold tag are not scored.

    Returns:
        `accuracy` in percent, `words` and `words_without_gold` (their numbers), and `per_tag`: for each
        tag on either side `precision`, `recall` and `f1` in percent and `support`, its number of gold words.
        A tag that is never predicted has precision 0, one that is never gold recall 0.

    Raises:
        ValueError: sentences or words do not match, or no word has a gold tag.
    """
    gold: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    correct: Counter[str] = Counter()
    unscored = 0
    for _, prediction, reference in paired_rows(predictions, references, (column,), (column,)):
        for guess, truth in zip(prediction[column], reference[column], strict=True):
            if truth in MISSING:
                unscored += 1
                continue
            gold[truth] += 1
            predicted["_" if guess is None else guess] += 1
            correct[truth] += guess == truth
    if gold.total() == 0:
        raise ValueError(
            f"No word to score: {len(references)} sentences. Accuracy requires at least one gold tag; check "
            "the path, the split and the length limit."
        )
    return {
        "accuracy": 100.0 * correct.total() / gold.total(),
        "words": gold.total(),
        "words_without_gold": unscored,
        "per_tag": {
            tag: {
                "precision": 100.0 * correct[tag] / max(1, predicted[tag]),
                "recall": 100.0 * correct[tag] / max(1, gold[tag]),
                "f1": 200.0 * correct[tag] / (predicted[tag] + gold[tag]),
                "support": gold[tag],
            }
            for tag in sorted(gold.keys() | predicted.keys())
        },
    }


def span_scores(predictions: Sequence[Row], references: Sequence[Row], column: str) -> dict[str, Any]:
    """Score predicted spans against gold spans in the same order, which labels in a column mark.

    A span is correct if its words and its type are. Both sides are converted by `hf_xst.data.to_bio` first,
    so they may use any scheme that it reads; an `I-X` that continues no span begins one.

    Returns:
        `precision`, `recall` and `f1` over all spans in percent, `spans` (the number of gold spans), and
        `per_type`: the same three and `support` for each type that occurs on either side. A type that is
        never predicted has precision 0, one that is never gold recall 0.

    Raises:
        ValueError: sentences or words do not match, a gold label is missing or invalid, or there is no gold
            span.
        ImportError: seqeval is not installed.
    """
    seqeval = import_optional("seqeval.metrics", "ner")
    predicted: list[list[str]] = []
    gold: list[list[str]] = []
    for sentence, prediction, reference in paired_rows(predictions, references, (column,), (column,)):
        _check_gold(sentence, reference[column], column)
        gold.append(_spans(reference[column]))
        predicted.append(_spans(prediction[column]))
    if all(label == OUTSIDE for labels in gold for label in labels):
        raise ValueError(
            f"No span to score: {len(gold)} sentences, column {column!r}. F1 requires at least one gold "
            "span; check the path, the split and the length limit."
        )
    report = seqeval.classification_report(gold, predicted, output_dict=True, zero_division=0)
    total = _percent(report[_TOTAL])
    return {
        **{name: total[name] for name in ("precision", "recall", "f1")},
        "spans": total["support"],
        "per_type": {kind: _percent(scores) for kind, scores in report.items() if kind not in _AVERAGES},
    }


def as_bio(rows: Sequence[Row], column: str) -> list[Row]:
    """Return rows whose labels in a column are converted by `hf_xst.data.to_bio`."""
    return [{**row, column: to_bio(row[column])} for row in rows]


def _spans(labels: Sequence[str | None]) -> list[str]:
    """Convert labels to BIO; labels that mark no span become `O`."""
    return [label if label and span_type(label) else OUTSIDE for label in to_bio(labels)]


def _check_gold(sentence: str, labels: Sequence[str | None], column: str) -> None:
    for position, label in enumerate(labels, start=1):
        if label in MISSING or (label != OUTSIDE and span_type(label) is None):
            raise ValueError(
                f"{sentence}: word {position} has {label!r} in column {column!r}, expected {OUTSIDE}, B-X or "
                "I-X for spans of the type X."
            )


def _percent(scores: dict[str, Any]) -> dict[str, Any]:
    """Convert seqeval's scores of one type to percent and plain numbers."""
    return {
        "precision": 100.0 * float(scores["precision"]),
        "recall": 100.0 * float(scores["recall"]),
        "f1": 100.0 * float(scores["f1-score"]),
        "support": int(scores["support"]),
    }
