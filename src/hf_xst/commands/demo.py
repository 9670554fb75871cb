"""Run the whole method on invented languages, in minutes and with nothing downloaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.table import Table

from hf_xst.commands.adapt import adapt
from hf_xst.commands.build_charts import build_charts
from hf_xst.commands.evaluate import evaluate
from hf_xst.commands.options import OutputArguments, takes_options
from hf_xst.commands.runs import RunFolder
from hf_xst.commands.train_source import train_source
from hf_xst.commands.transfer import transfer
from hf_xst.console import FilteredConsole, console, print_table, say
from hf_xst.data import read_conllu
from hf_xst.demo import TARGET, source_languages, write_languages
from hf_xst.demo.small_models import size_options
from hf_xst.drawing import tree_text
from hf_xst.files import RESULTS
from hf_xst.inference.annotation import TAGGER_FOLDER
from hf_xst.metrics import main_score
from hf_xst.numerics import on_one_thread
from hf_xst.records import option, read_json
from hf_xst.sources.loading import load_model

TEST_SENTENCES = 400
METRICS = {"tagger": "UPOS accuracy", "parser": "LAS"}
SOURCES = [settings.name for settings in source_languages()]
DIRECT = [f"direct transfer from {name}" for name in SOURCES]
AVERAGE = "direct transfer, average"
ENSEMBLES = [VOTE := "majority vote", "ensemble (pool, decoded)"]
RECOMMENDED = "recommended (--preset recommended)"
OTHERS: Mapping[str, Mapping[str, Any]] = {
    "PPTX (paper, --rule union)": {"preset": "paper", "rule": "union"},
    (PAPER := "published method (--preset paper)"): {"preset": "paper"},
}
METHODS = [*DIRECT, AVERAGE, *ENSEMBLES, *OTHERS, RECOMMENDED]
# Chosen by development sentences of the target. The models are small, so steps are larger than the presets'.
FIRST_SOURCE: Mapping[str, Any] = {"learning_rate": 3e-3}
FINE_TUNING: Mapping[str, Any] = {"learning_rate": 1e-3}
TRANSFER: Mapping[str, Any] = {"learning_rate": 1e-3, "batch_size": 32}
SILENT = ["disable_tqdm=true"]
ADAPT = "adapt: tagger and parser of the new language, recommended preset"

Scores = dict[str, dict[str, float]]


@dataclass(frozen=True, kw_only=True)
class DemoArguments(OutputArguments):
    """Run the whole method on invented languages."""

    output: str = option(
        "Folder for languages, models and scores; repeat the command to resume a stopped run.", "runs/demo"
    )
    seed: int = option("Random seed of the sentences and of training.", 1)
    sentences: int = option(
        "Training sentences of each source language; the target has as many, unlabelled.", 600
    )
    epochs: int = option(
        "Epochs of the first source; the others are fine-tuned from it for a quarter of that.", 24
    )
    max_steps: int = option("Updates of each target model.", 150)


@takes_options(DemoArguments)
def demo(arguments: DemoArguments) -> Scores:
    """Invent languages, train sources, transfer by all methods, compare them, and parse a sentence.

    Returns:
        The main score of each method, by task.
    """
    folder = RunFolder(arguments.output, arguments, "data")
    results = read_json(folder.run / RESULTS) if folder.is_finished() else None
    if results is None:
        folder.begin()
        say("inventing four languages with treebanks, and a fifth with unlabelled text only")
        write_languages(folder.path / "data", arguments.sentences, arguments.seed, test=TEST_SENTENCES)
        made: dict[str, Any] = {}
        commands = steps(folder.path, arguments)
        for number, (title, command) in enumerate(commands.items(), start=1):
            say(f"[{number}/{len(commands)}] {title}")
            with _quiet():
                made[title] = command()
        scores: Scores = {}
        for task, rows in made[ADAPT].scores.items():
            values = [next(iter(row.values()))[0] for row in rows.values()]
            scores[task] = dict(zip([*DIRECT, *ENSEMBLES, RECOMMENDED], values, strict=True))
            scores[task][AVERAGE] = fmean(scores[task][title] for title in DIRECT)
            scores[task] |= {title: main_score(made[f"{task}: {title}"])[1] for title in OTHERS}
        results = {"scores": scores}
        folder.write_json(RESULTS, results)
    out = FilteredConsole()
    print_table(comparison(results["scores"]), out)
    out.print(lesson(results["scores"]), highlight=False, soft_wrap=True)
    _show_sentence(out, folder.path)
    return dict(results["scores"])


@contextmanager
def _quiet() -> Iterator[None]:
    """Run commands silently, since the demo prints one line per step, and in one thread.

    More threads would only wait for each other: the models are small.
    """
    quiet, console.quiet = console.quiet, True
    try:
        with on_one_thread():
            yield
    finally:
        console.quiet = quiet


def steps(output: Path, arguments: DemoArguments) -> dict[str, Callable[[], Any]]:
    """Return the commands that compare all methods, by title.

    `adapt` makes the recommended models and scores them, their sources and the ensembles. All parsers read
    the tags of its tagger. The languages are in OUTPUT/data.
    """
    data, target, initial = output / "data", str(output / TARGET), SOURCES[0]
    test = data / f"{TARGET}-test.conllu"
    shared: dict[str, Any] = {"seed": arguments.seed, "vectors": str(data / f"demo.{TARGET}.vec")}
    text = {**shared, "text": str(data / f"{TARGET}-train.conllu")}
    training = {**shared, "max_steps": arguments.max_steps, "trainer": SILENT, **TRANSFER}
    models = {task: {name: str(output / "sources" / task / name) for name in SOURCES} for task in METRICS}
    sources = {task: [f"{name}={path}" for name, path in named.items()] for task, named in models.items()}
    commands: dict[str, Callable[[], Any]] = {}
    for task, named in models.items():
        first = {"model": size_options(task), "epochs": arguments.epochs, **FIRST_SOURCE}
        later = {"init_from": named[initial], "epochs": max(1, arguments.epochs // 4), **FINE_TUNING}
        for name, path in named.items():
            commands[f"{task}: train the source {name}"] = partial(
                train_source,
                output=path,
                seed=arguments.seed,
                task=task,
                treebank=",".join(f"{split}={data / f'{name}-{split}.conllu'}" for split in ("train", "dev")),
                split=f"train[:{arguments.sentences}]",  # so that a changed --sentences is noticed
                vectors=str(data / f"demo.{name}.vec"),
                batch_size=32,
                patience=5,
                plateau=3,
                trainer=SILENT,
                **(first if name == initial else later),
            )
    commands[ADAPT] = partial(
        adapt,
        output=target,
        taggers=sources["tagger"],
        parsers=sources["parser"],
        gold=str(test),
        preset="recommended",
        **text | training,
    )
    for task in METRICS:
        tagger = f"{target}/{TAGGER_FOLDER}" if task == "parser" else None
        for title, settings in OTHERS.items():
            charts, model, scores = (
                str(output / "others" / task / settings.get("rule", settings["preset"]) / name)
                for name in ("charts", "model", "scores")
            )
            commands[f"{task}: build charts, {title}"] = partial(
                build_charts, output=charts, sources=sources[task], tagger=tagger, **text, **settings
            )
            commands[f"{task}: train, {title}"] = partial(transfer, output=model, charts=charts, **training)
            commands[f"{task}: {title}"] = partial(
                evaluate,
                output=scores,
                model=model,
                tagger=tagger,
                treebank=f"test={test}",
                vectors=shared["vectors"],
            )
    return commands


def comparison(scores: Scores) -> Table:
    """Return a table with a row per method and a column per task."""
    table = Table("method", *(METRICS[task] for task in scores))
    for title in METHODS:
        values = (f"{row[title]:.1f}" for row in scores.values())
        ends, style = title in (AVERAGE, ENSEMBLES[-1]), "bold" if title == RECOMMENDED else None
        table.add_row(title, *values, style=style, end_section=ends)
    return table


def lesson(scores: Scores) -> str:
    """Return one line that compares the recommended preset with the vote."""

    def gains(method: str) -> str:
        pairs = (f"{row[method] - row[VOTE]:+.1f} {METRICS[task]}" for task, row in scores.items())
        return ", ".join(pairs)

    return (
        f"The last row is one model, trained without labels: {gains(RECOMMENDED)} compared with the majority "
        f"vote of its {len(SOURCES)} sources (published method: {gains(PAPER)})."
    )


def _show_sentence(out: FilteredConsole, output: Path) -> None:
    """Draw a short test sentence, tagged and parsed by the recommended models."""
    target = output / TARGET
    parser, tagger = load_model(str(target)), load_model(str(target / TAGGER_FOLDER))
    test = read_conllu(output / "data" / f"{TARGET}-test.conllu")
    sentence = next(sentence for sentence in test if len(sentence.words) == 8)
    words = sentence.words
    (tagged,) = tagger.predict([{"words": words}])
    (parsed,) = parser.predict([{"words": words, **tagged}])
    correct = sum(str(head) == gold for head, gold in zip(parsed["head"], sentence.heads, strict=True))
    out.print(
        f"{target / 'report.md'} describes the new tagger and parser. Annotate text with both:\n"
        f"  hf-xst predict --model {target} --input FILE.txt\n"
        "A test sentence, tagged and parsed by the recommended models "
        f"({correct} of {len(words)} heads are correct):",
        soft_wrap=True,
        highlight=False,
    )
    drawing = tree_text(words, parsed["head"], parsed["deprel"], tagged["upos"])
    out.print(drawing, highlight=False, soft_wrap=True)
