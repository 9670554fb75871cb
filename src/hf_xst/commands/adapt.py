"""The command `hf-xst adapt`: make a tagger and a parser for a language from text and sources."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hf_xst.charts.dataset import ChartInfo
from hf_xst.commands.adapt_report import Scores, Stage, TextCounts, gold_for, write_report
from hf_xst.commands.build_charts import build_charts
from hf_xst.commands.options import (
    AdaptArguments,
    BuildChartsArguments,
    TransferArguments,
    shared_options,
    takes_options,
)
from hf_xst.commands.presets import AGREEMENT, UNIFORM
from hf_xst.commands.runs import CONFIG, RunFolder
from hf_xst.commands.sentences import read_word_vectors
from hf_xst.commands.transfer import transfer
from hf_xst.console import say
from hf_xst.data import ConlluSentence, iterate_unlabelled, read_conllu, write_conllu
from hf_xst.data.sentence import BLANK
from hf_xst.files import CHARTS, MODEL, protect_files, protect_inputs, sha256_of
from hf_xst.inference.annotation import TAGGER_FOLDER
from hf_xst.models.modeling import StructuredModel
from hf_xst.models.pretrained_files import read_encoder_config
from hf_xst.processes import process_index
from hf_xst.sources.agreement import read_weights
from hf_xst.sources.averaging import SCRATCH
from hf_xst.sources.loading import Task, load_sources
from hf_xst.sources.pool import SourcePool

PREFIX, TEXT, UPOS = "adapt-", "text.conllu", "upos"
BEGUN = f"{PREFIX}{CONFIG}"


@dataclass(frozen=True)
class AdaptResults:
    """The new models' folders, the report in Markdown and, with gold, scores by task and method."""

    parser: Path | None  # with the new tagger inside, if there is one
    tagger: Path | None
    report: Path
    scores: dict[str, Scores] | None


@takes_options(AdaptArguments)
def adapt(options: AdaptArguments) -> AdaptResults:
    """Transfer a tagger, then a parser that reads its tags, and write a report on them.

    A repeated command reuses what is complete and resumes the rest.

    Example:
        >>> results = adapt(text="my.txt", taggers=["en=t/en", "de=t/de"], parsers=["en=p/en", "de=p/de"],
        ...                 output="models/mine")  # doctest: +SKIP
        >>> print(results.report.read_text())  # doctest: +SKIP

    Raises:
        ValueError: sources, text and options do not fit each other, or OUTPUT holds something else.
    """
    files = (MODEL, f"{TAGGER_FOLDER}/{MODEL}")
    folder = RunFolder(options.output, options, *files, prefix=PREFIX)
    report = folder.path / "report.md"
    protect_inputs(options, report, folder.run / TEXT)
    protect_files(report, remedy="choose another --output")
    if not options.taggers and not options.parsers:
        raise ValueError("no sources: give --taggers, --parsers, or both")
    if options.parsers and options.column not in (None, UPOS):
        raise ValueError(f"--column {options.column} is for --taggers alone: parsers read UPOS tags")
    gold = {task: gold_for(task, options) for task, (sources, _) in _sources(options).items() if sources}
    text, counts = _normalise_text(options, folder)
    _check_sources(options, counts.has_tags)
    folder.begin()
    stages: list[Stage] = []
    tagger = None
    if options.taggers:
        tagger = folder.run / "tagger" / "model" if options.parsers else folder.path
        stages.append(_transfer(options, folder, text, "tagger", tagger))
    if options.parsers:
        stages.append(_transfer(options, folder, text, "parser", folder.path, tagger))
        tagger = tagger and _copy_tagger(tagger, folder.path / TAGGER_FOLDER)
    scores = write_report(report, options, counts, [(stage, gold[stage.task]) for stage in stages])
    if scores is not None:
        folder.write_json("adapt-scores.json", scores)
    say(f"the report is {report}")
    return AdaptResults(folder.path if options.parsers else None, tagger, report, scores)


def _sources(options: AdaptArguments) -> dict[Task, tuple[list[str], str | None]]:
    """Return the sources of each task, and `--weights`."""
    return {
        "tagger": (options.taggers, options.tagger_weights),
        "parser": (options.parsers, options.parser_weights),
    }


