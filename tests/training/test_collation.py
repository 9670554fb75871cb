"""Charts in a batch: any order of labels, any batch, only the words that they were built for."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from helpers.small_models import KINDS, arguments, charts, gold, model_of, on_charts
from hf_xst.charts import chart_loss
from hf_xst.charts.alphabet import Relabelling
from hf_xst.charts.dataset import to_mask
from hf_xst.models.running import Collator
from hf_xst.training.collation import ChartCollator, ChartUse

LENGTHS = (1, 4, 2, 6)


def losses(model: Any, names: list[str], rows: list[dict[str, Any]]) -> torch.Tensor:
    batch = ChartCollator(model, names)(rows)
    inputs = {key: batch[key] for key in batch if key not in ("units", "chart", "fallback", "sent_ids")}
    distribution = model.distribution(model(**inputs))
    return chart_loss(distribution, to_mask(batch["chart"], distribution.valid))


@pytest.mark.parametrize("kind", KINDS)
def test_losses_do_not_depend_on_the_batch(kind):
    rows, model = list(charts(kind, gold(LENGTHS))), model_of(kind).eval()
    together = losses(model, model.names, rows)
    assert (together > 1e-3).any()
    alone = torch.cat([losses(model, model.names, [row]) for row in rows])
    reversed_rows = losses(model, model.names, rows[::-1]).flip(0)
    for other in (alone, reversed_rows):
        torch.testing.assert_close(together, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_losses_do_not_depend_on_the_order_of_labels(kind):
    rows, model = list(charts(kind, gold(LENGTHS))), model_of(kind).eval()
    names = [*model.names[1:], model.names[0]]
    relabelling = Relabelling.between(model.names, names, model.structure)

    def relabelled(candidates: list[int]) -> list[int]:
        return relabelling.candidates(torch.tensor(candidates)).tolist()

    reordered = []
    for row in rows:
        columns = {name: relabelled(row[name]) for name in ("candidates", "pool_best")}
        reordered.append({**row, **columns, "source_best": [relabelled(best) for best in row["source_best"]]})
    assert reordered[1]["candidates"] != rows[1]["candidates"]
    torch.testing.assert_close(losses(model, names, reordered), losses(model, model.names, rows))


def test_model_may_have_more_labels_than_the_charts():
    rows, model = list(charts("parser", gold(LENGTHS))), model_of("parser")
    names = list(model.names)
    expected = ChartCollator(model, names)(rows)["chart"]
    model.add_labels(["vocative"])
    actual = ChartCollator(model, names)(rows)["chart"]
    assert torch.equal(actual[:, 2] // 4 * 3 + actual[:, 2] % 4, expected[:, 2])


def test_labels_missing_from_the_model_are_named():
    model = model_of("parser")
    message = r"labels that the model does not have: vocative, dep; .*--labels union"
    with pytest.raises(ValueError, match=message):
        ChartCollator(model, ["vocative", *model.names, "dep"])


def structures(bests: list[list[int]], index: int) -> set[tuple[int, int, int]]:
    return {(index, group, candidate) for best in bests for group, candidate in enumerate(best)}


@pytest.mark.parametrize("kind", ["parser", "tagger"])
def test_best_structures_are_added_as_requested(kind):
    rows, model = list(charts(kind, gold(LENGTHS))), model_of(kind)

    def chart(**use: Any) -> set[tuple[int, int, int]]:
        triples = ChartCollator(model, model.names, use=ChartUse(**use))(rows)["chart"]
        return set(map(tuple, triples.tolist()))

    stored = chart(best="none")
    assert len(stored) == sum(len(row["candidates"]) for row in rows)
    of_sources = set.union(*(structures(row["source_best"], index) for index, row in enumerate(rows)))
    of_pool = set.union(*(structures([row["pool_best"]], index) for index, row in enumerate(rows)))
    assert of_sources - stored
    assert chart(best="sources") == stored | of_sources
    assert chart(best="pool") == stored | of_pool
    assert chart(best="sources", sigma=0) == of_sources  # self-training, with one source
    assert chart(best="pool", sigma=0) == of_pool


def test_invalid_uses_of_charts_are_rejected():
    with pytest.raises(ValueError, match="every chart is empty"):
        ChartUse("none", sigma=0)
    for sigma in (-0.1, 1.1):
        with pytest.raises(ValueError, match=f"sigma is {sigma}; expected a probability"):
            ChartUse(sigma=sigma)


def test_chart_of_other_words_is_rejected():
    model, rows = model_of("groups"), list(charts("groups", gold(LENGTHS)))
    rows[2] = {**rows[2], "words": ["other", "words"]}
    message = "sentence s2: its chart was built for other words than 'other words'"
    with pytest.raises(ValueError, match=message):
        ChartCollator(model, model.names)(rows)


def test_gold_is_added_only_if_requested_and_present():
    model = model_of("parser")
    assert {"labels", "units"} <= set(Collator(model)(list(gold())))
    assert "labels" not in Collator(model, gold=False)(list(gold()))
    assert "labels" not in Collator(model)([{"words": ["w1"], "upos": ["NOUN"]}])


def test_loader_workers_return_the_same_batches(tmp_path):
    batches = []
    for workers in (0, 1):
        settings = arguments(tmp_path, 2, dataloader_num_workers=workers)
        loader = on_charts("groups", settings, charts("groups", gold(LENGTHS))).get_train_dataloader()
        batches.append([batch["chart"].tolist() for batch in loader])
    assert batches[0] == batches[1]
