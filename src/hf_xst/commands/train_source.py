"""Train a source model on a treebank."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

from datasets import Dataset, List, Value
from transformers import EarlyStoppingCallback, TrainingArguments, set_seed

from hf_xst.commands.options import TrainSourceArguments
from hf_xst.commands.presets import SOURCE_LEARNING_RATE
from hf_xst.commands.runs import RunFolder, check_output, say_if_alone, summary
from hf_xst.commands.sentences import (
    annotate,
    has_split,
    labelled_rows,
    needs_structure,
    other_labels,
    read_word_vectors,
    some,
    split_of,
)
from hf_xst.commands.training import kept_states, key_values, train_and_save, training_arguments
from hf_xst.console import say
from hf_xst.data import hold_out, prepare
from hf_xst.data.treebank_facts import treebank_facts
from hf_xst.files import MODEL, RESULTS
from hf_xst.models.kinds import KINDS
from hf_xst.models.modeling import StructuredModel
from hf_xst.models.pretrained_words import PretrainedWords
from hf_xst.remote import split_revision
from hf_xst.sources.pool import SourceSpec, load_model, weights_digest
from hf_xst.sources.word_checks import tell_of_unknown_words
from hf_xst.training.supervised import SupervisedTrainer

_DEV = "dev"


def train_source(arguments: TrainSourceArguments) -> dict[str, float]:
    """Train, evaluate on the development part, and save.

    Repeated after an interruption, it goes on where it stopped and ends with the same model; once finished,
    it returns its results without doing anything.

    Args:
        arguments: see the class.

    Returns:
        The development scores.

    Raises:
        ValueError: no treebank, not exactly one of vectors and encoder is given, the start does not fit, or
            OUTPUT holds another run.
    """
    check_output(arguments.output, MODEL)
    folder = RunFolder(arguments.output, arguments)
    finished = folder.finished()
    if finished is not None:
        return dict(finished["dev"])
    set_seed(arguments.seed)
    start = _start(arguments)
    fields = _model_fields(arguments) if start is None else start.label_settings
    train, dev, notes = _data(arguments, fields)
    model = _fresh_model(arguments, fields, train) if start is None else _with_labels(start, train)
    tell_of_unknown_words(model, train["words"])
    if arguments.tagger is not None:
        if set(model.columns) <= {model.annotation_column}:
            raise ValueError("--tagger would replace the gold that --task tagger learns from; leave it out")
        vectors = read_word_vectors(arguments)
        train = annotate(train, arguments.tagger, vectors)
        dev = annotate(dev, arguments.tagger, vectors, keep_gold=True)
    settings = _settings(arguments, folder, f"eval_{model.main_metric}")
    say_if_alone(settings.world_size)
    folder.begin(is_main=settings.process_index == 0)
    states = kept_states(model, arguments, [train, dev])
    stop = EarlyStoppingCallback(arguments.patience)
    trainer = SupervisedTrainer(model, settings, train, dev, states, callbacks=[stop])
    train_and_save(trainer, folder)
    scores: dict[str, float] = trainer.evaluate()
    folder.write_json(
        RESULTS,
        {
            "data": notes,
            "treebanks": treebank_facts(str(arguments.treebank), arguments.split, arguments.data),
            "dev_treebanks": treebank_facts(
                str(arguments.dev_treebank or arguments.treebank), arguments.dev_split, arguments.data
            ),
            **_beginning(arguments),
            "train_sentences": len(train),
            "dev_sentences": len(dev),
            "updates": trainer.state.global_step,
            "best_dev": trainer.state.best_metric,
            "dev": scores,
        },
    )
    summary(f"{arguments.output} on the development part", scores)
    return scores


def _beginning(arguments: TrainSourceArguments) -> dict[str, Any]:
    """Name what was trained before: the pretrained encoder, or the start; a local folder has no id."""
    if arguments.init_from is not None:
        path, revision = split_revision(arguments.init_from)
        return {"start": {"id": SourceSpec("start", path).public_id(), "revision": revision}}
    if arguments.encoder is None:
        return {"encoder": None}
    name = Path(arguments.encoder).name
    spec = SourceSpec(name, *split_revision(arguments.encoder))
    return {"encoder": {"name": name, "id": spec.public_id(), "revision": spec.revision}}


def _start(arguments: TrainSourceArguments) -> StructuredModel | None:
    """Load the model to go on from, if one is told.

    Raises:
        ValueError: it is of another kind, or what it brings is told as well.
    """
    if arguments.init_from is None:
        return None
    own = ("encoder", "encoder_layers")
    told = [f"--{name}" for name in own if getattr(arguments, name)]
    fields = _model_fields(arguments)
    told += [f"--model {name}" for name in fields if name != "frozen_layers"]
    if told:
        raise ValueError(
            f"--start brings its own encoder and configuration, of which only frozen_layers may be changed: "
            f"leave out {', '.join(told)}"
        )
    model = load_model(arguments.init_from, vectors=read_word_vectors(arguments))
    if not isinstance(model, KINDS[arguments.task][0]):
        raise ValueError(f"--task is {arguments.task}, the start is a {model.config.model_type}")
    model.config.start_sha256 = weights_digest(model)
    if fields:
        _freeze(model, fields["frozen_layers"])
    return model


def _freeze(model: StructuredModel, layers: int) -> None:
    """Train less or more of the start's encoder than was trained before."""
    words = model.encoder.words
    if not isinstance(words, PretrainedWords):
        raise ValueError(
            "--model frozen_layers is about a pretrained encoder; the start reads word vectors: leave it out"
        )
    model.config.frozen_layers = words.frozen_layers = layers
    words.freeze()


