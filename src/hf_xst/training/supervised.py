"""Supervised training of source models."""

from __future__ import annotations

from functools import partial
from typing import Any

from datasets import Dataset
from torch import Tensor
from transformers import TrainingArguments

from hf_xst.models.cached_states import FrozenStates
from hf_xst.models.collation import Collator
from hf_xst.models.modeling import StructuredModel, StructuredOutput
from hf_xst.training.trainer import StructuredTrainer


class SupervisedTrainer(StructuredTrainer):
    """Train a model on gold columns with the loss that the model itself names.

    The loss is a mean over the model's units: words for a parser, sentences for a tagger.

    Args:
        model: the model, or None where `model_init` is given.
        args: the training arguments.
        train_dataset: prepared rows with the model's gold columns.
        eval_dataset: the same, for the development score.
        states: ready states of a frozen encoder.
        kwargs: for `transformers.Trainer`.
    """

    def __init__(
        self,
        model: StructuredModel | None,
        args: TrainingArguments,
        train_dataset: Dataset | None = None,
        eval_dataset: Dataset | None = None,
        states: FrozenStates | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, args, partial(Collator, states=states), train_dataset, eval_dataset, **kwargs)

    def sentence_losses(self, output: StructuredOutput, inputs: dict[str, Any]) -> Tensor:
        """Return the model's supervised loss of each sentence: (B,)."""
        assert output.losses is not None
        return output.losses
