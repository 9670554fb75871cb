"""What every structured model's configuration says about its input and its encoder."""

from __future__ import annotations

from typing import Any, Literal

from transformers import PreTrainedConfig

EncoderKind = Literal["vectors", "pretrained"]


class StructuredConfig(PreTrainedConfig):
    """Fields shared by all structured models; the defaults are the published sizes (supplement, table 6).

    Args:
        labels: names of the labels in the order of the output rows.
        encoder: `"vectors"` (word vectors, encoder A) or `"pretrained"` (any `AutoModel`, encoder B).
        word_size: width of a word's state before special words and tags are added.
        vocabulary_size: words in the table of encoder A.
        vector_space: `{"name", "dimension", "sha256"}` of the vectors that encoder A was trained on.
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
    """

    labels: list[str] | None = None
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
    upos_names: list[str] | None = None
    upos_size: int = 50
    upos_dropout: float = 0.0

    def __post_init__(self, **kwargs: Any) -> None:
        """Fill in what follows from other fields and refuse what cannot work.

        Raises:
            ValueError: labels occur twice, the encoder is unknown, or coarse tags are used but not named.
        """
        self.labels = list(self.labels or [])
        self.upos_names = list(self.upos_names or [])
        if self.encoder not in ("vectors", "pretrained"):
            raise ValueError(f"encoder is {self.encoder!r}; expected 'vectors' or 'pretrained'")
        if self.piece_pooling not in ("mean", "first"):
            raise ValueError(f"piece_pooling is {self.piece_pooling!r}; expected 'mean' or 'first'")
        for field, names in (("labels", self.labels), ("upos_names", self.upos_names)):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{field} holds {', '.join(twice)} more than once; every name needs one row")
        if self.labels and "id2label" not in kwargs:
            kwargs["id2label"] = dict(enumerate(self.labels))
            kwargs["label2id"] = {name: index for index, name in enumerate(self.labels)}
        super().__post_init__(**kwargs)

    @property
    def context_depth(self) -> int:
        """Layers of the Transformer over the words, the default resolved."""
        if self.context_layers is not None:
            return self.context_layers
        return 6 if self.encoder == "vectors" else 0
