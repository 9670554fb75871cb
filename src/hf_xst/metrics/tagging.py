"""Compute the accuracy of tags, and precision and recall of each tag, without regrouping tags into chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hf_xst.metrics.rows import MISSING, Row, paired_rows


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
