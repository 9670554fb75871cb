"""The embedded default: the whole method on invented languages, in minutes, with nothing downloaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from hf_xst.commands.options import option
from hf_xst.console import console
from hf_xst.demo.defaults import source_languages, target_language
from hf_xst.demo.languages import InventedLanguage, generate_language, write_conllu
from hf_xst.demo.settings import LanguageSettings
from hf_xst.drawing import tree_text
from hf_xst.experiments.cells import Graph
from hf_xst.experiments.report import METHODS, main_scores
from hf_xst.experiments.study import Study
from hf_xst.sources.pool import load_model

TARGET = "target"
# Small sizes: invented languages have a few hundred words, and the demonstration shall be quick.
SMALL = ["context_layers=1", "attention_heads=4", "key_size=16", "feed_forward_size=64"]
TASKS: Mapping[str, Mapping[str, Any]] = {
    "parser": {"train_source": {"model": [*SMALL, "arc_size=64", "label_size=32", "upos_size=16"]}},
    "tagger": {"train_source": {"model": SMALL}},
}


@dataclass(kw_only=True)
class DemoArguments:
    """See the whole method run on invented languages."""

    output: str = option(
        "Folder for languages, models and scores; a run that was stopped goes on.", "runs/demo"
    )
    seed: int = option("Seed of the languages' sentences and of training.", 1)
    sentences: int = option(
        "Training sentences of each source language; the target has as many, unlabelled.", 600
    )
    epochs: int = option("Passes over the data in training a source.", 12)
    updates: int = option("Updates in training on charts.", 150)


def demo(arguments: DemoArguments) -> dict[tuple[str, str, str], dict[str, float]]:
    """Invent languages, train sources, pool, transfer, compare, and parse a sentence.

    Args:
        arguments: see the class.

    Returns:
        The main score of each method by (encoder, task, target).
    """
    folder = Path(arguments.output)
    console.print("[bold]inventing[/bold] four languages with treebanks, and one that has text alone")
    test = write_languages(folder / "data", arguments.sentences, arguments.seed)
    graph = Graph(_study(folder / "data", arguments).cells(), folder)
    graph.run()
    scores = main_scores(graph.records())
    out = Console()
    out.print(comparison(scores))
    _show_a_sentence(out, graph, test, arguments.seed)
    parser = graph.work(f"A/parser/{TARGET}/transferred/pool/{arguments.seed}")
    out.print(
        f"Models, charts and scores are in {folder}. The transferred parser, for instance:\n"
        f"  hf-xst predict --model {parser} --input FILE.conllu",
        soft_wrap=True,
    )
    return scores


def write_languages(folder: Path, sentences: int, seed: int) -> InventedLanguage:
    """Write treebanks and vectors of all languages and return the target's test part."""
    for settings in source_languages():
        _write(folder, settings, settings.name, {"train": sentences, "dev": 100}, seed)
    return _write(folder, target_language(), TARGET, {"train": sentences, "dev": 100, "test": 200}, seed)


def _write(
    folder: Path, settings: LanguageSettings, name: str, parts: Mapping[str, int], seed: int
) -> InventedLanguage:
    language = generate_language(settings, sentences=0, seed=seed)
    for place, (part, number) in enumerate(parts.items()):
        language = generate_language(settings, sentences=number, seed=10 * seed + place)
        rows: list[dict[str, Any]] = language.sentences
        if name == TARGET and part == "train":  # text alone: what is not written cannot leak
            rows = [
                row | {"head": ["_"] * len(row["head"]), "deprel": ["_"] * len(row["head"])} for row in rows
            ]
        write_conllu(folder / f"{name}-{part}.conllu", rows)
    language.write_vectors(folder / f"demo.{name}.vec")
    return language


def _study(data: Path, arguments: DemoArguments) -> Study:
    names = [settings.name for settings in source_languages()]
    train = {"epochs": arguments.epochs, "patience": 5, "plateau": 3, "learning_rate": 3e-3, "batch_size": 32}
    move: dict[str, float] = {"updates": arguments.updates, "eval_every": max(1, arguments.updates // 3)}
    move |= {"batch_size": 32, "learning_rate": 1e-3, "l2": 1e-3}
    return Study(
        sources={name: {"train": f"{name}-train.conllu", "dev": f"{name}-dev.conllu"} for name in names},
        targets={TARGET: {part: f"{TARGET}-{file}.conllu" for part, file in _PARTS.items()}},
        encoders={"A": {"vectors": "demo.{code}.vec", "train_source": train, "transfer": move}},
        tasks=TASKS,
        start=names[0],
        seeds=[arguments.seed],
        data=data,
    )


_PARTS = {"text": "train", "dev": "dev", "test": "test"}


def comparison(scores: Mapping[tuple[str, str, str], Mapping[str, float]]) -> Table:
    """Return a table of methods, one column a task."""
    tasks = {task: row for (_, task, _), row in sorted(scores.items())}
    table = Table("method", *("LAS" if task == "parser" else "tag accuracy" for task in tasks))
    direct = sorted({method for row in tasks.values() for method in row if method.startswith("direct")})
    for method in direct:
        table.add_row(method.replace("direct", "direct transfer from"), *_numbers(tasks, method))
    means = [sum(row[method] for method in direct) / len(direct) for row in tasks.values()]
    table.add_row("mean of direct transfers", *(f"{mean:.1f}" for mean in means), end_section=True)
    for method, title in METHODS.items():
        table.add_row(f"[bold]{title}[/bold]", *_numbers(tasks, method))
    return table


def _numbers(tasks: Mapping[str, Mapping[str, float]], method: str) -> list[str]:
    return [f"{row[method]:.1f}" for row in tasks.values()]


def _show_a_sentence(out: Console, graph: Graph, test: InventedLanguage, seed: int) -> None:
    parser, tagger = (
        load_model(str(graph.work(f"A/{task}/{TARGET}/transferred/pool/{seed}")))
        for task in ("parser", "tagger")
    )
    row = next(row for row in test.sentences if 6 <= len(row["words"]) <= 9)
    tagged = {**row, **tagger.predict([row])[0]}
    parsed = parser.predict([tagged])[0]
    out.print("A test sentence, tagged and parsed by the transferred models as they were saved:")
    out.print(
        tree_text(row["words"], parsed["head"], parsed["deprel"], tagged["upos"]),
        highlight=False,
        markup=False,
    )
