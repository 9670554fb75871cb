"""Exact results for small inputs from the oracle files: both precisions, alone and in padded batches."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hf_xst.structures import DependencyTreeCRF, LinearChainCRF, Structure

Shared = Callable[..., Path]

TREE_OPTIONS = {
    f"{kind}_{roots}": {"projective": kind == "proj", "single_root": roots == "single"}
    for kind in ("nonproj", "proj")
    for roots in ("single", "multi")
}
LOG_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}
SHARE_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-5}
PRECISIONS = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
FILLINGS = pytest.mark.parametrize("filling", [None, math.nan, math.inf, -math.inf, 1e4], ids=str)


def load(shared: Shared, name: str) -> Any:
    return json.loads(shared("oracles", name).read_text(encoding="utf-8"))


def number(value: float | str) -> float:
    return float(value)


def close_log(actual: Tensor, expected: list[float], dtype: torch.dtype) -> None:
    assert actual.dtype == dtype
    for mine, theirs in zip(actual.double().tolist(), expected, strict=True):
        if math.isinf(theirs):
            assert mine == theirs
        else:
            assert abs(mine - theirs) <= LOG_TOLERANCE[dtype] * max(1, abs(theirs))


def close_shares(actual: Tensor, expected: Any, dtype: torch.dtype) -> None:
    assert_close(
        actual.double(), torch.tensor(expected, dtype=torch.float64), rtol=0, atol=SHARE_TOLERANCE[dtype]
    )


def stacked(arrays: list[Tensor], shape: list[int], filling: float) -> Tensor:
    """Stack arrays of different sizes, padded with `filling`."""
    result = arrays[0].new_full((len(arrays), *shape), filling)
    for row, array in zip(result, arrays, strict=True):
        row[tuple(slice(n) for n in array.shape)] = array
    return result


Batch = tuple[Structure[Any], list[dict[str, Any]]]


def batches(
    make: Callable[..., Structure[Any]],
    cases: list[dict[str, Any]],
    filling: float | None,
    position_axes: int,
) -> Iterator[Batch]:
    """Yield each case alone without a filling, else one padded batch for each number of labels."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for i, case in enumerate(cases):
        key = i if filling is None else case["array"].shape[-1]
        groups.setdefault(key, []).append(case)
    for group in groups.values():
        arrays = [case["array"] for case in group]
        shape = [max(sizes) for sizes in zip(*(array.shape for array in arrays), strict=True)]
        if filling is not None:
            shape = [size + (axis < position_axes) for axis, size in enumerate(shape)]
        yield make(stacked(arrays, shape, filling or 0.0), torch.tensor([case["n"] for case in group])), group


def read_cases(cases: list[dict[str, Any]], array: str, dtype: torch.dtype) -> list[dict[str, Any]]:
    return [{**case, "array": torch.tensor(case[array], dtype=dtype)} for case in cases]


def corner(full: Tensor, case: dict[str, Any]) -> Tensor:
    return full[tuple(slice(size) for size in case["array"].shape)]


def padded_rows(sequences: list[list[int]], width: int) -> Tensor:
    return torch.tensor([row + [-1] * (width - len(row)) for row in sequences])


def width_of(structure: Structure[Any]) -> int:
    return int(structure.scores.shape[1]) + (1 if isinstance(structure, LinearChainCRF) else -1)


@PRECISIONS
@FILLINGS
@pytest.mark.parametrize("space", TREE_OPTIONS)
def test_trees(shared: Shared, space: str, filling: float | None, dtype: torch.dtype) -> None:
    file = load(shared, f"dependency_{space.split('_')[0]}.json")
    for structure, cases in batches(
        lambda *arguments: DependencyTreeCRF(*arguments, **TREE_OPTIONS[space]),
        read_cases(file["cases"], "scores", dtype),
        filling,
        2,
    ):
        results = [case["results"][space] for case in cases]
        width = width_of(structure)
        close_log(structure.log_partition(), [r["log_partition"] for r in results], dtype)
        gold = tuple(
            padded_rows([case["gold"][part] for case in cases], width) for part in ("heads", "labels")
        )
        outside = [-math.inf if r["gold_log_prob"] is None else r["gold_log_prob"] for r in results]
        close_log(structure.log_prob(gold), outside, dtype)
        close_log(structure.log_count(), [math.log(r["n_labelled_trees"]) for r in results], dtype)
        best = structure.best()
        close_log(structure.log_prob(best), [r["best"]["log_prob"] for r in results], dtype)
        second = tuple(part[1] for part in structure.topk(2))
        check_runner_up(structure, second, results, dtype)
        marginals = structure.marginals()
        for i, (case, result) in enumerate(zip(cases, results, strict=True)):
            close_shares(corner(marginals[i], case), result["marginals"], dtype)
            close_shares(marginals[i].sum(), case["n"], dtype)
            if result["best"]["n_optimal"] == 1:
                assert [part[i, : case["n"]].tolist() for part in best] == [
                    result["best"]["heads"],
                    result["best"]["labels"],
                ]


