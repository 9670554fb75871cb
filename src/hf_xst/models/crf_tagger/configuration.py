"""The tagger's configuration."""

from __future__ import annotations

from ..configuration import StructuredConfig


class CrfTaggerConfig(StructuredConfig):
    """Configuration of `CrfTagger`; see `StructuredConfig` for the input and the encoder.

    Args:
        column: the column of a prepared row that holds the tags.
    """

    model_type = "hf_xst_crf_tagger"

    column: str = "upos"
