"""The command `hf-xst adapt`: make a tagger and a parser for a language from text and sources."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import yaml

from hf_xst.charts.dataset import ChartInfo
from hf_xst.commands.adapt_report import Stage, TextCounts, check_report, gold_for, write_report
from hf_xst.commands.build_charts import build_charts
from hf_xst.commands.options import (
    AdaptArguments,
    BuildChartsArguments,
    LoopArguments,
    TransferArguments,
    takes_options,
)
from hf_xst.commands.runs import CONFIG, RunFolder, check_one_process, check_output
from hf_xst.commands.sentences import read_sources, read_word_vectors
from hf_xst.commands.transfer import transfer
from hf_xst.console import say
from hf_xst.data import ConlluSentence, iterate_unlabelled, write_conllu
from hf_xst.data.sentence import BLANK
from hf_xst.files import CHARTS, MODEL, sha256_of
from hf_xst.inference.annotation import TAGGER_FOLDER
from hf_xst.models.modeling import StructuredModel
from hf_xst.records import from_mapping, read_json
from hf_xst.sources.averaging import SCRATCH
from hf_xst.sources.loading import SourceSpec, source_kind

PREFIX, TEXT_RECORD = "adapt-", "adapt-text.json"


@dataclass(frozen=True)
class AdaptResults:
    """Results of adapt.

    Args:
        parser: folder of the new parser, with the new tagger inside, if there is one.
        tagger: folder of the new tagger.
        report: the report, in Markdown.
        scores: with gold, by task and method and score: value, lower and upper end of its interval.
    """

    parser: Path | None
    tagger: Path | None
    report: Path
    scores: dict[str, dict[str, dict[str, list[float]]]] | None


@takes_options(AdaptArguments)
def adapt(options: AdaptArguments) -> AdaptResults:
    """Transfer a tagger, then a parser that reads its tags, and write a report on them.

    A repeated command reuses what is complete and resumes the rest.

    Args:
        options: the data class, or its fields as keyword arguments.

    Raises:
        ValueError: sources, text and options do not fit each other, or OUTPUT holds something else.
    """
    check_one_process("adapt")
    check_output(options, MODEL, "report.md")
    folder = RunFolder(options.output, options, prefix=PREFIX)
    report = folder.path / "report.md"
    check_report(report)
    _check_options(options, folder)
    gold = {str(task): gold_for(task, options.gold) for task, sources in _sources(options) if sources}
    text, counts = _normalise_text(options, folder)
    if options.parsers and not options.taggers and not counts.has_tags:
        _check_reads_no_tags(options)
    folder.begin()
    stages: list[Stage] = []
    tagger = None
    if options.taggers:
        place = folder.run / "tagger" / "model" if options.parsers else folder.path
        stages.append(_transfer(options, folder, text, "tagger", place))
        tagger = place
    if options.parsers:
        stages.append(_transfer(options, folder, text, "parser", folder.path, tagger))
        tagger = None if tagger is None else _copy_tagger(tagger, folder.path / TAGGER_FOLDER)
    scores = write_report(report, options, counts, [(stage, gold[stage.task]) for stage in stages])
    if scores is not None:
        folder.write_json("adapt-scores.json", scores)
    say(f"the report is {report}")
    return AdaptResults(folder.path if options.parsers else None, tagger, report, scores)


def _sources(options: AdaptArguments) -> list[tuple[Literal["tagger", "parser"], list[str]]]:
    return [("tagger", options.taggers), ("parser", options.parsers)]


def _check_options(options: AdaptArguments, folder: RunFolder) -> None:
    """Reject options that would fail after hours of training."""
    if not options.taggers and not options.parsers:
        raise ValueError("no sources: give --taggers, --parsers, or both")
    config = folder.run / f"{PREFIX}{CONFIG}"
    if config.exists():
        before = yaml.safe_load(config.read_text(encoding="utf-8"))
        for task, sources in _sources(options):
            if bool(before[f"{task}s"]) != bool(sources):
                raise ValueError(
                    f"{folder.path} was begun {'with' if before[f'{task}s'] else 'without'} --{task}s; "
                    "choose another --output, or remove that folder to start over"
                )
    elif (folder.path / MODEL).exists() or (folder.path / TAGGER_FOLDER).exists():
        raise ValueError(f"--output {folder.path} already holds a model; choose another folder")
    for task, sources in _sources(options):
        kinds = {source_kind(spec) for spec in SourceSpec.parse_all(sources)} if sources else {"model"}
        if "model" not in kinds and options.encoder is None and options.vectors is None:
            raise ValueError(
                f"no source in --{task}s is a model of this package, from which the new {task} could be "
                "initialised: give --encoder (or --vectors) to train it from scratch"
            )


def _check_reads_no_tags(options: AdaptArguments) -> None:
    """Reject parsers that require tags if the text has none."""
    build = BuildChartsArguments(output=options.output, sources=options.parsers, task="parser")
    for name, source in read_sources(build, read_word_vectors(options)).items():
        if not isinstance(source, StructuredModel) or source.config.upos_dropout > 0:
            continue
        if source.annotation_column in source.input_columns:
            raise ValueError(
                f"the parser {name} reads UPOS tags, which {options.text} does not have: give --taggers, or "
                "a tagged text (CoNLL-U)"
            )


def _normalise_text(options: AdaptArguments, folder: RunFolder) -> tuple[Path, TextCounts]:
    """Write the words and tags of the text to OUTPUT/run/text.conllu once, and count them.

    Raises:
        ValueError: the text is empty, or another one than that of an earlier run.
    """
    path, record = folder.run / "text.conllu", folder.run / TEXT_RECORD
    identity = {"sha256": sha256_of(options.text), "format": options.format}
    if record.exists():
        content = read_json(record)
        if content["identity"] != identity:
            raise ValueError(
                f"{folder.path} was begun with another text than {options.text} holds now; choose another "
                "--output, or remove that folder to start over"
            )
        return path, from_mapping(TextCounts, content["counts"], str(record))
    sentences = words = 0
    has_tags = False

    def normalised() -> Iterator[ConlluSentence]:
        nonlocal sentences, words, has_tags
        for sentence in iterate_unlabelled(options.text, format=options.format):
            sentences, words = sentences + 1, words + len(sentence.words)
            has_tags = has_tags or any(tag != BLANK for tag in sentence.upos)
            columns = {"upos": sentence.upos}
            yield ConlluSentence.from_words(sentence.words, sent_id=sentence.identifier, columns=columns)

    write_conllu(normalised(), path)
    if not sentences:
        raise ValueError(f"{options.text} has no sentences")
    counts = TextCounts(sentences, words, has_tags)
    folder.write_json(TEXT_RECORD, {"identity": identity, "counts": asdict(counts)})
    return path, counts


def _transfer(
    options: AdaptArguments,
    folder: RunFolder,
    text: Path,
    task: Literal["tagger", "parser"],
    output: Path,
    tagger: Path | None = None,
) -> Stage:
    """Build charts in OUTPUT/run/TASK/charts, and train on them."""
    say(f"{task}: building charts and training", "bold")
    build = BuildChartsArguments(
        output=str(folder.run / task / "charts"),
        sources=options.taggers if task == "tagger" else options.parsers,
        task=task,
        text=str(text),
        tagger=None if tagger is None else str(tagger),
        preset=options.preset,
        label_map=options.label_map,
        confidence=options.confidence,
        vectors=options.vectors,
        vector_rows=options.vector_rows,
        seed=options.seed,
    )
    info = ChartInfo.load(Path(build.output)) if _is_built(build) else build_charts(build)
    from_scratch = info.initial_model == SCRATCH
    transfer(
        TransferArguments(
            output=str(output),
            charts=build.output,
            encoder=options.encoder if from_scratch else None,
            vectors=None if from_scratch and options.encoder else options.vectors,
            vector_rows=options.vector_rows,
            seed=options.seed,
            **{name: vars(options)[name] for name in LoopArguments.__dataclass_fields__},
        )
    )
    return Stage(build, output)


def _is_built(build: BuildChartsArguments) -> bool:
    """Return whether charts with these options are complete."""
    config = Path(build.output) / "run" / CONFIG
    is_complete = config.exists() and Path(build.output, CHARTS).exists()
    return is_complete and json.loads(json.dumps(asdict(build))) == yaml.safe_load(config.read_text("utf-8"))


def _copy_tagger(tagger: Path, target: Path) -> Path:
    """Copy the files of the tagger, without its run, into the folder where `predict` finds it."""
    if not target.exists():
        aside = target.with_name(f".{target.name}.part")
        shutil.rmtree(aside, ignore_errors=True)
        shutil.copytree(tagger, aside, ignore=shutil.ignore_patterns("run"))
        aside.rename(target)
    return target
