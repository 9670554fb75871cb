"""Random search of the learning rate and of lambda for transfer (Kurniawan et al. 2021, supplement).

The best values on one development language serve all others: OUTPUT/best.yaml is a configuration of
`hf-xst transfer`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any

import yaml
from datasets import Dataset
from rich.table import Table
from transformers import set_seed

from hf_xst.charts.dataset import load_charts
from hf_xst.commands.initial_model import starting_model, with_start
from hf_xst.commands.options import TransferArguments, option
from hf_xst.commands.presets import as_in_recipe, chart_use, kind_of
from hf_xst.commands.runs import RunFolder
from hf_xst.commands.sentences import read_word_vectors
from hf_xst.commands.training import kept_states, training_arguments
from hf_xst.commands.transfer import development_part, updates_of
from hf_xst.console import console, progress, say
from hf_xst.experiments.trials import PULL, RATE, Space, Trial, Trials, TrialTrainer, recorded, restarted
from hf_xst.files import write_text
from hf_xst.sources.averaging import NONE
from hf_xst.training.log_lines import LogLines

BEST = "best.yaml"
TRIALS = "trials.json"
RECORD = "trials.sqlite3"

# Published ranges of the decimal logarithms (supplement, table of hyperparameter distributions; learned
# weights: the section on learning them). The range of lambda is the same everywhere, though the value
# published as best for the parser with union charts, 2.8e-5, lies below it.
PUBLISHED_PULL = (-4.0, 1.0)
PUBLISHED_RATE: dict[str, dict[str, tuple[float, float]]] = {
    "hf_xst_biaffine_parser": {"union": (-6.0, -3.0), "pool": (-6.5, -3.5), "learned": (-6.0, -3.0)},
    "hf_xst_crf_tagger": {"union": (-6.0, -4.0), "pool": (-6.5, -3.5), "learned": (-6.0, -3.0)},
}
# Arguments that change neither what is tried nor its score.
_INDIFFERENT = ("output", "trials", "keep_states", "states", "eval_every")
# Arguments under which the values were found, and that best.yaml hence repeats where they are not defaults.
_CARRIED = ("epochs", "updates", "batch_size", "trainer", "train_words", "best", "sigma", "soft")


@dataclass(kw_only=True)
class SearchArguments(TransferArguments):
    """Search the learning rate and lambda of transfer at random, on gold of one development language."""

    trials: int = option("Number of trials.", 20)
    log_learning_rate: list[float] = option(
        "Least and greatest decimal logarithm of the learning rate; by default the published ones.", []
    )
    log_l2: list[float] = option(
        "Least and greatest decimal logarithm of lambda; by default the published ones.", []
    )
    learning_rate: float | None = option("Keep the learning rate at this and search lambda alone.")
    l2: float | None = option("Keep lambda at this and search the learning rate alone.")
    eval_every: int = option("Has no effect: a trial is scored once, at its end.", 100)


def search(arguments: SearchArguments) -> dict[str, Any]:
    """Try values, score each on the development part, and write the best ones as a configuration.

    Trials are drawn from the seed alone and kept as they end: repeated after an interruption, or with more
    trials, the search runs those that are missing. One process at a time works on an OUTPUT.

    Args:
        arguments: see the class.

    Returns:
        All trials and the best one, which are also in OUTPUT/trials.json.

    Raises:
        ValueError: there is no development part or nothing to search, the ranges are not known, or OUTPUT
            holds another search.
        ImportError: Optuna is not installed.
    """
    if arguments.treebank is None:
        raise ValueError("a search needs gold to score trials on; give --treebank (with --split)")
    if arguments.trials < 1:
        raise ValueError(f"--trials is {arguments.trials}; expected at least 1")
    folder = RunFolder(arguments.output, arguments)
    charts, provenance = load_charts(arguments.charts)
    space = search_space(arguments, provenance)
    if (folder.run / "config.yaml").exists() and not (folder.run / RECORD).exists():
        raise ValueError(f"{folder.path} holds a run of another command; choose another --output")
    with recorded(folder.run / RECORD, space, arguments.seed) as trials:
        differing = trials.identify(_identity(arguments, provenance, space))
        if differing:
            raise ValueError(
                f"{folder.path} holds a search that differs in: {', '.join(differing)}. Choose another "
                "--output, or remove that folder to start anew"
            )
        folder.begin()
        _run_missing(arguments, folder, charts, provenance, trials)
        done = trials.finished()
    report = _report(arguments, provenance, space, [done[place] for place in range(arguments.trials)])
    write_text(folder.path / TRIALS, json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    write_text(folder.path / BEST, _config(arguments, report))
    _show(report)
    say(f"{folder.path / BEST} is a configuration for `hf-xst transfer`")
    return report


def search_space(arguments: SearchArguments, provenance: Mapping[str, Any]) -> Space:
    """Return the ranges to search: given ones, else those published for the kind of model and the rule.

    Raises:
        ValueError: a range is not one, none is published, or nothing is left to search.
    """
    model_type, rule = provenance["model_type"], kind_of(provenance)
    published = {RATE: PUBLISHED_RATE.get(model_type, {}).get(rule), PULL: PUBLISHED_PULL}
    given = {RATE: arguments.log_learning_rate, PULL: arguments.log_l2}
    fixed = {RATE: arguments.learning_rate is not None, PULL: arguments.l2 is not None}
    fixed[PULL] |= arguments.start == NONE  # a fresh model has nothing to be pulled to
    space: dict[str, tuple[float, float]] = {}
    for name, bounds in given.items():
        if fixed[name]:
            if bounds:
                raise ValueError(f"--log_{name} is given, but {name} is not searched; leave one of them out")
            continue
        found = bounds or published[name]
        if found is None:
            raise ValueError(f"no range of {name} is published for {model_type}, {rule}; give --log_{name}")
        if len(found) != 2 or not found[0] < found[1]:
            raise ValueError(f"--log_{name} is {bounds}; expected two numbers, the smaller one first")
        space[name] = (found[0], found[1])
    if not space:
        raise ValueError("nothing is left to search: both --learning_rate and --l2 are settled")
    return space


def _identity(arguments: SearchArguments, provenance: Mapping[str, Any], space: Space) -> dict[str, Any]:
    told = {name: value for name, value in asdict(arguments).items() if name not in _INDIFFERENT}
    made = json.dumps({key: value for key, value in provenance.items() if key != "versions"}, sort_keys=True)
    told["charts' provenance"] = hashlib.sha256(made.encode()).hexdigest()
    told["ranges"] = {name: list(bounds) for name, bounds in space.items()}
    return told


def _run_missing(
    arguments: SearchArguments,
    folder: RunFolder,
    charts: Dataset,
    provenance: Mapping[str, Any],
    trials: Trials,
) -> None:
    done = trials.finished()
    missing = [place for place in range(arguments.trials) if place not in done]
    if not missing:
        say(f"all {arguments.trials} trials of {folder.path} are there already; nothing was run")
        return
    draws = trials.draws(arguments.trials)
    trainer = _trainer(arguments, folder, charts, provenance)
    with progress("searching", arguments.trials, "trials") as advance:
        advance(len(done))
        for place in missing:
            trial = trials.run(trainer, place, draws[place])
            advance(1)
            tried = ", ".join(f"{name} {value:.2e}" for name, value in trial.values.items())
            say(f"trial {place + 1} of {arguments.trials}: {tried}: {trial.score:.2f}")


def _trainer(
    arguments: SearchArguments, folder: RunFolder, charts: Dataset, provenance: Mapping[str, Any]
) -> TrialTrainer:
    set_seed(arguments.seed)
    vectors = read_word_vectors(arguments)
    told = arguments.start is not None
    arguments = with_start(as_in_recipe(arguments, provenance), provenance)
    model = starting_model(arguments, charts, provenance, vectors, told=told)
    if arguments.train_words:
        model.train_word_vectors()
    dev = development_part(arguments, model, vectors)
    settings = training_arguments(
        folder,
        arguments,
        arguments.seed,
        # Where it is searched, the trial's value takes the place of this one; so with the pull below.
        learning_rate=1.0 if arguments.learning_rate is None else arguments.learning_rate,
        max_steps=updates_of(arguments),
        eval_strategy="no",
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,  # the bar counts trials
    )
    if settings.world_size > 1:
        raise ValueError(f"{settings.world_size} processes were started; a search runs in one")
    searched_pull = arguments.l2 is None and arguments.start != NONE
    trainer = TrialTrainer(
        None,
        settings,
        charts,
        provenance["names"],
        l2=1.0 if searched_pull else arguments.l2 or 0.0,
        eval_dataset=dev,
        states=kept_states(model, arguments, [charts, dev]),
        use=chart_use(provenance, arguments.best, arguments.sigma, arguments.soft),
        model_init=restarted(model),
    )
    trainer.pop_callback(LogLines)
    return trainer


def _report(
    arguments: SearchArguments, provenance: Mapping[str, Any], space: Space, trials: Sequence[Trial]
) -> dict[str, Any]:
    best = max(trials, key=lambda trial: (trial.score, -trial.place))
    return {
        "rule": kind_of(provenance),
        "model_type": provenance["model_type"],
        "treebank": arguments.treebank,
        "split": arguments.split,
        "log10_ranges": {name: list(bounds) for name, bounds in space.items()},
        "best": asdict(best),
        "trials": [asdict(trial) for trial in trials],
    }


def _config(arguments: SearchArguments, report: Mapping[str, Any]) -> str:
    """Return the configuration of the best trial, with a line that says where it comes from."""
    defaults = {
        field.name: field.default_factory() if field.default_factory is not MISSING else field.default
        for field in fields(TransferArguments)
    }
    told = asdict(arguments)
    settings = {RATE: arguments.learning_rate, PULL: 0.0 if arguments.start == NONE else arguments.l2}
    settings |= report["best"]["values"]
    settings |= {name: told[name] for name in _CARRIED if told[name] != defaults[name]}
    origin = (
        f"# Best of {len(report['trials'])} trials on {report['treebank']} {report['split']}, charts by "
        f"{report['rule']}: {report['best']['score']:.2f}\n"
    )
    return origin + yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)


def _show(report: Mapping[str, Any]) -> None:
    names = list(report["log10_ranges"])
    table = Table(title=f"{report['treebank']} {report['split']}, charts by {report['rule']}")
    for name in ("trial", *names, "score", "seconds"):
        table.add_column(name, justify="right")
    for trial in report["trials"]:
        table.add_row(
            str(trial["place"] + 1),
            *(f"{trial['values'][name]:.2e}" for name in names),
            f"{trial['score']:.2f}",
            f"{trial['seconds']:.0f}",
            style="bold green" if trial == report["best"] else None,
        )
    console.print(table)
