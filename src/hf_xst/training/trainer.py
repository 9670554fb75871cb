"""A Trainer whose loss is one exact mean, whatever the accumulation and the number of processes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from datasets import Dataset
from torch import Tensor, nn
from torch.utils.data import DataLoader, Sampler
from torch.utils.data import Dataset as TorchDataset
from transformers import Trainer, TrainingArguments
from transformers.trainer_utils import EvalLoopOutput

from hf_xst.metrics import score
from hf_xst.models.base import StructuredModel, StructuredOutput

from .collation import FILLER, Collator

_NOT_FOR_FORWARD = ("units", "chart", "fallback")


class Filled(TorchDataset[dict[str, Any]]):
    """A data set padded with rows that weigh nothing, so that every process gets full batches.

    Args:
        rows: the data set.
        multiple: its length is padded to a multiple of this.
    """

    def __init__(self, rows: Dataset, multiple: int) -> None:
        self.rows = rows
        self.length = -(-len(rows) // multiple) * multiple

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> dict[str, Any]:
        filler = index >= len(self.rows)
        return {**self.rows[0 if filler else index], FILLER: filler}

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        return [self[index] for index in indices]


class BucketSampler(Sampler[int]):
    """Shuffled batches of sentences of like length; the order depends on seed and epoch alone.

    Args:
        lengths: words of each sentence.
        batch_size: sentences of a batch; whole batches come from one bucket of ten lengths.
        seed: of the shuffling.
    """

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int) -> None:
        self.lengths, self.batch_size, self.seed, self.epoch = list(lengths), batch_size, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose order comes next."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
        buckets: dict[int, list[int]] = {}
        for index in torch.randperm(len(self.lengths), generator=generator).tolist():
            buckets.setdefault(self.lengths[index] // 10, []).append(index)
        batches, left_over = [], []
        for _, bucket in sorted(buckets.items()):
            whole = len(bucket) // self.batch_size * self.batch_size
            batches += [bucket[i : i + self.batch_size] for i in range(0, whole, self.batch_size)]
            left_over += bucket[whole:]
        tail = [left_over[i : i + self.batch_size] for i in range(0, len(left_over), self.batch_size)]
        batches += [batch for batch in tail if len(batch) == self.batch_size]
        for place in torch.randperm(len(batches), generator=generator).tolist():
            yield from batches[place]
        # A batch that is not full can only be the last one.
        yield from (index for batch in tail if len(batch) < self.batch_size for index in batch)


class StructuredTrainer(Trainer):  # type: ignore[misc]
    """What supervised training and training on charts share.

    The loss of an update is the sum of all sentences' losses divided by the number of their units, over the
    whole accumulated batch on all processes. Evaluation predicts whole structures and scores them by columns;
    predictions come back one mapping a sentence, in order.

    Args:
        model: a structured model.
        args: the training arguments; data set columns are never dropped, whatever they say.
        collator: makes the batches.
        train_dataset: prepared rows.
        eval_dataset: prepared rows with gold columns.
        kwargs: for `transformers.Trainer`.

    Raises:
        ValueError: several GPUs would be driven by one process (the batches cannot be cut by sentence).
    """

    loss_is_scaled_for_ga = True

    def __init__(
        self,
        model: StructuredModel,
        args: TrainingArguments,
        collator: Collator,
        train_dataset: Dataset | None = None,
        eval_dataset: Dataset | None = None,
        **kwargs: Any,
    ) -> None:
        args.logging_nan_inf_filter = False  # an infinite loss shall be seen
        super().__init__(
            model=model,
            args=args,
            data_collator=collator,
            train_dataset=train_dataset,
            eval_dataset=eval_dataset,
            **kwargs,
        )
        if self.args.n_gpu > 1:
            raise ValueError(
                f"{self.args.n_gpu} GPUs are visible to one process; start one process a GPU with "
                "`accelerate launch` or `torchrun`, or set CUDA_VISIBLE_DEVICES to one"
            )

    # -- data -----------------------------------------------------------------------------------------

    def _remove_unused_columns(self, dataset: Dataset, description: str | None = None) -> Dataset:
        # The collator needs words and gold columns that forward() does not name.
        return dataset

    def get_train_dataloader(self) -> DataLoader[dict[str, Tensor]]:
        """Return the training batches, filled up to whole batches on every process."""
        if self.args.world_size == 1 or self.train_dataset is None:
            loader: DataLoader[dict[str, Tensor]] = super().get_train_dataloader()
            return loader
        rows = self.train_dataset
        self.train_dataset = Filled(rows, self._train_batch_size * self.args.world_size)
        try:
            return super().get_train_dataloader()  # type: ignore[no-any-return]
        finally:
            self.train_dataset = rows

    def _get_train_sampler(self, train_dataset: Any = None) -> Sampler[int]:
        data = self.train_dataset if train_dataset is None else train_dataset
        rows = data.rows if isinstance(data, Filled) else data
        lengths = [len(words) for words in rows["words"]]
        lengths += [lengths[0]] * (len(data) - len(lengths))
        return BucketSampler(lengths, self._train_batch_size, self.args.data_seed or self.args.seed)

    # -- loss -----------------------------------------------------------------------------------------

    def _get_num_items_in_batch(self, batch_samples: list[dict[str, Tensor]], device: torch.device) -> Tensor:
        total = torch.stack([batch["units"].sum() for batch in batch_samples]).sum().to(device)
        if self.args.world_size > 1:
            total = self.accelerator.gather(total).sum()
        return total.clamp(min=1)

    def run_model(self, model: nn.Module, inputs: dict[str, Tensor]) -> StructuredOutput:
        """Run the model on a batch, less what only the loss needs."""
        output: StructuredOutput = model(
            **{key: value for key, value in inputs.items() if key not in _NOT_FOR_FORWARD}
        )
        return output

    @abstractmethod
    def sentence_losses(self, output: StructuredOutput, inputs: dict[str, Tensor]) -> Tensor:
        """Return each sentence's loss, summed over its units: (B,)."""

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | None = None,
    ) -> Any:
        """Return this micro-batch's share of the mean over the whole batch."""
        output = self.run_model(model, inputs)
        losses = self.sentence_losses(output, inputs)
        kept = (inputs["units"] > 0).to(losses.dtype)
        total = inputs["units"].sum().clamp(min=1) if num_items_in_batch is None else num_items_in_batch
        # Processes average their gradients; the sum over them is wanted.
        loss = (losses * kept).sum() / total * self.accelerator.num_processes
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
        """Predict whole structures; `predictions` of the result is a list of columns, one mapping a sentence."""
        model = self._wrap_model(self.model, training=False, dataloader=dataloader)
        if model is self.model and not self.is_in_train:
            model = self.accelerator.prepare_model(model, evaluation_mode=True)
        model.eval()
        records: list[dict[str, Any]] = []
        for inputs in dataloader:
            self.callback_handler.on_prediction_step(self.args, self.state, self.control)
            found = self._predict_batch(model, self._prepare_inputs(inputs))
            if self.args.world_size > 1:
                found = self.accelerator.gather_for_metrics(found, use_gather_object=True)
            records += found
        rows = dataloader.dataset
        columns = [record["columns"] for record in records]
        metrics = self._metrics(columns, records, rows)
        return EvalLoopOutput(
            predictions=columns,
            label_ids=None,
            metrics={f"{metric_key_prefix}_{key}": value for key, value in metrics.items()},
            num_samples=len(columns),
        )

    @torch.no_grad()
    def _predict_batch(self, model: nn.Module, inputs: dict[str, Tensor]) -> list[dict[str, Any]]:
        with self.compute_loss_context_manager():
            output = self.run_model(model, inputs)
        inner: StructuredModel = self.accelerator.unwrap_model(model)
        assert output.lengths is not None
        columns = inner.decode(inner.distribution(output).best(), output.lengths)
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
        metrics: dict[str, float] = {}
        if records and "loss" in records[0]:
            metrics["loss"] = sum(r["loss"] for r in records) / max(1, sum(r["units"] for r in records))
        wanted = tuple(columns[0]) if columns else ()
        if wanted and all(column in rows.column_names for column in wanted):
            found = score(columns, rows, wanted)
            metrics |= {key: value for key, value in found.items() if isinstance(value, float)}
        return metrics
