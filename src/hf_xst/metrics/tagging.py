"""Accuracy of tags, and precision and recall of each: plain word labels, never regrouped into chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hf_xst.metrics.rows import MISSING, Row, paired_rows


def tag_scores(predictions: Sequence[Row], references: Sequence[Row], column: str = "upos") -> dict[str, Any]:
    """Score predicted tags against gold ones, word by word.

    Args:
        predictions: rows with the tag column.
        references: rows with the tag column, in the same order.
        column: the column that holds the tags.

    Returns:
        `accuracy` in percent, `words` (how many were scored), and `per_tag`: for each tag that occurs on
        either side, under its own name, `precision`, `recall` and `f1` in percent and `support`, the number
        of gold words that bear it. A tag never predicted has precision 0, one never in the gold has recall 0.

    Raises:
        ValueError: sentences or words do not match, a gold tag is missing, or there is no word to count.
    """
    gold: Counter[str] = Counter()
    guessed: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for place, prediction, reference in paired_rows(predictions, references, (column,), (column,)):
        pairs = zip(prediction[column], reference[column], strict=True)
        for position, (guess, truth) in enumerate(pairs, start=1):
            if truth in MISSING:
                raise ValueError(_no_gold_tag(place, position, column, truth))
            gold[truth] += 1
            guessed["_" if guess is None else guess] += 1
            right[truth] += guess == truth
    if gold.total() == 0:
        raise ValueError(
            f"There is no word to score: {len(references)} sentences. Accuracy needs at least one gold tag; "
            "check the path, the split and the length limit."
        )
    return {
        "accuracy": 100.0 * right.total() / gold.total(),
        "words": gold.total(),
        "per_tag": {
            tag: _one_tag(right[tag], guessed[tag], gold[tag]) for tag in sorted(gold.keys() | guessed.keys())
        },
    }


def _no_gold_tag(place: str, position: int, column: str, found: str | None) -> str:
    return (
        f"{place}: word {position} has no gold tag in column {column!r} (found {found!r}). "
        "Leave sentences without gold tags out of the evaluation."
    )


def _one_tag(right: int, guessed: int, support: int) -> dict[str, float]:
    return {
        "precision": 100.0 * right / guessed if guessed else 0.0,
        "recall": 100.0 * right / support if support else 0.0,
        "f1": 200.0 * right / (guessed + support),
        "support": support,
    }
