"""Train target models on charts (Kurniawan et al. 2021, equation 1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from typing import Any

import torch
from accelerate.optimizer import AcceleratedOptimizer
from accelerate.utils import gather_object
from datasets import Dataset
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import TrainerCallback, TrainingArguments

from hf_xst.charts import chart_loss, soft_loss
from hf_xst.charts.dataset import to_log_probs, to_mask
from hf_xst.files import atomic_path
from hf_xst.models.cached_embeddings import CachedEmbeddings
from hf_xst.models.modeling import StructuredModel, StructuredOutput
from hf_xst.models.running import Collator
from hf_xst.training.collation import ChartCollator, ChartUse
from hf_xst.training.trainer import StructuredTrainer

MAX_REPORTED = 10
INITIAL_PARAMETERS = "theta0.safetensors"


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


class InitialPull(TrainerCallback):
    """The pull to the initial parameters, lambda * |theta - theta0|^2, as a gradient.

    After accumulation and clipping, 2 * lambda * (theta - theta0) is added to the gradient of the trainable
    parameters; lambda is `strength`. `ChartTrainer` saves theta0 with every checkpoint, and loads it when it
    resumes.
    """

    def __init__(self, strength: float) -> None:
        if not 0 <= strength < math.inf:
            raise ValueError(f"the strength of the pull (l2) is {strength}; expected a number of at least 0")
        self.strength = strength
        self.initial: dict[str, Tensor] = {}
        self._loaded: dict[str, Tensor] | None = None
        self._sum, self._updates = torch.zeros(()), 0

    def save(self, checkpoint: Path) -> None:
        """Write theta0 into a checkpoint."""
        with atomic_path(checkpoint / INITIAL_PARAMETERS) as path:
            save_file({name: value.contiguous() for name, value in self.initial.items()}, path)

    def load(self, checkpoint: Path) -> None:
        """Read theta0 from a checkpoint for the next training; raise ValueError if it was saved without."""
        path = checkpoint / INITIAL_PARAMETERS
        if not path.exists():
            raise ValueError(f"{checkpoint} has no {INITIAL_PARAMETERS}: saved without a pull (l2 = 0)")
        self._loaded = load_file(path)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Copy the initial parameters."""
        parameters = _trainable(kwargs["model"])
        initial = parameters if self._loaded is None else self._loaded
        self.initial = {
            name: initial[name].detach().to(parameter.device, copy=True)
            for name, parameter in parameters.items()
        }
        self._loaded = None

    @torch.no_grad()
    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Add the pull to the gradient."""
        optimizer = kwargs.get("optimizer")
        if isinstance(optimizer, AcceleratedOptimizer) and optimizer.scaler is not None:
            _unscale(optimizer)
        for name, parameter in _trainable(kwargs["model"]).items():
            difference = parameter - self.initial[name]
            # float() here would make a GPU wait for every parameter.
            self._sum = self._sum.to(difference.device) + self.strength * difference.square().sum()
            gradient = 2 * self.strength * difference
            parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
        self._updates += 1

    def take_mean(self) -> float:
        """Return the mean of lambda * |theta - theta0|^2 over the updates since the last call."""
        mean = float(self._sum) / max(1, self._updates)
        self._sum, self._updates = torch.zeros(()), 0
        return mean


def _unscale(optimizer: AcceleratedOptimizer) -> None:
    """Undo the scaling of fp16 gradients, unless clipping or the logged norm has done so."""
    try:
        optimizer.scaler.unscale_(optimizer.optimizer)
    except RuntimeError as error:
        if "already been called" not in str(error):
            raise


def _trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
