"""The command `hf-xst train-source`: train a source model on a treebank."""

from __future__ import annotations

from typing import Any

from datasets import Dataset, List, Value
from transformers import EarlyStoppingCallback, TrainingArguments, set_seed

from hf_xst.commands.initial_model import given_flags, model_fields, new_model
from hf_xst.commands.options import TrainSourceArguments, takes_options
from hf_xst.commands.presets import SOURCE_LEARNING_RATE, resolve_steps
from hf_xst.commands.runs import RunFolder, summary
from hf_xst.commands.sentences import (
    annotate,
    has_split,
    prepare_gold,
    read_word_vectors,
    report_crossing,
    split_of,
)
from hf_xst.commands.training import cached_embeddings, train_and_save, training_arguments
from hf_xst.console import say
from hf_xst.data import hold_out
from hf_xst.data.treebank_facts import treebank_facts
from hf_xst.files import MODEL, RESULTS
from hf_xst.models.kinds import KINDS
from hf_xst.models.modeling import StructuredModel
from hf_xst.models.pretrained_words import PretrainedWords
from hf_xst.sources.loading import load_model, weights_digest
from hf_xst.sources.word_checks import check_text
from hf_xst.training.results import ModelOrigin, SourceResults
from hf_xst.training.trainer import SupervisedTrainer

DEV = "dev"


@takes_options(TrainSourceArguments)
def train_source(options: TrainSourceArguments) -> SourceResults:
    """Train, evaluate on the development split, and save.

    Repeated after an interruption, it resumes and ends with the same model; once finished, it returns its
    results, which are also in OUTPUT/run/results.json, without doing anything.

    Raises:
        ValueError: not exactly one of vectors and encoder is given, the initial model does not fit, or OUTPUT
            holds another run.
    """
    folder = RunFolder(options.output, options, MODEL)
    if folder.is_finished():
        return SourceResults.load(folder.run)
    set_seed(options.seed)
    initial = _initial_model(options)
    fields = model_fields(KINDS[options.task], options.model) if initial is None else initial.label_settings
    train, dev, notes = _load_splits(options, fields)
    model = _from_scratch(options, fields, train) if initial is None else _with_labels(initial, train)
    for name, gold in (("training", train), ("development", dev)):
        notes += report_crossing(model, gold, name)
    if options.tagger is not None:
        if set(model.columns) <= {model.annotation_column}:
            raise ValueError("--tagger would replace the gold that --task tagger learns from; leave it out")
        vectors = read_word_vectors(options)
        train = annotate(train, options.tagger, vectors)
        dev = annotate(dev, options.tagger, vectors, keep_gold=True)
    check_text({"the initial model": model}, train)
    settings = _settings(options, folder, f"eval_{model.main_metric}")
    folder.begin()
    states = cached_embeddings(model, options, [train, dev])
    stop = EarlyStoppingCallback(options.patience)
    trainer = SupervisedTrainer(model, settings, train, dev, states, callbacks=[stop])
    train_and_save(trainer, folder)
    results = SourceResults(
        updates=trainer.state.global_step,
        learning_rate=trainer.args.learning_rate,
        dev=trainer.evaluate(),
        initial_model=None if options.init_from is None else ModelOrigin.of(options.init_from),
        data=notes,
        treebanks=treebank_facts(options.treebank, options.split, options.data),
        dev_treebanks=treebank_facts(
            options.dev_treebank or options.treebank, options.dev_split, options.data
        ),
        encoder=None if options.encoder is None else ModelOrigin.of(options.encoder),
        train_sentences=len(train),
        dev_sentences=len(dev),
        best_dev=trainer.state.best_metric,
    )
    folder.write_json(RESULTS, results)
    summary(f"{options.output} on the development split", results.dev or {})
    return results


