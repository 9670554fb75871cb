"""Structures run on one thread of PyTorch, whatever the process uses."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from helpers.structure_spaces import Space
from hf_xst.numerics import on_one_thread
from hf_xst.structures import Structure


class Threads(TorchDispatchMode):
    """Count PyTorch's operations by the number of threads that they may use."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: Counter[int] = Counter()

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.operations[torch.get_num_threads()] += 1
        return operation(*args, **(kwargs or {}))


@pytest.fixture(autouse=True)
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    after = torch.get_num_threads()
    torch.set_num_threads(before)
    assert after == 3


@pytest.mark.parametrize(("search", "arguments"), [("best", ()), ("sample", (2,)), ("topk", (2,))])
def test_searches(space: Space, search: str, arguments: tuple[int, ...]) -> None:
    structure = space.random([3, 1, 4])
    with Threads() as threads:
        getattr(structure, search)(*arguments)
    assert set(threads.operations) == {1}


@pytest.mark.parametrize("method", ["log_partition", "marginals", "entropy", "log_count"])
def test_sums(space: Space, method: str) -> None:
    structure = space.random([30, 7])
    with Threads() as threads:
        getattr(structure, method)()
    assert threads.operations[3] < 40
    if space.name != "independent":
        assert threads.operations[1] > 100


def test_gradients_are_ready_after_the_forward_pass(space: Space) -> None:
    structure = space.random([30, 7])
    structure.scores.requires_grad_()
    keep = torch.rand(structure.scores.shape) < 0.9
    total = structure.log_mass(keep).sum()
    with Threads() as threads:
        total.backward()
    assert sum(threads.operations.values()) < 40


def test_the_number_is_restored_after_errors() -> None:
    def fail() -> None:
        assert torch.get_num_threads() == 1
        raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        on_one_thread()(fail)()
    assert torch.get_num_threads() == 3


def test_nested_blocks_end_with_the_outer_one() -> None:
    with on_one_thread():
        with on_one_thread():
            pass
        assert torch.get_num_threads() == 1


def test_python_threads_that_start_while_others_are_inside_keep_the_number() -> None:
    all_inside, counts = threading.Barrier(4), []

    def work(_: int) -> None:
        with on_one_thread():
            all_inside.wait()
            assert torch.get_num_threads() == 1
        counts.append(torch.get_num_threads())

    with on_one_thread(), ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
        assert torch.get_num_threads() == 1
    assert counts == [3] * 4


def test_structures_of_one_batch_on_several_python_threads(space: Space) -> None:
    structures: list[Structure[Any]] = [space.random([3, 2], seed=seed) for seed in range(8)]
    expected = [structure.log_partition() for structure in structures]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda structure: structure.log_partition(), structures))
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
