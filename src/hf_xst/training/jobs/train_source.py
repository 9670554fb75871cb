"""Train a source model on a treebank."""

from __future__ import annotations

from typing import Any

from datasets import Dataset
from transformers import EarlyStoppingCallback, set_seed

from hf_xst.console import console
from hf_xst.data import hold_out, prepare
from hf_xst.models import BiaffineParser, BiaffineParserConfig, CrfTagger, CrfTaggerConfig
from hf_xst.models.base import StructuredModel

from ..arguments import TrainSourceArguments
from ..defaults import SOURCE_LEARNING_RATE
from ..loop import key_values, kept_states, train_and_save, training_arguments
from ..runs import RunFolder, say_if_alone, summary
from ..sentences import annotate, gold_rows, read_word_vectors, split_of
from ..supervised import SupervisedTrainer

KINDS: dict[str, tuple[type[StructuredModel], Any]] = {
    "parser": (BiaffineParser, BiaffineParserConfig),
    "tagger": (CrfTagger, CrfTaggerConfig),
}


def train_source(arguments: TrainSourceArguments) -> dict[str, float]:
    """Train, evaluate on the development part, and save.

    Args:
        arguments: see the class.

    Returns:
        The development scores.

    Raises:
        ValueError: no treebank, or not exactly one of vectors and encoder is given.
    """
    set_seed(arguments.seed)
    model_class, _ = KINDS[arguments.task]
    train, dev, notes = _data(arguments, model_class)
    model = _fresh_model(arguments, train)
    if arguments.tagger is not None:
        vectors = read_word_vectors(arguments)
        train, dev = (annotate(rows, arguments.tagger, vectors) for rows in (train, dev))
    metric = f"eval_{model.main_metric}"
    states = kept_states(model, arguments, [train, dev])
    folder = RunFolder(arguments.output, arguments)
    settings = training_arguments(
        folder,
        arguments,
        arguments.seed,
        learning_rate=arguments.learning_rate or SOURCE_LEARNING_RATE,
        lr_scheduler_type="reduce_lr_on_plateau",
        lr_scheduler_kwargs={"mode": "max", "factor": 0.5, "patience": arguments.plateau},
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_strategy="epoch",
        load_best_model_at_end=True,
        metric_for_best_model=metric,
        greater_is_better=True,
    )
    say_if_alone(settings.world_size)
    folder.is_main = settings.process_index == 0
    stop = EarlyStoppingCallback(arguments.patience)
    trainer = SupervisedTrainer(model, settings, train, dev, states, callbacks=[stop])
    train_and_save(trainer, folder)
    scores: dict[str, float] = trainer.evaluate()
    folder.write_json(
        "results.json",
        {
            "data": notes,
            "train_sentences": len(train),
            "dev_sentences": len(dev),
            "updates": trainer.state.global_step,
            "best_dev": trainer.state.best_metric,
            "dev": scores,
        },
    )
    summary(f"{arguments.output} on the development part", scores)
    return scores


def _data(
    arguments: TrainSourceArguments, model: type[StructuredModel]
) -> tuple[Dataset, Dataset, list[str]]:
    if arguments.treebank is None:
        raise ValueError("give --treebank: a source model is trained on gold annotation")
    raw = split_of(arguments.treebank, arguments.split, arguments.data)
    notes = []
    dev = _dev(arguments, notes)
    if dev is None:
        raw, held_out = hold_out(raw)
        dev, report = prepare(held_out, gold=True, faulty=arguments.faulty)
        notes.append(f"held out from the end of {arguments.treebank} {arguments.split}: {report}")
    train, report = prepare(
        raw,
        gold=True,
        faulty=arguments.faulty,
        max_length=arguments.max_length,
        added_tokens=model.leading + model.trailing,
    )
    notes.append(f"{arguments.treebank} {arguments.split}: {report}")
    for note in notes:
        console.print(note)
    return train, dev, notes


def _dev(arguments: TrainSourceArguments, notes: list[str]) -> Dataset | None:
    treebank = arguments.dev_treebank or arguments.treebank
    assert treebank is not None
    try:
        dev, note = gold_rows(treebank, arguments.dev_split, arguments.data, faulty=arguments.faulty)
    except ValueError:
        if arguments.dev_treebank is not None:
            raise
        return None
    notes.append(note)
    return dev


def _fresh_model(arguments: TrainSourceArguments, train: Dataset) -> StructuredModel:
    model_class, config_class = KINDS[arguments.task]
    given = key_values(arguments.model)
    settings = model_class.settings_from_rows(train, given.get("column"))
    config = config_class(
        **(settings | {"encoder": "pretrained" if arguments.encoder else "vectors"} | given)
    )
    if (arguments.encoder is None) == (arguments.vectors is None):
        raise ValueError("give either --vectors (word vectors) or --encoder (a pretrained encoder)")
    if arguments.encoder is not None:
        hub = {"revision": arguments.encoder_revision} if arguments.encoder_revision else {}
        return model_class.from_encoder(config, arguments.encoder, layers=arguments.encoder_layers, **hub)
    vectors = read_word_vectors(arguments)
    assert vectors is not None
    return model_class.from_vectors(config, vectors)
