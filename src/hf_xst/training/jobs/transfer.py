"""Train a target model on charts."""

from __future__ import annotations

from typing import Any

from datasets import Dataset
from transformers import AutoConfig, set_seed

from hf_xst.console import console
from hf_xst.data import WordVectors
from hf_xst.models import BiaffineParser, CrfTagger
from hf_xst.models.base import StructuredModel

from ..arguments import TransferArguments
from ..defaults import PUBLISHED
from ..loop import kept_states, train_and_save, training_arguments
from ..runs import RunFolder, say_if_alone, summary
from ..sentences import annotate, gold_rows, read_word_vectors
from ..sources import load_model
from ..transfer import ChartTrainer
from .build_charts import load_charts

_FRESH = {model.config_class.model_type: model for model in (BiaffineParser, CrfTagger)}


def transfer(arguments: TransferArguments) -> dict[str, Any]:
    """Train on charts and save the target model.

    Args:
        arguments: see the class.

    Returns:
        The results: updates, empty charts, and development scores where a treebank was given.

    Raises:
        ValueError: the charts and the start do not fit, or `--start none` with a pull.
    """
    set_seed(arguments.seed)
    charts, provenance = load_charts(arguments.charts)
    vectors = read_word_vectors(arguments)
    model = _start(arguments, provenance, vectors)
    if model.config.model_type != provenance["model_type"]:
        raise ValueError(
            f"the charts are for a {provenance['model_type']}, the start is a {model.config.model_type}"
        )
    published = PUBLISHED[provenance["model_type"]]
    l2 = _pull_strength(arguments, published.l2[provenance["rule"]])
    if arguments.train_words:
        model.train_word_vectors()
    dev = _development(arguments, vectors)
    states = kept_states(model, arguments, [charts, dev])
    folder = RunFolder(arguments.output, arguments)
    settings = training_arguments(
        folder,
        arguments,
        arguments.seed,
        learning_rate=arguments.learning_rate or published.learning_rate[provenance["rule"]],
        eval_strategy="steps" if dev is not None else "no",
        eval_steps=arguments.eval_every,
        save_strategy="steps",
        save_steps=arguments.eval_every,
    )
    say_if_alone(settings.world_size)
    folder.is_main = settings.process_index == 0
    trainer = ChartTrainer(
        model,
        settings,
        charts,
        provenance["names"],
        l2=l2,
        eval_dataset=dev,
        states=states,
        with_best=arguments.with_best,
    )
    train_and_save(trainer, folder)
    results: dict[str, Any] = {
        "sentences": len(charts),
        "updates": trainer.state.global_step,
        "empty_charts": trainer.empty_charts,
        "l2": l2,
        "charts": {key: value for key, value in provenance.items() if key != "names"},
    }
    if trainer.empty_charts:
        console.print(
            f"[yellow]{trainer.empty_charts} times a sentence's chart held no structure; "
            "the pool's best structure stood in for it"
        )
    if dev is not None:
        results["dev"] = trainer.evaluate()
        summary(f"{arguments.output} on the development part", results["dev"])
    folder.write_json("results.json", results)
    return results


def _start(
    arguments: TransferArguments, provenance: dict[str, Any], vectors: WordVectors | None
) -> StructuredModel:
    if arguments.start != "none":
        model = load_model(arguments.start, arguments.start_revision, vectors)
        missing = [name for name in provenance["names"] if name not in model.names]
        if missing and provenance["labels"] == "union":
            model.add_labels([name for name in missing if name not in model.names])
        return model
    if arguments.like is None or arguments.l2 not in (None, 0):
        raise ValueError("--start none needs --like MODEL (whose configuration it takes) and --l2 0")
    config = AutoConfig.from_pretrained(arguments.like)
    like = load_model(arguments.like, None, vectors)
    fresh = _FRESH[config.model_type](config)
    fresh.encoder.words = like.encoder.words
    return fresh


def _pull_strength(arguments: TransferArguments, published: float) -> float:
    if arguments.start == "none":
        return 0.0
    return published if arguments.l2 is None else arguments.l2


def _development(arguments: TransferArguments, vectors: WordVectors | None) -> Dataset | None:
    if arguments.treebank is None:
        return None
    rows, note = gold_rows(arguments.treebank, arguments.split, arguments.data, faulty="skip")
    console.print(note)
    return annotate(rows, arguments.tagger, vectors)
