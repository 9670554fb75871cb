"""Scores of predicted trees, tags and spans: plain functions over rows.

For users of the `evaluate` library the same scores are the files `ud_attachment.py` and `ud_tagging.py`
beside this one; they load by path.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from hf_xst.metrics.attachment import attachment_scores
from hf_xst.metrics.rows import Row
from hf_xst.metrics.spans import as_bio, span_scores
from hf_xst.metrics.tagging import tag_scores

__all__ = ["Row", "attachment_scores", "main_score", "score", "span_scores", "tag_scores"]

MAIN_SCORES = ("las", "f1", "accuracy")
"""The scores that stand for a whole evaluation, the first one present being taken."""

_OF_TREES = {"head", "deprel"}


def score(
    predictions: Sequence[Row],
    references: Sequence[Row],
    columns: Collection[str],
    scheme: str | None = None,
) -> dict[str, Any]:
    """Score the columns that a model predicts.

    Args:
        predictions: the predicted rows.
        references: the gold rows, in the same order.
        columns: the predicted columns; `head` asks for the attachment scores, any other one than `deprel` for
            the tag scores.
        scheme: the scheme of tags that mark spans (`"bio"`), which are then scored as well; tags in another
            scheme are read as BIO on both sides.

    Returns:
        What `attachment_scores`, `tag_scores` and `span_scores` return, in one mapping.

    Raises:
        ValueError: no such column is asked for, or several columns of tags, or the rows cannot be scored.
    """
    tags = sorted(set(columns) - _OF_TREES)
    if len(tags) > 1 or ("head" not in columns and not tags):
        raise ValueError(
            f"Columns {sorted(columns)} cannot be scored; expected 'head', or one column of tags ('upos')."
        )
    scores: dict[str, Any] = {}
    for column in tags:
        if scheme is not None:
            scores |= span_scores(predictions, references, column)
            predictions, references = as_bio(predictions, column), as_bio(references, column)
        scores |= tag_scores(predictions, references, column)
    if "head" in columns:
        scores |= attachment_scores(predictions, references)
    return scores


def main_score(scores: Mapping[str, Any]) -> tuple[str, float]:
    """Return the name and value of the score that stands for the evaluation: LAS, else F1, else accuracy.

    Raises:
        ValueError: none is there.
    """
    for name in MAIN_SCORES:
        if name in scores:
            return name, float(scores[name])
    raise ValueError(f"No main score among {sorted(scores)}; expected one of {', '.join(MAIN_SCORES)}.")
