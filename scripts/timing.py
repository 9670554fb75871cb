"""Time pieces of work for `benchmark.py` and format the results."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import torch
from rich.table import Table

LEAST_ROUNDS, MOST_ROUNDS = 3, 30
PACKAGES = ("hf_xst", "torch", "numpy", "transformers", "torch-struct", "ufal.chu_liu_edmonds")


class Line(NamedTuple):
    """Two ways with their median seconds, and the meaning of their quotient."""

    what: str
    one: str
    one_seconds: float
    other: str
    other_seconds: float
    note: str = ""

    @property
    def ratio(self) -> float:
        """How many times as long the other way takes."""
        return self.other_seconds / self.one_seconds


def medians(*works: Callable[[], object], seconds: float) -> list[float]:
    """Return the median running time of each piece of work, in seconds.

    After a warm-up they take turns, so that a slow spell of the machine strikes all of them.

    Args:
        works: what is timed.
        seconds: rounds are added until this much time has passed, within bounds.
    """
    for work in works:
        work()
    times: list[list[float]] = [[] for _ in works]
    begin = time.perf_counter()
    while len(times[0]) < LEAST_ROUNDS or (
        time.perf_counter() - begin < seconds and len(times[0]) < MOST_ROUNDS
    ):
        for work, own in zip(works, times, strict=True):
            start = time.perf_counter()
            work()
            own.append(time.perf_counter() - start)
    return [statistics.median(own) for own in times]


def machine() -> dict[str, Any]:
    """Describe what the figures are measured on."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "absent"
    return {
        "platform": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "versions": versions,
    }


def table(lines: Sequence[Line], about: dict[str, Any]) -> Table:
    """Lay the lines out for a terminal."""
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    place = f"{about['platform']}, {about['cores']} cores, {about['threads']} threads"
    drawn = Table(title="Medians of one run; ratios depend on the machine", caption=f"{place}; {versions}")
    for heading in ("what", "one way, ms", "other way, ms"):
        drawn.add_column(heading)
    drawn.add_column("ratio", justify="right")
    drawn.add_column("note")
    for line in lines:
        one, other = (
            f"{line.one}: {1e3 * line.one_seconds:.3g}",
            f"{line.other}: {1e3 * line.other_seconds:.3g}",
        )
        drawn.add_row(line.what, one, other, f"{line.ratio:.1f}", line.note)
    return drawn
