"""The tagger's configuration."""

from __future__ import annotations

from typing import Any

from hf_xst.data.bio import check_bio
from hf_xst.models.configuration import StructuredConfig, check_choice

BOUNDARIES = ("<s>", "</s>")
SCHEMES = ("bio",)


class CrfTaggerConfig(StructuredConfig):  # type: ignore[no-untyped-call, unused-ignore]
    """Configuration of `CrfTagger`; see `StructuredConfig` for the input and the encoder.

    Args:
        column: the column of a prepared row that holds the tags.
        scheme: `"bio"` where the tags mark spans, see `hf_xst.data.bio`: pairs of tags that BIO does not have
            are then impossible. `None` where any tag may follow any other.
        output_dropout: as in `StructuredConfig`; the published tagger has none.
    """

    model_type = "hf_xst_crf_tagger"

    column: str = "upos"
    scheme: str | None = None
    output_dropout: float = 0.0

    def __post_init__(self, **kwargs: Any) -> None:
        """Check the scheme, then all else; see `StructuredConfig`.

        Raises:
            ValueError: the scheme is unknown, or a field has a value that it cannot have.
        """
        if self.scheme is not None:
            check_choice("scheme", self.scheme, SCHEMES)
        super().__post_init__(**kwargs)

    def set_labels(self, labels: list[str]) -> None:
        """Name the tags, without the boundaries, which every tagger has.

        Raises:
            ValueError: a name occurs twice, is a boundary's, or is none of the scheme's.
        """
        taken = [name for name in labels if name in BOUNDARIES]
        if taken:
            raise ValueError(
                f"labels holds {', '.join(taken)}: the tagger adds the sentence boundaries itself"
            )
        if self.scheme is not None:
            check_bio(labels)
        super().set_labels(labels)
