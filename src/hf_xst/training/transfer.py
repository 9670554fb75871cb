"""Training a target model on charts (Kurniawan et al. 2021, equation 1)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from torch import Tensor
from transformers import TrainingArguments

from hf_xst.charts import chart_loss
from hf_xst.charts.storage import to_mask
from hf_xst.models.base import StructuredModel, StructuredOutput

from .collation import ChartCollator, Collator
from .frozen import FrozenStates
from .pull import StartPull
from .trainer import StructuredTrainer


class ChartTrainer(StructuredTrainer):
    """Train a model on charts: mean over sentences of log Z - log Z(chart), plus the pull to the start.

    A sentence whose chart holds no structure of the model's space is trained on the pool's best structure
    instead, and counted in `empty_charts`.

    Args:
        model: the starting model; theta0 is what it is when training begins.
        args: the training arguments.
        train_dataset: chart rows, see `hf_xst.charts.storage`.
        names: the charts' alphabet.
        l2: lambda, the strength of the pull to theta0.
        eval_dataset: prepared rows with gold columns, for development curves; never trained on.
        states: ready states of a frozen encoder.
        with_best: whether each source's best structure joins the chart (as published).
        kwargs: for `transformers.Trainer`.
    """

    def __init__(
        self,
        model: StructuredModel,
        args: TrainingArguments,
        train_dataset: Dataset | None = None,
        names: Sequence[str] = (),
        *,
        l2: float = 0.0,
        eval_dataset: Dataset | None = None,
        states: FrozenStates | None = None,
        with_best: bool = True,
        **kwargs: Any,
    ) -> None:
        collator = ChartCollator(model, names or model.names, states, with_best=with_best)
        super().__init__(model, args, collator, train_dataset, eval_dataset, **kwargs)
        self.empty_charts = 0
        self._eval_collator = Collator(model, states, gold=False)
        self.pull = StartPull(l2) if l2 else None
        if self.pull is not None:
            self.add_callback(self.pull)

    def sentence_losses(self, output: StructuredOutput, inputs: dict[str, Tensor]) -> Tensor:
        """Return the chart loss of each sentence: (B,)."""
        distribution = self.accelerator.unwrap_model(self.model).distribution(output)
        losses = chart_loss(distribution, to_mask(inputs["chart"], distribution.valid))
        empty = losses.isinf()
        if bool(empty.any()):
            self.empty_charts += int((empty & (inputs["units"] > 0)).sum())
            instead = chart_loss(distribution, to_mask(inputs["fallback"], distribution.valid))
            losses = torch.where(empty, torch.where(instead.isinf(), 0.0, instead), losses)
        return losses

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        """Return batches of plain prepared rows: development sentences need no charts."""
        return self._with_plain_collator(lambda: super(ChartTrainer, self).get_eval_dataloader(eval_dataset))

    def get_test_dataloader(self, test_dataset: Any) -> Any:
        """Return batches of plain prepared rows."""
        return self._with_plain_collator(lambda: super(ChartTrainer, self).get_test_dataloader(test_dataset))

    def _with_plain_collator(self, build: Any) -> Any:
        collator, self.data_collator = self.data_collator, self._eval_collator
        try:
            return build()
        finally:
            self.data_collator = collator

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log the whole objective: the mean chart loss plus the pull's value."""
        if "loss" in logs and self.pull is not None:
            logs["pull"] = self.pull.take_mean()
            logs["chart_loss"] = logs["loss"]
            logs["loss"] = logs["loss"] + logs["pull"]
        super().log(logs, start_time)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        super()._load_from_checkpoint(resume_from_checkpoint, model)
        if self.pull is not None:
            self.pull.load(Path(resume_from_checkpoint))
