"""The biaffine parser's configuration."""

from __future__ import annotations

from typing import Any

from hf_xst.models.configuration import StructuredConfig, check_choice


class BiaffineParserConfig(StructuredConfig):  # type: ignore[no-untyped-call, unused-ignore]
    """Configuration of `BiaffineParser`; see `StructuredConfig` for the input and the encoder.

    Args:
        arc_size: width of a word's vector as a head and as a dependent of an unlabelled arc.
        label_size: the same for the label.
        score_form: `"log_softmax"` (log-probability over heads plus that over labels, as published) or
            `"raw"` (sum of the two biaffine scores).
        single_root: whether exactly one word hangs from the root symbol.
        projective: whether crossing arcs are ruled out.
    """

    model_type = "hf_xst_biaffine_parser"

    uses_upos: bool = True
    arc_size: int = 512
    label_size: int = 128
    score_form: str = "log_softmax"
    single_root: bool = True
    projective: bool = False

    def __post_init__(self, **kwargs: Any) -> None:
        """Refuse an unknown form of the scores."""
        check_choice("score_form", self.score_form, ("log_softmax", "raw"))
        super().__post_init__(**kwargs)
