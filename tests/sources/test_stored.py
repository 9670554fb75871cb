"""Marginals from the store are those that the sources give, up to the mass that may be lost."""

from __future__ import annotations

import errno
import gc
import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest
import torch
from torch.testing import assert_close

from helpers.small_models import KINDS, gold, model_of, unlabelled
from hf_xst.charts import ChartSettings
from hf_xst.charts.chart import SourceDistributions
from hf_xst.commands.options import VoteArguments
from hf_xst.commands.sentences import source_pool
from hf_xst.data import ConlluSentence, write_conllu
from hf_xst.sources import stored
from hf_xst.sources.building import ChartMaker
from hf_xst.sources.pool import PooledSource, SourcePool
from hf_xst.sources.stored import MarginalsStore
from hf_xst_cli import main

ROWS = list(unlabelled(gold((2, 5, 1, 3, 4))))
COLUMNS = ["upos", "words"]


def pool_of(kind: str, folder: Path | None = None, lost_mass: float = 1e-6, **changes: Any) -> SourcePool:
    pool = SourcePool({f"s{seed}": model_of(kind, seed, **changes) for seed in (1, 2, 3)})
    if folder is not None:
        pool.store = MarginalsStore(folder, kind, pool.kind.structure, COLUMNS, lost_mass)
    return pool


def fill(kind: str, folder: Path, **settings: Any) -> None:
    pool_of(kind, folder, **settings).read(ROWS)
    gc.collect()  # writes what waits


def unable(self: Any, rows: Any, **settings: Any) -> Any:
    raise AssertionError("a source ran")


def assert_near(found: SourceDistributions, exact: SourceDistributions, lost_mass: float) -> None:
    assert torch.equal(found.valid, exact.valid)
    assert torch.equal(found.best, exact.best)
    assert_close(found.entropy, exact.entropy)
    lost = (found.log_marginals.exp() - exact.log_marginals.exp()).abs().sum(-1)
    assert lost.max() <= 2 * lost_mass + 1e-6
    inside = exact.valid.any(-1)
    assert_close(found.log_marginals.exp().sum(-1)[:, inside], torch.ones(3, int(inside.sum())))
    likely = exact.log_marginals.exp() > lost_mass
    assert_close(found.log_marginals[likely], exact.log_marginals[likely])


@pytest.mark.parametrize("lost_mass", [1e-6, 0.2])
@pytest.mark.parametrize("kind", KINDS)
def test_stored_marginals_lose_no_more_than_they_may(kind, lost_mass, tmp_path, monkeypatch):
    fill(kind, tmp_path, lost_mass=lost_mass)
    exact = pool_of(kind).read(ROWS)
    warm = pool_of(kind, tmp_path, lost_mass)
    monkeypatch.setattr(PooledSource, "distribution", unable)
    assert_near(warm.read(ROWS), exact, lost_mass)


@pytest.mark.parametrize("kind", KINDS)
def test_sentences_are_found_in_any_batch_and_several_files(kind, tmp_path, monkeypatch):
    for rows in (ROWS[:3], ROWS[2:]):
        pool_of(kind, tmp_path).read(rows)
        gc.collect()
    warm = pool_of(kind, tmp_path)
    exact = pool_of(kind)
    batches = [[ROWS[index] for index in order] for order in ((3, 1), (4, 0, 2, 1), (2, 2))]
    expected = [exact.read(batch) for batch in batches]
    monkeypatch.setattr(PooledSource, "distribution", unable)
    for batch, each in zip(batches, expected, strict=True):
        found = warm.read(batch)
        assert torch.equal(found.best, each.best)
        assert torch.equal(found.valid, each.valid)
        assert found.space.scores.shape == each.space.scores.shape
        assert_close(found.log_marginals.exp(), each.log_marginals.exp())


def test_the_first_run_gives_what_later_runs_give(tmp_path):
    cold, warm = (pool_of("parser", tmp_path, 0.1).read(ROWS) for _ in range(2) if gc.collect() >= 0)
    assert torch.equal(cold.log_marginals, warm.log_marginals)


@pytest.mark.parametrize("change", [{"words": ["other"]}, {"upos": ["X"] * 2}])
def test_other_words_and_tags_are_not_found(change, tmp_path, monkeypatch):
    fill("parser", tmp_path)
    warm = pool_of("parser", tmp_path)
    monkeypatch.setattr(PooledSource, "distribution", unable)
    with pytest.raises(AssertionError, match="a source ran"):
        warm.read([ROWS[1], {**ROWS[0], **change}])


@pytest.mark.parametrize("place", [20, 2000, -3])
def test_damaged_files_are_rejected(place, tmp_path):
    fill("tagger", tmp_path)
    (path,) = tmp_path.rglob("*.arrow")
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"\.arrow is damaged; remove it, and the sources will run again"):
        pool_of("tagger", tmp_path)


def test_stored_marginals_of_another_schema_are_rejected(tmp_path):
    fill("tagger", tmp_path)
    (path,) = tmp_path.rglob("*.arrow")
    other = pa.RecordBatch.from_pydict({"key": [b"0" * 32], "log_probs": [[0.5]]})
    stored._write(path.parent, [other])  # named by its content, so not damaged
    with pytest.raises(ValueError, match=r"\.arrow is not a file of stored marginals; remove it"):
        pool_of("tagger", tmp_path)


