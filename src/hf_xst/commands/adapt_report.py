"""Describe adapted models without labels and, if there is gold, score them."""

from __future__ import annotations

import random
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np
from datasets import Dataset

from hf_xst.charts.dataset import load_charts
from hf_xst.commands.initial_model import check_digests
from hf_xst.commands.options import AdaptArguments, BuildChartsArguments
from hf_xst.commands.presets import AGREEMENT, UNIFORM
from hf_xst.commands.sentences import annotate, prepare_gold, read_word_vectors, split_of
from hf_xst.commands.vote import combine
from hf_xst.console import say
from hf_xst.data import WordVectors, first_rows
from hf_xst.data.sentence import BLANK
from hf_xst.drawing import tree_text
from hf_xst.drawing.text import isolated
from hf_xst.files import write_text
from hf_xst.hub.markdown import block, cell, code, plain
from hf_xst.inference.annotation import TAGGER_FOLDER, AnnotationSettings, Annotator
from hf_xst.metrics import score
from hf_xst.metrics.attachment import PUNCTUATION
from hf_xst.models.columns import Row, StructureColumns
from hf_xst.models.modeling import StructuredModel
from hf_xst.models.running import predict_rows
from hf_xst.models.words import UNKNOWN, VectorTable
from hf_xst.sources.agreement import SELECTION_SENTENCES, measure_sources
from hf_xst.sources.loading import SourceSettings, Task, load_sources, ready_model
from hf_xst.sources.pool import SourcePool
from hf_xst.training.trainer import joint_accuracy

MARK = "<!-- written by hf-xst adapt -->"
DRAWN, RESAMPLES = 20, 1000
# By task: names of scores in `hf_xst.metrics`, and of the count that they are percentages of.
SCORES: Mapping[str, tuple[Mapping[str, str], str]] = {
    "tagger": ({"accuracy": "accuracy"}, "words"),
    "parser": ({"las": "LAS", "uas": "UAS"}, "words_without_punct"),
}

Scores = dict[str, dict[str, list[float]]]
"""By method and score: its value, and the lower and upper end of its interval."""


@dataclass(frozen=True)
class TextCounts:
    """Counts of the text, and whether any word has a tag."""

    sentences: int
    words: int
    has_tags: bool


@dataclass(frozen=True)
class Stage:
    """A transferred model: its task, the options of its charts, and its folder."""

    task: Task
    build: BuildChartsArguments
    model: Path


def gold_for(task: str, options: AdaptArguments) -> Dataset | None:
    """Load the sentences with gold for a task, if given; raise ValueError if none of them can be scored."""
    path, columns = options.gold, (options.column or "upos",) if task == "tagger" else ("head", "deprel")
    if path is None:
        return None
    whole = split_of(f"test={path}", "test", [])
    rows, _ = prepare_gold(whole, path, columns, labelled="all", faulty="skip")
    if task == "parser" and all(map(PUNCTUATION.issuperset, rows["upos"])):
        raise ValueError(f"{path}: all words are punctuation")
    return rows


def write_report(
    path: Path, options: AdaptArguments, counts: TextCounts, stages: Sequence[tuple[Stage, Dataset | None]]
) -> dict[str, Scores] | None:
    """Write the report; return the scores by task and method, None without gold."""
    vectors = read_word_vectors(options)
    name, scores = code(Path(options.text).name), dict[str, Scores]()
    parts = [f"{MARK}\n# Report\n\nText: {name}, {_counted(counts.sentences, counts.words)}.\n"]
    for stage, gold in stages:
        reporter = StageReporter(stage, vectors, options.seed)
        parts.append(reporter.section(counts))
        if gold is not None:
            scores[stage.task] = reporter.scores(gold)
            parts.append(_score_table(stage.task, scores[stage.task], len(gold)))
    parts += [reporter.drawn_sentences(), _next_steps(options, stage)]
    write_text(path, "".join(parts))
    return scores or None


