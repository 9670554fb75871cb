"""Trainers whose loss is one exact mean for any accumulation and number of processes."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from torch import Tensor, nn
from torch.utils.data import DataLoader, Sampler
from transformers import (
    EvalPrediction,
    PrinterCallback,
    ProgressCallback,
    Trainer,
    TrainerState,
    TrainingArguments,
)
from transformers.trainer_utils import EvalLoopOutput, TrainOutput

from hf_xst.metrics import MAIN_SCORES, score
from hf_xst.models.cached_embeddings import CachedEmbeddings
from hf_xst.models.modeling import Row, StructuredModel, StructuredOutput
from hf_xst.models.running import Collator
from hf_xst.numerics import denormals_flushed
from hf_xst.training.batches import BucketSampler, PaddedDataset, sentence_lengths
from hf_xst.training.progress import TRAINER_STATE, CheckedLog, LogLines, ProgressWithLines

_NOT_FOR_FORWARD = ("units", "chart", "fallback", "soft", "soft_log_probs", "sent_ids")
GOLD = "gold_"
"""Prefix of a column with the gold of an input column that predictions have replaced."""


class StructuredTrainer(Trainer):
    """Base of supervised training and training on charts.

    The loss of an update is the sum of all sentence losses divided by the number of their units, over the
    whole accumulated batch on all processes. Evaluation predicts whole structures and scores their columns.

    Args:
        model: a structured model, or None if `model_init` is given.
        args: training arguments; `remove_unused_columns` is ignored, no column is dropped.
        make_collator: function from a model to its collator.
        train_dataset: prepared rows.
        eval_dataset: prepared rows with gold columns.
        kwargs: for `transformers.Trainer`. `compute_metrics` receives the predicted columns as `predictions`
            and the rows as `label_ids`. It defaults to `hf_xst.metrics.score`, or to `joint_accuracy` if
            the model has a main metric of its own.

    Raises:
        ValueError: one process would drive several GPUs (its batches cannot be split by sentence), or
            evaluation in half precision is requested.
    """

    loss_is_scaled_for_ga = True

    def __init__(
        self,
        model: StructuredModel | None,
        args: TrainingArguments,
        make_collator: Callable[[StructuredModel], Collator],
        train_dataset: Dataset | None = None,
        eval_dataset: Dataset | None = None,
        **kwargs: Any,
    ) -> None:
        args = copy.copy(args)
        args.remove_unused_columns = False  # the collator reads columns that forward() does not name
        args.logging_nan_inf_filter = False  # show infinite losses
        args.dataloader_pin_memory = args.dataloader_pin_memory and torch.cuda.is_available()
        if args.fp16_full_eval or args.bf16_full_eval:
            raise ValueError(
                "fp16_full_eval and bf16_full_eval would round the whole model and are not supported; "
                "bf16=True computes in half precision where that is safe"
            )
        super().__init__(model, args, train_dataset=train_dataset, eval_dataset=eval_dataset, **kwargs)
        for theirs, ours in ((PrinterCallback, LogLines), (ProgressCallback, ProgressWithLines)):
            if self.pop_callback(theirs) is not None:
                self.add_callback(ours)
        self.add_callback(CheckedLog)
        if self.args.n_gpu > 1:
            raise ValueError(
                f"{self.args.n_gpu} GPUs are visible to one process; start one process per GPU with "
                "`accelerate launch` or `torchrun`, or set CUDA_VISIBLE_DEVICES to one GPU"
            )
        self.data_collator: Collator = make_collator(self.bare_model)
        self._counting: torch.distributed.Work | None = None

    @property
    def bare_model(self) -> StructuredModel:
        """The model without the wrappers of distributed training."""
        model: StructuredModel = self.accelerator.unwrap_model(self.model)
        return model

    # -- on the Hub -----------------------------------------------------------------------------------

    def init_hf_repo(self, token: str | None = None, private: bool | None = None) -> None:
        """Set the repository's name; the first push creates it, with the right visibility."""
        folder = Path(str(self.args.output_dir)).absolute()
        self.hub_model_id: Any = self.args.hub_model_id or folder.name
        self.push_in_progress = None

    def push_to_hub(
        self,
        commit_message: str | None = "End of training",
        blocking: bool = True,
        token: str | None = None,
        revision: str | None = None,
        private: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Push only the model, as its own `push_to_hub` does, with defaults from the training arguments."""
        if self.hub_model_id is None:
            self.init_hf_repo()
        if not self.is_world_process_zero():
            return None
        return self.bare_model.push_to_hub(
            str(self.hub_model_id),
            commit_message=commit_message,
            token=token or self.args.hub_token,
            revision=revision or self.args.hub_revision,
            private=self.args.hub_private_repo if private is None else private,
            **kwargs,
        )

    def _push_from_checkpoint(self, checkpoint_folder: str) -> None:
        """Do not push checkpoints: they contain the optimizer's state and pickled arguments."""

    # -- data -----------------------------------------------------------------------------------------

    def get_train_dataloader(self) -> DataLoader[dict[str, Tensor]]:
        """Return full batches for every process; raise ValueError if rows or a column are missing."""
        rows: Any = self.train_dataset
        _check_columns(rows, self.data_collator.columns)
        if self.args.world_size == 1:
            return super().get_train_dataloader()
        self.train_dataset = PaddedDataset(rows, self._train_batch_size * self.args.world_size)
        try:
            return super().get_train_dataloader()
        finally:
            self.train_dataset = rows

    def _get_train_sampler(self, train_dataset: Any = None) -> Sampler[int]:
        data: Any = self.train_dataset if train_dataset is None else train_dataset
        lengths = sentence_lengths(data.rows if isinstance(data, PaddedDataset) else data)
        update = self._train_batch_size * self.args.world_size * self.args.gradient_accumulation_steps
        seed = self.args.seed if self.args.data_seed is None else self.args.data_seed
        sampler = BucketSampler(lengths, update, seed, fillers=len(data) - len(lengths))
        if isinstance(data, PaddedDataset):
            data.sampler = sampler
        return sampler

    def train(self, *args: Any, **kwargs: Any) -> TrainOutput:
        """Train; raise ValueError if the development rows cannot be scored, e.g. if all are punctuation."""
        dev = self.eval_dataset
        if isinstance(dev, Dataset) and len(dev) and self.args.eval_strategy != "no":
            gold = references(dev)
            try:
                self._scores(gold, gold)
            except ValueError as error:
                raise ValueError(f"the development sentences cannot be scored: {error}") from error
        with denormals_flushed():
            return super().train(*args, **kwargs)

    def restore_finished(self, checkpoint: str) -> bool:
        """Restore a checkpoint if training had finished there; return whether it had."""
        state = TrainerState.load_from_json(str(Path(checkpoint) / TRAINER_STATE))
        control = state.stateful_callbacks.get("TrainerControl", {})
        if not control.get("args", {}).get("should_training_stop"):
            return False
        self.state = state
        self._load_from_checkpoint(checkpoint)
        if self.args.load_best_model_at_end and state.best_model_checkpoint is not None:
            self._load_best_model()
        return True

    # -- loss -----------------------------------------------------------------------------------------

    def _get_num_items_in_batch(self, batch_samples: list[dict[str, Tensor]], device: torch.device) -> Tensor:
        total = torch.stack([batch["units"].sum() for batch in batch_samples]).sum().to(device)
        if self.args.world_size > 1:  # not waited for until the loss is computed
            self._counting = torch.distributed.all_reduce(total, async_op=True)
        return total

    def run_model(self, model: nn.Module, inputs: dict[str, Any]) -> StructuredOutput:
        """Run the model on a batch, without the entries that only the loss reads."""
        output: StructuredOutput = model(
            **{key: value for key, value in inputs.items() if key not in _NOT_FOR_FORWARD}
        )
        return output

    @abstractmethod
    def sentence_losses(self, output: StructuredOutput, inputs: dict[str, Any]) -> Tensor:
        """Return each sentence's loss, summed over its units: (B,)."""

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """Return this micro-batch's contribution to the mean over the whole batch."""
        output = self.run_model(model, inputs)
        losses = self.sentence_losses(output, inputs)
        if self._counting is not None:
            self._counting.wait()
            self._counting = None
        units = inputs["units"]
        total = units.sum() if num_items_in_batch is None else torch.as_tensor(num_items_in_batch)
        # Distributed training averages the gradients of the processes; the loss is their sum.
        loss = torch.where(units > 0, losses, 0.0).sum() / total.clamp(min=1) * self.accelerator.num_processes
        return (loss, output) if return_outputs else loss

    # -- evaluation -----------------------------------------------------------------------------------

    def evaluation_loop(
        self,
        dataloader: DataLoader[dict[str, Tensor]],
        description: str,
        prediction_loss_only: bool | None = None,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
    ) -> EvalLoopOutput:
        """Predict whole structures; `predictions` of the result has one mapping of columns per sentence."""
        model: nn.Module = self.bare_model
        if not self.accelerator._models:  # mixed precision, as Trainer does, but prepared only once
            model = self.accelerator.prepare_model(model, evaluation_mode=True)
        model.eval()
        self.callback_handler.eval_dataloader = dataloader
        records: list[dict[str, Any]] = []
        for inputs in dataloader:
            predicted = self._predict_batch(model, self._prepare_inputs(inputs))
            if self.args.world_size > 1:
                predicted = self.accelerator.gather_for_metrics(predicted, use_gather_object=True)
            records += predicted
            self.control = self.callback_handler.on_prediction_step(self.args, self.state, self.control)
        columns: Any = [record["columns"] for record in records]
        metrics = self._metrics(records, columns, dataloader.dataset)
        return EvalLoopOutput(
            predictions=columns,
            label_ids=None,
            metrics={f"{metric_key_prefix}_{key}": value for key, value in metrics.items()},
            num_samples=len(columns),
        )

    @torch.no_grad()
    def _predict_batch(self, model: nn.Module, inputs: dict[str, Any]) -> list[dict[str, Any]]:
        with self.compute_loss_context_manager():
            output = self.run_model(model, inputs)
        best = self.bare_model.distribution(output).best()
        records = [{"columns": columns} for columns in self.bare_model.decode(best, output.lengths)]
        if "units" in inputs:
            losses = self.sentence_losses(output, inputs).tolist()
            for record, loss, units in zip(records, losses, inputs["units"].tolist(), strict=True):
                record |= {"loss": loss, "units": units}
        return records

    def _metrics(self, records: list[dict[str, Any]], columns: Any, rows: Any) -> dict[str, float]:
        if not records:
            return {}
        metrics: dict[str, float] = {}
        if "loss" in records[0]:
            metrics["loss"] = sum(r["loss"] for r in records) / max(1, sum(r["units"] for r in records))
        if self.compute_metrics is not None:
            return metrics | self.compute_metrics(EvalPrediction(predictions=columns, label_ids=rows))
        return metrics | self._scores(columns, references(rows))

    def _scores(self, predictions: Sequence[Row], gold: Sequence[Row]) -> dict[str, float]:
        """Score the model's columns; nothing if gold has none."""
        names, main = self.bare_model.columns, self.bare_model.main_metric
        if not all(name in gold[0] for name in names):
            return {}
        if main not in MAIN_SCORES:
            return {main: joint_accuracy(predictions, gold, names)}
        scores = score(predictions, gold, names, self.bare_model.scheme)
        return {key: value for key, value in scores.items() if isinstance(value, float)}


class SupervisedTrainer(StructuredTrainer):
    """Train a model on gold columns with its own loss, averaged over words (parser) or sentences (tagger).

    Both data sets are prepared rows with gold; `embeddings` are cached ones of a frozen encoder.
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


def references(rows: Any) -> Sequence[Row]:
    """Return rows to score against: gold columns take the place of the input columns that were replaced."""
    replaced = [column for column in rows[0] if column.startswith(GOLD)]
    return [{**row, **{column.removeprefix(GOLD): row[column] for column in replaced}} for row in rows]


def joint_accuracy(predictions: Sequence[Row], gold: Sequence[Row], columns: Sequence[str]) -> float:
    """Return the percentage of words for which all columns are predicted correctly."""
    correct = [
        all(pair[0] == pair[1] for pair in pairs)
        for row, other in zip(predictions, gold, strict=True)
        for pairs in zip(*(zip(row[column], other[column], strict=True) for column in columns), strict=True)
    ]
    return 100.0 * sum(correct) / max(1, len(correct))


def _check_columns(rows: Any, required: Sequence[str]) -> None:
    if rows is None or not len(rows):
        raise ValueError("there are no training sentences; pass a train_dataset with at least one row")
    missing = [column for column in required if column not in rows[0]]
    if missing:
        raise ValueError(
            f"the training rows have no column {', '.join(missing)}; they have {', '.join(rows[0])}. "
            f"Required are {', '.join(required)}; rename columns, or use hf_xst.data.prepare"
        )
