"""What the records of a study's cells say, looked up by encoder, task, target and method."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from hf_xst.data.folders import DISTANT, LANGUAGES, NEARBY, SOURCES
from hf_xst.experiments.report.table import Cell
from hf_xst.metrics import MAIN_SCORES, main_score
from hf_xst.sources.statistics import mean_std

Record = Mapping[str, Any]
Records = Mapping[str, Record]
PARTS = ("test", "dev")
TASKS = {"parser": "Parsing", "tagger": "Tagging"}
METRICS = {"parser": "LAS without punctuation", "tagger": "Tag accuracy"}
VOTE, POOL, TRAINED_POOL, UNION = (
    "ensemble/majority",
    "ensemble/pool",
    "transferred/pool",
    "transferred/union",
)
# The recommended recipe (see docs/results and `hf_xst.commands.presets`).
RECIPE = "transferred/mix"
MAIN_METHODS = {
    VOTE: "majority vote",
    UNION: "PPTX",
    TRAINED_POOL: "pooled",
    "transferred/learned": "pooled, learned weights",
    RECIPE: "recipe",
    POOL: "pool as it stands",
}
# What a study of one target is summed up by, in the order of the methods' steps.
METHODS = {method: MAIN_METHODS[method] for method in (VOTE, POOL, UNION, TRAINED_POOL)}
OTHER_METHODS = {
    "ensemble/pool learned": "pool as it stands, learned weights",
    "ensemble/pool published": "pool as it stands, published weights",
    "ensemble/mean": "mean of the sources",
    "ensemble/linear": "linear pool as it stands",
    "ensemble/truth": "truth inference",
    "ensemble/grouped": "weights per group",
    "transferred/optimum": "pooled, optimal weights",
    "transferred/mean": "mean of the sources, weights by agreement",
    "transferred/mix-best": "recipe, from the best source by agreement",
    "transferred/linear": "linear pool",
    "transferred/soft": "soft distillation",
    "transferred/narrow": "narrow charts, pool's best",
    "transferred/singleton": "singleton charts",
    "transferred/upper": "joined source data",
}
# Languages of studies beyond the paper's.
MORE_LANGUAGES = {
    "am": "Amharic",
    "br": "Breton",
    "bxr": "Buryat",
    "fo": "Faroese",
    "hsb": "Upper Sorbian",
    "mt": "Maltese",
    "sme": "North Sami",
    "tl": "Tagalog",
    "wo": "Wolof",
    "yo": "Yoruba",
}


class Block(NamedTuple):
    """An encoder and a task."""

    encoder: str
    task: str

    @property
    def name(self) -> str:
        """For names of files."""
        return f"{self.encoder}-{self.task}"

    @property
    def title(self) -> str:
        """For people."""
        return f"{TASKS.get(self.task, self.task)}, encoder {self.encoder}"

    @property
    def metric(self) -> str:
        """What scores are."""
        return f"{METRICS.get(self.task, 'Score')} in percent"


def language_name(code: str) -> str:
    """Return a language's name in English; nothing for a code that is not known."""
    return LANGUAGES[code].name if code in LANGUAGES else MORE_LANGUAGES.get(code, "")


def group_of(code: str) -> str:
    """Say whether a target is one of the paper's distant or nearby ones, or another."""
    return "distant" if code in DISTANT else "nearby" if code in NEARBY else "other"


def in_order(codes: Iterable[str], first: Iterable[str] = (*DISTANT, *NEARBY)) -> list[str]:
    """Put the paper's languages first, in its order, and others after them."""
    places = {code: place for place, code in enumerate(first)}
    return sorted(set(codes), key=lambda code: (places.get(code, len(places)), code))


def method_title(method: str) -> str:
    """Return what people call a method."""
    known = {**MAIN_METHODS, **OTHER_METHODS}
    return known.get(method, method.partition("/")[2].replace("single-", "charts of "))


def score_of(scores: Any) -> float | None:
    """Return the main score of what a cell holds; None if it holds none."""
    if not isinstance(scores, Mapping):
        return None
    plain = {key.removeprefix("eval_"): value for key, value in scores.items()}
    return main_score(plain)[1] if any(name in plain for name in MAIN_SCORES) else None


