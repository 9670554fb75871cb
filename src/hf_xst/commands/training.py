"""Run a Trainer: arguments, cached embeddings, resuming and saving, for all commands that train."""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import psutil
import torch
import yaml
from datasets import Dataset
from transformers import TrainingArguments
from transformers.integrations.integration_utils import get_available_reporting_integrations

from hf_xst.commands.options import LoopArguments
from hf_xst.commands.runs import RunFolder
from hf_xst.console import console, did_you_mean, say
from hf_xst.data.layout import content_hash
from hf_xst.files import name_in_errors
from hf_xst.models.cached_embeddings import CachedEmbeddings
from hf_xst.models.modeling import StructuredModel
from hf_xst.models.pretrained_words import PretrainedWords
from hf_xst.sources.loading import model_digest
from hf_xst.training.batches import sentence_lengths
from hf_xst.training.trainer import StructuredTrainer

_EXPONENT = re.compile(r"[-+]?\d+[eE][-+]?\d+")


def key_values(pairs: Sequence[str], known: Collection[str]) -> dict[str, Any]:
    """Read KEY=VALUE words; values are YAML, so that `true`, `3` and `1e-4` have their usual types.

    Raises:
        ValueError: a word has no `=`, a key is not `known`, or a value is not YAML.
    """
    values = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"found {pair!r}; expected KEY=VALUE")
        if key not in known:
            raise ValueError(f"unknown setting {key!r} in {pair!r}{did_you_mean(key, known)}")
        try:
            values[key] = _parse(value)
        except yaml.YAMLError as error:
            raise ValueError(f"cannot read the value of {pair!r} as YAML: {error}") from error
    return values


def _parse(text: str) -> Any:
    value = yaml.safe_load(text)
    # YAML 1.1 reads `no` as false, here the name of a strategy, and 1e-4, which has no point, as a string.
    if isinstance(value, bool) and text.lower() not in ("true", "false"):
        return text
    return float(text) if isinstance(value, str) and _EXPONENT.fullmatch(text) else value


def training_arguments(
    folder: RunFolder, options: LoopArguments, seed: int, **defaults: Any
) -> TrainingArguments:
    """Return Trainer arguments: plain Adam at a constant rate without clipping, then `defaults`, `--trainer`.

    Raises:
        ValueError: `--trainer` names an unknown setting or an invalid value, or the Trainer does not see all
            processes of a launcher.
    """
    at_least_1 = ("max_steps", "batch_size", "eval_every", "patience", "plateau")
    for name, smallest in (("epochs", 0), *((name, 1) for name in at_least_1)):
        value = vars(options).get(name)
        if value is not None and value < smallest:
            raise ValueError(f"{name} is {value}; expected at least {smallest}")
    started = int(os.environ.get("WORLD_SIZE", "1"))
    settings: dict[str, Any] = {
        "output_dir": str(folder.run),
        "per_device_train_batch_size": options.batch_size,
        "per_device_eval_batch_size": options.batch_size,
        "num_train_epochs": 1.0 if options.epochs is None else options.epochs,
        "max_steps": -1 if options.max_steps is None else options.max_steps,
        "optim": "adamw_torch",
        "weight_decay": 0.0,
        "lr_scheduler_type": "constant",
        "max_grad_norm": 0.0,
        "seed": seed,
        "report_to": "none",
        "disable_tqdm": not console.is_terminal,
        "save_total_limit": 1,
        "logging_steps": 10,
        # Otherwise the Trainer treats processes on CPUs as unrelated runs.
        "use_cpu": started > 1 and not torch.cuda.is_available(),
        "restore_callback_states_from_checkpoint": True,  # the patience of early stopping survives a restart
    }
    chosen = _trainer_settings(options.trainer)
    if "lr_scheduler_type" in chosen:
        defaults.pop("lr_scheduler_kwargs", None)  # of another scheduler
    try:
        arguments = TrainingArguments(**(settings | defaults | chosen))
    except (TypeError, ValueError) as error:
        raise ValueError(f"--trainer {' '.join(options.trainer)}: {error}" if chosen else error) from error
    if arguments.world_size < started:
        raise ValueError(
            f"{started} processes were started, but the Trainer sees {arguments.world_size}; they would "
            "overwrite each other's results. On CPUs, --trainer use_cpu=true joins them"
        )
    warn_if_alone(arguments.world_size)
    return arguments


