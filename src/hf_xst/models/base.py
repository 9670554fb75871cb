"""What the parser and the tagger share: words in, scores of a structure out, saved and loaded whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedModel
from transformers.utils import ModelOutput, cached_file

from hf_xst.data.vectors import WordVectors
from hf_xst.structures.base import Structure

from .configuration import StructuredConfig
from .encoders import WordEncoder
from .pretrained_words import PretrainedWords, bare_encoder, quiet
from .vector_table import VectorTable

Row = Mapping[str, Any]
Model = TypeVar("Model", bound="StructuredModel")
# Embedding rows of coarse tags before the named ones: padding, unknown, special words.
FIRST_UPOS = 3
_HUB_ARGUMENTS = ("cache_dir", "force_download", "local_files_only", "token", "revision", "subfolder")


@dataclass
class StructuredOutput(ModelOutput):  # type: ignore[misc]
    """What a structured model returns.

    Args:
        loss: scalar, `losses.sum() / units.sum()`; only with labels.
        scores: the structure's scores in the shape of the contract (see the structure's class).
        lengths: (B,) words of each sentence.
        losses: (B,) supervised loss of each sentence in nats, summed over its units.
        units: (B,) how many units (words or sentences) each loss counts.
    """

    loss: Tensor | None = None
    scores: Tensor | None = None
    lengths: Tensor | None = None
    losses: Tensor | None = None
    units: Tensor | None = None


class StructuredModel(PreTrainedModel, ABC):
    """A model whose output is a distribution over structures of a sentence.

    A subclass names its special words, turns states into scores, and translates between best structures,
    gold rows and predicted columns. Everything else (words, encoders, files) is here.
    """

    config: StructuredConfig
    main_input_name = "lengths"
    base_model_prefix = ""
    structure: ClassVar[type[Structure]]
    leading: ClassVar[int]
    trailing: ClassVar[int]
    label_column: ClassVar[str]
    main_metric: ClassVar[str]

    def __init__(self, config: StructuredConfig) -> None:
        super().__init__(config)
        if not config.labels:
            raise ValueError("the configuration names no labels; give labels=[...] in the order of the output rows")
        extra = config.upos_size if config.uses_upos else 0
        self.encoder = WordEncoder(config, leading=self.leading, trailing=self.trailing, extra_size=extra)
        if config.uses_upos:
            assert config.upos_names is not None
            self.upos_embeddings = nn.Embedding(
                FIRST_UPOS + len(config.upos_names), config.upos_size, padding_idx=0
            )

    # -- building -------------------------------------------------------------------------------------

    @classmethod
    def from_vectors(cls: type[Model], config: StructuredConfig, vectors: WordVectors) -> Model:
        """Build a fresh model of encoder A over a vector file's words.

        Args:
            config: sizes and labels; `encoder` must be `"vectors"`, the width is taken from the vectors.
            vectors: the words and their vectors.
        """
        config.word_size = vectors.matrix.shape[1]
        config.vocabulary_size = 0
        model = cls(config)
        model.replace_word_vectors(vectors)
        return model

    @classmethod
    def from_encoder(
        cls: type[Model], config: StructuredConfig, encoder: str, *, layers: int | None = None, **hub: Any
    ) -> Model:
        """Build a fresh model of encoder B over a pretrained `AutoModel`.

        Args:
            config: sizes and labels; the encoder's configuration is nested in it.
            encoder: a folder or a Hub id.
            layers: keep only the first so many layers of the encoder.
            hub: arguments of `from_pretrained`, such as `revision`.
        """
        settings = {} if layers is None else {"num_hidden_layers": layers}
        with quiet():  # layers that are cut off would be reported as unexpected
            pretrained = bare_encoder(
                AutoModel.from_pretrained, encoder, dtype=torch.float32, **settings, **hub
            )
        tokenizer = AutoTokenizer.from_pretrained(encoder, **hub)
        nested = pretrained.config.to_dict()
        nested.pop("_name_or_path", None)
        config.encoder, config.encoder_config = "pretrained", nested
        config.word_size = pretrained.config.hidden_size
        config.max_pieces = min(config.max_pieces, tokenizer.model_max_length)
        model = cls(config)
        assert isinstance(model.encoder.words, PretrainedWords)
        model.encoder.words.model = pretrained
        model.encoder.words.tokenizer = tokenizer
        model.freeze()
        return model

    def replace_word_vectors(self, vectors: WordVectors) -> None:
        """Put another language's vectors (all rows) in the place of encoder A's table.

        Raises:
            ValueError: the model has no word table, or its vectors are of another space or width.
        """
        words = self.encoder.words
        if not isinstance(words, VectorTable):
            raise ValueError("this model reads words by a pretrained encoder (encoder B); it has no word vectors")
        space = self.config.vector_space
        found = {"name": vectors.name, "dimension": int(vectors.matrix.shape[1]), "sha256": vectors.sha256}
        if space is not None and (space["name"], space["dimension"]) != (found["name"], found["dimension"]):
            raise ValueError(
                f"the model was trained on vectors of the space {space['name']!r} ({space['dimension']} numbers); "
                f"found {found['name']!r} ({found['dimension']} numbers). Vectors of one space are needed: "
                "align them first, or name the space of the new file if it is the same one"
            )
        words.replace(vectors, frozen=self.config.freeze_word_vectors)
        self.config.vocabulary_size = len(vectors.words)
        self.config.vector_space = found

    def freeze(self) -> None:
        """Freeze what the configuration says: the word table, or layers of the pretrained encoder."""
        words = self.encoder.words
        words.freeze(not isinstance(words, VectorTable) or self.config.freeze_word_vectors)

    def train_word_vectors(self, trained: bool = True) -> None:
        """Make encoder A's vectors trainable, as the published transfer does, or frozen again."""
        self.config.freeze_word_vectors = not trained
        self.freeze()

    @abstractmethod
    def label_parameters(self) -> list[tuple[nn.Module, str, tuple[int, ...]]]:
        """Name the parameters that have rows for labels: module, attribute, and the axes that run over labels."""

    @torch.no_grad()
    def add_labels(self, names: Sequence[str]) -> None:
        """Add output rows for further labels, freshly initialised, after the present labels.

        Args:
            names: labels that the model does not have.

        Raises:
            ValueError: the model has one of them already.
        """
        labels = list(self.config.labels or [])
        known = sorted(set(names) & set(self.names))
        if known:
            raise ValueError(f"the model has labels {', '.join(known)} already")
        for module, attribute, axes in self.label_parameters():
            value = module.get_parameter(attribute).detach()
            for axis in axes:
                before, after = value.tensor_split([len(labels)], dim=axis)
                shape = [*value.shape]
                shape[axis] = len(names)
                value = torch.cat([before, value.new_empty(shape).normal_(std=0.02), after], dim=axis)
            module.register_parameter(attribute, nn.Parameter(value))
        self.config.labels = [*labels, *names]
        self.config.id2label = dict(enumerate(self.config.labels))
        self.config.label2id = {name: index for index, name in enumerate(self.config.labels)}

    def _init_weights(self, module: nn.Module) -> None:
        # torch's own initialisers are guarded while a checkpoint is loaded, so loaded tensors are left alone.
        if isinstance(module, (nn.Linear, nn.Embedding, nn.LayerNorm, WordEncoder)):
            module.reset_parameters()
        for name, parameter in module.named_parameters(recurse=False):
            if name.endswith("_distances"):
                nn.init.xavier_uniform_(parameter)

    @classmethod
    def settings_from_rows(cls, rows: Iterable[Row], column: str | None = None) -> dict[str, Any]:
        """Collect the configuration fields that name what occurs in gold rows: `labels` and `upos_names`.

        Args:
            rows: prepared rows with gold.
            column: the column of labels where the model can predict any one.
        """
        labels: set[str] = set()
        upos: set[str] = set()
        for row in rows:
            labels.update(row[column or cls.label_column])
            upos.update(row.get("upos") or ())
        return {"labels": sorted(labels), "upos_names": sorted(upos - {"_"})}

    # -- input ----------------------------------------------------------------------------------------

    def featurise(self, rows: Sequence[Row], *, words: bool = True) -> dict[str, Tensor]:
        """Turn prepared rows into input tensors on the CPU.

        Args:
            rows: B mappings with `words` (list of str) and, where the model uses them, `upos`.
            words: also look the words up; false where ready `word_states` are given to `forward`.

        Returns:
            `lengths` (B,), the word source's tensors, and `upos_ids` (B, N) where the model uses them.

        Raises:
            ValueError: a sentence without words, or the model needs `upos` and a row has none.
        """
        for index, row in enumerate(rows):
            if not row["words"]:
                raise ValueError(f"sentence {row.get('sent_id', index)} has no words")
        features = {"lengths": torch.tensor([len(row["words"]) for row in rows])}
        if words:
            features |= self.encoder.featurise([row["words"] for row in rows])
        if self.config.uses_upos:
            features["upos_ids"] = self._upos_ids(rows)
        return features

    def _upos_ids(self, rows: Sequence[Row]) -> Tensor:
        assert self.config.upos_names is not None
        index_of = {name: FIRST_UPOS + index for index, name in enumerate(self.config.upos_names)}
        ids = []
        for index, row in enumerate(rows):
            upos = row.get("upos")
            lacking = upos is None or len(upos) != len(row["words"]) or all(tag == "_" for tag in upos)
            if lacking and self.config.upos_dropout > 0:
                upos = ["_"] * len(row["words"])  # the unknown tag's embedding was trained for this
            elif lacking:
                raise ValueError(
                    f"sentence {row.get('sent_id', index)}: this model reads coarse tags (UPOS) beside the words "
                    "and the sentence has none; tag it first (a tagger beside the model, or --tagger), or train "
                    "a model without them (uses_upos=False)"
                )
            ids.append(torch.tensor([index_of.get(tag, 1) for tag in upos]))
        return nn.utils.rnn.pad_sequence(ids, batch_first=True)

    def _extra(self, upos_ids: Tensor | None) -> Tensor | None:
        """Embed the coarse tags of the words and of the special words: (B, leading + N + trailing, E)."""
        if not self.config.uses_upos:
            return None
        if upos_ids is None:
            raise ValueError("this model reads coarse tags (UPOS) beside the words: give upos or upos_ids")
        if self.training and self.config.upos_dropout > 0:
            dropped = torch.rand(upos_ids.shape, device=upos_ids.device) < self.config.upos_dropout
            upos_ids = torch.where(dropped & (upos_ids > 0), torch.ones_like(upos_ids), upos_ids)
        padded = nn.functional.pad(upos_ids, (self.leading, self.trailing), value=FIRST_UPOS - 1)
        embedded: Tensor = self.upos_embeddings(padded)
        return embedded

    # -- computation ----------------------------------------------------------------------------------

    def forward(
        self,
        lengths: Tensor | None = None,
        words: Sequence[Sequence[str]] | None = None,
        upos: Sequence[Sequence[str]] | None = None,
        word_ids: Tensor | None = None,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        piece_slots: Tensor | None = None,
        word_states: Tensor | None = None,
        upos_ids: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> StructuredOutput:
        """Score the structures of a batch of sentences.

        Args:
            lengths: (B,) words of each sentence; with `words` it follows from them.
            words: B lists of words, instead of the tensors that `featurise` makes of them.
            upos: B lists of coarse tags, beside `words`, where the model uses them.
            word_ids: (B, N) of encoder A.
            input_ids: (W, P) of encoder B, like the two following.
            attention_mask: (W, P).
            piece_slots: (W, P).
            word_states: (B, N, D), ready states of the words in the place of the encoder's input.
            upos_ids: (B, N) indices of the coarse tags.
            labels: what `encode_gold` gives; -1 where there is none. With it the loss is computed.

        Returns:
            The scores, and with labels the supervised loss.
        """
        device = self.encoder.special_vectors.device
        if words is not None:
            tags: Sequence[Any] = upos if upos is not None else [None] * len(words)
            rows = [{"words": w, "upos": t} for w, t in zip(words, tags, strict=True)]
            ready = {key: value.to(device) for key, value in self.featurise(rows).items()}
            lengths, upos_ids = ready.pop("lengths"), ready.pop("upos_ids", None)
        else:
            given = {
                "word_ids": word_ids,
                "input_ids": input_ids,
                "attention_mask": attention_mask,
                "piece_slots": piece_slots,
            }
            ready = {key: value for key, value in given.items() if value is not None}
        if lengths is None:
            raise ValueError("give either words, or lengths and the tensors that featurise() makes of them")
        states = self.encoder(lengths, ready, extra=self._extra(upos_ids), word_states=word_states)
        output = StructuredOutput(scores=self.scores(states, lengths), lengths=lengths)
        if labels is not None:
            output.losses, output.units = self.supervised_losses(output, labels), self.units(labels)
            output.loss = output.losses.sum() / output.units.sum().clamp(min=1)
        return output

    @abstractmethod
    def scores(self, states: Tensor, lengths: Tensor) -> Tensor:
        """Turn states (B, leading + N + trailing, D) into the structure's scores."""

    @abstractmethod
    def supervised_losses(self, output: StructuredOutput, labels: Tensor) -> Tensor:
        """Return each sentence's supervised loss in nats, summed over its units: (B,)."""

    @abstractmethod
    def units(self, labels: Tensor) -> Tensor:
        """Return how many units (words or whole sentences) each sentence's loss is a sum over: (B,)."""

    @abstractmethod
    def distribution(self, output: StructuredOutput) -> Structure:
        """Return the distribution over structures that an output describes."""

    # -- translation ----------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """Names along the structure's label axes, special labels last."""
        return list(self.config.labels or [])

    @property
    def input_columns(self) -> tuple[str, ...]:
        """Columns of a prepared row that this model reads."""
        return ("words", "upos") if self.config.uses_upos else ("words",)

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Columns of a prepared row that this model predicts."""

    @abstractmethod
    def encode_gold(self, rows: Sequence[Row], names: Sequence[str] | None = None) -> Tensor:
        """Turn gold columns into `labels`; -1 for padding and for names that are unknown.

        Args:
            rows: B prepared rows with this model's `columns`.
            names: an alphabet in the place of the model's own.
        """

    @abstractmethod
    def gold_best(self, labels: Tensor, lengths: Tensor, names: Sequence[str] | None = None) -> Any:
        """Turn `labels` into the form in which the structure's `best()` returns a structure."""

    @abstractmethod
    def decode(self, best: Any, lengths: Tensor, names: Sequence[str] | None = None) -> list[dict[str, list[Any]]]:
        """Turn `best()` of a batch into this model's columns, one mapping a sentence.

        Args:
            best: what the structure's `best()` returned.
            lengths: (B,) words of each sentence.
            names: the alphabet of `best` where it is not the model's own.
        """

    @torch.no_grad()
    def predict(self, rows: Sequence[Row]) -> list[dict[str, list[Any]]]:
        """Return the best structure of each prepared row as columns, e.g. `{"head": [2, 0], "deprel": [...]}`."""
        was_training = self.training
        self.eval()
        features = {key: value.to(self.device) for key, value in self.featurise(rows).items()}
        output = self(**features)
        self.train(was_training)
        return self.decode(self.distribution(output).best(), output.lengths)

    # -- files ----------------------------------------------------------------------------------------

    @classmethod
    def from_pretrained(cls: type[Model], pretrained_model_name_or_path: Any, *args: Any, **kwargs: Any) -> Any:
        """Load a model, its words or tokenizer, from a folder or a Hub id; see `PreTrainedModel`."""
        hub = {key: kwargs[key] for key in _HUB_ARGUMENTS if key in kwargs}
        loaded = super().from_pretrained(pretrained_model_name_or_path, *args, **kwargs)
        model = loaded[0] if isinstance(loaded, tuple) else loaded
        words = model.encoder.words
        files = {
            name: cached_file(
                pretrained_model_name_or_path, name, _raise_exceptions_for_missing_entries=False, **hub
            )
            for name in words.asset_names()
        }
        words.load_assets(files)
        model.freeze()
        return loaded

    def save_pretrained(self, save_directory: Any, **kwargs: Any) -> None:
        """Save the model with its words or tokenizer; see `PreTrainedModel.save_pretrained`."""
        folder = Path(save_directory)
        if kwargs.get("is_main_process", True):
            folder.mkdir(parents=True, exist_ok=True)
            self.encoder.words.save_assets(folder)
        super().save_pretrained(save_directory, **kwargs)


def register(config: type[StructuredConfig], model: type[StructuredModel]) -> None:
    """Make `AutoConfig` and `AutoModel` know a structured model; harmless when done twice."""
    AutoConfig.register(config.model_type, config, exist_ok=True)
    AutoModel.register(config, model, exist_ok=True)
