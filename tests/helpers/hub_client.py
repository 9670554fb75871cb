"""A process that speaks to a loopback Hub: it reads calls as JSON lines and answers each with a JSON line.

The client reads its endpoint when it is first imported, so it needs a process of its own; one serves many
tests.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

Answer = dict[str, Any]
CALLS: dict[str, Callable[..., Any]] = {}


def call(function: Callable[..., Any]) -> Callable[..., Any]:
    CALLS[function.__name__] = function
    return function


@call
def command(words: list[str]) -> Answer:
    """Run `hf-xst`, give its status and what it told."""
    import hf_xst_cli
    from hf_xst.console import console

    told = io.StringIO()
    with contextlib.redirect_stderr(told), console.capture() as shown:
        status = hf_xst_cli.main(words)
    return {"status": status, "told": told.getvalue(), "shown": shown.get()}


@call
def digest(model: str, revision: str | None = None) -> str:
    """Load a model by its id and tell what its weights are."""
    from hf_xst.sources.pool import load_model, weights_digest

    return weights_digest(load_model(model, revision))


@call
def load(model: str, **options: Any) -> str:
    """Load by Auto class; tell the class."""
    from transformers import AutoModel

    return type(AutoModel.from_pretrained(model, **options)).__name__


@call
def push_model(folder: str, repository: str, **options: Any) -> str:
    from transformers import AutoModel

    import hf_xst  # noqa: F401 - registers the models

    return str(AutoModel.from_pretrained(folder).push_to_hub(repository, **options).oid)


@call
def push_pipeline(folder: str, tagger: str, repository: str, saved: str | None = None) -> list[str]:
    """Push a pipeline of a parser and its tagger, at once or while it is saved; tell what loading gives."""
    from transformers import pipeline

    import hf_xst  # noqa: F401 - registers the pipelines

    parse = pipeline("dependency-parsing", model=folder, tagger=tagger)
    if saved is None:
        parse.push_to_hub(repository)
    else:
        parse.save_pretrained(saved, push_to_hub=True, repo_id=repository)
    again = pipeline("dependency-parsing", model=repository)
    return [type(again.model).__name__, type(again.tagger).__name__]


@call
def push_trainer(folder: str, output: str, repository: str) -> list[str]:
    """Train nothing, save all that a Trainer saves, push."""
    from transformers import AutoModel, TrainingArguments

    from helpers.small_models import gold
    from hf_xst import SupervisedTrainer

    settings = TrainingArguments(
        output_dir=output,
        hub_model_id=repository,
        push_to_hub=True,
        hub_strategy="every_save",
        save_strategy="epoch",
        num_train_epochs=1,
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = SupervisedTrainer(AutoModel.from_pretrained(folder), settings, gold())
    trainer.train()
    trainer.save_model()
    trainer.push_to_hub()
    return sorted(path.name for path in Path(output).rglob("*") if path.is_file())


@call
def push_charts(folder: str, repository: str, **options: Any) -> str:
    from hf_xst import load_charts, push_charts

    return str(push_charts(*load_charts(folder), repository, **options).oid)


@call
def charts(repository: str, revision: str | None = None) -> Answer:
    from hf_xst import load_charts

    rows, provenance = load_charts(repository, revision)
    return {"rows": rows.to_list(), "names": provenance["names"]}


@call
def dataset(repository: str) -> Answer:
    """Load a data set as anybody would."""
    from datasets import load_dataset

    rows = load_dataset(repository, split="train")
    return {"rows": len(rows), "columns": rows.column_names, "first": rows[0]}


@call
def annotate(task: str, model: str, words: list[str], **options: Any) -> Answer:
    """Run a pipeline made by id."""
    from transformers import pipeline

    import hf_xst  # noqa: F401 - registers the pipelines

    found: Answer = pipeline(task, model=model, **options)(words)
    return found


@call
def impatient() -> None:
    """Wait for nothing between attempts."""
    time.sleep = lambda seconds: None


def main() -> None:
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        name, arguments, environment = json.loads(line)
        before = dict(os.environ)
        os.environ.update(environment)
        try:
            answer = {"result": CALLS[name](**arguments)}
        except Exception as error:
            answer = {"error": type(error).__name__, "message": str(error), "where": traceback.format_exc()}
        finally:
            os.environ.clear()
            os.environ.update(before)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
