"""Tag scores for the `evaluate` library: `evaluate.load("path/to/ud_tagging.py")`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import evaluate
from datasets import Features, List, Value

from hf_xst.metrics.rows import Row
from hf_xst.metrics.tagging import tag_scores

_DESCRIPTION = """\
Accuracy of part-of-speech tags in percent, with precision, recall and F1 of each tag. Tags are plain labels
of words: prefixes are kept, and equal neighbours are not merged."""

_INPUTS = """
Args:
    predictions: one dict per sentence with the list `upos`.
    references: one dict per sentence with the list `upos`.
Returns:
    `accuracy` in percent, `words`, and `per_tag` with `precision`, `recall`, `f1` and `support` under each
    tag's name.
Examples:
    >>> metric = evaluate.load("ud_tagging.py")
    >>> tags = [{"upos": ["DET", "NOUN"]}]
    >>> metric.compute(predictions=tags, references=tags)["accuracy"]
    100.0
"""


class UdTagging(evaluate.Metric):  # type: ignore[misc]  # the library is untyped
    """Accuracy over sentences of any length, stored as ragged lists."""

    def _info(self) -> evaluate.MetricInfo:
        tags = {"upos": List(Value("string"))}
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation="",
            inputs_description=_INPUTS,
            features=Features({"predictions": tags, "references": tags}),
        )

    def _compute(self, predictions: Sequence[Row], references: Sequence[Row]) -> dict[str, Any]:
        return tag_scores(list(predictions), list(references))
