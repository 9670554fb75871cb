"""Print messages, tables and progress bars to one console on standard error."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.table import Table

from hf_xst.processes import process_count

# Control characters, line and paragraph separators, overrides of text direction, and halves of pairs.
_HOSTILE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_MOST_LISTED = 30
_WIDEST = 100_000


def printable(text: str, kept: str = "") -> str:
    """Replace by `�` what controls a terminal: control characters, line breaks, overrides of text direction.

    Every text of others (words, labels, names of files) passes through here before it is shown. Characters in
    `kept` stay.
    """
    return _HOSTILE.sub(lambda match: match[0] if match[0] in kept else "�", text)


class FilteredConsole(Console):
    """A console on which texts neither control the terminal nor contain markup."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Render to segments; only those of rich itself control the terminal."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text, "\n"))


console = FilteredConsole(stderr=True)


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Return a hint for an unknown name: the most similar known one, otherwise all if they are few."""
    near = get_close_matches(name, known, n=1)
    if not near and len(known) > _MOST_LISTED:
        return ""
    return f"; did you mean {near[0]}?" if near else f"; expected one of {', '.join(known)}"


@contextmanager
def progress(description: str, total: int | None, unit: str = "sentences") -> Iterator[Callable[[int], None]]:
    """Show a progress bar of `total` units on a terminal while the block runs.

    Yields:
        A function to call with the number of units done since its last call.
    """
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{unit}, {{task.fields[rate]}}"),
        TimeRemainingColumn(),
    )
    processes = process_count()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(description, total=total, rate="")

        def advance(steps: int) -> None:
            bar.advance(task, steps * processes)  # the others are about as fast
            speed = bar.tasks[0].speed
            bar.update(task, rate=f"{speed:,.0f}/s" if speed else "")

        yield advance


def say(text: str, style: str | None = None) -> None:
    """Print a line to the console; markup in the text is shown literally."""
    console.print(text, style=style, highlight=False, soft_wrap=True)


def print_table(table: Table, out: Console = console) -> None:
    """Print a table in full: one that is wider than the console is wrapped by the terminal, and never cut."""
    table.width = Measurement.get(out, out.options.update(max_width=_WIDEST), table).maximum
    out.print(table, crop=False)
