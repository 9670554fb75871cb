"""What a study's charts and methods may say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

Settings = Mapping[str, Any]
# Chart plans and methods of the paper, which every study has unless it names its own.
PUBLISHED_CHARTS: dict[str, Settings] = {"union": {"rule": "union"}, "pool": {"rule": "pool"}}
PUBLISHED_METHODS: dict[str, Settings] = {"union": {"charts": "union"}, "pool": {"charts": "pool"}}


@dataclass(frozen=True, kw_only=True)
class ChartPlan:
    """How charts of a target are made.

    Args:
        rule: see `hf_xst.charts.dataset.ChartSettings`.
        weights: `learned` takes the weights of the target's `weights` cell, `published` those that the
            published procedure has found there, `agreement` those that need no labels (see `build_charts`).
        sources: only these sources; all of the target's by default.
        select: only so many sources, those that agree best with the others, without labels.
        start: the source that training starts from, in place of the study's; `best` takes the one that
            agrees best with the others.
        add: methods whose target models join the sources (another round of pooling).
        text_split: part of the target's text, in place of the target's own.
        upos: see `Study`.
        build: further settings of `build_charts`, e.g. sigma, floor, keep_log_probs, temperature.
    """

    rule: str = "pool"
    weights: str | None = None
    sources: Sequence[str] | None = None
    select: int | None = None
    start: str | None = None
    add: Sequence[str] = ()
    text_split: str | None = None
    upos: str | None = None
    build: Settings = field(default_factory=dict)

    @property
    def ranked(self) -> bool:
        """Say whether the charts depend on how well the sources agree."""
        return self.start == "best" or self.select is not None

    @property
    def content(self) -> dict[str, Any]:
        """What charts depend on; settings that came later count where they are given."""
        return {key: value for key, value in asdict(self).items() if key != "select" or value}


@dataclass(frozen=True, kw_only=True)
class Method:
    """A way to train a target model.

    Args:
        charts: the plan of the charts; by default the one of the method's name.
        transfer: further settings of `transfer`.
        fresh: train from scratch (with the start's configuration) instead of from the start.
        start: `mean` starts from the mean of the charts' sources instead of the charts' start.
        upos: see `Study`; for the sentences that are scored.
        model: fields of the target model's configuration that are set before it is scored, e.g. single_root.
        targets: only these targets.
        tasks: only these tasks.
        encoders: only these encoders.
        seeds: in place of the study's.
    """

    charts: str | None = None
    transfer: Settings = field(default_factory=dict)
    fresh: bool = False
    start: str | None = None
    upos: str | None = None
    model: Settings = field(default_factory=dict)
    targets: Sequence[str] | None = None
    tasks: Sequence[str] | None = None
    encoders: Sequence[str] | None = None
    seeds: Sequence[int] | None = None

    def serves(self, encoder: str, task: str, target: str) -> bool:
        """Say whether the method is for these."""
        wanted = ((self.encoders, encoder), (self.tasks, task), (self.targets, target))
        return all(names is None or name in names for names, name in wanted)
