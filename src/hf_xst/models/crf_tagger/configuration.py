"""The tagger's configuration."""

from __future__ import annotations

from ..configuration import StructuredConfig

BOUNDARIES = ("<s>", "</s>")


class CrfTaggerConfig(StructuredConfig):  # type: ignore[no-untyped-call, unused-ignore]
    """Configuration of `CrfTagger`; see `StructuredConfig` for the input and the encoder.

    Args:
        column: the column of a prepared row that holds the tags.
        output_dropout: as in `StructuredConfig`; the published tagger has none.
    """

    model_type = "hf_xst_crf_tagger"

    column: str = "upos"
    output_dropout: float = 0.0

    def set_labels(self, labels: list[str]) -> None:
        """Name the tags, without the boundaries, which every tagger has.

        Raises:
            ValueError: a name occurs twice or is a boundary's.
        """
        taken = [name for name in labels if name in BOUNDARIES]
        if taken:
            raise ValueError(
                f"labels holds {', '.join(taken)}: the tagger adds the sentence boundaries itself"
            )
        super().set_labels(labels)
