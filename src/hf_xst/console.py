"""Print messages, tables and progress bars to one console on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)

from hf_xst.processes import process_count

console = Console(stderr=True)


@contextmanager
def progress(description: str, total: int | None, unit: str = "sentences") -> Iterator[Callable[[int], None]]:
    """Show a progress bar of `total` units on a terminal while the block runs.

    Yields:
        A function to call with the number of units done since its last call.
    """
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{unit}, {{task.fields[rate]}}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(description, total=total, rate="")

        def advance(steps: int) -> None:
            bar.advance(task, steps * process_count())  # the others are about as fast
            speed = bar.tasks[0].speed
            bar.update(task, rate=f"{speed:,.0f}/s" if speed else "")

        yield advance


def say(text: str, style: str | None = None) -> None:
    """Print a line to the console; markup in the text is shown literally."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