class StageReporter:
    """Describe a new model and its sources; raise ValueError if these are not those of its charts."""

    def __init__(self, stage: Stage, vectors: WordVectors | None, seed: int) -> None:
        self.stage, self._vectors, self._seed = stage, vectors, seed
        charts, self._info = load_charts(stage.build.output)
        self._rows = charts.select_columns(["sent_id", "words", "upos"])
        self._sources = load_sources(stage.build.sources, vectors, stage.build)
        check_digests(self._sources, self._info, "restore it, or choose another --output to start over")
        self._pool = SourcePool(self._sources)
        self._model = ready_model(str(stage.model))

    def section(self, counts: TextCounts) -> str:
        """Describe text, sources and model without labels."""
        task, rows, settings = self.stage.task, self._rows, self._info.settings
        sample, words = list(first_rows(rows, SELECTION_SENTENCES)), sum(map(len, rows["words"]))
        measures = measure_sources(self._pool, sample)
        weights = settings.weights or dict.fromkeys(measures, 1 / len(measures))
        origin = AGREEMENT if self._info.weights_by_agreement else self.stage.build.weights or UNIFORM
        table = "\n".join(
            f"| {cell(name)} | {'-' if len(measures) == 1 else format(each['agreement'], '.3f')} | "
            f"{weights[name]:.3f} |"
            for name, each in measures.items()
        )
        annotations = Annotator([self._model], AnnotationSettings(confidence=True)).annotate(sample)
        part = "arc" if task == "parser" else "tag"
        confidence = fmean(value for each in annotations for value in each.probabilities[part])
        votes = list(combine(self._pool, sample))
        agreeing = joint_accuracy([each.columns for each in annotations], votes, self._model.columns)
        return f"""
## {task.capitalize()}

The sources read {_counted(len(rows), words)} of the text and left out
{_counted(counts.sentences - len(rows), counts.words - words)} ({plain(self._info.sentences)}).

On the first {len(sample)} of them, with weights {plain(origin)} and temperature {settings.temperature:g}:

| source | agreement with the others | weight in the pool |
|---|---|---|
{table}

- Mean confidence of the new {task} (probability of each {part}): {confidence:.3f}
- Words on which it differs from the majority vote of the sources: {100 - agreeing:.1f}%
- {_unknown(self._model, sample)}
"""

    def scores(self, gold: Dataset) -> Scores:
        """Score each source, vote, pool and the new model, with intervals; warn of those that cannot be.

        Sources and model read the tags of the new tagger, if there is one.
        """
        rows, task = list(annotate(gold, self.stage.build.tagger, self._vectors)), self.stage.task
        methods: dict[str, Callable[[], Iterable[Row]]] = {
            f"{name} alone": partial(combine, SourcePool({name: source}), rows)
            for name, source in self._sources.items()
        }
        settings = self._info.settings
        weights, temperature = self._pool.weights(settings.weights), settings.temperature
        pooled = partial(combine, self._pool, rows, "pool", weights, settings.floor, temperature=temperature)
        methods |= {
            "majority vote of the sources": partial(combine, self._pool, rows),
            "pool of the sources, decoded": pooled,
            f"new {task}": partial(predict_rows, self._model, rows),
        }
        scores: Scores = {}
        for method, predict in methods.items():
            try:
                predictions = list(predict())
            except ValueError as error:  # e.g. a file of predictions lacks these sentences
                say(f"{method} is not scored: {error}", "yellow")
                continue
            scores[method] = score_with_intervals(self._pool.kind, predictions, list(gold), self._seed)
        return scores

    def drawn_sentences(self) -> str:
        """Return sentences drawn at random, as trees or tagged words."""
        count = min(DRAWN, len(self._rows))
        rows = list(self._rows.select(random.Random(self._seed).sample(range(len(self._rows)), count)))
        drawings = "\n".join(
            f"{code(row['sent_id'])}:\n\n{block(_drawing(row, columns), 'text')}\n"
            for row, columns in zip(rows, predict_rows(self._model, rows), strict=True)
        )
        return f"""
## {count} sentences of the text, drawn at random, with predictions

{drawings}"""


