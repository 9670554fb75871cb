"""Trials of a search: a Trainer whose trials set the pull too, and their record, which outlives a kill."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from hf_xst.extras import import_optional
from hf_xst.models.modeling import StructuredModel
from hf_xst.training.transfer import ChartTrainer

RATE, PULL = "learning_rate", "l2"
# By name of the hyperparameter, the decimal logarithms of the least and the greatest value.
Space = Mapping[str, tuple[float, float]]
_STUDY = "search"
_PLACE = "place"
_IDENTITY = "about"


@dataclass(frozen=True)
class Trial:
    """A finished trial.

    Args:
        place: its number, from 0.
        values: the hyperparameters tried.
        score: the development score.
        seconds: how long it took.
    """

    place: int
    values: dict[str, float]
    score: float
    seconds: float


class TrialTrainer(ChartTrainer):
    """A `ChartTrainer` whose trials may set the strength of the pull, which is no training argument."""

    def _hp_search_setup(self, trial: Any) -> None:
        super()._hp_search_setup(trial)
        if trial is not None and self.pull is not None:
            self.pull.strength = trial.params.get(PULL, self.pull.strength)


def restarted(model: StructuredModel) -> Callable[[], StructuredModel]:
    """Return a `model_init` that gives the same model each time, its trainable parameters as they are now.

    What is frozen, most of the memory, is held once.
    """
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    start = [parameter.detach().clone() for parameter in trained]

    @torch.no_grad()
    def restart() -> StructuredModel:
        for parameter, value in zip(trained, start, strict=True):
            parameter.copy_(value)
            parameter.grad = None
        return model

    return restart


class Trials:
    """Trials on record; see `recorded`.

    Args:
        optuna: the module.
        storage: where Optuna keeps the study.
        space: what is searched.
        seed: of the draws.
    """

    def __init__(self, optuna: Any, storage: Any, space: Space, seed: int) -> None:
        self._optuna = optuna
        self._keep = {"study_name": _STUDY, "storage": storage, "load_if_exists": True}
        self._study = optuna.create_study(direction="maximize", **self._keep)
        self._space = space
        self._seed = seed

    def draws(self, count: int) -> list[dict[str, float]]:
        """Return the values of the first trials: a longer search begins with a shorter one's."""
        sampler = self._optuna.samplers.RandomSampler(seed=self._seed)
        plan = self._optuna.create_study(sampler=sampler)
        ranges = {
            name: self._optuna.distributions.FloatDistribution(10**low, 10**high, log=True)
            for name, (low, high) in self._space.items()
        }
        return [dict(plan.ask(ranges).params) for _ in range(count)]

    def finished(self) -> dict[int, Trial]:
        """Return the finished trials by place."""
        states = (self._optuna.trial.TrialState.COMPLETE,)
        return {
            trial.user_attrs[_PLACE]: Trial(
                trial.user_attrs[_PLACE], dict(trial.params), trial.value, trial.duration.total_seconds()
            )
            for trial in self._study.get_trials(deepcopy=False, states=states)
        }

    def identify(self, identity: Mapping[str, Any]) -> list[str]:
        """Remember what the search is about, and return the entries that differ from what it was about."""
        if _IDENTITY not in self._study.user_attrs:
            self._study.set_user_attr(_IDENTITY, dict(identity))
        known = self._study.user_attrs[_IDENTITY]
        return [name for name, value in identity.items() if name not in known or known[name] != value]

    def run(self, trainer: TrialTrainer, place: int, values: dict[str, float]) -> Trial:
        """Run one trial; of one that was interrupted nothing is left but a note in the record.

        Args:
            trainer: made with a `model_init`; it may run any number of trials.
            place: the trial's number.
            values: its hyperparameters.
        """
        self._enqueue(place, values)
        trainer.hyperparameter_search(
            hp_space=self._suggest,
            compute_objective=lambda metrics: metrics[f"eval_{trainer.bare_model.main_metric}"],
            n_trials=1,
            direction="maximize",
            backend="optuna",
            sampler=self._optuna.samplers.RandomSampler(seed=self._seed),
            **self._keep,
        )
        return self.finished()[place]

    def _enqueue(self, place: int, values: dict[str, float]) -> None:
        state = self._optuna.trial.TrialState
        waiting = False
        for trial in self._study.get_trials(deepcopy=False, states=(state.RUNNING, state.WAITING)):
            if trial.state == state.RUNNING:  # it was killed
                self._study.tell(trial.number, state=state.FAIL)
            else:
                waiting = True
        if not waiting:
            self._study.enqueue_trial(values, user_attrs={_PLACE: place})

    def _suggest(self, trial: Any) -> dict[str, float]:
        """Return what the Trainer sets; the pull's strength is suggested, and taken by `TrialTrainer`."""
        values = {
            name: trial.suggest_float(name, 10**low, 10**high, log=True)
            for name, (low, high) in self._space.items()
        }
        return {name: value for name, value in values.items() if name != PULL}


@contextmanager
def recorded(path: Path, space: Space, seed: int) -> Iterator[Trials]:
    """Open the record of a search's trials, an SQLite file that is made where there is none.

    Args:
        path: the file.
        space: what is searched.
        seed: of the draws.

    Raises:
        ImportError: Optuna is not installed.
    """
    optuna = import_optional("optuna", "search")
    url = import_optional("sqlalchemy.engine", "search").URL.create("sqlite", database=str(path))
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    path.parent.mkdir(parents=True, exist_ok=True)
    storage = optuna.storages.RDBStorage(url.render_as_string())
    try:
        yield Trials(optuna, storage, space, seed)
    finally:
        storage.remove_session()
        storage.engine.dispose()
        optuna.logging.set_verbosity(level)
