"""Run the whole method on invented languages, in minutes and with nothing downloaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from rich.table import Table

from hf_xst.commands.build_charts import build_charts
from hf_xst.commands.evaluate import evaluate
from hf_xst.commands.options import (
    BuildChartsArguments,
    EvaluateArguments,
    TrainSourceArguments,
    TransferArguments,
    VoteArguments,
    option,
    takes_options,
)
from hf_xst.commands.runs import RunFolder, check_output
from hf_xst.commands.train_source import train_source
from hf_xst.commands.transfer import transfer
from hf_xst.commands.vote import vote
from hf_xst.console import FilteredConsole, console, say
from hf_xst.data import read_conllu
from hf_xst.demo import TARGET, source_languages, write_languages
from hf_xst.demo.small_models import size_options
from hf_xst.drawing import tree_text
from hf_xst.files import RESULTS
from hf_xst.metrics import main_score
from hf_xst.records import read_json
from hf_xst.sources.loading import load_model

TEST_SENTENCES = 400
METRICS = {"parser": "LAS", "tagger": "UPOS accuracy"}
VOTES = {(VOTE := "majority vote"): "majority", "ensemble (pool, decoded)": "pool"}
TRANSFERS: Mapping[str, Mapping[str, Any]] = {
    "PPTX (paper, --rule union)": {"preset": "paper", "rule": "union"},
    (PAPER := "published method (--preset paper)"): {"preset": "paper"},
    (RECOMMENDED := "recommended (--preset recommended)"): {"preset": "recommended"},
}
SOURCES = [settings.name for settings in source_languages()]
DIRECT = {name: f"direct transfer from {name}" for name in SOURCES}
METHODS = {*DIRECT.values(), *VOTES, *TRANSFERS}
# Chosen by development sentences of the target. The models are small, so steps are larger than the presets'.
FIRST_SOURCE: Mapping[str, Any] = {"learning_rate": 3e-3}
FINE_TUNING: Mapping[str, Any] = {"learning_rate": 1e-3}
TRANSFER: Mapping[str, Any] = {"learning_rate": 1e-3, "l2": 1e-3, "batch_size": 32}
SILENT = ["disable_tqdm=true"]

Scores = dict[str, dict[str, float]]
Step = tuple[str, Callable[[], Any]]


@dataclass(kw_only=True)
class DemoArguments:
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

    Args:
        arguments: See the class.

    Returns:
        The main score of each method, by task.
    """
    check_output(arguments, "data")
    folder = RunFolder(arguments.output, arguments)
    results = read_json(folder.run / RESULTS) if folder.is_finished() else None
    if results is None:
        folder.begin()
        say("inventing four languages with treebanks, and a fifth with unlabelled text only")
        write_languages(folder.path / "data", arguments.sentences, arguments.seed, test=TEST_SENTENCES)
        steps = [(task, *step) for task in METRICS for step in task_steps(task, folder.path, arguments)]
        scores: Scores = {task: {} for task in METRICS}
        for number, (task, title, step) in enumerate(steps, start=1):
            say(f"[{number}/{len(steps)}] {task}: {title}")
            with _quiet():
                result = step()
            if title in METHODS:
                scores[task][title] = main_score(result)[1]
        results = {"scores": scores}
        folder.write_json(RESULTS, results)
    out = FilteredConsole()
    out.print(comparison(results["scores"]))
    out.print(lesson(results["scores"]), highlight=False, soft_wrap=True)
    _show_sentence(out, folder.path)
    return dict(results["scores"])


@contextmanager
def _quiet() -> Iterator[None]:
    """Run commands silently, since the demo prints one line per step, and in one thread.

    More threads would only wait for each other: the models are small.
    """
    quiet, threads = console.quiet, torch.get_num_threads()
    console.quiet = True
    torch.set_num_threads(1)
    try:
        yield
    finally:
        console.quiet = quiet
        torch.set_num_threads(threads)