def score_with_intervals(
    kind: StructureColumns, predictions: Sequence[Row], gold: Sequence[Row], seed: int
) -> dict[str, list[float]]:
    """Return scores by name: value, lower and upper end of the 95 % bootstrap interval over sentences."""
    task = "parser" if "head" in kind.columns else "tagger"
    names, unit = SCORES[task]
    counts = np.zeros((len(gold), 1 + len(names)))  # of each sentence: scored words, then correct ones
    for index, (prediction, reference) in enumerate(zip(predictions, gold, strict=True)):
        if task == "tagger" or not PUNCTUATION.issuperset(reference["upos"]):
            sentence = score([prediction], [reference], kind.columns, kind.scheme)
            counts[index] = [1, *(sentence[name] / 100 for name in names)]
            counts[index] *= sentence[unit]
    draws = np.random.default_rng(seed).multinomial(len(gold), np.full(len(gold), 1 / len(gold)), RESAMPLES)
    sums = np.concatenate([counts.sum(0, keepdims=True), draws @ counts])  # the gold itself, then resamples
    sums = sums[sums[:, 0] > 0]
    percent = 100 * sums[:, 1:] / sums[:, :1]
    ends = np.percentile(percent[1:], [2.5, 97.5], axis=0)
    return {name: [float(percent[0, i]), *map(float, ends[:, i])] for i, name in enumerate(names)}


def _score_table(task: str, scores: Scores, sentences: int) -> str:
    names = SCORES[task][0]
    table = "\n".join(
        f"| {plain(method)} |" + "".join(" {:.1f} ({:.1f} to {:.1f}) |".format(*row[name]) for name in names)
        for method, row in scores.items()
    )
    return f"""
On {sentences} sentences with gold, with 95 % bootstrap intervals over sentences:

| method | {" | ".join(names.values())} |
|---{"|---" * len(names)}|
{table}
"""


def _next_steps(options: AdaptArguments, stage: Stage) -> str:
    """List the steps towards a model whose quality is known."""
    output = Path(options.output)
    has_tagger = bool(options.taggers) and stage.task == "parser"
    gold = ["--treebank", "test=GOLD.conllu", "--split", "test"]
    gold += ["--tagger", str(output / TAGGER_FOLDER)] if has_tagger else []
    gold += ["--vectors", options.vectors] if options.vectors else []
    text, model = str(output / "run" / "text.conllu"), ["--model", str(output)]
    predict = ["predict", *model, "--input", text, "--confidence", "--output", "DRAFT.conllu"]
    evaluate = ["evaluate", *model, *gold, "--output", "SCORES"]
    sources = ["--sources", *stage.build.sources]
    for name, default in vars(SourceSettings()).items():
        value = getattr(stage.build, name)
        sources += [] if value == default else [f"--{name.replace('_', '-')}", str(value)]
    learn = ["learn-weights", *sources, *gold, "--output", "WEIGHTS"]
    drafting, scoring, learning = (
        block(shlex.join(["hf-xst", *words]), "sh") for words in (predict, evaluate, learn)
    )
    return f"""
## Next steps

1. Annotate 50 sentences of the text, for example by correcting a draft.

{drafting}

2. Score the model on them; `hf-xst adapt` with `--gold GOLD.conllu` also scores the sources.

{scoring}

3. Learn the weights of the sources from them, for `--{stage.task}-weights WEIGHTS/weights.yaml` and another
   `--output` of `hf-xst adapt`.

{learning}
"""


def _counted(sentences: int, words: int) -> str:
    return f"{sentences:,} sentences with {words:,} words"


def _unknown(model: StructuredModel, rows: Sequence[Row]) -> str:
    """Return the share of words without vectors, or of unknown pieces, as a line."""
    words = model.encoder.words
    if isinstance(words, VectorTable):
        known = [words.table.lookup(word) != UNKNOWN for row in rows for word in row["words"]]
        return f"Words without a vector: {1 - fmean(known):.1%}"
    unknown = pieces = 0
    for row in rows:
        features = words.featurise([row["words"]])
        ids = features["input_ids"][features["piece_slots"] >= 0]
        pieces, unknown = pieces + len(ids), unknown + int((ids == words.tokenizer.unk_token_id).sum())
    return f"Pieces of words that the encoder does not know: {unknown / max(1, pieces):.1%}"


def _drawing(row: Row, columns: Row) -> str:
    if "head" not in columns:
        (tags,) = columns.values()
        return " ".join(f"{isolated(w)}/{tag}" for w, tag in zip(row["words"], tags, strict=True))
    has_tags = any(tag != BLANK for tag in row["upos"])
    return tree_text(row["words"], columns["head"], columns["deprel"], row["upos"] if has_tags else None)
