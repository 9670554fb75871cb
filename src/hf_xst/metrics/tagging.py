"""Compute the accuracy of tags, and precision and recall of each tag, without regrouping tags into chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hf_xst.metrics.rows import MISSING, Row, paired_rows


def tag_scores(predictions: Sequence[Row], references: Sequence[Row], column: str = "upos") -> dict[str, Any]:
    """Score predicted tags against gold tags, word by word.

    Args:
        predictions: rows with the tag column.
        references: rows with the tag column, in the same order.
        column: the column of the tags.

    Returns:
        `accuracy` in percent, `words` (their number), and `per_tag`: for each tag on either side
        `precision`, `recall` and `f1` in percent and `support`, its number of gold words. A tag that is never
        predicted has precision 0, one that is never gold recall 0.

    Raises:
        ValueError: sentences or words do not match, a gold tag is missing, or there are no words.
    """
    gold: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    correct: Counter[str] = Counter()
    for label, prediction, reference in paired_rows(predictions, references, (column,), (column,)):
        pairs = zip(prediction[column], reference[column], strict=True)
        for position, (guess, truth) in enumerate(pairs, start=1):
            if truth in MISSING:
                raise ValueError(
                    f"{label}: word {position} has no gold tag in column {column!r} (found {truth!r}). "
                    "Exclude sentences without gold tags from the evaluation."
                )
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
        "per_tag": {
            tag: _one_tag(correct[tag], predicted[tag], gold[tag])
            for tag in sorted(gold.keys() | predicted.keys())
        },
    }


def _one_tag(correct: int, predicted: int, support: int) -> dict[str, float]:
    return {
        "precision": 100.0 * correct / predicted if predicted else 0.0,
        "recall": 100.0 * correct / support if support else 0.0,
        "f1": 200.0 * correct / (predicted + support),
        "support": support,
    }
