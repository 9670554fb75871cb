"""Several cells of a graph at once, each in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from multiprocessing import active_children, get_context, parent_process
from threading import Thread
from typing import Any

import datasets
import torch
import transformers.utils.logging
from rich.markup import escape

from hf_xst.console import console
from hf_xst.experiments.cells import Graph

MakeGraph = Callable[[], Graph]


@cache
def _graph(make: MakeGraph) -> Graph:
    """Build a process's graph once."""
    return make()


def _work(make: MakeGraph, name: str, results: Mapping[str, Any]) -> dict[str, Any]:
    graph = _graph(make)
    try:
        return graph.make(graph.cells[name], results)
    except Exception as error:
        # As text: what cannot be pickled would bring down all processes, and its message would be lost.
        raise _CellError(f"{type(error).__name__}: {error}") from error


class _CellError(Exception):
    """What went wrong in a cell."""


def _begin(threads: int) -> None:
    torch.set_num_threads(threads)
    # Bars of several processes write over each other; the one that started them says what is done.
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    datasets.disable_progress_bars()
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process as soon as the one that started it is gone, or it would write into a later run."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class FailedCellsError(RuntimeError):
    """Some cells failed; all that did not depend on them were made."""


def _stop(pool: ProcessPoolExecutor) -> None:
    """End all processes: left alone they would go on, and begin other cells, in a folder that is set free."""
    pool.shutdown(wait=False, cancel_futures=True)
    for process in active_children():
        process.terminate()
        process.join()


def run_side_by_side(
    graph: Graph, make: MakeGraph, jobs: int, only: Sequence[str] = ()
) -> dict[str, dict[str, Any]]:
    """Make what is not there yet, several cells at a time, each as soon as those that it needs are there.

    Args:
        graph: the cells.
        make: builds the same graph in another process; it must be picklable and hashable.
        jobs: how many processes, which share the processor's cores.
        only: see `Graph.chosen`.

    Returns:
        All chosen results by name.

    Raises:
        FailedCellsError: cells failed; the message names them and their errors.
    """
    names = graph.chosen(only)
    left = graph.to_make(only)
    results = {
        name: kept for name in names if name not in set(left) and (kept := graph.result(name)) is not None
    }
    errors: dict[str, str] = {}
    running: dict[Future[dict[str, Any]], str] = {}
    threads = max(1, (os.cpu_count() or 1) // jobs)
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_begin, initargs=(threads,))
    try:
        while left or running:
            ready = [name for name in left if all(need in results for need in graph.cells[name].needs)]
            for name in ready[: max(0, jobs - len(running))]:
                needed = {need: results[need] for need in graph.cells[name].needs}
                try:
                    running[pool.submit(_work, make, name, needed)] = name
                except BrokenProcessPool:
                    break  # a process was killed, which those that run will tell
                left.remove(name)
            if not running:
                break  # what is left depends on what failed, or no process is left
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                name = running.pop(future)
                problem = future.exception()
                if problem is None:
                    results[name] = future.result()
                else:
                    own = isinstance(problem, _CellError)
                    errors[name] = str(problem) if own else f"{type(problem).__name__}: {problem}"
                console.print(
                    f"{len(results)} of {len(names)} done, {len(running)} running: {name}"
                    + (f" [red]failed[/red] ({escape(errors[name])})" if problem is not None else ""),
                    highlight=False,
                )
    except BaseException:
        _stop(pool)
        raise
    pool.shutdown()
    if errors:
        told = "; ".join(f"{name}: {message}" for name, message in errors.items())
        raise FailedCellsError(f"{len(errors)} cells failed, {len(left)} were waiting for them; {told}")
    return {name: results[name] for name in names}
