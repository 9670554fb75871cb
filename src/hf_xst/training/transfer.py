"""Train target models on charts (Kurniawan et al. 2021, equation 1)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object
from datasets import Dataset
from torch import Tensor
from transformers import TrainingArguments

from hf_xst.charts import chart_loss, soft_loss
from hf_xst.charts.dataset import to_log_probs, to_mask
from hf_xst.models.cached_embeddings import CachedEmbeddings
from hf_xst.models.modeling import StructuredModel, StructuredOutput
from hf_xst.models.running import Collator
from hf_xst.training.collation import ChartCollator, ChartUse
from hf_xst.training.pull import InitialPull
from hf_xst.training.trainer import StructuredTrainer

MAX_REPORTED = 10


class ChartTrainer(StructuredTrainer):
    """Train a model on charts: mean of log Z - log Z(chart) over sentences, plus the pull to theta0.

    Part of the loss may be the cross-entropy against the pool, see `ChartUse`. A sentence whose chart or pool
    contains no structure of the model's space is trained on the pool's best structure instead, and counted:
    see `empty_sentences`.

    Args, beside those of `SupervisedTrainer`:
        train_dataset: chart rows, see `hf_xst.charts.dataset`.
        names: labels of the charts; defaults to the model's.
        l2: lambda, the strength of the pull to theta0, which is copied when training begins; at least 0.
        use: how the stored charts are used; defaults to the published way.

    Raises:
        ValueError: the charts use labels that the model does not have, or l2 is negative.
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
        embeddings: CachedEmbeddings | None = None,
        use: ChartUse | None = None,
        **kwargs: Any,
    ) -> None:
        def collator(initial: StructuredModel) -> Collator:
            return ChartCollator(initial, names or initial.names, embeddings, use=use)

        self._soft = 0.0 if use is None else use.soft
        super().__init__(model, args, collator, train_dataset, eval_dataset, **kwargs)
        self._empty_count = 0
        self._empty_ids: list[str] = []
        self.pull = InitialPull(l2) if l2 else None
        if self.pull is not None:
            self.add_callback(self.pull)

    # -- loss -----------------------------------------------------------------------------------------

    def sentence_losses(self, output: StructuredOutput, inputs: dict[str, Any]) -> Tensor:
        """Return (1 - soft) * chart loss + soft * soft loss of each sentence: (B,)."""
        distribution = self.bare_model.distribution(output)
        terms, total = [], distribution.total()
        if self._soft < 1:
            chart = to_mask(inputs["chart"], distribution.valid)
            terms.append((1 - self._soft, chart_loss(distribution, chart, total)))
        if self._soft > 0:
            pooled = to_log_probs(inputs["soft"], inputs["soft_log_probs"], like=distribution.valid)
            terms.append((self._soft, soft_loss(distribution, pooled, total)))
        is_empty = torch.stack([losses.isinf() for _, losses in terms])
        if bool(is_empty.any()):
            counted = (is_empty.any(0) & (inputs["units"] > 0)).tolist()
            self._empty_count += sum(counted)
            ids = dict.fromkeys([*self._empty_ids, *compress(inputs["sent_ids"], counted)])
            self._empty_ids = [*ids][:MAX_REPORTED]
            fallback = chart_loss(distribution, to_mask(inputs["fallback"], distribution.valid))
            fallback = torch.where(fallback.isinf(), 0.0, fallback)
            terms = [(weight, torch.where(losses.isinf(), fallback, losses)) for weight, losses in terms]
        return torch.stack([weight * losses for weight, losses in terms]).sum(0)

    def empty_sentences(self) -> tuple[int, list[str]]:
        """Return how often a chart contained no structure since training began or resumed, and the first ids.

        The result covers all processes, so every process must call this.
        """
        counts = [(self._empty_count, self._empty_ids)]
        if self.args.world_size > 1:
            counts = gather_object(counts)
        ids = dict.fromkeys(sent_id for _, sent_ids in counts for sent_id in sent_ids)
        return sum(count for count, _ in counts), list(ids)[:MAX_REPORTED]

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log the objective, which is the mean chart loss plus the pull, and the number of empty charts."""
        if "loss" in logs:
            if self.pull is not None:
                logs["pull"] = self.pull.take_mean()
                logs["chart_loss"] = logs["loss"]
                logs["loss"] = logs["loss"] + logs["pull"]
            count, _ = self.empty_sentences()
            if count:
                logs["empty_charts"] = count
        super().log(logs, start_time)

    # -- theta0 is saved with the optimizer's state, before the checkpoint counts as complete ---------

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)
        if self.pull is not None and self.args.should_save:
            self.pull.save(Path(output_dir))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if self.pull is not None and checkpoint is not None:
            self.pull.load(Path(checkpoint))
