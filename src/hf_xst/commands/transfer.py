"""The command `hf-xst transfer`: train a target model on charts."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from datasets import Dataset
from transformers import set_seed

from hf_xst.charts.dataset import ChartInfo, load_charts
from hf_xst.commands.initial_model import initial_model, resolve_initial_model
from hf_xst.commands.options import TransferArguments, takes_options
from hf_xst.commands.presets import chart_use, resolve_transfer
from hf_xst.commands.runs import RunFolder, summary
from hf_xst.commands.sentences import annotate, gold_rows, read_word_vectors
from hf_xst.commands.training import cached_embeddings, train_and_save, training_arguments
from hf_xst.console import say
from hf_xst.data import WordVectors
from hf_xst.data.treebank_facts import treebank_facts
from hf_xst.files import MODEL, RESULTS
from hf_xst.models.modeling import StructuredModel
from hf_xst.sources.averaging import AVERAGE, SCRATCH
from hf_xst.sources.word_checks import check_text
from hf_xst.training.collation import ChartUse
from hf_xst.training.results import ModelOrigin, TransferResults
from hf_xst.training.transfer import ChartTrainer


@takes_options(TransferArguments)
def transfer(options: TransferArguments) -> TransferResults:
    """Train on charts and save the target model.

    Repeated after an interruption, it resumes and ends with the same model; once finished, it returns its
    results, which are also in OUTPUT/run/results.json, without doing anything.

    Raises:
        ValueError: charts and initial model do not fit, or OUTPUT holds another run.
    """
    folder = RunFolder(options.output, options, MODEL)
    if folder.is_finished():
        return TransferResults.load(folder.run)
    set_seed(options.seed)
    charts, info = load_charts(options.charts)
    given, use = options.init_from is not None, chart_use(options, info)
    options = resolve_initial_model(resolve_transfer(options, info), info)
    vectors = read_word_vectors(options)
    model = initial_model(options, charts, info, vectors, given=given)
    if options.train_words:
        model.train_word_vectors()
    check_text({"the initial model": model}, charts)
    dev = development_rows(options, model, vectors)
    settings = training_arguments(
        folder,
        options,
        options.seed,
        learning_rate=options.learning_rate,
        eval_strategy="steps" if dev is not None else "no",
        eval_steps=options.eval_every,
        save_strategy="steps",
        save_steps=options.eval_every,
    )
    trainer = ChartTrainer(
        model,
        settings,
        charts,
        info.names,
        l2=options.l2 or 0.0,
        eval_dataset=dev,
        embeddings=cached_embeddings(model, options, [charts, dev]),
        use=use,
    )
    folder.begin()
    train_and_save(trainer, folder)
    results = _results(trainer, options, use, info, len(charts))
    if dev is not None:
        treebanks = treebank_facts(str(options.treebank), options.split, options.data)
        results = replace(results, dev=trainer.evaluate(), dev_treebanks=treebanks)
        summary(f"{options.output} on the development split", results.dev or {})
    else:
        say(f"the model is in {options.output}")
    folder.write_json(RESULTS, results)
    return results


def _results(
    trainer: ChartTrainer, options: TransferArguments, use: ChartUse, info: ChartInfo, sentences: int
) -> TransferResults:
    times, names = trainer.empty_sentences()
    if times:
        say(
            f"{times} times a chart contained no structure, and the pool's best structure replaced it; "
            f"first: {', '.join(names)}",
            "yellow",
        )
    init_from = str(options.init_from)
    kinds: dict[str, Literal["average", "scratch"]] = {AVERAGE: "average", SCRATCH: "scratch"}
    return TransferResults(
        updates=trainer.state.global_step,
        learning_rate=trainer.args.learning_rate,
        initial_model=None if init_from in kinds else ModelOrigin.of(init_from),
        sentences=sentences,
        empty_charts=times,
        empty_chart_ids=names,
        l2=options.l2 or 0.0,
        use=use,
        charts=info,
        batch_size=options.batch_size,
        initialised_from=kinds.get(init_from, "model"),
    )


def development_rows(
    options: TransferArguments, model: StructuredModel, vectors: WordVectors | None
) -> Dataset | None:
    """Load the rows for development scores, if a treebank is given."""
    if options.treebank is None:
        return None
    rows, _ = gold_rows(options.treebank, options.split, options.data, model.columns, faulty="skip")
    rows = annotate(rows, options.tagger, vectors, keep_gold=True)
    check_text({"the initial model": model}, rows)
    return rows