@PRECISIONS
@FILLINGS
def test_chains(shared: Shared, filling: float | None, dtype: torch.dtype) -> None:
    file = load(shared, "chain.json")
    for structure, cases in batches(
        LinearChainCRF, read_cases(file["cases"], "pair_scores", dtype), filling, 1
    ):
        results = [case["results"] for case in cases]
        gold = padded_rows([case["gold"] for case in cases], width_of(structure))
        close_log(structure.log_partition(), [r["log_partition"] for r in results], dtype)
        close_log(structure.log_prob(gold), [r["gold_log_prob"] for r in results], dtype)
        close_log(structure.log_count(), [math.log(r["n_sequences"]) for r in results], dtype)
        best = structure.best()
        close_log(structure.log_prob(best), [r["best"]["log_prob"] for r in results], dtype)
        check_runner_up(structure, structure.topk(2)[1], results, dtype)
        marginals = structure.marginals()
        for i, (case, result) in enumerate(zip(cases, results, strict=True)):
            close_shares(corner(marginals[i], case), result["pair_marginals"], dtype)
            if result["best"]["n_optimal"] == 1:
                assert best[i, : case["n"]].tolist() == result["best"]["tags"]


def check_runner_up(
    structure: Structure[Any], second: Any, results: list[dict[str, Any]], dtype: torch.dtype
) -> None:
    """Check the second best, which is strictly worse exactly if the best is unique."""
    expected = [
        number(r["best"]["runner_up_score"] if r["best"]["n_optimal"] == 1 else r["best"]["score"])
        - r["log_partition"]
        for r in results
    ]
    close_log(structure.log_prob(second), expected, dtype)


def chart_tensor(case: dict[str, Any]) -> Tensor:
    keep = torch.zeros(case["array"].shape, dtype=torch.bool)
    for part in case["chart"]:
        keep[tuple(part)] = True
    return keep


def check_charts(
    structure: Structure[Any], cases: list[dict[str, Any]], results: Any, dtype: torch.dtype
) -> None:
    keep = stacked([chart_tensor(case) for case in cases], list(structure.scores.shape[1:]), False)
    scores = structure.scores.clone().requires_grad_()
    live = structure.with_scores(scores)
    restricted = live.restricted_to(keep)
    close_log(live.log_partition(), [r["log_partition"] for r in results], dtype)
    close_log(restricted.log_partition(), [number(r["chart_log_partition"]) for r in results], dtype)
    close_log(restricted.log_count(), [number(r["log_n_structures"]) for r in results], dtype)
    close_log(-live.log_mass(keep), [number(r["loss"]) for r in results], dtype)
    losses = live.log_partition() - restricted.log_partition()
    (gradient,) = torch.autograd.grad(losses[losses.isfinite()].sum(), scores, retain_graph=True)
    (same,) = torch.autograd.grad(-live.log_mass(keep).sum(), scores)
    assert_close(gradient, same, rtol=0, atol=1e-6)
    close_log(losses, [number(r["loss"]) for r in results], dtype)
    possible = restricted.marginals() > 0
    for i, (case, result) in enumerate(zip(cases, results, strict=True)):
        name = "arcs_in_some_structure" if "arcs_in_some_structure" in result else "pairs_in_some_structure"
        assert sorted(possible[i].nonzero().tolist()) == sorted(result[name])
        if "loss_gradient" in result:
            close_shares(corner(gradient[i], case), result["loss_gradient"], dtype)
        else:
            assert (gradient[i] == 0).all()


@PRECISIONS
@FILLINGS
@pytest.mark.parametrize("space", TREE_OPTIONS)
def test_tree_charts(shared: Shared, space: str, filling: float | None, dtype: torch.dtype) -> None:
    file = load(shared, "charts_dependency.json")
    for structure, cases in batches(
        lambda *arguments: DependencyTreeCRF(*arguments, **TREE_OPTIONS[space]),
        read_cases(file["chart_loss"], "scores", dtype),
        filling,
        2,
    ):
        check_charts(structure, cases, [case["results"][space] for case in cases], dtype)


@PRECISIONS
@FILLINGS
def test_chain_charts(shared: Shared, filling: float | None, dtype: torch.dtype) -> None:
    file = load(shared, "charts_chain.json")
    for structure, cases in batches(
        LinearChainCRF, read_cases(file["chart_loss"], "pair_scores", dtype), filling, 1
    ):
        check_charts(structure, cases, [case["results"] for case in cases], dtype)


@pytest.mark.parametrize("space", TREE_OPTIONS)
def test_tree_votes(shared: Shared, space: str) -> None:
    for case in load(shared, "majority_vote.json")["trees"]:
        predictions, result = case["predictions"], case["results"][space]
        heads, labels = (torch.tensor([[p[part]] for p in predictions]) for part in ("heads", "labels"))
        winner = DependencyTreeCRF.majority(heads, labels, **TREE_OPTIONS[space])
        actual = {"heads": winner[0][0].tolist(), "labels": winner[1][0].tolist()}
        agreeing = ((heads == winner[0]) & (labels == winner[1])).sum().item()
        assert agreeing == result["total_votes"]
        if result["optimal_is_complete"]:
            assert actual in result["optimal"]
        blank = torch.zeros(1, heads.shape[2] + 1, heads.shape[2] + 1, 10)
        assert DependencyTreeCRF(blank, **TREE_OPTIONS[space]).contains(winner).all()
        optimal_sources = [p for p in predictions if p in result["optimal"]]
        if optimal_sources:
            assert actual == optimal_sources[0]


def test_tag_votes(shared: Shared) -> None:
    for case in load(shared, "majority_vote.json")["tags"]:
        actual = LinearChainCRF.majority(torch.tensor(case["predictions"]).unsqueeze(1))
        assert actual[0].tolist() == case["earliest_source_wins"]
        assert all(tag in fine for tag, fine in zip(actual[0].tolist(), case["acceptable"], strict=True))