def _initial_model(options: TrainSourceArguments) -> StructuredModel | None:
    """Load the model to fine-tune, if given; reject another kind, and options that conflict with it."""
    if options.init_from is None:
        return None
    fields = model_fields(KINDS[options.task], options.model)
    conflicts = [flag for flag in given_flags(options) if flag != "--model"]
    conflicts += [f"--model {name}" for name in fields if name != "frozen_layers"]
    if conflicts:
        raise ValueError(
            "--init-from has its own encoder and configuration, of which only frozen_layers can be changed: "
            f"leave out {', '.join(conflicts)}"
        )
    model = load_model(options.init_from, vectors=read_word_vectors(options))
    if not isinstance(model, KINDS[options.task]):
        raise ValueError(f"--task is {options.task}, the initial model is a {model.config.model_type}")
    model.config.start_sha256 = weights_digest(model)
    if fields:
        words = model.encoder.words
        if not isinstance(words, PretrainedWords):
            raise ValueError(
                "--model frozen_layers applies to pretrained encoders; the initial model reads word vectors: "
                "leave it out"
            )
        model.config.frozen_layers = words.frozen_layers = fields["frozen_layers"]
        words.freeze()
    return model


def _with_labels(model: StructuredModel, train: Dataset) -> StructuredModel:
    """Add labels that occur in the training sentences but not in the model."""
    column = model.label_settings.get("column", model.label_column)
    labels = model.settings_from_rows(train, column, model.scheme)["labels"]
    missing = [name for name in labels if name not in model.names]
    if missing:
        say(f"labels added to the initial model: {', '.join(missing)}")
        model.add_labels(missing)
    return model


def _settings(options: TrainSourceArguments, folder: RunFolder, metric: str) -> TrainingArguments:
    rate = options.learning_rate
    return training_arguments(
        folder,
        resolve_steps(options),
        options.seed,
        learning_rate=SOURCE_LEARNING_RATE if rate is None else rate,
        lr_scheduler_type="reduce_lr_on_plateau",
        # torch halves when there have been more bad epochs than its patience; any rise counts as better.
        lr_scheduler_kwargs={
            "mode": "max",
            "factor": 0.5,
            "patience": options.plateau - 1,
            "threshold": 0.0,
        },
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_strategy="epoch",
        load_best_model_at_end=True,
        metric_for_best_model=metric,
        greater_is_better=True,
    )


def _load_splits(options: TrainSourceArguments, fields: dict[str, Any]) -> tuple[Dataset, Dataset, list[str]]:
    """Load the training and the development split, with a summary of each."""
    model_class = KINDS[options.task]
    columns = (fields.get("column", model_class.label_column),)
    raw = split_of(options.treebank, options.split, options.data)
    treebank = options.dev_treebank or options.treebank
    is_given = options.dev_treebank is not None or options.dev_split != DEV
    if is_given or has_split(treebank, DEV, options.data):
        held_out = split_of(treebank, options.dev_split, options.data)
        name = f"{treebank} {options.dev_split}"
    else:
        raw, held_out = hold_out(raw)
        name = f"held out from the end of {options.treebank} {options.split}"
    dev, dev_note = prepare_gold(held_out, name, columns, labelled="all", faulty=options.faulty)
    train, train_note = prepare_gold(
        raw,
        f"{options.treebank} {options.split}",
        columns,
        labelled="any",
        faulty=options.faulty,
        max_length=options.max_length,
        added_tokens=model_class.leading + model_class.trailing,
    )
    return train, dev, [dev_note, train_note]


def _from_scratch(options: TrainSourceArguments, fields: dict[str, Any], train: Dataset) -> StructuredModel:
    model_class = KINDS[options.task]
    column = fields.get("column", model_class.label_column)
    if train.features[column] != List(Value("string")):
        raise ValueError(f"--model column={column}: expected a column with a label for each word")
    settings = model_class.settings_from_rows(train, column, fields.get("scheme"))
    return new_model(
        model_class, settings | fields, options, read_word_vectors(options), options.encoder_layers
    )
