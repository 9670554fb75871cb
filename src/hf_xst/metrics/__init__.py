"""Score predicted trees, tags and spans: plain functions over rows.

`ud_attachment.py` and `ud_tagging.py` compute the same scores as modules of the `evaluate` library, which
loads them by path.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from hf_xst.metrics.attachment import attachment_scores
from hf_xst.metrics.rows import Row
from hf_xst.metrics.tagging import as_bio, span_scores, tag_scores

__all__ = ["MAIN_SCORES", "Row", "attachment_scores", "main_score", "score", "span_scores", "tag_scores"]

MAIN_SCORES = ("las", "f1", "accuracy")
"""Names of main scores; the first that an evaluation contains is its main score."""


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
        columns: the predicted columns: `head` selects attachment scores, any other column except `deprel` tag
            scores.
        scheme: the scheme of tags that mark spans (`"bio"`), which are then scored too; tags in another
            scheme are converted to BIO on both sides.

    Returns:
        The results of `attachment_scores`, `tag_scores` and `span_scores`, in one mapping.

    Raises:
        ValueError: `columns` has neither `head` nor exactly one column of tags, or the rows are invalid.
    """
    tags = sorted(set(columns) - {"head", "deprel"})
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
    """Return the name and value of the main score (LAS, else F1, else accuracy); ValueError if missing."""
    for name in MAIN_SCORES:
        if name in scores:
            return name, float(scores[name])
    raise ValueError(f"No main score among {sorted(scores)}; expected one of {', '.join(MAIN_SCORES)}.")
