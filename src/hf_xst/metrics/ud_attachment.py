"""Attachment scores for the `evaluate` library: `evaluate.load("path/to/ud_attachment.py")`."""

from __future__ import annotations

from collections.abc import Sequence

import evaluate
from datasets import Features, List, Value

from hf_xst.metrics.attachment import attachment_scores
from hf_xst.metrics.rows import Row

_CITATION = """\
@inproceedings{zeman-etal-2018-conll,
    title = "{C}o{NLL} 2018 Shared Task: Multilingual Parsing from Raw Text to {U}niversal {D}ependencies",
    author = "Zeman, Daniel and others",
    booktitle = "Proceedings of the {C}o{NLL} 2018 Shared Task",
    year = "2018"
}"""


class UdAttachment(evaluate.Metric):  # type: ignore[misc]  # the library is untyped
    """UAS and LAS over sentences of any length, stored as ragged lists."""

    def _info(self) -> evaluate.MetricInfo:
        tree = {"head": List(Value("int32")), "deprel": List(Value("string"))}
        return evaluate.MetricInfo(
            description="Attachment scores of dependency trees in Universal Dependencies, in percent.",
            citation=_CITATION,
            inputs_description=attachment_scores.__doc__,
            features=Features({"predictions": tree, "references": {**tree, "upos": List(Value("string"))}}),
        )

    def _compute(
        self, predictions: Sequence[Row], references: Sequence[Row], *, strip_subtypes: bool = True
    ) -> dict[str, float]:
        return attachment_scores(list(predictions), list(references), strip_subtypes=strip_subtypes)
