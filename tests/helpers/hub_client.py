"""Run calls of the Hub client in a separate process: JSON lines in, a JSON line of results each out.

huggingface_hub reads its endpoint when it is first imported, so it requires a separate process.
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
    """Run `hf-xst`; return its status, standard error and console output."""
    import hf_xst_cli
    from hf_xst.console import console

    error = io.StringIO()
    with contextlib.redirect_stderr(error), console.capture() as output:
        status = hf_xst_cli.main(words)
    return {"status": status, "error": error.getvalue(), "output": output.get()}


@call
def digest(model: str, revision: str | None = None) -> str:
    """Load a model and return the digest of its weights."""
    from hf_xst.sources.loading import load_model, weights_digest

    return weights_digest(load_model(model, revision))


@call
def load(model: str, **options: Any) -> str:
    """Load a model by AutoModel and return the name of its class."""
    from transformers import AutoModel

    return type(AutoModel.from_pretrained(model, **options)).__name__


@call
def push_model(folder: str, repository: str, **options: Any) -> str:
    from transformers import AutoModel

    import hf_xst  # noqa: F401 - registers the models

    return str(AutoModel.from_pretrained(folder).push_to_hub(repository, **options).oid)


@call
def push_pipeline(folder: str, tagger: str, repository: str, saved: str | None = None) -> list[str]:
    """Push a pipeline of a parser and its tagger, or save it with `push_to_hub`; return its classes."""
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
    """Train one epoch with `push_to_hub`; return the local files."""
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

    rows, info = load_charts(repository, revision)
    return {"rows": rows.to_list(), "names": info.names}


@call
def dataset(repository: str) -> Answer:
    """Load a data set by `datasets` alone."""
    from datasets import load_dataset

    rows = load_dataset(repository, split="train")
    return {"rows": len(rows), "columns": rows.column_names, "first": rows[0]}


@call
def annotate(task: str, model: str, words: list[str], **options: Any) -> Answer:
    """Run a pipeline by the id of its model."""
    from transformers import pipeline

    import hf_xst  # noqa: F401 - registers the pipelines

    annotation: Answer = pipeline(task, model=model, **options)(words)
    return annotation


@call
def skip_waiting() -> None:
    """Do not wait between attempts."""
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
