"""Scores of predicted trees and tags: plain functions over rows.

For users of the `evaluate` library the same scores are the files `ud_attachment.py` and `ud_tagging.py`
beside this one; they load by path.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from hf_xst.metrics.attachment import attachment_scores
from hf_xst.metrics.rows import Row
from hf_xst.metrics.tagging import tag_scores

__all__ = ["Row", "attachment_scores", "main_score", "score", "tag_scores"]

MAIN_SCORES = ("las", "accuracy")
"""The scores that stand for a whole evaluation, the first one present being taken."""


def score(predictions: Sequence[Row], references: Sequence[Row], columns: Collection[str]) -> dict[str, Any]:
    """Score the columns that a model predicts.

    Args:
        predictions: the predicted rows.
        references: the gold rows, in the same order.
        columns: the predicted columns; `head` asks for the attachment scores, `upos` for the tag scores.

    Returns:
        What `attachment_scores` and `tag_scores` return, in one mapping.

    Raises:
        ValueError: neither column is asked for, or the rows cannot be scored.
    """
    scores: dict[str, Any] = {}
    if "upos" in columns:
        scores |= tag_scores(predictions, references)
    if "head" in columns:
        scores |= attachment_scores(predictions, references)
    if not scores:
        raise ValueError(f"Columns {sorted(columns)} hold nothing to score; expected 'head' or 'upos'.")
    return scores


def main_score(scores: Mapping[str, Any]) -> tuple[str, float]:
    """Return the name and value of the score that stands for the evaluation: LAS, else accuracy.

    Raises:
        ValueError: neither is there.
    """
    for name in MAIN_SCORES:
        if name in scores:
            return name, float(scores[name])
    raise ValueError(f"No main score among {sorted(scores)}; expected one of {', '.join(MAIN_SCORES)}.")
