"""Train a target model on charts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import TrainingArguments, set_seed

from hf_xst.charts.dataset import PROVENANCE, load_charts
from hf_xst.commands.initial_model import NO_MODELS, starting_model, with_start
from hf_xst.commands.options import TransferArguments
from hf_xst.commands.presets import RECIPES, as_in_recipe, chart_use, kind_of, published, recipe_of
from hf_xst.commands.runs import RunFolder, check_output, say_if_alone, summary
from hf_xst.commands.sentences import annotate, gold_rows, read_word_vectors
from hf_xst.commands.training import kept_states, train_and_save, training_arguments
from hf_xst.console import say
from hf_xst.data import WordVectors
from hf_xst.files import MODEL, RESULTS
from hf_xst.models.modeling import StructuredModel
from hf_xst.remote import split_revision
from hf_xst.sources.averaging import NONE
from hf_xst.sources.pool import SourceSpec
from hf_xst.training.collation import ChartUse
from hf_xst.training.transfer import ChartTrainer


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
    check_output(arguments.output, MODEL)
    folder = RunFolder(arguments.output, arguments)
    finished = folder.finished()
    if finished is not None:
        _check_charts(finished, arguments)
        return finished
    set_seed(arguments.seed)
    charts, provenance = load_charts(arguments.charts)
    if arguments.epochs is not None and arguments.updates is not None:
        say(f"--epochs {arguments.epochs} counts, --updates {arguments.updates} does not", "yellow")
    use = chart_use(provenance, arguments.best, arguments.sigma, arguments.soft)
    told = arguments.start is not None
    arguments = with_start(as_in_recipe(arguments, provenance), provenance)
    vectors = read_word_vectors(arguments)
    model = starting_model(arguments, charts, provenance, vectors, told=told)
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
    results = _results(trainer, charts, l2, use, provenance) | {"batch_size": arguments.batch_size}
    if arguments.start not in NO_MODELS:
        path, revision = split_revision(arguments.start, arguments.start_revision)
        results["start"] = {"id": SourceSpec("start", path).public_id(), "revision": revision}
    if dev is not None:
        results["dev"] = trainer.evaluate()
        summary(f"{arguments.output} on the development part", results["dev"])
    else:
        say(f"the model is in {arguments.output}")
    folder.write_json(RESULTS, results)
    return results


def _check_charts(finished: Mapping[str, Any], arguments: TransferArguments) -> None:
    """See that a finished run was trained on the charts that are there now, where they still are.

    Raises:
        ValueError: they were made anew, in another way, since then.
    """
    place = Path(arguments.charts, PROVENANCE)
    if not place.exists():
        return
    provenance = json.loads(place.read_text(encoding="utf-8"))
    now = {key: value for key, value in provenance.items() if key != "names"}
    differing = [key for key in {**finished["charts"], **now} if finished["charts"].get(key) != now.get(key)]
    if differing:
        raise ValueError(
            f"{arguments.output} was trained on other charts than {arguments.charts} holds now (they "
            f"differ in {', '.join(differing)}); choose another --output, or remove that folder to train anew"
        )


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
    return training_arguments(
        folder,
        arguments,
        arguments.seed,
        learning_rate=learning_rate_of(arguments, provenance),
        max_steps=updates_of(arguments),
        eval_strategy="steps" if evaluates else "no",
        eval_steps=arguments.eval_every,
        save_strategy="steps",
        save_steps=arguments.eval_every,
    )


def learning_rate_of(arguments: TransferArguments, provenance: Mapping[str, Any]) -> float:
    """Return the step size: the one told, that of the charts' recipe, or the published one."""
    if arguments.learning_rate is not None:
        return arguments.learning_rate
    rate = RECIPES[recipe_of(provenance)].learning_rate
    if rate is not None:
        return rate
    return published(provenance["model_type"], "--learning-rate").learning_rate[kind_of(provenance)]


def updates_of(arguments: TransferArguments) -> int:
    """Return the number of updates, or -1 where epochs count: they win, for a recipe names updates."""
    return -1 if arguments.epochs is not None or arguments.updates is None else arguments.updates


def _pull_strength(arguments: TransferArguments, provenance: dict[str, Any]) -> float:
    if arguments.start == NONE:
        return 0.0
    if arguments.l2 is not None:
        return arguments.l2
    return published(provenance["model_type"], "--l2").l2[kind_of(provenance)]


def development_part(
    arguments: TransferArguments, model: StructuredModel, vectors: WordVectors | None
) -> Dataset | None:
    """Load the rows that give development scores, if a treebank is given."""
    if arguments.treebank is None:
        return None
    rows, note = gold_rows(arguments.treebank, arguments.split, arguments.data, model.columns, faulty="skip")
    say(note)
    return annotate(rows, arguments.tagger, vectors, keep_gold=True)