def _with_labels(model: StructuredModel, train: Dataset) -> StructuredModel:
    """Add labels that occur in the training sentences but not in the model."""
    column = model.label_settings.get("column", model.label_column)
    found = model.settings_from_rows(train, column, model.scheme)["labels"]
    missing = [name for name in found if name not in model.names]
    if missing:
        say(f"labels that the start does not have: {', '.join(missing)}")
        model.add_labels(missing)
    return model


def _settings(arguments: TrainSourceArguments, folder: RunFolder, metric: str) -> TrainingArguments:
    rate = arguments.learning_rate
    return training_arguments(
        folder,
        arguments,
        arguments.seed,
        learning_rate=SOURCE_LEARNING_RATE if rate is None else rate,
        lr_scheduler_type="reduce_lr_on_plateau",
        # torch halves when there have been more bad epochs than its patience; any rise counts as better.
        lr_scheduler_kwargs={
            "mode": "max",
            "factor": 0.5,
            "patience": max(0, arguments.plateau - 1),
            "threshold": 0.0,
        },
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_strategy="epoch",
        load_best_model_at_end=True,
        metric_for_best_model=metric,
        greater_is_better=True,
    )


def _model_fields(arguments: TrainSourceArguments) -> dict[str, Any]:
    """Read the fields of the model's configuration that are told."""
    _, config_class = KINDS[arguments.task]
    defaults = {field.name: field.default for field in dataclasses.fields(config_class)}
    found = key_values(arguments.model, set(defaults))
    for name, value in found.items():
        if isinstance(defaults[name], bool) and not isinstance(value, bool):
            raise ValueError(f"--model {name}={value}: expected true or false")
    return found


def _data(arguments: TrainSourceArguments, fields: dict[str, Any]) -> tuple[Dataset, Dataset, list[str]]:
    """Load the training and the development part, and what became of their sentences."""
    if arguments.treebank is None:
        raise ValueError("give --treebank: a source model is trained on gold annotation")
    model_class, _ = KINDS[arguments.task]
    columns = (fields.get("column", model_class.label_column),)
    ready = partial(
        prepare, gold=needs_structure(columns), labels=other_labels(columns), faulty=arguments.faulty
    )
    raw = split_of(arguments.treebank, arguments.split, arguments.data)
    treebank = arguments.dev_treebank or arguments.treebank
    told = arguments.dev_treebank is not None or arguments.dev_split != _DEV
    if told or has_split(treebank, _DEV, arguments.data):
        held, name = (
            split_of(treebank, arguments.dev_split, arguments.data),
            f"{treebank} {arguments.dev_split}",
        )
    else:
        raw, held = hold_out(raw)
        name = f"held out from the end of {arguments.treebank} {arguments.split}"
    added = model_class.leading + model_class.trailing
    dev, report = ready(held)
    dev, unlabelled = labelled_rows(dev, columns, all_words=True)
    notes = [f"{name}: {report}{unlabelled}"]
    train, report = ready(raw, max_length=arguments.max_length, added_tokens=added)
    train, unlabelled = labelled_rows(train, columns)
    notes.append(f"{arguments.treebank} {arguments.split}: {report}{unlabelled}")
    for rows, note in zip((dev, train), notes, strict=True):
        some(rows, note)
        say(note)
    return train, dev, notes


def _fresh_model(arguments: TrainSourceArguments, fields: dict[str, Any], train: Dataset) -> StructuredModel:
    model_class, config_class = KINDS[arguments.task]
    if (arguments.encoder is None) == (arguments.vectors is None):
        raise ValueError("give either --vectors (word vectors) or --encoder (a pretrained encoder)")
    column = fields.get("column", model_class.label_column)
    if train.features[column] != List(Value("string")):
        raise ValueError(f"--model column={column}: expected a column with a label for each word")
    settings = model_class.settings_from_rows(train, column, fields.get("scheme"))
    told = settings | {"encoder": "pretrained" if arguments.encoder else "vectors"} | fields
    try:
        config = config_class(**told)
    except TypeError as error:  # a word where a number is compared
        raise ValueError(
            f"--model {' '.join(arguments.model)}: a value is of another type ({error})"
        ) from error
    if arguments.encoder is not None:
        encoder, revision = split_revision(arguments.encoder)
        hub = {"revision": revision} if revision else {}
        return model_class.from_encoder(config, encoder, layers=arguments.encoder_layers, **hub)
    vectors = read_word_vectors(arguments)
    assert vectors is not None
    return model_class.from_vectors(config, vectors)
