"""A Trainer whose loss is one exact mean, whatever the accumulation and the number of processes."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Sequence
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
from hf_xst.models.collation import Collator
from hf_xst.models.modeling import Row, StructuredModel, StructuredOutput
from hf_xst.numerics import denormals_flushed
from hf_xst.training.batches import BucketSampler, Filled, sentence_lengths
from hf_xst.training.log_lines import TRAINER_STATE, LogLines, ProgressWithLines, StopsWhereItDiverges

_NOT_FOR_FORWARD = ("units", "chart", "fallback", "soft", "soft_log_probs", "sent_ids")
# A column with this prefix holds the gold of an input column that predictions have replaced.
GOLD = "gold_"


class StructuredTrainer(Trainer):
    """What supervised training and training on charts share.

    The loss of an update is the sum of all sentences' losses divided by the number of their units, over the
    whole accumulated batch on all processes. Evaluation predicts whole structures and scores them by columns;
    predictions come back one mapping a sentence, in order.

    Args:
        model: a structured model, or None where `model_init` is given.
        args: the training arguments; data set columns are never dropped, whatever they say.
        make_collator: makes what makes the batches for a model.
        train_dataset: prepared rows.
        eval_dataset: prepared rows with gold columns.
        kwargs: for `transformers.Trainer`. A `compute_metrics` gets the predicted columns as `predictions`
            and the rows as `label_ids`. Without one `hf_xst.metrics` scores what it knows; under a model's
            main metric that it does not know stands the share of words with all columns right, in percent.

    Raises:
        ValueError: several GPUs would be driven by one process (the batches cannot be cut by sentence), or
            evaluation in half precision is asked for.
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
        args.logging_nan_inf_filter = False  # an infinite loss shall be seen
        args.dataloader_pin_memory = args.dataloader_pin_memory and torch.cuda.is_available()
        if args.fp16_full_eval or args.bf16_full_eval:
            raise ValueError(
                "evaluation with the whole model in half precision (fp16_full_eval, bf16_full_eval) is not "
                "supported: it would round the model; bf16=True computes in half precision where that is safe"
            )
        super().__init__(
            model=model, args=args, train_dataset=train_dataset, eval_dataset=eval_dataset, **kwargs
        )
        for theirs, ours in ((PrinterCallback, LogLines), (ProgressCallback, ProgressWithLines)):
            if self.pop_callback(theirs) is not None:
                self.add_callback(ours)
        self.add_callback(StopsWhereItDiverges)
        if self.args.n_gpu > 1:
            raise ValueError(
                f"{self.args.n_gpu} GPUs are visible to one process; start one process a GPU with "
                "`accelerate launch` or `torchrun`, or set CUDA_VISIBLE_DEVICES to one"
            )
        self.data_collator: Collator = make_collator(self.bare_model)

    @property
    def bare_model(self) -> StructuredModel:
        """The model without what wraps it for training."""
        model: StructuredModel = self.accelerator.unwrap_model(self.model)
        return model

    # -- on the Hub -----------------------------------------------------------------------------------

    def init_hf_repo(self, token: str | None = None, private: bool | None = None) -> None:
        """Note the repository's name; it is made by the first push, which knows who may see it."""
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
        """Put the model on the Hub, and nothing else of the output folder; see the model's `push_to_hub`.

        Args:
            commit_message: of the commit.
            blocking: there is no other way; kept for the Trainer's own calls.
            token: in place of `hub_token`.
            revision: in place of `hub_revision`.
            private: in place of `hub_private_repo`; true unless one of them is false.
            kwargs: further options of the model's `push_to_hub`.
        """
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
        """Leave checkpoints here: they hold the optimizer's state and pickled arguments."""

    # -- data -----------------------------------------------------------------------------------------

    def get_train_dataloader(self) -> DataLoader[dict[str, Tensor]]:
        """Return the training batches, filled up to whole batches on every process.

        Raises:
            ValueError: there are no training rows, or they lack a column.
        """
        rows: Any = self.train_dataset
        _check_columns(rows, self.data_collator.columns)
        if self.args.world_size == 1:
            return super().get_train_dataloader()
        self.train_dataset = Filled(rows, self._train_batch_size * self.args.world_size)
        try:
            return super().get_train_dataloader()
        finally:
            self.train_dataset = rows

    def _get_train_sampler(self, train_dataset: Any = None) -> Sampler[int]:
        data: Any = self.train_dataset if train_dataset is None else train_dataset
        lengths = sentence_lengths(data.rows if isinstance(data, Filled) else data)
        update = self._train_batch_size * self.args.world_size * self.args.gradient_accumulation_steps
        seed = self.args.seed if self.args.data_seed is None else self.args.data_seed
        sampler = BucketSampler(lengths, update, seed, fillers=len(data) - len(lengths))
        if isinstance(data, Filled):
            data.sampler = sampler
        return sampler

    def train(self, *args: Any, **kwargs: Any) -> TrainOutput:
        """Train; see `transformers.Trainer.train`."""
        with denormals_flushed():
            return super().train(*args, **kwargs)

    def take_over(self, checkpoint: str) -> bool:
        """Take over a checkpoint if training had come to its end there; say whether it had.

        Args:
            checkpoint: its folder.
        """
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
        if self.args.world_size > 1:
            total = self.accelerator.gather(total).sum()
        return total.clamp(min=1)

    def run_model(self, model: nn.Module, inputs: dict[str, Any]) -> StructuredOutput:
        """Run the model on a batch, less what only the loss needs."""
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
        """Return this micro-batch's share of the mean over the whole batch."""
        output = self.run_model(model, inputs)
        losses = self.sentence_losses(output, inputs)
        units = inputs["units"]
        total = units.sum().clamp(min=1) if num_items_in_batch is None else num_items_in_batch
        # Processes average their gradients; the sum over them is wanted.
        loss = torch.where(units > 0, losses, 0.0).sum() / total * self.accelerator.num_processes
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
        """Predict whole structures; the result's `predictions` are columns, one mapping a sentence."""
        model: nn.Module = self.bare_model
        if not self.accelerator._models:  # as Trainer does: mixed precision, but prepared once only
            model = self.accelerator.prepare_model(model, evaluation_mode=True)
        model.eval()
        self.callback_handler.eval_dataloader = dataloader
        records: list[dict[str, Any]] = []
        for inputs in dataloader:
            found = self._predict_batch(model, self._prepare_inputs(inputs))
            if self.args.world_size > 1:
                found = self.accelerator.gather_for_metrics(found, use_gather_object=True)
            records += found
            self.control = self.callback_handler.on_prediction_step(self.args, self.state, self.control)
        columns: Any = [record["columns"] for record in records]
        metrics = self._metrics(columns, records, dataloader.dataset)
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
        assert output.lengths is not None
        best = self.bare_model.distribution(output).best()
        columns = self.bare_model.decode(best, output.lengths)
        if "units" not in inputs:
            return [{"columns": found} for found in columns]
        losses = self.sentence_losses(output, inputs).tolist()
        units = inputs["units"].tolist()
        return [
            {"columns": found, "loss": loss, "units": unit}
            for found, loss, unit in zip(columns, losses, units, strict=True)
        ]

    def _metrics(
        self, columns: list[dict[str, list[Any]]], records: list[dict[str, Any]], rows: Any
    ) -> dict[str, float]:
        if not records:
            return {}
        metrics: dict[str, float] = {}
        if "loss" in records[0]:
            metrics["loss"] = sum(r["loss"] for r in records) / max(1, sum(r["units"] for r in records))
        if self.compute_metrics is not None:
            return metrics | self.compute_metrics(EvalPrediction(predictions=columns, label_ids=rows))  # type: ignore[arg-type]
        wanted, main = self.bare_model.columns, self.bare_model.main_metric
        if not all(column in rows[0] for column in wanted):
            return metrics
        if main not in MAIN_SCORES:
            return metrics | {main: share_right(columns, rows, wanted)}
        found = score(columns, references(rows), wanted, self.bare_model.scheme)
        return metrics | {key: value for key, value in found.items() if isinstance(value, float)}


