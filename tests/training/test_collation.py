"""Charts in a batch: any order of labels, any batch mates, only the words that they were made for."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from helpers.small_models import KINDS, arguments, charts, gold, model_of, on_charts
from hf_xst.charts import chart_loss
from hf_xst.charts.alphabet import Relabelling
from hf_xst.charts.dataset import to_mask
from hf_xst.models.collation import Collator
from hf_xst.training.collation import ChartCollator, ChartUse

LENGTHS = (1, 4, 2, 6)


def losses(model: Any, names: list[str], rows: list[dict[str, Any]], **changes: Any) -> torch.Tensor:
    batch = ChartCollator(model, names, **changes)(rows)
    inputs = {key: batch[key] for key in batch if key not in ("units", "chart", "fallback", "sent_ids")}
    distribution = model.distribution(model(**inputs))
    return chart_loss(distribution, to_mask(batch["chart"], distribution.valid))


@pytest.mark.parametrize("kind", KINDS)
def test_indices_are_valid_in_any_batch(kind):
    rows, model = list(charts(kind, gold(LENGTHS))), model_of(kind).eval()
    together = losses(model, model.names, rows)
    alone = torch.cat([losses(model, model.names, [row]) for row in rows])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)
    turned = losses(model, model.names, rows[::-1]).flip(0)
    torch.testing.assert_close(together, turned, rtol=1e-4, atol=1e-5)
    assert (together > 1e-3).any()


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_labels_does_not_matter(kind):
    rows, model = list(charts(kind, gold(LENGTHS))), model_of(kind).eval()
    expected = losses(model, model.names, rows)
    shuffled = [*model.names[1:], model.names[0]]
    move = Relabelling.between(model.names, shuffled, model.structure)
    moved = []
    for row in rows:
        columns = ("candidates", "pool_best")
        renamed = {name: move.candidates(torch.tensor(row[name])).tolist() for name in columns}
        best = [move.candidates(torch.tensor(source)).tolist() for source in row["source_best"]]
        moved.append({**row, **renamed, "source_best": best})
    assert moved[1]["candidates"] != rows[1]["candidates"]
    torch.testing.assert_close(losses(model, shuffled, moved), expected)


def test_a_model_with_more_labels_takes_the_chart(tmp_path):
    rows, model = list(charts("parser", gold(LENGTHS))), model_of("parser")
    names = list(model.names)
    model.add_labels(["vocative"])
    batch = ChartCollator(model, names)(rows)
    wide = ChartCollator(model_of("parser"), names)(rows)
    assert torch.equal(batch["chart"][:, 2] // 4 * 3 + batch["chart"][:, 2] % 4, wide["chart"][:, 2])


def test_labels_that_the_model_lacks_are_named():
    model = model_of("parser")
    with pytest.raises(
        ValueError, match=r"labels that the model does not have: vocative, dep; .*--labels union"
    ):
        ChartCollator(model, ["vocative", *model.names, "dep"])


def test_best_structures_join_or_stay_out():
    rows, model = list(charts("parser", gold(LENGTHS))), model_of("parser")
    with_best, pool_only, without = (
        {
            tuple(triple)
            for triple in ChartCollator(model, model.names, use=ChartUse(best))(rows)["chart"].tolist()
        }
        for best in ("sources", "pool", "none")
    )
    best = {
        (place, group, candidate)
        for place, row in enumerate(rows)
        for source in row["source_best"]
        for group, candidate in enumerate(source)
    }
    assert with_best == without | best
    assert pool_only == without | {
        (place, group, candidate)
        for place, row in enumerate(rows)
        for group, candidate in enumerate(row["pool_best"])
    }
    assert best - without
    sizes = sum(len(row["candidates"]) for row in rows)
    assert len(without) == sizes


@pytest.mark.parametrize("kind", ["parser", "tagger"])
def test_at_sigma_zero_a_source_trains_on_its_own_best_structures_alone(kind):
    model = model_of(kind)
    rows = [{**row, "source_best": row["source_best"][:1]} for row in charts(kind, gold(LENGTHS))]
    found = ChartCollator(model, model.names, use=ChartUse("sources", sigma=0))(rows)["chart"].tolist()
    assert sorted(map(tuple, found)) == sorted(
        (place, group, candidate)
        for place, row in enumerate(rows)
        for group, candidate in enumerate(row["source_best"][0])
        if candidate >= 0
    )
    with pytest.raises(ValueError, match="sigma is 0 and best is 'none', which allows nothing"):
        ChartUse("none", sigma=0)
    for sigma in (-0.1, 1.1):
        with pytest.raises(ValueError, match=f"sigma is {sigma}; expected a probability"):
            ChartUse(sigma=sigma)


def test_a_chart_of_other_words_is_refused():
    model = model_of("groups")
    rows = list(charts("groups", gold(LENGTHS)))
    rows[2] = {**rows[2], "words": ["other", "words"]}
    with pytest.raises(
        ValueError, match="sentence s2: its chart was made for other words than 'other words'"
    ):
        ChartCollator(model, model.names)(rows)


def test_gold_is_added_only_where_it_is_wanted_and_there():
    model = model_of("parser")
    assert {"labels", "units"} <= set(Collator(model)(list(gold())))
    assert "labels" not in Collator(model, gold=False)(list(gold()))
    assert "labels" not in Collator(model)([{"words": ["w1"], "upos": ["NOUN"]}])


def test_workers_of_the_loader_bring_the_same_batches(tmp_path):
    rows = charts("groups", gold(LENGTHS))
    found = []
    for workers in (0, 1):
        trainer = on_charts("groups", arguments(tmp_path, 2, dataloader_num_workers=workers), rows)
        found.append([batch["chart"].tolist() for batch in trainer.get_train_dataloader()])
    assert found[0] == found[1]
