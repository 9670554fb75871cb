"""Damaged charts are rejected when they are loaded, not trained on."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset

from hf_xst import load_charts
from hf_xst.charts.dataset import ChartInfo, check_rows, to_mask
from hf_xst.files import CHARTS

FOLDER = Path(__file__).parents[1] / "fixtures" / "charts"


@pytest.fixture(scope="module")
def charts() -> Dataset:
    return load_charts(str(FOLDER))[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FOLDER, tmp_path / "charts"))


def changed(charts: Dataset, changes: Mapping[str, Any]) -> Dataset:
    """Change columns of the last row; a function changes the present value."""
    rows = [dict(row) for row in charts]
    for name, change in changes.items():
        rows[2][name] = change(rows[2][name]) if callable(change) else change
    return Dataset.from_list(rows, features=charts.features)


def put(value: Any, *path: int) -> Callable[[list[Any]], list[Any]]:
    """Replace a value of a nested list."""

    def change(values: list[Any]) -> list[Any]:
        inner = values
        for index in path[:-1]:
            inner = inner[index]
        inner[path[-1]] = value
        return values

    return change


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"candidates": put(-1, 0)}, "candidates are negative"),
        ({"candidates": put(-5, -1)}, "candidates are negative"),
        ({"candidates": put(None, 3)}, "candidates are negative"),
        ({"candidates": lambda all_: [all_[1], all_[0], *all_[2:]]}, "do not rise within a group"),
        ({"candidates": lambda all_: [all_[0], all_[0], *all_[2:]]}, "do not rise within a group"),
        ({"candidates": lambda all_: all_[:-1], "log_probs": []}, "offsets end elsewhere"),
        ({"candidates": None}, "candidates is missing"),
        ({"offsets": put(1, 0)}, "offsets do not rise from 0"),
        ({"offsets": put(2**30, 1)}, "offsets do not rise"),
        ({"offsets": put(-3, 1)}, "offsets do not rise"),
        ({"offsets": lambda all_: [*all_[:-1], all_[-1] + 1]}, "offsets end elsewhere"),
        ({"offsets": lambda all_: all_[:-1]}, "offsets and pool_best differ in length"),
        ({"offsets": []}, "offsets and pool_best differ in length"),
        ({"pool_best": put(-2, 0)}, "pool_best is below -1"),
        ({"pool_best": lambda all_: all_[:-1]}, "groups do not follow from its words"),
        ({"words": lambda all_: [*all_, "more"]}, "groups do not follow from its words"),
        ({"words": [], "pool_best": [], "offsets": [0]}, "it has no groups"),
        ({"source_best": put(-9, 1, 0)}, "source_best is below -1"),
        ({"source_best": put(None, 0, 1)}, "source_best is below -1"),
        ({"source_best": put([0], 1)}, "source_best and pool_best differ in length"),
        ({"source_best": put(None, 1)}, "source_best and pool_best differ in length"),
        ({"source_best": lambda all_: all_[:1]}, "does not list 2 sources"),
        ({"log_probs": put(math.nan, 0)}, "log_probs are NaN or positive"),
        ({"log_probs": put(math.inf, -1)}, "log_probs are NaN or positive"),
        ({"log_probs": put(0.5, 2)}, "log_probs are NaN or positive"),
        ({"log_probs": lambda all_: all_[1:]}, "log_probs and candidates differ in length"),
        ({"words_hash": None}, "words_hash is missing"),
        ({"format_version": 2}, "written by a newer version"),
    ],
)
def test_damaged_rows_name_their_sentence(charts: Dataset, changes: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^somewhere: the chart of sentence s2 is damaged: .*{message}"):
        check_rows(changed(charts, changes), 2, "somewhere")


def test_charts_without_log_probs_or_a_best_structure_pass(charts: Dataset) -> None:
    nothing = {"log_probs": [], "pool_best": [-1, -1, -1], "source_best": [[-1] * 3] * 2}
    check_rows(changed(charts, nothing), 2, "somewhere")
    check_rows(changed(charts, {"log_probs": put(-math.inf, 0), "candidates": put(2**31 - 1, -1)}), 2, "")


@pytest.mark.parametrize("name", ["candidates", "offsets", "source_best", "words_hash", "words"])
def test_columns_of_another_type_are_rejected(charts: Dataset, name: str) -> None:
    without = charts.remove_columns(name)
    with pytest.raises(ValueError, match=f"the column {name} is None; expected "):
        check_rows(without, 2, "somewhere")
    with pytest.raises(ValueError, match=f"the column {name} is Value.*; expected "):
        check_rows(without.add_column(name, [1, 2, 3]), 2, "somewhere")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"names": []}, "names is"),
        ({"names": ["det", "det"]}, "each once"),
        ({"names": [1]}, "expected str"),
        ({"sources": []}, "sources is"),
        ({"initial_model": None}, "expected str"),
        ({"settings": {"weights": {"en": "1"}}}, "expected float"),
        ({"settings": {"sigma": math.nan}}, "sigma is nan"),
        ({"settings": {"temperature": math.inf}}, "temperature is inf"),
        ({"settings": {"floor": -1}}, "floor is -1"),
        ({"settings": {"rule": "vote"}}, "rule is 'vote'"),
        ({"counts": {"sentences": "3"}}, "expected int"),
        ({"format_version": True}, "format_version"),
        ({"format_version": -2}, "format_version"),
        ({"more": 1}, "unknown field more"),
    ],
)
def test_damaged_records_are_rejected(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    record = json.loads((FOLDER / CHARTS).read_text(encoding="utf-8"))
    (tmp_path / CHARTS).write_text(json.dumps(record | changes), encoding="utf-8")
    with pytest.raises(ValueError, match=f"provenance.json: .*{message}"):
        ChartInfo.load(tmp_path)


def test_the_content_of_charts_is_checked_and_keys_the_cache(charts: Dataset, folder: Path) -> None:
    (shard,) = (folder / "data").iterdir()
    before = shard.stat()
    for value in (3, -2):
        changed(charts, {"pool_best": put(value, 0)}).to_parquet(str(shard))
        os.utime(shard, ns=(before.st_atime_ns, before.st_mtime_ns))
        if value == 3:
            assert load_charts(str(folder))[0][2]["pool_best"][0] == 3
    with pytest.raises(ValueError, match="sentence s2 is damaged: pool_best is below -1"):
        load_charts(str(folder))


@pytest.mark.parametrize("damage", [lambda data: data[:-40], lambda data: b"PAR1", lambda data: b""])
def test_damaged_files_are_rejected(folder: Path, damage: Callable[[bytes], bytes]) -> None:
    (shard,) = (folder / "data").iterdir()
    shard.write_bytes(damage(shard.read_bytes()))
    with pytest.raises(ValueError, match=r"the charts of .*charts cannot be read"):
        load_charts(str(folder))


@pytest.mark.parametrize("name", [CHARTS, "shard"])
def test_links_out_of_the_folder_are_rejected(folder: Path, name: str) -> None:
    (shard,) = (folder / "data").iterdir()
    path = folder / name if name == CHARTS else shard
    elsewhere = folder.parent / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    with pytest.raises(ValueError, match=r"leads to .*elsewhere, outside of its folder"):
        load_charts(str(folder))


@pytest.mark.parametrize(
    "triple", [(0, 0, -1), (0, -1, 0), (-1, 0, 0), (0, 0, 3), (0, 2, 0), (1, 0, 0), (0, 1, 1)]
)
def test_candidates_that_no_structure_contains_are_rejected(triple: tuple[int, int, int]) -> None:
    valid = torch.ones(1, 2, 3, dtype=torch.bool)
    valid[0, 1, 1] = False
    with pytest.raises(ValueError, match="which no structure of the sentence contains"):
        to_mask(torch.tensor([(0, 0, 0), triple]), valid)
