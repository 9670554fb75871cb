"""Supervised training of source models."""

from __future__ import annotations

from functools import partial
from typing import Any

from datasets import Dataset
from torch import Tensor
from transformers import TrainingArguments

from hf_xst.models.cached_embeddings import CachedEmbeddings
from hf_xst.models.modeling import StructuredModel, StructuredOutput
from hf_xst.models.running import Collator
from hf_xst.training.trainer import StructuredTrainer


class SupervisedTrainer(StructuredTrainer):
    """Train a model on gold columns with its own loss, averaged over words (parser) or sentences (tagger).

    Args:
        model: the model, or None if `model_init` is given.
        args: training arguments.
        train_dataset: prepared rows with the model's gold columns.
        eval_dataset: the same, for the development score.
        embeddings: cached embeddings of a frozen encoder.
        kwargs: for `transformers.Trainer`.
    """

    def __init__(
        self,
        model: StructuredModel | None,
        args: TrainingArguments,
        train_dataset: Dataset | None = None,
        eval_dataset: Dataset | None = None,
        embeddings: CachedEmbeddings | None = None,
        **kwargs: Any,
    ) -> None:
        collator = partial(Collator, embeddings=embeddings)
        super().__init__(model, args, collator, train_dataset, eval_dataset, **kwargs)

    def sentence_losses(self, output: StructuredOutput, inputs: dict[str, Any]) -> Tensor:
        """Return the model's supervised loss of each sentence: (B,)."""
        assert output.losses is not None
        return output.losses
