"""Requests of one visitor come in turn; those of several visitors run at the same time."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from hf_xst.space.app import Turn

WITHIN = 30


class Request:
    """A request that runs until it is released."""

    def __init__(self, pool, turn, name):
        self.started, self.released = Event(), Event()
        self.result = pool.submit(turn.run, lambda: self.run(name), "superseded")

    def run(self, name):
        self.started.set()
        assert self.released.wait(WITHIN)
        return name


def test_only_the_newest_waiting_request_runs():
    turn = Turn()
    with ThreadPoolExecutor(8) as pool:
        first = Request(pool, turn, "first")
        assert first.started.wait(WITHIN)
        waiting = []
        for number in range(4):
            waiting.append(Request(pool, turn, number))
            for older in waiting[:-1]:
                assert older.result.result(WITHIN) == "superseded"
        assert not waiting[-1].started.is_set()
        first.released.set()
        assert waiting[-1].started.wait(WITHIN)
        waiting[-1].released.set()
        assert (first.result.result(WITHIN), waiting[-1].result.result(WITHIN)) == ("first", 3)
    assert not any(request.started.is_set() for request in waiting[:-1])


def test_visitors_do_not_wait_for_each_other():
    turn = Turn()
    with ThreadPoolExecutor(2) as pool:
        slow = Request(pool, turn, "slow")
        assert slow.started.wait(WITHIN)
        assert copy.deepcopy(turn).run(lambda: "other visitor", None) == "other visitor"
        assert not slow.result.done()
        slow.released.set()


def test_a_failed_request_ends_its_turn():
    turn = Turn()
    with pytest.raises(ZeroDivisionError):
        turn.run(lambda: 1 // 0, None)
    assert turn.run(lambda: "next", None) == "next"
