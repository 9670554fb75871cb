"""Charts, pools and distances found by enumeration, read from the shared oracles."""

from __future__ import annotations

import json
from typing import Any

import torch
from torch import Tensor

from hf_xst.structures import DependencyTreeCRF, LinearChainCRF
from hf_xst.structures.base import Structure

SPACES = {
    "nonproj_multi": {"single_root": False, "projective": False},
    "nonproj_single": {"single_root": True, "projective": False},
    "proj_multi": {"single_root": False, "projective": True},
    "proj_single": {"single_root": True, "projective": True},
    "chain": None,
}


def build(space: str, scores: Any, dtype: torch.dtype = torch.float64) -> Structure:
    options = SPACES[space]
    tensor = torch.tensor([scores], dtype=dtype)
    return LinearChainCRF(tensor) if options is None else DependencyTreeCRF(tensor, **options)


def entries(shared, kind: str, space: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    name = "charts_chain.json" if space == "chain" else "charts_dependency.json"
    cases = json.loads(shared("oracles", name).read_text())[kind]
    if space == "chain":
        return [(case, case["results"]) for case in cases]
    return [(case, case["results"][space]) for case in cases if space in case["results"]]


def scores_of(case: dict[str, Any], space: str) -> Any:
    return case["pair_scores" if space == "chain" else "scores"]


def sources_of(case: dict[str, Any], space: str, dtype: torch.dtype) -> list[Structure]:
    key = "source_pair_scores" if space == "chain" else "source_scores"
    return [build(space, scores, dtype) for scores in case[key]]


def mask_of(chart: list[list[int]], like: Structure) -> Tensor:
    mask = torch.zeros(like.scores.shape[1:], dtype=torch.bool)
    for entry in chart:
        mask[tuple(entry)] = True
    return like.group_view(mask[None])


def entries_of(chart: Tensor, like: Structure) -> list[list[int]]:
    return torch.nonzero(like.part_view(chart)[0]).tolist()
