"""Share the work of a command among the processes of `accelerate launch` or `torchrun`.

All processes run the same command on the same input. Inside `shared_work`, batches are divided among them and
every process receives all results, in order, so that whatever follows is the same in each. Only the main
process writes files.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import chain
from typing import TypeVar

import torch
import torch.distributed

Item = TypeVar("Item")
Result = TypeVar("Result")
TIMEOUT = timedelta(hours=2)
"""How long a process waits for a slower one; a process that has died ends the others at once."""
_depth = 0


@contextmanager
def shared_work() -> Iterator[None]:
    """Divide the batches of the block among the processes that a launcher has started, if any."""
    global _depth
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and not torch.distributed.is_initialized():
        from accelerate import PartialState

        PartialState(cpu=not torch.cuda.is_available(), timeout=TIMEOUT)
        atexit.register(torch.distributed.destroy_process_group)  # or one process in four aborts at exit
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1


@contextmanager
def alone() -> Iterator[None]:
    """Let each process do all work of the block by itself, inside `shared_work`."""
    global _depth
    depth, _depth = _depth, 0
    try:
        yield
    finally:
        _depth = depth


def process_count() -> int:
    """Return the number of processes that share the work, 1 outside `shared_work`."""
    return torch.distributed.get_world_size() if _depth and torch.distributed.is_initialized() else 1


def process_index() -> int:
    """Return the number of this process, 0 for the main one."""
    return torch.distributed.get_rank() if process_count() > 1 else 0


def share(items: Sequence[Item], run: Callable[[Item], Result]) -> list[Result]:
    """Apply `run` to all items, each in one of the processes, and return all results in order.

    All processes must call this with the same items, which should be in order of cost; results are pickled
    between processes.
    """
    count = process_count()
    if count == 1:
        return [run(item) for item in items]
    own = [
        (number, run(item)) for number, item in enumerate(items) if _owner(number, count) == process_index()
    ]
    parts: list[list[tuple[int, Result]]] = [[] for _ in range(count)]
    with _lost_process():
        torch.distributed.all_gather_object(parts, own)
    results = dict(chain.from_iterable(parts))
    return [results[number] for number in range(len(items))]


def _owner(number: int, count: int) -> int:
    """Return the process of an item: rounds of alternating direction, so that costly items are spread."""
    lap, place = divmod(number, count)
    return place if lap % 2 else count - 1 - place


def from_main(make: Callable[[], Result]) -> Result:
    """Return to all processes what `make` returns in the main one; it must not share work itself."""
    if process_count() == 1:
        return make()
    results = [make() if process_index() == 0 else None]
    with _lost_process():
        torch.distributed.broadcast_object_list(results)
    return results[0]  # type: ignore[return-value]


def main_first(make: Callable[[], Result]) -> Result:
    """Return what `make` returns, first in the main process, so that the others find its caches."""
    results: list[Result] = []
    from_main(lambda: results.append(make()))
    return results[0] if results else make()


def wait_for_all() -> None:
    """Wait until all processes get here, e.g. before one reads what the main one has written."""
    if process_count() > 1:
        with _lost_process():
            torch.distributed.barrier()


@contextmanager
def _lost_process() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise RuntimeError("another process of this run has ended; see its message, and run again") from error
