"""Fixtures: every kind of structure, with several distributions of scores."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.structure_spaces import SPACES, Space
from hf_xst.structures import Structure

LENGTHS = [3, 1, 4, 2]
SETTINGS = {
    "plain": {},
    "one label": {"labels": 1},
    "three labels, short": {"labels": 3, "lengths": [2, 3]},
    "sharp": {"scale": 30.0},
    "very sharp": {"scale": 1000.0},
    "sparse": {"absent": 0.35, "seed": 1},
    "very sparse": {"absent": 0.6, "seed": 2},
    "equal": {"scale": 0.0},
}


@pytest.fixture(params=list(SPACES))
def space(request: pytest.FixtureRequest) -> Space:
    return SPACES[request.param]


@pytest.fixture(params=list(SETTINGS))
def structure(request: pytest.FixtureRequest, space: Space) -> Structure[Any]:
    return space.random(**{"lengths": LENGTHS, **SETTINGS[request.param]})