def references(rows: Any) -> Sequence[Row]:
    """Return rows to score against: gold stands again where predictions have replaced an input column."""
    replaced = [column for column in rows[0] if column.startswith(GOLD)]
    if not replaced:
        found: Sequence[Row] = rows
        return found
    return [{**row, **{column.removeprefix(GOLD): row[column] for column in replaced}} for row in rows]


def share_right(predictions: Sequence[Row], gold: Sequence[Row], columns: Sequence[str]) -> float:
    """Return the share of words, in percent, for which all columns are predicted right."""
    right = [
        all(pair[0] == pair[1] for pair in pairs)
        for row, other in zip(predictions, gold, strict=True)
        for pairs in zip(*(zip(row[column], other[column], strict=True) for column in columns), strict=True)
    ]
    return 100.0 * sum(right) / max(1, len(right))


def _check_columns(rows: Any, needed: Sequence[str]) -> None:
    if rows is None or not len(rows):
        raise ValueError("there are no training sentences; give train_dataset with at least one row")
    missing = [column for column in needed if column not in rows[0]]
    if missing:
        raise ValueError(
            f"the training rows have no column {', '.join(missing)}; they have {', '.join(rows[0])}. "
            f"Needed are {', '.join(needed)}: rename columns, or prepare the data with hf_xst.data.prepare"
        )
