"""Charts made from sources: their content, counts and shards, and resuming."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import load_dataset

from helpers.categorical import IndependentGroups
from helpers.small_models import KINDS, MARKS, charts, gold, model_of, unlabelled
from hf_xst.charts import ChartSettings, best_mask, pool, pooled_chart, threshold, union_chart
from hf_xst.charts.alphabet import Relabelling
from hf_xst.charts.dataset import from_ragged, structure_triples, to_mask, words_hash
from hf_xst.models.running import run_rows
from hf_xst.sources.building import ChartMaker, build_shards
from hf_xst.sources.pool import PooledSource, SourcePool, joint_names
from hf_xst.structures import DependencyTreeCRF, LinearChainCRF

ROWS = unlabelled(gold((2, 5, 1, 3, 4)))


def pool_of(kind: str, names: list[str] | None = None, **changes: Any) -> SourcePool:
    models = {"first": model_of(kind, 1), "second": model_of(kind, 2, **changes)}
    return SourcePool(models, names or models["first"].names)


@pytest.mark.parametrize("rule", ["pool", "union"])
@pytest.mark.parametrize("kind", KINDS)
def test_charts_are_those_of_the_tensor_functions(kind, rule):
    sources = pool_of(kind)
    rows = list(ROWS)
    made, _ = ChartMaker(sources, ChartSettings(rule, 0.7, 0.0))(rows)
    distributions = sources.distributions(rows)
    valid = distributions[0].valid
    kept = to_mask(from_ragged(made), valid)
    for place in range(2):
        best = structure_triples([row["source_best"][place] for row in made])
        assert torch.equal(to_mask(best, valid), best_mask(distributions[place]))
        kept |= best_mask(distributions[place])
    expected = pooled_chart(distributions, 0.7) if rule == "pool" else union_chart(distributions, 0.7)
    assert torch.equal(kept, expected)
    assert torch.equal(
        to_mask(structure_triples([row["pool_best"] for row in made]), valid), best_mask(pool(distributions))
    )
    for row, original in zip(made, rows, strict=True):
        assert {name: row[name] for name in original} == original
        assert row["words_hash"] == words_hash(original["words"])
        assert row["log_probs"] == []
        for start, end in itertools.pairwise(row["offsets"]):
            assert row["candidates"][start:end] == sorted(set(row["candidates"][start:end]))


def test_a_small_sigma_keeps_one_candidate_and_a_full_one_all():
    for sigma, sizes in ((1e-9, {1}), (1.0, {len(MARKS)})):
        made, _ = ChartMaker(pool_of("groups"), ChartSettings(sigma=sigma))(list(ROWS))
        found = {end - start for row in made for start, end in itertools.pairwise(row["offsets"])}
        assert found == sizes


def test_log_probabilities_are_stored_with_their_candidates():
    sources, rows = pool_of("parser"), list(ROWS)
    made, _ = ChartMaker(sources, ChartSettings(sigma=0.8, keep_log_probs=True))(rows)
    pooled = pool(sources.distributions(rows), floor=1e-9)
    log_probs = pooled.group_view(pooled.scores)
    for place, row in enumerate(made):
        triples = from_ragged([row])
        assert len(row["log_probs"]) == len(triples) == len(row["candidates"])
        expected = log_probs[place, triples[:, 1], triples[:, 2]]
        torch.testing.assert_close(torch.tensor(row["log_probs"]), expected)


def test_weights_by_name_follow_the_order_of_the_sources():
    rows, sources = list(ROWS), pool_of("groups")
    one, _ = ChartMaker(sources, ChartSettings(sigma=1e-9, floor=0.0, weights={"second": 1.0, "first": 0.0}))(
        rows
    )
    alone = sources.distributions(rows)[1].best_candidates()
    assert [row["candidates"] for row in one] == [
        alone[i, : len(row["words"])].tolist() for i, row in enumerate(rows)
    ]
    for weights, message in (
        ({"first": 1.0}, "missing: second; without a source: none"),
        ({"first": 1, "second": 1, "third": 1}, "missing: none; without a source: third"),
    ):
        with pytest.raises(ValueError, match=message):
            ChartMaker(sources, ChartSettings(weights=weights))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rule": "vote"}, "rule is 'vote'; expected one of pool, union"),
        ({"sigma": 0.0}, "sigma is 0.0"),
        ({"sigma": 1.1}, "sigma is 1.1"),
        ({"floor": -1e-9}, "floor is -1e-09"),
    ],
)
def test_settings_out_of_range_are_rejected(changes, message):
    with pytest.raises(ValueError, match=message):
        ChartSettings(**changes)


def test_groups_without_shared_support_are_counted(monkeypatch):
    sources = pool_of("groups")
    first, second = (torch.full((1, 2, 3), -torch.inf) for _ in range(2))
    first[0, 0, 0] = second[0, 0, 1] = 0.0
    first[0, 1] = second[0, 1] = 0.0
    given = [IndependentGroups(first), IndependentGroups(second)]
    monkeypatch.setattr(sources, "distributions", lambda rows: given)
    make = ChartMaker(sources, ChartSettings(floor=0.0))
    (row,), counts = make([{"words": ["a", "b"]}])
    assert row["candidates"][: row["offsets"][1]] == [0, 1]
    assert counts.without_support == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"kept": -1}, "kept is -1; expected a count of at least 0"),
        ({"groups": 1.5}, "groups is '1.5'; expected int"),
        ({"sentences": None}, "sentences is 'None'; expected int"),
        ({"charts": 3}, "unknown field charts"),
    ],
)
def test_damaged_counts_of_a_shard_are_rejected(tmp_path, content, message):
    make = ChartMaker(pool_of("groups"), ChartSettings())
    assert build_shards(ROWS, make, tmp_path, {}, batch_words=100).sentences == len(ROWS)
    (path,) = (tmp_path / "run" / "shards").iterdir()
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=f"{path.name}: .*{message}"):
        build_shards(ROWS, make, tmp_path, {}, batch_words=100)


def dropping(structure: Any, old: list[str], new: list[str]) -> PooledSource:
    return PooledSource("s", None, None, Relabelling.between(old, new, structure))  # type: ignore[arg-type]


def test_dropped_mass_of_groups_and_arcs_by_hand():
    scores = torch.tensor([[[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]]).log()
    source = dropping(IndependentGroups, ["a", "b", "c"], ["c", "x", "a"])
    assert float(source._mass_on_dropped(IndependentGroups(scores))) == pytest.approx(0.3 + 0.1)
    one_word = torch.zeros(1, 2, 2, 3)
    one_word[0, 0, 1] = torch.tensor([0.2, 0.7, 0.1]).log()
    source = dropping(DependencyTreeCRF, ["a", "b", "c"], ["b"])
    assert float(source._mass_on_dropped(DependencyTreeCRF(one_word))) == pytest.approx(0.3)


def test_dropped_mass_of_pairs_counts_every_pair_with_any_dropped_label():
    tags = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]])
    pair = (tags[0, :, None] * tags[1]).log()[None, None]
    source = dropping(LinearChainCRF, ["a", "b", "c"], ["c", "a"])
    kept = (0.5 + 0.2) * (0.1 + 0.3)
    assert float(source._mass_on_dropped(LinearChainCRF(pair))) == pytest.approx(1 - kept)


@pytest.mark.parametrize("kind", KINDS)
def test_labels_unknown_to_the_pool_are_dropped(kind):
    names = model_of(kind).config.labels
    wide = model_of(kind, 2, labels=["zzz", *names])
    start = model_of(kind, 1)
    sources = SourcePool({"start": start, "wide": wide}, start.names)
    rows = list(ROWS)
    own = wide.distribution(run_rows(wide, rows))
    found = sources.distributions(rows)[1]
    assert found.scores.shape == sources.distributions(rows)[0].scores.shape
    group = own.group_view(own.marginals())
    label_axes = sources.sources[1].relabelling.label_axes
    width = len(wide.names)
    index = torch.arange(group.shape[-1])
    lost = torch.zeros_like(index, dtype=torch.bool)
    for _ in range(label_axes):
        lost |= index % width == wide.names.index("zzz")
        index = index // width
    expected = float(group[..., lost].sum())
    assert expected > 0.01
    _, counts = ChartMaker(sources, ChartSettings())(rows)
    assert counts.dropped_mass == {"wide": pytest.approx(expected, rel=1e-4)}
    assert sum(
        ChartMaker(sources, ChartSettings())([row])[1].dropped_mass["wide"] for row in rows
    ) == pytest.approx(expected, rel=1e-4)


def test_a_label_that_a_source_lacks_has_probability_zero_there():
    start = model_of("groups", 1, labels=[*MARKS, "wet"])
    sources = SourcePool({"start": start, "narrow": model_of("groups", 2)}, start.names)
    full, narrow = sources.distributions(list(ROWS))
    assert (full.marginals()[..., 3] > 0).any()
    assert (narrow.marginals()[..., 3] == 0).all()
    inside = narrow.valid[..., 0]
    torch.testing.assert_close(narrow.marginals().sum(-1)[inside], torch.ones(int(inside.sum())))


@pytest.mark.parametrize("kind", KINDS)
def test_joint_names_keep_the_order_and_special_labels_last(kind):
    first = model_of(kind)
    labels = list(first.config.labels)
    second = model_of(kind, labels=["zzz", labels[1], "aaa"])
    found = joint_names([first, second])
    assert found[: len(labels) + 2] == [*labels, "zzz", "aaa"]
    assert found[len(labels) + 2 :] == first.names[len(labels) :]


def written(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "data").iterdir())}


def build(folder: Path, make: Any, **changes: Any) -> Any:
    settings = {"identity": {"a": 1}, "batch_words": 6, "shard_size": 2} | changes
    return build_shards(ROWS, make, folder, settings.pop("identity"), **settings)


def test_shards_hold_all_rows_in_order_in_the_stated_schema(tmp_path):
    counts = build(tmp_path, ChartMaker(pool_of("parser"), ChartSettings(keep_log_probs=True)))
    files = sorted(written(tmp_path))
    assert files == [f"train-0000{i}-of-00003.parquet" for i in range(3)]
    rows = load_dataset(
        "parquet", data_files=[str(tmp_path / "data" / name) for name in files], split="train"
    )
    assert list(rows["words"]) == list(ROWS["words"])
    assert rows.features["candidates"].feature.dtype == "int32"
    assert rows.features["log_probs"].feature.dtype == "float16"
    assert (counts.sentences, counts.groups) == (5, 15)
    assert counts.kept == sum(len(row["candidates"]) for row in rows)


def test_an_interrupted_run_resumes_to_the_same_bytes(tmp_path):
    whole = build(tmp_path / "whole", ChartMaker(pool_of("tagger"), ChartSettings()))
    make = ChartMaker(pool_of("tagger"), ChartSettings())
    calls = 0

    def stopping(rows: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return make(rows)

    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "parts", stopping)
    begun = written(tmp_path / "parts")
    assert 0 < len(begun) < 3
    assert all(name.startswith("train-") for name in begun)  # nothing half written lies about
    rest = build(tmp_path / "parts", make)
    assert rest == whole
    assert written(tmp_path / "parts") == written(tmp_path / "whole")
    assert begun.items() <= written(tmp_path / "parts").items()


def test_finished_shards_are_not_made_again(tmp_path):
    first = build(tmp_path, ChartMaker(pool_of("groups"), ChartSettings()))

    def never(rows: Any) -> Any:
        raise AssertionError("nothing is left to be made")

    assert build(tmp_path, never) == first
    (tmp_path / "data" / "train-00001-of-00003.parquet").unlink()
    with pytest.raises(AssertionError):
        build(tmp_path, never)


def test_another_identity_is_rejected_with_the_differences(tmp_path):
    make = ChartMaker(pool_of("groups"), ChartSettings())
    build(tmp_path, make)
    with pytest.raises(ValueError, match=r"differ in: a, b;.*another --output"):
        build(tmp_path, make, identity={"a": 2, "b": 0})
    with pytest.raises(ValueError, match="differ in: shard_size;"):
        build(tmp_path, make, shard_size=3)
    with pytest.raises(ValueError, match="differ in: text;"):
        build_shards(ROWS.select([1, 0, 2, 3, 4]), make, tmp_path, {"a": 1}, batch_words=6, shard_size=2)


def test_sources_of_several_kinds_are_rejected():
    with pytest.raises(ValueError, match="same columns; found p: head and deprel, t: upos"):
        SourcePool({"p": model_of("parser"), "t": model_of("tagger")}, [])
    with pytest.raises(ValueError, match="found none"):
        SourcePool({}, [])
    entities = model_of("tagger", column="ner_tags", scheme="bio", labels=["B-PER", "I-PER", "O"])
    with pytest.raises(ValueError, match=r"same columns; found t: upos, n: ner_tags \(bio\)"):
        SourcePool({"t": model_of("tagger"), "n": entities})


def test_rows_made_one_by_one_equal_those_of_a_batch():
    rows = list(charts("parser", gold((2, 5, 1))))
    models = {f"source{seed}": model_of("parser", seed) for seed in (1, 2)}
    made = ChartMaker(SourcePool(models, models["source1"].names), ChartSettings(sigma=0.6))
    assert made(list(unlabelled(gold((2, 5, 1)))))[0] == rows


def test_padding_is_never_kept():
    sources = pool_of("parser")
    found, _ = ChartMaker(sources, ChartSettings(sigma=1.0))(list(ROWS))
    for row in found:
        n = len(row["words"])
        assert len(row["offsets"]) == n + 1
        assert max(row["candidates"]) < (n + 1) * 3
    distribution = sources.distributions(list(ROWS))[0]
    marginals = distribution.group_view(distribution.marginals())
    assert not threshold(marginals.log(), 1.0, distribution.valid)[~distribution.valid].any()