def task_steps(task: str, output: Path, arguments: DemoArguments) -> list[Step]:
    """Return the commands that compare all methods on one task, each with a title.

    A step whose title is a method returns scores on the target's test sentences.

    Args:
        task: `parser` or `tagger`.
        output: Folder with the languages in `data`.
        arguments: Sizes.
    """
    data, seed = output / "data", arguments.seed
    initial, *others = SOURCES
    models = {name: str(output / task / "sources" / name) for name in SOURCES}
    sources = [f"{name}={path}" for name, path in models.items()]
    vectors = str(data / f"demo.{TARGET}.vec")
    test: dict[str, Any] = {"treebank": f"test={data / f'{TARGET}-test.conllu'}", "vectors": vectors}

    def source(name: str, **settings: Any) -> Step:
        treebank = ",".join(f"{split}={data / f'{name}-{split}.conllu'}" for split in ("train", "dev"))
        options = TrainSourceArguments(
            output=models[name],
            seed=seed,
            task=task,  # type: ignore[arg-type]
            treebank=treebank,
            split=f"train[:{arguments.sentences}]",  # so that a changed --sentences is noticed
            vectors=str(data / f"demo.{name}.vec"),
            batch_size=32,
            patience=5,
            plateau=3,
            trainer=SILENT,
            **settings,
        )
        return f"train the source {name}", partial(train_source, options)

    def scored(title: str, model: str) -> Step:
        scores = str(output / task / "scores" / Path(model).name)
        return title, partial(evaluate, EvaluateArguments(model=model, output=scores, **test))

    fine_tuning = {"init_from": models[initial], "epochs": max(1, arguments.epochs // 4), **FINE_TUNING}
    steps = [
        source(initial, model=size_options(task), epochs=arguments.epochs, **FIRST_SOURCE),
        *(source(name, **fine_tuning) for name in others),
        *(scored(title, models[name]) for name, title in DIRECT.items()),
    ]
    for title, rule in VOTES.items():
        scores = str(output / task / "scores" / rule)
        options = VoteArguments(sources=sources, rule=rule, output=scores, **test)  # type: ignore[arg-type]
        steps.append((title, partial(vote, options)))
    for title, settings in TRANSFERS.items():
        name = settings.get("rule", settings["preset"])
        charts, model = str(output / task / "charts" / name), str(output / task / "targets" / name)
        text: dict[str, Any] = {
            "text": str(data / f"{TARGET}-train.conllu"),
            "vectors": vectors,
            "seed": seed,
        }
        build = BuildChartsArguments(output=charts, sources=sources, **text, **settings)
        train = TransferArguments(
            output=model,
            charts=charts,
            vectors=vectors,
            seed=seed,
            max_steps=arguments.max_steps,
            trainer=SILENT,
            **TRANSFER,
        )
        steps += [
            (f"build {name} charts", partial(build_charts, build)),
            (f"train on {name} charts", partial(transfer, train)),
            scored(title, model),
        ]
    return steps


def comparison(scores: Scores) -> Table:
    """Return a table with a row per method and a column per task."""
    table = Table("method", *(METRICS[task] for task in scores))

    def add(title: str, values: Iterable[float], **style: Any) -> None:
        table.add_row(title, *(f"{value:.1f}" for value in values), **style)

    for title in DIRECT.values():
        add(title, (row[title] for row in scores.values()))
    means = (fmean(row[title] for title in DIRECT.values()) for row in scores.values())
    add("direct transfer, average", means, end_section=True)
    for title in VOTES:
        add(title, (row[title] for row in scores.values()), end_section=title == list(VOTES)[-1])
    for title in TRANSFERS:
        add(title, (row[title] for row in scores.values()), style="bold" if title == RECOMMENDED else None)
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
    paths = {task: str(output / task / "targets" / "recommended") for task in METRICS}
    parser, tagger = load_model(paths["parser"]), load_model(paths["tagger"])
    test = read_conllu(output / "data" / f"{TARGET}-test.conllu")
    sentence = next(sentence for sentence in test if len(sentence.words) == 8)
    words = sentence.words
    (tagged,) = tagger.predict([{"words": words}])
    (parsed,) = parser.predict([{"words": words, **tagged}])
    correct = sum(str(head) == gold for head, gold in zip(parsed["head"], sentence.heads, strict=True))
    out.print(
        f"All models are in {output}. Annotate CoNLL-U with the new parser:\n"
        f"  hf-xst predict --model {paths['parser']} --input FILE.conllu\n"
        "A test sentence, tagged and parsed by the recommended models "
        f"({correct} of {len(words)} heads are correct):",
        soft_wrap=True,
        highlight=False,
    )
    drawing = tree_text(words, parsed["head"], parsed["deprel"], tagged["upos"])
    out.print(drawing, highlight=False)
