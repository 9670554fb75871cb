"""What the parser and the tagger share: words in, scores of a structure out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModel
from transformers.utils.generic import ModelOutput

from hf_xst.models.coarse_tags import CoarseTags
from hf_xst.models.configuration import StructuredConfig
from hf_xst.models.labelled import Labelled, Row
from hf_xst.models.word_model import WordModel
from hf_xst.structures.base import Structure

__all__ = ["Row", "StructuredModel", "StructuredOutput", "register"]


Readable = dict[str, list[list[str]]]


class ReadableCandidates:
    """Spells candidates out for people; a model class whose groups are no words has its own way."""

    @classmethod
    def readable_candidates(
        cls, words: Sequence[str], allowed: Sequence[Sequence[int]], names: Sequence[str]
    ) -> Readable:
        """Spell one sentence's allowed candidates out, in columns with a list of strings for each word.

        Args:
            words: the N words.
            allowed: for each group the candidates that it may have.
            names: the alphabet of the candidates.

        Returns:
            Columns by name; the same ones for every sentence, be it empty.
        """
        spelled = [list(dict.fromkeys(names[each % len(names)] for each in group)) for group in allowed]
        return {"allowed_labels": spelled}


@dataclass
class StructuredOutput(ModelOutput):
    """What a structured model returns.

    Args:
        loss: scalar, `losses.sum() / units.sum()`; only with labels.
        scores: the structure's scores in the shape of the contract (see the structure's class), at least in
            float32.
        lengths: (B,) words of each sentence.
        losses: (B,) supervised loss of each sentence in nats, summed over its units.
        units: (B,) how many units (words or sentences) each loss counts.
    """

    loss: Tensor | None = None
    scores: Tensor | None = None
    lengths: Tensor | None = None
    losses: Tensor | None = None
    units: Tensor | None = None


class StructuredModel(WordModel, Labelled, ReadableCandidates, ABC):  # type: ignore[no-untyped-call, unused-ignore]
    """A model whose output is a distribution over structures of a sentence.

    A subclass names its special words, turns states into scores, and translates between best structures,
    gold rows and predicted columns. Everything else is here; words, encoders and files are in `WordModel`.
    """

    structure: ClassVar[type[Structure]]
    added_groups: ClassVar[tuple[int, int]] = (0, 0)
    """How many groups, at a sentence's start and end, only tie its words to special ones."""
    annotation_column: ClassVar[str] = "upos"
    """The column that a model may read beside the words, and that another model can predict for it."""
    whole: ClassVar[str] = "structure"
    """What a sentence's structure is called where its log-probability is told."""

    def __init__(self, config: StructuredConfig) -> None:
        super().__init__(config)
        if not config.labels:
            raise ValueError(
                "the configuration names no labels; give labels=[...] in the order of the output rows"
            )
        self.coarse_tags = (
            CoarseTags(config.upos_names, config.upos_size, config.upos_dropout) if config.uses_upos else None
        )

    def post_init(self) -> None:
        """Initialise what was not; see `PreTrainedModel.post_init`."""
        super().post_init()  # type: ignore[no-untyped-call, unused-ignore]
        if self.coarse_tags is not None:
            self.coarse_tags.quieten()

    def check_reads(self, other: StructuredModel) -> None:
        """See that this model knows what another one writes into a column that it reads.

        Raises:
            ValueError: it knows none of the other's labels.
        """
        known, given = self.config.upos_names or [], other.config.labels or []
        if self.coarse_tags is None or self.annotation_column not in other.columns:
            return
        if set(known).isdisjoint(given):
            raise ValueError(
                f"the tagger's tags ({', '.join(given[:5])} ...) are none of those that the model knows "
                f"({', '.join(known[:5])} ...): a tagger of its coarse tags is needed"
            )

    # -- computation ----------------------------------------------------------------------------------

    def featurise(self, rows: Sequence[Row], *, words: bool = True) -> dict[str, Tensor]:
        """Turn prepared rows into input tensors on the CPU.

        Args:
            rows: B mappings with `words` (list of str) and, where the model uses them, `upos`.
            words: also look the words up; false where ready `word_states` are given to `forward`.

        Returns:
            `lengths` (B,), the word source's tensors, and `upos_ids` (B, N) where the model uses them.

        Raises:
            ValueError: a sentence is no list of words, or has none, or lacks coarse tags that are needed.
        """
        for index, row in enumerate(rows):
            if isinstance(row["words"], str):
                raise ValueError(
                    f"sentence {row.get('sent_id', index)} is the string {row['words'][:40]!r}; expected a "
                    "list of words (and a batch is a list of such lists)"
                )
            if not row["words"]:
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
            words: B lists of words, instead of the tensors that `featurise` makes of them.
            upos: B lists of coarse tags, beside `words`, where the model uses them.
            word_ids: (B, N) of encoder A.
            input_ids: (W, P) of encoder B, like the two following.
            attention_mask: (W, P).
            piece_slots: (W, P).
            word_states: (B, N, D), ready states of the words in place of the encoder's input.
            upos_ids: (B, N) indices of the coarse tags.
            labels: what `encode_gold` gives; -1 where there is none. With it the loss is computed.

        Returns:
            The scores, and with labels the supervised loss.

        Raises:
            ValueError: some of the input is missing.
        """
        given = {
            "word_ids": word_ids,
            "input_ids": input_ids,
            "attention_mask": attention_mask,
            "piece_slots": piece_slots,
        }
        features = {key: value for key, value in given.items() if value is not None}
        if words is not None:
            features = self._features_of(words, upos, look_up=word_states is None)
            lengths, upos_ids = features.pop("lengths"), features.pop("upos_ids", None)
        if lengths is None or (word_states is None and not features):
            raise ValueError(
                "give words (a list of lists), or lengths and the other tensors that featurise() makes of "
                "them, or lengths and word_states"
            )
        tags = self._coarse_tag_states(upos_ids, lengths)
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
            raise ValueError(f"found coarse tags of {len(tags)} sentences for {len(words)} sentences")
        rows = [{"words": row, "upos": row_tags} for row, row_tags in zip(words, tags, strict=True)]
        features = self.featurise(rows, words=look_up)
        return {key: value.to(self.device) for key, value in features.items()}

    def _coarse_tag_states(self, upos_ids: Tensor | None, lengths: Tensor) -> Tensor | None:
        if self.coarse_tags is None:
            return None
        if upos_ids is None:
            raise ValueError("this model reads coarse tags (UPOS) beside the words: give upos or upos_ids")
        states: Tensor = self.coarse_tags(upos_ids, lengths, self.leading, self.trailing)
        return states

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

    @torch.no_grad()
    def predict(self, rows: Sequence[Row]) -> list[dict[str, list[Any]]]:
        """Return the best structure of each prepared row as columns, `{"head": [2, 0], "deprel": [...]}`.

        All rows are one batch; `hf_xst.training.inference.predict_rows` cuts long lists into batches.
        """
        if not rows:
            return []
        was_training = self.training
        self.train(False)
        try:
            features = {key: value.to(self.device) for key, value in self.featurise(rows).items()}
            output = self(**features)
        finally:
            self.train(was_training)
        return self.decode(self.distribution(output).best(), output.lengths)

    # -- translation ----------------------------------------------------------------------------------

    @property
    def input_columns(self) -> tuple[str, ...]:
        """Columns of a prepared row that this model reads."""
        return ("words", self.annotation_column) if self.config.uses_upos else ("words",)

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Columns of a prepared row that this model predicts."""

    def candidate_parts(self, candidates: Tensor) -> dict[str, Tensor]:
        """Say by name what candidates claim about their word, so that it can be given a probability.

        Group i of a sentence is its i-th word's, and the probability of a claim is the mass of the candidates
        that make it.

        Args:
            candidates: any shape, indices of candidates.

        Returns:
            A tensor of this shape for each part of a claim: equal numbers are equal claims.
        """
        return {"label": candidates}

    @abstractmethod
    def encode_gold(self, rows: Sequence[Row], names: Sequence[str] | None = None) -> Tensor:
        """Turn gold columns into `labels`; -1 for padding and for names that are unknown.

        Args:
            rows: B prepared rows with this model's `columns`.
            names: an alphabet in place of the model's own.
        """

    @abstractmethod
    def gold_best(self, labels: Tensor, lengths: Tensor, names: Sequence[str] | None = None) -> Any:
        """Turn `labels` into the form in which the structure's `best()` returns a structure."""

    @abstractmethod
    def decode(
        self, best: Any, lengths: Tensor, names: Sequence[str] | None = None
    ) -> list[dict[str, list[Any]]]:
        """Turn `best()` of a batch into this model's columns, one mapping a sentence.

        Args:
            best: what the structure's `best()` returned.
            lengths: (B,) words of each sentence.
            names: the alphabet of `best` where it is not the model's own.
        """


def register(config: type[StructuredConfig], model: type[StructuredModel]) -> None:
    """Make `AutoConfig` and `AutoModel` know a structured model; harmless when done twice."""
    AutoConfig.register(config.model_type, config, exist_ok=True)
    AutoModel.register(config, model, exist_ok=True)
