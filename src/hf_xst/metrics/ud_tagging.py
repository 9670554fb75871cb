"""Tag scores for the `evaluate` library: `evaluate.load("path/to/ud_tagging.py")`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import evaluate
from datasets import Features, List, Value

from hf_xst.metrics.rows import Row
from hf_xst.metrics.tagging import tag_scores


class UdTagging(evaluate.Metric):  # type: ignore[misc]  # the library is untyped
    """Accuracy over sentences of any length, stored as ragged lists."""

    def _info(self) -> evaluate.MetricInfo:
        tags = {"upos": List(Value("string"))}
        return evaluate.MetricInfo(
            description="Accuracy of part-of-speech tags, and precision, recall and F1 of each.",
            citation="",
            inputs_description=tag_scores.__doc__,
            features=Features({"predictions": tags, "references": tags}),
        )

    def _compute(self, predictions: Sequence[Row], references: Sequence[Row]) -> dict[str, Any]:
        return tag_scores(list(predictions), list(references))
