"""Cases that the two-process tests run under `torchrun`; their numbers are written as one JSON file."""

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

from helpers.small_models import arguments, charts, gold, on_charts, supervised, without_last_group
from hf_xst.training.collation import ChartUse

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
    """Train on one update of 1, 1, 3 and 3 words, and on epochs whose last update is not full."""
    once = supervised("groups", arguments(output, batch, accumulation), gold())
    once.train()
    settings = arguments(output, batch, accumulation, num_train_epochs=3)
    more = supervised("groups", settings, gold((3, 12, 1, 2, 4, 15, 2)))
    more.train()
    return {"once": _numbers(once), "more": _numbers(more)}


def by_charts(output: Path, batch: int, accumulation: int) -> dict[str, Any]:
    """Train on charts with the pull, default handling of columns, and two empty charts."""
    rows = list(charts("parser", gold((2, 3, 1, 4, 2))))
    rows = [without_last_group(row) if index in (1, 4) else row for index, row in enumerate(rows)]
    settings = arguments(output, batch, accumulation, num_train_epochs=2, remove_unused_columns=True)
    trainer = on_charts("parser", settings, Dataset.from_list(rows), l2=0.1, use=ChartUse("none"))
    trainer.train()
    count, ids = trainer.empty_sentences()
    return {"twice": _numbers(trainer), "empty": [count, sorted(ids)]}


class Interrupt(TrainerCallback):
    """Interrupt training at the end of an update."""

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step == UPDATE + 1:
            raise KeyboardInterrupt


def resumed(output: Path, batch: int, accumulation: int) -> dict[str, Any]:
    """Interrupt training within the second of three epochs, and resume it."""
    rows = gold((3, 12, 1, 2, 4, 15, 2, 5, 6))
    folder = output / f"resumed-{batch}-{accumulation}"
    saving = {"save_strategy": "steps", "save_steps": UPDATE}
    settings = arguments(folder, batch, accumulation, num_train_epochs=3, **saving)
    with contextlib.suppress(KeyboardInterrupt):
        supervised("groups", settings, rows, callbacks=[Interrupt()]).train()
    rest = supervised("groups", settings, rows)
    rest.train(resume_from_checkpoint=str(folder / f"checkpoint-{UPDATE}"))
    return {"rest": _numbers(rest)}


def evaluated(output: Path, batch: int, _: int) -> dict[str, Any]:
    """Score and predict sentences of different lengths, before and during training."""
    rows = gold((1, 9, 2, 5, 3))
    settings: TrainingArguments = arguments(output, batch, eval_strategy="epoch", learning_rate=0.0)
    skipped = ("runtime", "second", "epoch", "step")
    results = {}
    for kind in ("parser", "tagger", "groups"):
        trainer = supervised(kind, settings, rows, eval_dataset=rows)
        before = trainer.evaluate()
        predictions = trainer.predict(rows.select_columns(["words", "upos"])).predictions
        trainer.train()
        during = next(entry for entry in trainer.state.log_history if "eval_loss" in entry)
        results[kind] = {
            "before": {key: value for key, value in before.items() if not key.endswith(skipped)},
            "during": {key: value for key, value in during.items() if not key.endswith(skipped)},
            "predictions": predictions,
        }
    return results


CASES: dict[str, tuple[Case, list[tuple[int, int]]]] = {
    "by_words": (by_words, [(2, 1), (1, 2)]),
    "by_charts": (by_charts, [(2, 1), (1, 2)]),
    "resumed": (resumed, [(2, 1), (1, 2)]),
    "evaluated": (evaluated, [(1, 1), (2, 1), (5, 1)]),
}


def main(output: Path) -> None:
    results = {
        f"{name} {batch} {accumulation}": case(output, batch, accumulation)
        for name, (case, divisions) in CASES.items()
        for batch, accumulation in divisions
    }
    if torch.distributed.get_rank() == 0:
        results["processes"] = torch.distributed.get_world_size()
        (output / "results.json").write_text(json.dumps(results))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
