"""Train a target model on charts."""

from __future__ import annotations

import copy
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

import yaml
from datasets import Dataset
from transformers import TrainingArguments, set_seed

from hf_xst.data import WordVectors
from hf_xst.models.base import StructuredModel
from hf_xst.remote import located

from ..arguments import TransferArguments
from ..collation import ChartUse
from ..defaults import PUBLISHED, kind_of
from ..fresh import fresh_model
from ..loop import kept_states, train_and_save, training_arguments
from ..recipes import chart_use, recipe_of
from ..runs import RESULTS, RunFolder, say, say_if_alone, summary
from ..sentences import annotate, gold_rows, read_word_vectors
from ..sources import SourceSpec, load_model
from ..transfer import ChartTrainer
from .build_charts import load_charts

Arguments = TypeVar("Arguments", bound=TransferArguments)


def transfer(arguments: TransferArguments) -> dict[str, Any]:
    """Train on charts and save the target model.

    Repeated after an interruption, it goes on where it stopped and ends with the same model; once finished,
    it returns its results without doing anything.

    Args:
        arguments: see the class.

    Returns:
        The results: updates, empty charts, and development scores where a treebank was given.

    Raises:
        ValueError: the charts and the start do not fit, `--start none` with a pull, or OUTPUT holds another
            run.
    """
    folder = RunFolder(arguments.output, arguments)
    finished = folder.finished()
    if finished is not None:
        return finished
    set_seed(arguments.seed)
    charts, provenance = load_charts(arguments.charts)
    use = chart_use(recipe_of(provenance), arguments.best, arguments.sigma, arguments.soft)
    arguments = with_start(arguments, provenance)
    vectors = read_word_vectors(arguments)
    model = starting_model(arguments, provenance, vectors)
    l2 = _pull_strength(arguments, provenance)
    if arguments.train_words:
        model.train_word_vectors()
    dev = development_part(arguments, model, vectors)
    settings = _settings(arguments, folder, provenance, evaluates=dev is not None)
    say_if_alone(settings.world_size)
    states = kept_states(model, arguments, [charts, dev])
    trainer = ChartTrainer(
        model,
        settings,
        charts,
        provenance["names"],
        l2=l2,
        eval_dataset=dev,
        states=states,
        use=use,
    )
    folder.begin(is_main=settings.process_index == 0)
    train_and_save(trainer, folder)
    results = _results(trainer, charts, l2, use, provenance)
    if arguments.start not in (None, "none"):
        path, revision = located(arguments.start, arguments.start_revision)
        results["start"] = {"id": SourceSpec("start", path).public_id(), "revision": revision}
    if dev is not None:
        results["dev"] = trainer.evaluate()
        summary(f"{arguments.output} on the development part", results["dev"])
    folder.write_json(RESULTS, results)
    return results


def _results(
    trainer: ChartTrainer, charts: Dataset, l2: float, use: ChartUse, provenance: dict[str, Any]
) -> dict[str, Any]:
    times, names = trainer.empty_sentences()
    if times:
        say(
            f"{times} times a sentence's chart held no structure and the pool's best structure stood in "
            f"for it; first: {', '.join(names)}",
            "yellow",
        )
    return {
        "sentences": len(charts),
        "updates": trainer.state.global_step,
        "empty_charts": times,
        "empty_chart_ids": names,
        "l2": l2,
        "use": asdict(use),
        "charts": {key: value for key, value in provenance.items() if key != "names"},
    }


def _settings(
    arguments: TransferArguments, folder: RunFolder, provenance: dict[str, Any], *, evaluates: bool
) -> TrainingArguments:
    rate = arguments.learning_rate
    if rate is None:
        rate = PUBLISHED[provenance["model_type"]].learning_rate[kind_of(provenance)]
    return training_arguments(
        folder,
        arguments,
        arguments.seed,
        learning_rate=rate,
        max_steps=updates_of(arguments),
        eval_strategy="steps" if evaluates else "no",
        eval_steps=arguments.eval_every,
        save_strategy="steps",
        save_steps=arguments.eval_every,
    )


def updates_of(arguments: TransferArguments) -> int:
    """Return the number of updates, or -1 where epochs count: they win, for `--updates` has a default."""
    return -1 if arguments.epochs is not None or arguments.updates is None else arguments.updates


def with_start(arguments: Arguments, provenance: dict[str, Any]) -> Arguments:
    """Fill the start in where it is not told: the source that the charts were made to start from.

    A folder of charts made on this machine knows where it is; charts of others name it by its id.

    Raises:
        ValueError: it is not known where that source is.
    """
    if arguments.start is not None:
        return arguments
    name = provenance["start"]
    given = Path(arguments.charts) / "run" / "config.yaml"
    if given.is_file():
        texts = yaml.safe_load(given.read_text(encoding="utf-8"))["sources"]
        found = {spec.name: spec for spec in SourceSpec.parse_all(texts)}[name]
        place, revision = found.path, found.revision
    else:
        source = next(source for source in provenance["sources"] if source["name"] == name)
        place, revision = source["id"], source["revision"]
    if place is None:
        raise ValueError(
            f"the charts {arguments.charts} are for a start called {name}, and they do not tell where it is: "
            "give --start"
        )
    say(f"starting from {name}, which the charts were made for: {place}")
    return replace(arguments, start=place, start_revision=arguments.start_revision or revision)


def starting_model(
    arguments: TransferArguments, provenance: dict[str, Any], vectors: WordVectors | None
) -> StructuredModel:
    """Load the model that training starts from, or make a fresh one.

    Raises:
        ValueError: the charts and the start do not fit, or `--start none` lacks what it needs.
    """
    if arguments.start not in (None, "none"):
        model = load_model(arguments.start, arguments.start_revision, vectors)
    else:
        model = _fresh(arguments, provenance, vectors)
    if model.config.model_type != provenance["model_type"]:
        raise ValueError(
            f"the charts are for a {provenance['model_type']}, the start is a {model.config.model_type}"
        )
    missing = [name for name in provenance["names"] if name not in model.names]
    if missing and provenance["labels"] == "union":
        model.add_labels(missing)
    return model


def _fresh(
    arguments: TransferArguments, provenance: dict[str, Any], vectors: WordVectors | None
) -> StructuredModel:
    if arguments.l2 not in (None, 0):
        raise ValueError("--start none has no start to be pulled to: leave --l2 out, or say --l2 0")
    if arguments.like is None:
        return fresh_model(provenance, load_charts(arguments.charts)[0], vectors, arguments.encoder)
    like = load_model(arguments.like, None, vectors)
    model = type(like)(copy.deepcopy(like.config))
    model.encoder.words = like.encoder.words  # what is pretrained stays
    return model


def _pull_strength(arguments: TransferArguments, provenance: dict[str, Any]) -> float:
    if arguments.start == "none":
        return 0.0
    published = PUBLISHED[provenance["model_type"]].l2[kind_of(provenance)]
    return published if arguments.l2 is None else arguments.l2


def development_part(
    arguments: TransferArguments, model: StructuredModel, vectors: WordVectors | None
) -> Dataset | None:
    """Load the rows that give development scores, if a treebank is given."""
    if arguments.treebank is None:
        return None
    rows, note = gold_rows(arguments.treebank, arguments.split, arguments.data, model.columns, faulty="skip")
    say(note)
    return annotate(rows, arguments.tagger, vectors, keep_gold=True)
