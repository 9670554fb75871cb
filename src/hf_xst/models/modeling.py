"""The base class of all structured models: words in, scores of structures out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel
from transformers.utils.generic import ModelOutput

from hf_xst.data.sentence import BLANK
from hf_xst.models.columns import Columns as Columns
from hf_xst.models.columns import Row as Row
from hf_xst.models.columns import StructureColumns
from hf_xst.models.configuration import StructuredConfig
from hf_xst.models.encoders import UposEmbeddings
from hf_xst.models.word_model import WordModel
from hf_xst.structures.base import Structure


@dataclass
class StructuredOutput(ModelOutput):
    """Output of a structured model.

    Args:
        loss: scalar, `losses.sum() / units.sum()`; only with labels.
        scores: scores as the structure's class takes them, at least in float32.
        lengths: (B,) words of each sentence.
        losses: (B,) supervised loss of each sentence in nats, summed over its units.
        units: (B,) number of units (words or sentences) that each loss sums over.
    """

    loss: Tensor | None = None
    scores: Tensor = None  # type: ignore[assignment]  # always set; the library requires defaults
    lengths: Tensor = None  # type: ignore[assignment]
    losses: Tensor | None = None
    units: Tensor | None = None


class StructuredModel(WordModel, StructureColumns, ABC):  # type: ignore[no-untyped-call, unused-ignore]
    """A model whose output is a distribution over structures of a sentence.

    A subclass defines its special words, turns states into scores, and translates between best structures,
    gold rows and predicted columns. `WordModel` holds words, encoders and files.
    """

    label_column: ClassVar[str]
    """The column of gold rows that holds the labels, unless the configuration names another."""
    annotation_column: ClassVar[str] = "upos"
    """The column that a model may read beside the words, and that another model can predict for it."""

    def __init__(self, config: StructuredConfig) -> None:
        super().__init__(config)
        if not config.labels:
            raise ValueError(
                "the configuration has no labels; set labels=[...] in the order of the output rows"
            )
        # The attribute's name is part of the names of saved tensors.
        self.coarse_tags = (
            UposEmbeddings(config.upos_names, config.upos_size, config.upos_dropout)
            if config.uses_upos
            else None
        )

    def post_init(self) -> None:
        """Initialise missing weights; see `PreTrainedModel.post_init`."""
        super().post_init()  # type: ignore[no-untyped-call, unused-ignore]
        if self.coarse_tags is not None:
            self.coarse_tags.zero_untrained()

    # -- labels ---------------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """Names along the structure's label axes, special labels last."""
        return [*self.config.labels, *self.special_names]

    @property
    @abstractmethod
    def main_metric(self) -> str:
        """Name of the score that selects checkpoints."""

    @abstractmethod
    def label_parameters(self) -> list[tuple[nn.Module, str, tuple[int, ...]]]:
        """Return the parameters that have rows for labels: module, attribute, and their label axes."""

    @torch.no_grad()
    def add_labels(self, names: Sequence[str]) -> None:
        """Add random output rows for further labels, after the others; raise ValueError if one is not new."""
        known = sorted(set(names) & set(self.names))
        if known:
            raise ValueError(f"the model already has the labels {', '.join(known)}")
        present = len(self.config.labels)
        self.config.set_labels([*self.config.labels, *names])
        for module, attribute, axes in self.label_parameters():
            old = module.get_parameter(attribute)
            value = old.detach()
            for axis in axes:
                before, after = value.tensor_split([present], dim=axis)
                shape = [*value.shape]
                shape[axis] = len(names)
                value = torch.cat([before, value.new_empty(shape).normal_(std=0.02), after], dim=axis)
            module.register_parameter(attribute, nn.Parameter(value, requires_grad=old.requires_grad))
            if isinstance(module, nn.Linear):
                module.out_features = module.weight.shape[0]

    @classmethod
    def settings_from_rows(
        cls, rows: Iterable[Row], column: str | None = None, scheme: str | None = None
    ) -> dict[str, Any]:
        """Collect the configuration fields that follow from prepared rows with gold.

        These are `labels` of a column (by default `label_column`), `upos_names` and, where no word has a UPOS
        tag, `uses_upos` (false). A blank is not a name; `scheme` is for classes that support one.
        """
        labels: set[str] = set()
        upos: set[str] = set()
        for row in rows:
            labels.update(row[column or cls.label_column])
            upos.update(row.get("upos") or ())
        names = sorted(upos - {BLANK})
        settings: dict[str, Any] = {"labels": sorted(labels - {BLANK}), "upos_names": names}
        return settings if names else settings | {"uses_upos": False}

    def check_reads(self, other: StructuredModel) -> None:
        """Raise ValueError if another model predicts a column that this one reads, in unknown labels only."""
        known, predicted = self.config.upos_names or [], other.config.labels or []
        if self.coarse_tags is None or self.annotation_column not in other.columns:
            return
        if set(known).isdisjoint(predicted):
            raise ValueError(
                f"the model knows none of the tagger's tags ({', '.join(predicted[:5])} ...), only "
                f"{', '.join(known[:5])} ...; use a tagger of the model's UPOS tags"
            )

    # -- computation ----------------------------------------------------------------------------------

    def featurise(self, rows: Sequence[Row], *, words: bool = True) -> dict[str, Tensor]:
        """Turn prepared rows into input tensors on the CPU.

        Args:
            rows: B mappings with `words` (list of str) and, if the model uses them, `upos`.
            words: whether to look the words up; false if `forward` gets `word_states`.

        Returns:
            `lengths` (B,), the tensors of the word source, and `upos_ids` (B, N) if the model uses them.

        Raises:
            ValueError: a sentence is not a list of words, is empty, or lacks required UPOS tags.
        """
        for index, row in enumerate(rows):
            if isinstance(row["words"], str):
                raise ValueError(
                    f"sentence {row.get('sent_id', index)} is the string {row['words'][:40]!r}; expected a "
                    "list of words (and a batch is a list of such lists)"
                )
            if not len(row["words"]):  # which may be an array
                raise ValueError(f"sentence {row.get('sent_id', index)} has no words")
        features = {"lengths": torch.tensor([len(row["words"]) for row in rows])}
        if words:
            features |= self.encoder.featurise([row["words"] for row in rows])
        if self.coarse_tags is not None:
            features["upos_ids"] = self.coarse_tags.featurise(rows)
        return features

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
            words: B lists of words, instead of the tensors returned by `featurise`.
            upos: B lists of UPOS tags, with `words`, if the model uses them.
            word_ids: (B, N), encoder A only.
            input_ids: (W, P), encoder B only, like the next two.
            attention_mask: (W, P).
            piece_slots: (W, P).
            word_states: (B, N, D) cached word embeddings, which replace the encoder's input.
            upos_ids: (B, N) indices of the UPOS tags.
            labels: gold as returned by `encode_gold`, -1 where unknown; if given, the loss is computed.

        Raises:
            ValueError: part of the input is missing.
        """
        tensors = {
            "word_ids": word_ids,
            "input_ids": input_ids,
            "attention_mask": attention_mask,
            "piece_slots": piece_slots,
        }
        features = {key: value for key, value in tensors.items() if value is not None}
        if words is not None:
            features = self._features_of(words, upos, look_up=word_states is None)
            lengths, upos_ids = features.pop("lengths"), features.pop("upos_ids", None)
        if lengths is None or (word_states is None and not features):
            raise ValueError(
                "pass words (a list of lists), or lengths and the other tensors that featurise() returns, or "
                "lengths and word_states"
            )
        tags = None
        if self.coarse_tags is not None:
            if upos_ids is None:
                raise ValueError("this model reads UPOS tags: pass upos or upos_ids")
            tags = self.coarse_tags(upos_ids, lengths, self.leading, self.trailing)
        states = self.encoder(lengths, features, extra=tags, word_states=word_states)
        output = StructuredOutput(scores=self.scores(states, lengths), lengths=lengths)
        if labels is not None:
            output.losses, output.units = self.supervised_losses(output, labels), self.units(labels)
            output.loss = output.losses.sum() / output.units.sum().clamp(min=1)
        return output

    def _features_of(
        self, words: Sequence[Sequence[str]], upos: Sequence[Sequence[str]] | None, *, look_up: bool
    ) -> dict[str, Tensor]:
        tags: Sequence[Any] = [None] * len(words) if upos is None else upos
        if len(tags) != len(words):
            raise ValueError(f"found UPOS tags of {len(tags)} sentences for {len(words)} sentences")
        rows = [{"words": row, "upos": row_tags} for row, row_tags in zip(words, tags, strict=True)]
        return self._to_device(self.featurise(rows, words=look_up))

    def _to_device(self, features: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {key: value.to(self.device) for key, value in features.items()}

    @abstractmethod
    def scores(self, states: Tensor, lengths: Tensor) -> Tensor:
        """Turn states (B, leading + N + trailing, D) into the structure's scores."""

    @abstractmethod
    def supervised_losses(self, output: StructuredOutput, labels: Tensor) -> Tensor:
        """Return each sentence's supervised loss in nats, summed over its units: (B,)."""

    @abstractmethod
    def units(self, labels: Tensor) -> Tensor:
        """Return the number of units (words or sentences) that each sentence's loss sums over: (B,)."""

    @abstractmethod
    def distribution(self, output: StructuredOutput) -> Structure:
        """Return the distribution over structures that an output defines."""

    @torch.no_grad()
    def predict(self, rows: Sequence[Row]) -> list[Columns]:
        """Return the best structure of each prepared row as columns, `{"head": [2, 0], "deprel": [...]}`.

        All rows form one batch; for long lists use `hf_xst.models.running.predict_rows`.
        """
        if not rows:
            return []
        with evaluating(self):
            output = self(**self._to_device(self.featurise(rows)))
        return self.decode(self.distribution(output).best(), output.lengths)

    # -- translation ----------------------------------------------------------------------------------

    @property
    def input_columns(self) -> tuple[str, ...]:
        """Columns of a prepared row that this model reads."""
        return ("words", self.annotation_column) if self.config.uses_upos else ("words",)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put a model into evaluation mode while the block runs."""
    was_training = model.training
    model.train(False)
    try:
        yield
    finally:
        if was_training:
            model.train()


def register(config: type[StructuredConfig], model: type[StructuredModel]) -> None:
    """Register a structured model with `AutoConfig` and `AutoModel`; may be called twice."""
    AutoConfig.register(config.model_type, config, exist_ok=True)
    AutoModel.register(config, model, exist_ok=True)