def test_a_store_that_cannot_be_written_is_reported_early_or_warned_of(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(NotADirectoryError):
        pool_of("tagger", tmp_path / "file")
    monkeypatch.setattr(
        Path, "write_bytes", Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
    )
    fill("tagger", tmp_path / "store")
    shown = " ".join(capsys.readouterr().err.split())
    assert shown.startswith("marginals were not stored: ")
    assert shown.endswith(".arrow: No space left on device; free disk space")


def test_several_writers_do_not_disturb_each_other(tmp_path):
    pools = [pool_of("tagger", tmp_path) for _ in range(3)]
    for pool, rows in zip(pools, (ROWS, ROWS, ROWS[:2]), strict=True):
        pool.read(rows)
    del pool, pools
    gc.collect()
    assert len(list(tmp_path.rglob("*.arrow"))) == 2  # equal files are one
    assert not list(tmp_path.rglob("*.part"))
    assert_near(pool_of("tagger", tmp_path).read(ROWS), pool_of("tagger").read(ROWS), 1e-6)


def test_dropped_mass_is_stored(tmp_path):
    masses = []
    for folder in (None, tmp_path, tmp_path):
        pool = SourcePool(
            {f"s{seed}": model_of("parser", seed) for seed in (1, 2)}, model_of("parser").names[1:]
        )
        if folder is not None:
            pool.store = MarginalsStore(folder, "dropped", pool.kind.structure, COLUMNS)
        make = ChartMaker(pool, ChartSettings())
        masses.append(make(ROWS)[1].dropped_mass)
        del pool, make
        gc.collect()
    assert masses[0]
    assert masses[1] == pytest.approx(masses[0])
    assert masses[2] == masses[1]


def test_stored_marginals_have_no_other_temperature(tmp_path):
    make = ChartMaker(pool_of("tagger", tmp_path), ChartSettings(temperature=2.0))
    with pytest.raises(ValueError, match="stored marginals have 1: leave out --marginals-cache"):
        make(ROWS)
    with pytest.raises(ValueError, match=r"lost_mass is 1\.5; expected a probability between 0 and 1"):
        pool_of("tagger", tmp_path, 1.5)


def test_half_precision_has_a_store_of_its_own(tmp_path):
    models = {"one": model_of("tagger", 1)}
    folders = set()
    for bf16 in (False, True, False):
        options = VoteArguments(output="o", sources=["one"], marginals_cache=str(tmp_path), bf16=bf16)
        folders.add(source_pool(options, models).store.folder)
    assert len(folders) == 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parser", "tagger"])
def test_commands_share_the_store(kind, tmp_path, monkeypatch):
    for seed in (1, 2):
        model_of(kind, seed).save_pretrained(tmp_path / f"m{seed}")
    columns = ("upos", "head", "deprel")
    write_conllu(
        (
            ConlluSentence.from_words(
                row["words"], sent_id=row["sent_id"], columns={c: row[c] for c in columns}
            )
            for row in gold((2, 5, 1, 3, 4, 6, 2), 6)
        ),
        tmp_path / "gold.conllu",
    )
    sources = ["--sources", f"a={tmp_path}/m1", f"b={tmp_path}/m2"]
    treebank = ["--treebank", f"test={tmp_path}/gold.conllu", "--split", "test"]
    commands = {
        "small": ["build-charts", "--sigma", "0.8", "--preset", "recommended"],
        "large": ["build-charts", "--sigma", "0.99", "--rule", "union"],
        "vote": ["vote"],
        "pool": ["vote", "--rule", "pool"],
        "analyse": ["analyse", "--no-plots"],
        "weights": ["learn-weights"],
    }

    def run(folder: str, *more: str) -> dict[str, Any]:
        for name, words in commands.items():
            assert main([*words, *sources, *treebank, "--output", f"{tmp_path}/{folder}/{name}", *more]) == 0
            gc.collect()
        names = ("vote/predictions.conllu", "pool/predictions.conllu", "small/data/*", "large/data/*")
        files = [next((tmp_path / folder).glob(name)).read_bytes() for name in names]
        scores = json.loads((tmp_path / folder / "analyse" / "analysis.json").read_text())
        return {"files": files, "weights": scores["selection"], "scores": scores}

    exact = run("exact")
    cache = ["--marginals-cache", str(tmp_path / "cache")]
    cold = run("cold", *cache)
    monkeypatch.setattr(PooledSource, "distribution", unable)
    warm = run("warm", *cache)
    assert warm == cold
    assert cold["files"] == exact["files"]
    assert cold["scores"]["charts"] == exact["scores"]["charts"]
    distance, expected = (each["scores"]["distance"]["pool"]["with_boundaries"] for each in (cold, exact))
    assert distance["kl"] == pytest.approx(expected["kl"], rel=1e-4)
    record = json.loads((tmp_path / "warm" / "small" / "provenance.json").read_text())
    assert record["lost_mass"] == 1e-6