class Results:
    """A study's results.

    Args:
        records: all cells' records by name, see `hf_xst.experiments.cells.read_records`.
        stand_ins: targets whose test file stands in for the published one.
    """

    def __init__(self, records: Records, stand_ins: Iterable[str] = ()) -> None:
        self.stand_ins = frozenset(stand_ins)
        self.records = {name: records[name] for name in sorted(records)}
        self._scores: dict[tuple[Block, str, str, str], dict[str, float]] = {}
        self._sources: dict[Block, dict[str, Record]] = {}
        self._found: dict[tuple[Block, str, str], Mapping[str, Any]] = {}
        self._curves: dict[tuple[Block, str, str], list[list[Mapping[str, float]]]] = {}
        for name, record in self.records.items():
            encoder, task, *rest = name.split("/")
            self._read(Block(encoder, task), rest, record)

    def _read(self, block: Block, rest: list[str], record: Record) -> None:
        first, kind, *more = rest
        result = record["result"]
        if first == "source":
            self._sources.setdefault(block, {})[kind] = record
        elif kind == "ensemble":
            parts = {part: result[part] for part in PARTS if part in result} or {"test": result}
            for part, methods in parts.items():
                for method, scores in methods.items():
                    self._keep(block, first, part, f"ensemble/{method}", "", scores)
        elif kind in ("transferred", "ablation", "upper"):
            self._read_trained(block, first, kind, more, record)
        else:
            self._found[block, first, kind] = result

    def _read_trained(self, block: Block, target: str, kind: str, more: list[str], record: Record) -> None:
        name, *seeds = more if kind != "upper" else ["upper", *more]
        seed = seeds[0] if seeds else str(record.get("settings", {}).get("seed", ""))
        method = f"{'ablation' if '=' in name else 'transferred'}/{name}"
        for part in PARTS:
            self._keep(block, target, part, method, seed, record["result"].get(part))
        if record["result"].get("curve"):
            self._curves.setdefault((block, target, method), []).append(record["result"]["curve"])

    def _keep(self, block: Block, target: str, part: str, method: str, seed: str, scores: Any) -> None:
        value = score_of(scores)
        if value is not None:
            self._scores.setdefault((block, target, part, method), {})[seed] = value

    @property
    def blocks(self) -> list[Block]:
        """All encoders and tasks, parsers first."""
        found = {Block(*name.split("/")[:2]) for name in self.records}
        tasks = in_order((block.task for block in found), TASKS)
        return sorted(found, key=lambda block: (tasks.index(block.task), block.encoder))

    @property
    def languages(self) -> list[str]:
        """All targets that have any result."""
        return in_order({name.split("/")[2] for name in self.records} - {"source"})

    def sources(self, block: Block) -> dict[str, Record]:
        """Return the source models' records by name, the paper's first."""
        found = self._sources.get(block, {})
        return {code: found[code] for code in in_order(found, SOURCES)}

    def pooled_sources(self, block: Block) -> list[str]:
        """Return the source models that are pooled, without those that only stand beside them."""
        return [
            code
            for code, record in self.sources(block).items()
            if record.get("settings", {}).get("given", {}).get("pool", True)
        ]

    def targets(self, block: Block, part: str = "test", methods: Iterable[str] | None = None) -> list[str]:
        """Return the targets that have a score, by any of the methods if they are given."""
        wanted = None if methods is None else set(methods)
        return in_order(
            target
            for of, target, where, method in self._scores
            if of == block and where == part and (wanted is None or method in wanted)
        )

    def methods(self, block: Block, part: str = "test") -> list[str]:
        """Return the methods that have a score, the known ones first, in their order."""
        found = {method for of, _, where, method in self._scores if of == block and where == part}
        return in_order(found, (*MAIN_METHODS, *OTHER_METHODS))

    def by_seed(self, block: Block, target: str, part: str, method: str) -> dict[str, float]:
        """Return the scores of a method by seed; the one score of what is not trained has the seed ''."""
        return self._scores.get((block, target, part, method), {})

    def score(self, block: Block, target: str, part: str, method: str) -> Cell:
        """Return mean and standard deviation of a method over its seeds; empty if there is no score."""
        return summed_up(list(self.by_seed(block, target, part, method).values()))

    def found(self, block: Block, target: str, kind: str) -> Mapping[str, Any]:
        """Return the result of a target's cell such as `analysis` or `weights`; empty if it is missing."""
        return self._found.get((block, target, kind), {})

    def targets_with(self, block: Block, kind: str) -> list[str]:
        """Return the targets that have such a cell."""
        return in_order(target for of, target, what in self._found if of == block and what == kind)

    def curves(self, block: Block) -> Iterator[tuple[str, str, dict[int, float]]]:
        """Give target, method and mean development score by update of all trained target models."""
        held = {key[1:]: runs for key, runs in self._curves.items() if key[0] == block}
        for target in in_order(target for target, _ in held):
            for method in in_order((m for t, m in held if t == target), (*MAIN_METHODS, *OTHER_METHODS)):
                yield target, method, _mean_curve(held[target, method])


def main_scores(records: Records) -> dict[tuple[str, str, str], dict[str, float]]:
    """Return the mean test score of every method, by (encoder, task, target).

    Methods are named as in `METHODS`, and direct transfer `direct SOURCE`.
    """
    results = Results(records)
    table: dict[tuple[str, str, str], dict[str, float]] = {}
    for block in results.blocks:
        for target in results.targets(block):
            cells = {
                method: results.score(block, target, "test", method) for method in results.methods(block)
            }
            table[*block, target] = {
                method.replace("ensemble/direct", "direct"): cell.number
                for method, cell in cells.items()
                if cell.number is not None
            }
    return table


def summed_up(values: list[float]) -> Cell:
    """Return a cell of mean and standard deviation; the latter only for several values."""
    if not values:
        return Cell()
    mean, std, _ = mean_std(values)
    return Cell(mean, None if math.isnan(std) else std)


def _mean_curve(runs: list[list[Mapping[str, float]]]) -> dict[int, float]:
    """Return the mean over runs at each update that all of them scored."""
    scored = [
        {int(point["update"]): value for point in run if (value := score_of(point)) is not None}
        for run in runs
    ]
    common = set.intersection(*(set(run) for run in scored))
    return {update: sum(run[update] for run in scored) / len(scored) for update in sorted(common)}
