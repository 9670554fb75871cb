"""Training arguments and states for all commands that train."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import torch
import yaml
from datasets import Dataset
from transformers import TrainingArguments
from transformers.integrations.integration_utils import get_available_reporting_integrations

from hf_xst.commands.options import LoopArguments
from hf_xst.commands.runs import RunFolder
from hf_xst.console import console, say
from hf_xst.data.layout import content_hash
from hf_xst.models.cached_states import FrozenStates
from hf_xst.models.modeling import StructuredModel
from hf_xst.sources.pool import weights_digest
from hf_xst.training.trainer import StructuredTrainer

DEFAULT_BATCH = 80
_EXPONENT = re.compile(r"[-+]?\d+[eE][-+]?\d+")


def key_values(pairs: Sequence[str], known: Collection[str] | None = None) -> dict[str, Any]:
    """Read KEY=VALUE words; values are read as YAML, so `true`, `3` and `1e-4` are what they look like.

    Args:
        pairs: the words.
        known: the keys that there are, if not any will do.

    Raises:
        ValueError: a word has no `=`, a key is unknown, or a value is no YAML.
    """
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"found {pair!r}; expected KEY=VALUE")
        if known is not None and key not in known:
            near = get_close_matches(key, known)
            hint = f"; is {' or '.join(near)} meant?" if near else ""
            raise ValueError(f"found {pair!r}, but there is no setting {key!r}{hint}")
        try:
            found[key] = _read(value)
        except yaml.YAMLError as error:
            raise ValueError(f"cannot read the value of {pair!r} as YAML: {error}") from error
    return found


def _read(text: str) -> Any:
    value = yaml.safe_load(text)
    # YAML 1.1 reads `no` as false, here the name of a strategy, and 1e-4, which has no point, as a string.
    if isinstance(value, bool) and text.lower() not in ("true", "false"):
        return text
    return float(text) if isinstance(value, str) and _EXPONENT.fullmatch(text) else value


def training_arguments(
    folder: RunFolder, arguments: LoopArguments, seed: int, **defaults: Any
) -> TrainingArguments:
    """Return Trainer arguments: plain Adam at a constant rate without clipping, unless told otherwise.

    Args:
        folder: the run's folder, which gets the checkpoints.
        arguments: what the command was told.
        seed: of initialisation, dropout and shuffling.
        defaults: what this command sets differently; `--trainer` has the last word.

    Raises:
        ValueError: `--trainer` names what the Trainer does not know, or the Trainer does not see the
            processes that a launcher has started.
    """
    _check_numbers(arguments)
    started = int(os.environ.get("WORLD_SIZE", "1"))
    settings: dict[str, Any] = {
        "output_dir": str(folder.run),
        **{
            f"per_device_{part}_batch_size": arguments.batch_size or DEFAULT_BATCH
            for part in ("train", "eval")
        },
        "num_train_epochs": 1.0 if arguments.epochs is None else arguments.epochs,
        "max_steps": arguments.updates if arguments.updates is not None else -1,
        "optim": "adamw_torch",
        "weight_decay": 0.0,
        "lr_scheduler_type": "constant",
        "max_grad_norm": 0.0,
        "seed": seed,
        "report_to": "none",
        "disable_tqdm": not console.is_terminal,
        "save_total_limit": 1,
        "logging_steps": 10,
        # Without a word to the contrary the Trainer takes processes on CPUs for unrelated runs.
        "use_cpu": started > 1 and not torch.cuda.is_available(),
        "restore_callback_states_from_checkpoint": True,  # the patience of early stopping survives a restart
    }
    found = TrainingArguments(**(settings | defaults | _trainer_settings(arguments.trainer)))
    if found.world_size < started:
        raise ValueError(
            f"{started} processes were started, but the Trainer sees {found.world_size}; they would "
            "overwrite each other's results. On CPUs, --trainer use_cpu=true joins them"
        )
    return found


def _trainer_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Read what `--trainer` says; a word where a number belongs would be compared with one hours later."""
    fields = {field.name: field for field in dataclasses.fields(TrainingArguments) if field.init}
    found = key_values(pairs, fields)
    for name, value in found.items():
        if isinstance(value, str) and isinstance(fields[name].default, int | float):
            raise ValueError(
                f"--trainer {name}={value}: found a word, expected such as {fields[name].default}"
            )
    logs = found.get("report_to", "none")
    known: Callable[[], list[str]] = get_available_reporting_integrations
    there = {"none", "all", *known()}
    missing = [name for name in ([logs] if isinstance(logs, str) else logs) if name not in there]
    if missing:
        raise ValueError(f"--trainer report_to={missing[0]}: it is not installed, or there is no such")
    return found


def _check_numbers(arguments: LoopArguments) -> None:
    least = {"updates": 1, "batch_size": 1, "epochs": 0}  # no epoch: the start itself
    for name, smallest in least.items():
        value = getattr(arguments, name)
        if value is not None and value < smallest:
            raise ValueError(f"{name} is {value}; expected at least {smallest}")


def kept_states(
    model: StructuredModel, arguments: LoopArguments, datasets: Iterable[Dataset | None]
) -> FrozenStates | None:
    """Encode all sentences once, where the model's encoder is frozen and the command allows it."""
    if not arguments.keep_states:
        return None
    sentences = (words for rows in datasets if rows is not None for words in rows["words"])
    return FrozenStates.kept(model, sentences, None if arguments.states is None else Path(arguments.states))


def _inputs(trainer: StructuredTrainer) -> dict[str, str]:
    """Identify what a training depends on beside its configuration, which may name files that change."""
    sentences = {"sentences": trainer.train_dataset, "development sentences": trainer.eval_dataset}
    found = {what: content_hash(rows) for what, rows in sentences.items() if isinstance(rows, Dataset)}
    return {**found, "starting parameters": weights_digest(trainer.bare_model)}


def train_and_save(trainer: StructuredTrainer, folder: RunFolder) -> None:
    """Train, go on where an interrupted run stopped, and save the model where it can be loaded from."""
    checkpoint = folder.last_checkpoint()
    folder.check_inputs(_inputs(trainer), resumed=checkpoint is not None)
    if checkpoint is not None:
        say(f"going on from {checkpoint}")
    # The Trainer would make one more update before it looks whether there were enough.
    if checkpoint is None or not trainer.take_over(checkpoint):
        trainer.train(resume_from_checkpoint=checkpoint)
    if folder.is_main:
        trainer.bare_model.save_pretrained(folder.path)
        folder.write_json("log.json", trainer.state.log_history)
    trainer.accelerator.wait_for_everyone()
