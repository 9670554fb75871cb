"""What every structured model's configuration says about its input and its encoder."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from transformers import PreTrainedConfig

from hf_xst.data.bio import check_bio


class StructuredConfig(PreTrainedConfig):  # type: ignore[no-untyped-call, unused-ignore]
    """Fields shared by all structured models; the defaults are the published sizes (supplement, table 7).

    Args:
        labels: names of the labels in the order of the output rows.
        encoder: `"vectors"` (word vectors, encoder A) or `"pretrained"` (any `AutoModel`, encoder B).
        word_size: width of a word's state before special words and tags are added.
        vocabulary_size: words in the table of encoder A.
        vector_space: `{"name", "dimension", "sha256"}` of the vectors that encoder A reads words by.
        freeze_word_vectors: keep encoder A's table as a buffer (true) or train it (false).
        encoder_config: the whole configuration of encoder B, nested.
        frozen_layers: layers of encoder B that stay as they are, its embeddings first; -1 freezes all of it.
        piece_pooling: a word's state is the mean of its pieces' states or the first one's.
        max_pieces: pieces that encoder B sees at once; longer sentences are read in overlapping windows.
        context_layers: layers of the distance-aware Transformer over the words; `None` means 6 with encoder
            A and none with encoder B.
        attention_heads: attention heads of a layer.
        key_size: width of the keys and values of a head.
        feed_forward_size: inner width of a layer's feed-forward block.
        max_distance: longest distance with an embedding of its own.
        context_dropout: dropout rate within the Transformer.
        word_dropout: rate at which a whole word is replaced by the unknown word in training.
        output_dropout: rate at which a whole output channel is dropped in training.
        uses_upos: whether coarse tags are part of the input.
        upos_names: the coarse tags that have an embedding; any other one is the unknown tag.
        upos_size: width of a coarse tag's embedding.
        upos_dropout: rate at which a coarse tag is replaced by the unknown tag in training.
        start_sha256: identifies the model that this one was fine-tuned from on other gold, by its parameters.
    """

    labels: list[str] = field(default_factory=list)
    encoder: str = "vectors"
    word_size: int = 300
    vocabulary_size: int = 0
    vector_space: dict[str, Any] | None = None
    freeze_word_vectors: bool = True
    encoder_config: dict[str, Any] | None = None
    frozen_layers: int = -1
    piece_pooling: str = "mean"
    max_pieces: int = 512
    context_layers: int | None = None
    attention_heads: int = 8
    key_size: int = 64
    feed_forward_size: int = 512
    max_distance: int = 10
    context_dropout: float = 0.1
    word_dropout: float = 0.2
    output_dropout: float = 0.2
    uses_upos: bool = False
    upos_names: list[str] = field(default_factory=list)
    upos_size: int = 50
    upos_dropout: float = 0.0
    start_sha256: str | None = None

    def __post_init__(self, **kwargs: Any) -> None:
        """Fill in what follows from other fields and refuse what cannot work.

        Raises:
            ValueError: a name occurs twice, or a field has a value that it cannot have.
        """
        self.upos_names = list(self.upos_names or [])
        self.set_labels(self.labels or [])
        check_names("upos_names", self.upos_names)
        check_choice("encoder", self.encoder, ("vectors", "pretrained"))
        check_choice("piece_pooling", self.piece_pooling, ("mean", "first"))
        for name in ("context_dropout", "word_dropout", "output_dropout", "upos_dropout"):
            rate = vars(self)[name]
            if not 0 <= rate < 1:
                raise ValueError(f"{name} is {rate!r}; expected a rate from 0 up to, not including, 1")
        least = {"frozen_layers": -1, "context_layers": 0, "max_distance": 0, "vocabulary_size": 0}
        sizes = ("word_size", "attention_heads", "key_size", "feed_forward_size", "upos_size", "max_pieces")
        for name, smallest in (least | dict.fromkeys(sizes, 1)).items():
            value = vars(self)[name]
            if value is not None and value < smallest:
                raise ValueError(f"{name} is {value!r}; expected at least {smallest}")
        super().__post_init__(**kwargs)  # type: ignore[no-untyped-call, unused-ignore]

    def set_labels(self, labels: list[str]) -> None:
        """Name the labels, here and in the fields that other programs look at.

        Raises:
            ValueError: a name occurs twice.
        """
        check_names("labels", labels)
        self.labels = list(labels)
        if labels:
            self.id2label = dict(enumerate(labels))
            self.label2id = {name: index for index, name in enumerate(labels)}

    @property
    def context_depth(self) -> int:
        """Layers of the Transformer over the words, the default resolved."""
        if self.context_layers is not None:
            return self.context_layers
        return 6 if self.encoder == "vectors" else 0


def check_names(field_name: str, names: list[str]) -> None:
    """Raise ValueError if a name occurs twice: every name needs one row."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{field_name} holds {', '.join(twice)} more than once; every name needs one row")


def check_choice(field_name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise ValueError unless a field has one of its values."""
    if value not in choices:
        raise ValueError(f"{field_name} is {value!r}; expected {' or '.join(map(repr, choices))}")


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
