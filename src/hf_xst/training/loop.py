"""Training arguments and states for all commands that train."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
import yaml
from datasets import Dataset
from transformers import TrainingArguments

from hf_xst.console import console
from hf_xst.models.base import StructuredModel

from .arguments import LoopArguments
from .frozen import FrozenStates
from .runs import RunFolder
from .trainer import StructuredTrainer


def key_values(pairs: Sequence[str]) -> dict[str, Any]:
    """Read KEY=VALUE words; values are read as YAML, so `true`, `3` and `1e-4` are what they look like.

    Raises:
        ValueError: a word has no `=`.
    """
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"found {pair!r}; expected KEY=VALUE")
        found[key] = _number(yaml.safe_load(value))
    return found


def _number(value: Any) -> Any:
    # YAML 1.1 reads 1e-4, which has no point, as a string.
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def training_arguments(folder: RunFolder, arguments: LoopArguments, seed: int, **defaults: Any) -> TrainingArguments:
    """Return Trainer arguments: plain Adam at a constant rate without clipping, unless told otherwise.

    Args:
        folder: the run's folder, which gets the checkpoints.
        arguments: what the command was told.
        seed: of initialisation, dropout and shuffling.
        defaults: what this command sets differently; `--trainer` has the last word.
    """
    settings: dict[str, Any] = {
        "output_dir": str(folder.run),
        "per_device_train_batch_size": arguments.batch_size,
        "per_device_eval_batch_size": arguments.batch_size,
        "num_train_epochs": arguments.epochs,
        "max_steps": arguments.updates if arguments.updates is not None else -1,
        "optim": "adamw_torch",
        "weight_decay": 0.0,
        "lr_scheduler_type": "constant",
        "max_grad_norm": 0.0,
        "seed": seed,
        "report_to": "none",
        "disable_tqdm": not console.is_terminal,
        "dataloader_pin_memory": torch.cuda.is_available(),
        "save_total_limit": 1,
        "logging_steps": 10,
    }
    return TrainingArguments(**(settings | defaults | key_values(arguments.trainer)))


def kept_states(
    model: StructuredModel, arguments: LoopArguments, datasets: Iterable[Dataset | None]
) -> FrozenStates | None:
    """Encode all sentences once, where the model's encoder is frozen and the command allows it."""
    if not arguments.keep_states:
        return None
    states = FrozenStates.of(model)
    if states is not None:
        for dataset in datasets:
            if dataset is not None:
                states.add(model, dataset["words"])
    return states


def train_and_save(trainer: StructuredTrainer, folder: RunFolder) -> None:
    """Train, go on where an interrupted run stopped, and save the model where it can be loaded from."""
    checkpoint = folder.last_checkpoint()
    if checkpoint is not None:
        console.print(f"going on from {checkpoint}")
    trainer.train(resume_from_checkpoint=checkpoint)
    if folder.is_main:
        trainer.accelerator.unwrap_model(trainer.model).save_pretrained(folder.path)
        folder.write_json("log.json", trainer.state.log_history)
    trainer.accelerator.wait_for_everyone()
