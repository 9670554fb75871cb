"""What a person at a terminal sees: one console for words, tables and progress bars (on standard error)."""

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

console = Console(stderr=True)


class ToldError(RuntimeError):
    """An error whose message says all that a user needs to know."""


@contextmanager
def progress(what: str, total: int | None, unit: str = "sentences") -> Iterator[Callable[[int], None]]:
    """Show a progress bar while the block runs; it vanishes at the end and is silent without a terminal.

    Args:
        what: what is being done.
        total: how many steps there are, if known.
        unit: what is counted.

    Yields:
        A function to be called with the number of steps done since the last call.
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
        task = bar.add_task(what, total=total, rate="")

        def advance(steps: int) -> None:
            bar.advance(task, steps)
            speed = bar.tasks[0].speed
            bar.update(task, rate=f"{speed:,.0f}/s" if speed else "")

        yield advance


def say(text: str, style: str | None = None) -> None:
    """Print a line to the console; markup in the text is shown literally."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