def _check_sources(options: AdaptArguments, has_tags: bool) -> None:
    """Reject sources that would fail after hours of training."""
    if options.encoder is not None:
        read_encoder_config(options.encoder)
    vectors = read_word_vectors(options)
    for task, (sources, weights) in _sources(options).items():
        if not sources:
            continue
        models = load_sources(sources, vectors, _build(options, task))
        pool = SourcePool(models)
        if weights not in (None, AGREEMENT, UNIFORM):
            pool.weights(read_weights(weights))
        own = {name: model for name, model in models.items() if isinstance(model, StructuredModel)}
        if not own and options.encoder is None and options.vectors is None:
            raise ValueError(
                f"no source in --{task}s is a model of this package, from which the new {task} could be "
                "initialised: give --encoder (or --vectors) to train it from scratch"
            )
        for name, model in own.items():
            reads_tags = model.annotation_column in model.input_columns and not model.config.upos_dropout
            if reads_tags and not has_tags and not options.taggers:
                raise ValueError(
                    f"the parser {name} reads UPOS tags, which {options.text} does not have: give --taggers, "
                    "or a tagged text (CoNLL-U)"
                )


def _normalise_text(options: AdaptArguments, folder: RunFolder) -> tuple[Path, TextCounts]:
    """Write the text's words and tags to OUTPUT/run/text.conllu once, and count them; reject another text."""
    path, is_begun = folder.run / TEXT, (folder.run / BEGUN).exists()
    inputs = {"text": sha256_of(options.text), "format": str(options.format)}
    inputs |= {f"--{task}s": str(bool(sources)) for task, (sources, _) in _sources(options).items()}
    folder.check_inputs(inputs, resumed=is_begun)
    if not is_begun or not path.exists():
        normalised = (
            ConlluSentence.from_words(each.words, sent_id=each.identifier, columns={"upos": each.upos})
            for each in iterate_unlabelled(options.text, format=options.format)
        )
        write_conllu(normalised, path)
    sizes = [(len(each.words), any(tag != BLANK for tag in each.upos)) for each in read_conllu(path)]
    if not sizes:
        raise ValueError(f"{options.text} has no sentences")
    return path, TextCounts(len(sizes), sum(words for words, _ in sizes), any(tagged for _, tagged in sizes))


def _transfer(
    options: AdaptArguments,
    folder: RunFolder,
    text: Path,
    task: Task,
    output: Path,
    tagger: Path | None = None,
) -> Stage:
    """Build charts in OUTPUT/run/TASK/charts, and train on them."""
    say(f"{task}: building charts and training", "bold")
    charts = str(folder.run / task / "charts")
    build = _build(options, task, output=charts, text=str(text), tagger=tagger and str(tagger))
    is_built = Path(charts, CHARTS).exists() and not RunFolder(charts, build).differences()
    info = ChartInfo.load(Path(charts)) if is_built else build_charts(build)
    from_scratch = info.initial_model == SCRATCH
    changes: dict[str, Any] = {"output": str(output), "charts": charts}
    if not from_scratch:
        changes |= {"encoder": None, "encoder_layers": None, "model": []}
    elif options.encoder:
        changes |= {"vectors": None, "vector_rows": None}
    transfer(TransferArguments(**shared_options(options, TransferArguments) | changes))
    return Stage(task, build, output)


def _build(options: AdaptArguments, task: Task, **changes: Any) -> BuildChartsArguments:
    """Return the options of build-charts for a task."""
    sources, weights = _sources(options)[task]
    changes |= {"sources": sources, "task": task, "weights": weights}
    changes["column"] = (options.column or UPOS) if task == "tagger" else None
    return BuildChartsArguments(**shared_options(options, BuildChartsArguments) | changes)


def _copy_tagger(tagger: Path, target: Path) -> Path:
    """Copy the files of the tagger, without its run, into the folder where `predict` finds it."""
    if process_index() == 0 and not target.exists():
        aside = Path(tempfile.mkdtemp(prefix="tagger-", dir=target.parent / "run"))
        shutil.copytree(tagger, aside, ignore=shutil.ignore_patterns("run"), dirs_exist_ok=True)
        aside.rename(target)
    return target
