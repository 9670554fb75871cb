"""Configurations of the parser and the tagger, and their shared base."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from dataclasses import field, fields
from typing import Any, Literal, Self

from transformers import PreTrainedConfig

from hf_xst.data.labels import check_bio
from hf_xst.data.sentence import COLUMNS
from hf_xst.records import checked

BOUNDARIES = ("<s>", "</s>")
"""Tags that every tagger adds around a sentence."""
MAX_LAYERS, MAX_NAMES, MAX_SIZE = 1_000, 100_000, 10**9
_TAG_COLUMNS = ("upos", "xpos", "feats")
# Columns that hold something else than tags; other names are columns of data sets or attributes in MISC.
_OTHER_COLUMNS = {*COLUMNS, "words", "tokens", "text", "sent_id", "comments"} - {*_TAG_COLUMNS}
_DTYPES = Literal["None", "float32", "float16", "bfloat16", "float64"]


class StructuredConfig(PreTrainedConfig):  # type: ignore[no-untyped-call, unused-ignore]
    """Fields shared by all structured models; the defaults are the published sizes (supplement, table 7).

    Args:
        labels: label names in the order of the output rows.
        encoder: `"vectors"` (word vectors, encoder A) or `"pretrained"` (any `AutoModel`, encoder B).
        word_size: width of a word's embedding, without special words and UPOS tags.
        vocabulary_size: words in the table of encoder A.
        vector_space: `{"name", "dimension", "sha256"}` of the vectors of encoder A.
        freeze_word_vectors: whether encoder A's table is a buffer (true) or trained (false).
        encoder_config: the complete configuration of encoder B, nested.
        frozen_layers: number of layers of encoder B that are not trained, besides its embeddings; -1 freezes
            all of it.
        piece_pooling: a word's embedding is the `"mean"` of its pieces' states or the `"first"` of them.
        max_pieces: pieces in a window of encoder B; longer sentences are read in overlapping windows.
        context_layers: layers of the distance-aware Transformer over the words; `None` means 6 with encoder
            A and 0 with encoder B.
        attention_heads: attention heads of a layer.
        key_size: width of the keys and values of a head.
        feed_forward_size: inner width of a layer's feed-forward block.
        max_distance: longest distance with an embedding of its own.
        context_dropout: dropout rate within the Transformer.
        word_dropout: rate at which a word is replaced by the unknown word in training.
        output_dropout: rate at which an output channel is dropped in training, for all words at once.
        uses_upos: whether UPOS tags are part of the input.
        upos_names: the UPOS tags that have an embedding; all others share that of the unknown tag.
        upos_size: width of a UPOS tag's embedding.
        upos_dropout: rate at which a UPOS tag is replaced by the unknown tag in training.
        start_sha256: hash of the parameters of the model that this one was fine-tuned from, if any.
    """

    labels: list[str] = field(default_factory=list)
    encoder: Literal["vectors", "pretrained"] = "vectors"
    word_size: int = 300
    vocabulary_size: int = 0
    vector_space: dict[str, Any] | None = None
    freeze_word_vectors: bool = True
    encoder_config: dict[str, Any] | None = None
    frozen_layers: int = -1
    piece_pooling: Literal["mean", "first"] = "mean"
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
        """Fill in derived fields; raise ValueError if a name occurs twice or a field is out of range."""
        self.labels = [] if self.labels is None else self.labels
        self.upos_names = [] if self.upos_names is None else self.upos_names
        self._check_fields()
        named, count = self.id2label, kwargs.pop("num_labels", None)
        self.set_labels(self.labels)
        if (named and {int(index): name for index, name in named.items()} != self.id2label) or (
            count not in (None, len(self.labels))
        ):
            raise ValueError(
                "id2label or num_labels contradicts labels; leave it out: it follows from labels"
            )
        super().__post_init__(**kwargs)  # type: ignore[no-untyped-call, unused-ignore]

    def _check_fields(self) -> None:
        """Check the types of all own fields of any subclass, then their ranges."""
        minima = {"frozen_layers": -1, "context_layers": 0, "max_distance": 0, "vocabulary_size": 0}
        for kind in type(self).__mro__:
            own = inspect.get_annotations(kind, eval_str=True) if issubclass(kind, StructuredConfig) else {}
            for name, expected in own.items():
                value = checked(expected, vars(self).get(name, getattr(kind, name, None)), name)
                if type(value) is int and expected is not float:
                    check_size(name, value, minima.get(name, 1))
                elif isinstance(value, list) and len(value) > MAX_NAMES:
                    raise ValueError(f"{name} has {len(value)} entries; expected at most {MAX_NAMES}")
        check_names("upos_names", self.upos_names)
        checked(_DTYPES, str(self.dtype).removeprefix("torch."), "dtype")
        for name in ("context_dropout", "word_dropout", "output_dropout", "upos_dropout"):
            rate = vars(self)[name]
            if not 0 <= rate < 1:
                raise ValueError(f"{name} is {rate!r}; expected a rate in [0, 1)")

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any) -> Self:
        """Build a configuration from the content of a file; only fields count, no references to code."""
        known = {each.name for each in fields(cls)}
        content = {name: value for name, value in config_dict.items() if name in known}
        return super().from_dict(content, **kwargs)  # type: ignore[no-any-return, no-untyped-call, unused-ignore]

    def set_labels(self, labels: list[str]) -> None:
        """Set `labels`, `id2label` and `label2id`; raise ValueError if a name occurs twice."""
        check_names("labels", labels)
        self.labels = list(labels)
        self.id2label = dict(enumerate(labels))
        self.label2id = {name: index for index, name in enumerate(labels)}

    @property
    def context_depth(self) -> int:
        """Layers of the Transformer over the words, with the default resolved."""
        if self.context_layers is not None:
            return self.context_layers
        return 6 if self.encoder == "vectors" else 0


class BiaffineParserConfig(StructuredConfig):  # type: ignore[no-untyped-call, unused-ignore]
    """Configuration of `BiaffineParser`; see `StructuredConfig` for the input and the encoder.

    Args:
        arc_size: width of a word's vector as a head and as a dependent of an unlabelled arc.
        label_size: the same for labels.
        score_form: `"log_softmax"` (log-probability over heads plus that over labels, as published) or
            `"raw"` (sum of the two biaffine scores).
        single_root: whether exactly one word is attached to the root symbol.
        projective: whether crossing arcs are excluded.
    """

    model_type = "hf_xst_biaffine_parser"

    uses_upos: bool = True
    arc_size: int = 512
    label_size: int = 128
    score_form: Literal["log_softmax", "raw"] = "log_softmax"
    single_root: bool = True
    projective: bool = False


class CrfTaggerConfig(StructuredConfig):  # type: ignore[no-untyped-call, unused-ignore]
    """Configuration of `CrfTagger`; see `StructuredConfig` for the input and the encoder.

    Args:
        column: the column of prepared rows that holds the tags.
        scheme: `"bio"` if the tags mark spans, see `hf_xst.data.labels`; pairs of tags that are invalid in
            BIO are then impossible. `None` allows all pairs.
        output_dropout: as in `StructuredConfig`; the published tagger has none.
    """

    model_type = "hf_xst_crf_tagger"

    column: str = "upos"
    scheme: Literal["bio"] | None = None
    output_dropout: float = 0.0

    def __post_init__(self, **kwargs: Any) -> None:
        """Validate all fields."""
        if str(self.column) in _OTHER_COLUMNS or not re.fullmatch(r"[^\W\d][\w-]*", str(self.column)):
            raise ValueError(
                f"column is {self.column!r}; expected {', '.join(_TAG_COLUMNS)}, or the name of an attribute "
                "in MISC or of another column of a data set"
            )
        super().__post_init__(**kwargs)

    def set_labels(self, labels: list[str]) -> None:
        """Set the tags without boundaries, which every tagger adds; raise ValueError if one is invalid."""
        reserved = [name for name in labels if name in BOUNDARIES]
        if reserved:
            raise ValueError(
                f"labels holds {', '.join(reserved)}: the tagger adds the sentence boundaries itself"
            )
        if self.scheme is not None:
            check_bio(labels)
        super().set_labels(labels)


def check_names(field_name: str, names: list[str]) -> None:
    """Raise ValueError if a name occurs twice."""
    duplicates = sorted(name for name, count in Counter(names).items() if count > 1)
    if duplicates:
        raise ValueError(f"{field_name} holds {', '.join(duplicates)} more than once")


def check_size(field_name: str, value: int, minimum: int = 1) -> None:
    """Raise ValueError if a size is below its minimum or too large; numbers of layers and heads are small."""
    limit = MAX_LAYERS if re.search("layer|head|block|expert", field_name) else MAX_SIZE
    if not minimum <= value <= limit:
        raise ValueError(f"{field_name} is {value}; expected at least {minimum} and at most {limit}")