def warn_if_alone(world_size: int) -> None:
    """Warn if a launcher was asked for several processes but started one.

    `accelerate launch --cpu --num_processes 2` does so silently unless MPI is set up.
    """
    parent = psutil.Process().parent()
    words = parent.cmdline() if parent is not None else []
    for index, word in enumerate(words):
        name, _, value = word.partition("=")
        if name.replace("-", "_") == "__num_processes":
            wanted = value or (words[index + 1] if index + 1 < len(words) else "")
            if wanted.isdigit() and int(wanted) > world_size:
                say(
                    f"{wanted} processes were requested, but {world_size} started. On CPUs, use "
                    f"`torchrun --nproc_per_node {wanted} -- SCRIPT ...` instead of `accelerate launch`.",
                    "yellow",
                )


def _trainer_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Read `--trainer`; a value of another type would otherwise fail hours later."""
    types = get_type_hints(TrainingArguments)
    settings = key_values(
        pairs, {field.name for field in dataclasses.fields(TrainingArguments) if field.init}
    )
    for pair in pairs:
        name, _, text = pair.partition("=")
        union = get_args(types[name]) if get_origin(types[name]) in (Union, UnionType) else (types[name],)
        kinds = {get_origin(each) or each for each in union}
        if type(settings[name]) not in (kinds | {int} if float in kinds else kinds):
            if str not in kinds:
                found, expected = type(settings[name]).__name__, inspect.formatannotation(types[name])
                raise ValueError(f"--trainer {pair}: found {found}, expected {expected}")
            settings[name] = text
    trackers = settings.get("report_to") or []
    for name in [trackers] if isinstance(trackers, str) else trackers:
        if name not in ("none", "all", *get_available_reporting_integrations()):  # type: ignore[no-untyped-call]
            raise ValueError(f"--trainer report_to={name}: unknown or not installed")
    return settings


def cached_embeddings(
    model: StructuredModel, options: LoopArguments, datasets: Iterable[Dataset | None]
) -> CachedEmbeddings | None:
    """Encode all sentences once, if the model's encoder is frozen and the options allow it."""
    if not options.cache_embeddings:
        return None
    given = [rows for rows in datasets if rows is not None]
    if isinstance(words := model.encoder.words, PretrainedWords) and words.is_frozen:
        numbers = sum(sum(sentence_lengths(rows)) for rows in given) * int(words.model.config.hidden_size)
        if 2 * numbers > psutil.virtual_memory().available / 2:
            say(
                f"the encoder runs in every epoch: its output would take {2e-9 * numbers:,.0f} GB, more than "
                "half of the free memory",
                "yellow",
            )
            return None
    sentences = (words for rows in given for words in rows["words"])
    folder = None if options.embedding_cache is None else Path(options.embedding_cache)
    return CachedEmbeddings.compute(model, sentences, folder)


def train_and_save(trainer: StructuredTrainer, folder: RunFolder) -> None:
    """Train, or resume an interrupted run, and save the model where `from_pretrained` loads it."""
    checkpoint = folder.last_checkpoint()
    # What training depends on besides its configuration, which may name changed files.
    sentences = {"sentences": trainer.train_dataset, "development sentences": trainer.eval_dataset}
    digests = {name: content_hash(rows) for name, rows in sentences.items() if isinstance(rows, Dataset)}
    digests["initial model"] = model_digest(trainer.bare_model)
    folder.check_inputs(digests, resumed=checkpoint is not None)
    if checkpoint is not None:
        say(f"resuming from {checkpoint}")
    with name_in_errors(folder.path):
        # The Trainer itself would make one more update before it checks whether there were enough.
        if checkpoint is None or not trainer.restore_finished(checkpoint):
            trainer.train(resume_from_checkpoint=checkpoint)
        if folder.is_main:
            trainer.bare_model.save_pretrained(folder.path)
            # The last entry sums up only what followed an interruption; a checkpoint sorts the names.
            history = trainer.state.log_history
            log = [dict(sorted(entry.items())) for entry in history if "train_runtime" not in entry]
            folder.write_json("log.json", log)
    trainer.accelerator.wait_for_everyone()
