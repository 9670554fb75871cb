"""Training a target model on charts (Kurniawan et al. 2021, equation 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object
from datasets import Dataset
from torch import Tensor
from torch.utils.data import DataLoader
from transformers import TrainingArguments

from hf_xst.charts import chart_loss, soft_loss
from hf_xst.charts.dataset import to_log_probs, to_mask
from hf_xst.models.cached_states import FrozenStates
from hf_xst.models.collation import Collator
from hf_xst.models.modeling import StructuredModel, StructuredOutput
from hf_xst.structures.base import Structure
from hf_xst.training.collation import ChartCollator, ChartUse
from hf_xst.training.pull import StartPull
from hf_xst.training.trainer import StructuredTrainer

# So many sentences whose charts are empty are named.
NAMED = 10


class ChartTrainer(StructuredTrainer):
    """Train a model on charts: mean over sentences of log Z - log Z(chart), plus the pull to the start.

    A share of the loss may be the cross-entropy against the pool instead, see `ChartUse`.
    A sentence whose chart, or whose pool, holds no structure of the model's space is trained on the pool's
    best structure instead, and counted: see `empty_charts` and `empty_sentences`.

    Args:
        model: the starting model, or None where `model_init` is given; theta0 is what it is when training
            begins.
        args: the training arguments.
        train_dataset: chart rows, see `hf_xst.charts.dataset`.
        names: the charts' alphabet; the model's own if not given.
        l2: lambda, the strength of the pull to theta0.
        eval_dataset: prepared rows with gold columns, for development curves; never trained on.
        states: ready states of a frozen encoder.
        use: what of the stored charts counts; as published if not given.
        kwargs: for `transformers.Trainer`.

    Raises:
        ValueError: the charts name labels that the model does not have, or l2 is negative.
    """

    def __init__(
        self,
        model: StructuredModel | None,
        args: TrainingArguments,
        train_dataset: Dataset | None = None,
        names: Sequence[str] = (),
        *,
        l2: float = 0.0,
        eval_dataset: Dataset | None = None,
        states: FrozenStates | None = None,
        use: ChartUse | None = None,
        **kwargs: Any,
    ) -> None:
        def collator(start: StructuredModel) -> Collator:
            return ChartCollator(start, names or start.names, states, use=use)

        self._soft = 0.0 if use is None else use.soft
        super().__init__(model, args, collator, train_dataset, eval_dataset, **kwargs)
        self._eval_collator = Collator(self.bare_model, states, gold=False)
        self.empty_charts = 0
        self._empty_names: list[str] = []
        self.pull = StartPull(l2) if l2 else None
        if self.pull is not None:
            self.add_callback(self.pull)

    # -- loss -----------------------------------------------------------------------------------------

    def sentence_losses(self, output: StructuredOutput, inputs: dict[str, Any]) -> Tensor:
        """Return the loss of each sentence: (B,), chart loss and soft loss in the shares wanted."""
        distribution = self.bare_model.distribution(output)
        parts = []
        if self._soft < 1:
            chart = to_mask(inputs["chart"], distribution.valid)
            parts.append((1 - self._soft, chart_loss(distribution, chart)))
        if self._soft > 0:
            pooled = to_log_probs(inputs["soft"], inputs["soft_log_probs"], like=distribution.valid)
            parts.append((self._soft, soft_loss(distribution, pooled)))
        empty = torch.stack([losses.isinf() for _, losses in parts])
        if bool(empty.any()):
            self._note_empty(empty.any(0) & (inputs["units"] > 0), inputs["sent_ids"])
            instead = self._fallback_losses(distribution, inputs)
            parts = [(share, torch.where(losses.isinf(), instead, losses)) for share, losses in parts]
        return torch.stack([share * losses for share, losses in parts]).sum(0)

    def _fallback_losses(self, distribution: Structure, inputs: dict[str, Any]) -> Tensor:
        losses = chart_loss(distribution, to_mask(inputs["fallback"], distribution.valid))
        return torch.where(losses.isinf(), 0.0, losses)

    def _note_empty(self, empty: Tensor, names: Sequence[str]) -> None:
        self.empty_charts += int(empty.sum())
        met = [name for name, is_empty in zip(names, empty.tolist(), strict=True) if is_empty]
        self._empty_names = list(dict.fromkeys([*self._empty_names, *met]))[:NAMED]

    def empty_sentences(self) -> tuple[int, list[str]]:
        """Return how often a chart held no structure since this run began or went on, and where first.

        Every process must ask; the answer is about all of them, while `empty_charts` counts one's own.
        """
        own = [(self.empty_charts, self._empty_names)]
        met = gather_object(own) if self.args.world_size > 1 else own
        names = dict.fromkeys(name for _, some in met for name in some)
        return sum(times for times, _ in met), list(names)[:NAMED]

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log the whole objective: the mean chart loss plus the pull's value; and empty charts, if any."""
        if "loss" in logs:
            if self.pull is not None:
                logs["pull"] = self.pull.take_mean()
                logs["chart_loss"] = logs["loss"]
                logs["loss"] = logs["loss"] + logs["pull"]
            times, _ = self.empty_sentences()
            if times:
                logs["empty_charts"] = times
        super().log(logs, start_time)

    # -- evaluation -----------------------------------------------------------------------------------

    def get_eval_dataloader(self, eval_dataset: Any = None) -> DataLoader[Any]:
        """Return batches of plain prepared rows: development sentences need no charts."""
        return self._with_plain_collator(lambda: super(ChartTrainer, self).get_eval_dataloader(eval_dataset))

    def get_test_dataloader(self, test_dataset: Any) -> DataLoader[Any]:
        """Return batches of plain prepared rows."""
        return self._with_plain_collator(lambda: super(ChartTrainer, self).get_test_dataloader(test_dataset))

    def _with_plain_collator(self, build: Callable[[], DataLoader[Any]]) -> DataLoader[Any]:
        collator, self.data_collator = self.data_collator, self._eval_collator
        try:
            return build()
        finally:
            self.data_collator = collator

    # -- theta0 goes where the optimizer's state goes, before the checkpoint counts as whole -----------------

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)
        if self.pull is not None and self.args.should_save:
            self.pull.save(Path(output_dir))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if self.pull is not None and checkpoint is not None:
            self.pull.load(Path(checkpoint))
