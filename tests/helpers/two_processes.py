"""What the two-process tests run under `torchrun`: every case's numbers as one JSON file."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import TrainerCallback, TrainingArguments

from helpers.small_models import arguments, charts, gold, on_charts, supervised
from hf_xst.training.collation import ChartUse

LENGTHS = (1, 9, 2, 5, 3)
UPDATE = 4  # within the second epoch
Case = Callable[[Path, int, int], dict[str, Any]]


def _numbers(trainer: Any) -> dict[str, Any]:
    log = trainer.state.log_history
    flat = torch.cat([parameter.detach().flatten() for parameter in trainer.model.parameters()])
    return {
        "loss": [entry["loss"] for entry in log if "loss" in entry],
        "norm": [entry["grad_norm"] for entry in log if "grad_norm" in entry],
        "parameters": flat.tolist(),
    }


def by_words(output: Path, batch: int, accumulation: int) -> dict[str, Any]:
    """Sentences of 1, 1, 3 and 3 words in one update; then, over epochs, a last update that is not full."""
    once = supervised("groups", arguments(output, batch, accumulation), gold())
    once.train()
    more = supervised(
        "groups", arguments(output, batch, accumulation, num_train_epochs=3), gold((3, 12, 1, 2, 4, 15, 2))
    )
    more.train()
    return {"once": _numbers(once), "more": _numbers(more)}


def by_charts(output: Path, batch: int, accumulation: int) -> dict[str, Any]:
    """Charts of trees with the pull, default handling of columns, and two charts that hold nothing."""
    rows = list(charts("parser", gold((2, 3, 1, 4, 2))))
    for place in (1, 4):
        *offsets, _ = rows[place]["offsets"]
        rows[place] |= {
            "candidates": rows[place]["candidates"][: offsets[-1]],
            "offsets": [*offsets, offsets[-1]],
        }
    settings = arguments(output, batch, accumulation, num_train_epochs=2, remove_unused_columns=True)
    trainer = on_charts("parser", settings, Dataset.from_list(rows), l2=0.1, use=ChartUse("none"))
    trainer.train()
    times, names = trainer.empty_sentences()
    return {"twice": _numbers(trainer), "empty": [times, sorted(names)]}


class Stop(TrainerCallback):
    """Interrupt training at the end of an update."""

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step == UPDATE + 1:
            raise KeyboardInterrupt


def resumed(output: Path, batch: int, accumulation: int) -> dict[str, Any]:
    """Stopped within the second of three epochs, and gone on with."""
    rows = gold((3, 12, 1, 2, 4, 15, 2, 5, 6))
    folder = output / f"resumed-{batch}-{accumulation}"
    settings = arguments(
        folder, batch, accumulation, num_train_epochs=3, save_strategy="steps", save_steps=UPDATE
    )
    with contextlib.suppress(KeyboardInterrupt):
        supervised("groups", settings, rows, callbacks=[Stop()]).train()
    rest = supervised("groups", settings, rows)
    rest.train(resume_from_checkpoint=str(folder / f"checkpoint-{UPDATE}"))
    return {"rest": _numbers(rest)}


def evaluated(output: Path, batch: int, _: int) -> dict[str, Any]:
    """Ragged sentences, scored and predicted, before and while a model is trained."""
    rows = gold(LENGTHS)
    settings: TrainingArguments = arguments(output, batch, eval_strategy="epoch", learning_rate=0.0)
    found = {}
    for kind in ("parser", "tagger", "groups"):
        trainer = supervised(kind, settings, rows, eval_dataset=rows)
        before = trainer.evaluate()
        predictions = trainer.predict(rows.select_columns(["words", "upos"])).predictions
        trainer.train()
        curve = next(entry for entry in trainer.state.log_history if "eval_loss" in entry)
        skipped = ("runtime", "second", "epoch", "step")
        found[kind] = {
            "before": {key: value for key, value in before.items() if not key.endswith(skipped)},
            "within": {key: value for key, value in curve.items() if not key.endswith(skipped)},
            "predictions": predictions,
        }
    return found


CASES: dict[str, tuple[Case, list[tuple[int, int]]]] = {
    "by_words": (by_words, [(2, 1), (1, 2)]),
    "by_charts": (by_charts, [(2, 1), (1, 2)]),
    "resumed": (resumed, [(2, 1), (1, 2)]),
    "evaluated": (evaluated, [(1, 1), (2, 1), (5, 1)]),
}


def main(output: Path) -> None:
    found = {
        f"{name} {batch} {accumulation}": case(output, batch, accumulation)
        for name, (case, cuts) in CASES.items()
        for batch, accumulation in cuts
    }
    if torch.distributed.get_rank() == 0:
        (output / "found.json").write_text(
            json.dumps({"processes": torch.distributed.get_world_size(), **found})
        )
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
