"""Scores of several methods for several targets, their averages and differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hf_xst.experiments.published import published
from hf_xst.experiments.report.reading import MAIN_METHODS, Block, Results, group_of, summed_up
from hf_xst.experiments.report.table import Cell

TRAINED = tuple(method for method in MAIN_METHODS if method.startswith("transferred/"))
Scores = Mapping[str, Cell]


@dataclass(frozen=True)
class Grid:
    """Scores of some methods for some targets, with averages over the targets that have all of them.

    Args:
        results: of the study.
        block: encoder and task.
        part: dev or test.
        methods: the compared methods; those that have no score at all are left out.
        targets: in order.
    """

    results: Results
    block: Block
    part: str
    methods: Sequence[str]
    targets: Sequence[str]

    def scores(self, target: str) -> dict[str, Cell]:
        """Return the scores of a target by method."""
        return {each: self.results.score(self.block, target, self.part, each) for each in self.methods}

    @property
    def common(self) -> list[str]:
        """The targets that have a score by every method that has any."""
        present = {
            method
            for method in self.methods
            if any(not self.scores(target)[method].empty for target in self.targets)
        }
        return [
            target
            for target in self.targets
            if present and all(not self.scores(target)[each].empty for each in present)
        ]

    def averages(self) -> Iterator[tuple[str, list[str]]]:
        """Give the averages' names and the targets that each is over."""
        common = self.common
        yield from whole_groups(self.results, common)
        for group in ("distant", "nearby"):
            yield group, [target for target in common if group_of(target) == group]

    def average(self, targets: Sequence[str], method: str) -> Cell:
        """Return a method's mean over targets, with the deviation of the seeds that all of them share."""
        runs = [self.results.by_seed(self.block, target, self.part, method) for target in targets]
        if not runs or not all(runs):
            return Cell()
        if all(set(run) == set(runs[0]) for run in runs):
            return summed_up([sum(run[seed] for run in runs) / len(runs) for seed in runs[0]])
        return Cell(
            mean_of([self.results.score(self.block, target, self.part, method) for target in targets])
        )

    def seeds(self, target: str) -> str:
        """Say how many seeds the trained methods of a target have."""
        counts = {
            len(self.results.by_seed(self.block, target, self.part, method))
            for method in self.methods
            if method.startswith("transferred/")
        } - {0}
        return "–".join(str(count) for count in sorted({min(counts), max(counts)})) if counts else ""


def whole_groups(results: Results, targets: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Give all targets, and, where some stand in for others, those that have the published test files."""
    yield "all", list(targets)
    published_files = [target for target in targets if target not in results.stand_ins]
    if len(published_files) < len(targets):
        yield "published test files", published_files


def papers_targets(results: Results, block: Block, part: str) -> list[str]:
    """Return the paper's targets that have a score by a main method."""
    return [each for each in results.targets(block, part, MAIN_METHODS) if group_of(each) != "other"]


def less(value: Cell, other: Cell, *, spread: bool = False) -> Cell:
    """Return the difference of two cells; empty if one of them is, without deviation unless it is kept."""
    if value.number is None or other.number is None:
        return Cell()
    return Cell(value.number - other.number, value.std if spread else None)


def mean_of(cells: Sequence[Cell]) -> float | None:
    """Return the mean of the cells' numbers; None if there is none."""
    numbers = [cell.number for cell in cells if cell.number is not None]
    return sum(numbers) / len(numbers) if numbers else None


def published_score(block: Block, part: str, target: str, method: str) -> Cell:
    """Return the paper's score as a cell; empty where it has none."""
    found = published().score(part, block.task, target, method)
    return Cell() if found is None else Cell(*found)
