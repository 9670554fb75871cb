"""Neither training steps nor charts wait for a GPU: they read no value of a tensor, except where named."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from helpers.small_models import KINDS, arguments, charts, gold, model_of, on_charts, supervised
from hf_xst.charts.chart import ChartSettings
from hf_xst.sources.building import ChartMaker
from hf_xst.sources.pool import SourcePool

ATEN = torch.ops.aten
READING = {ATEN._local_scalar_dense, ATEN.nonzero, ATEN.masked_select, ATEN.equal, ATEN._unique2}
INDEXING = {ATEN.index, ATEN.index_put, ATEN.index_put_, ATEN._index_put_impl_}

# Checks that raise at once on the CPU, and at a later operation on a GPU.
CHECKS = {"require", "checked_below_infinity", "to_mask"}
STEP = {
    "sentence_losses": "whether charts are empty; the loss on the best structures would be a third sum",
    "_fast_where_safe": "whether plain numbers underflowed; computing both sums would take twice as long",
}
CHARTS = {
    "_fast_where_safe": "as above",
    "best": "best trees are searched on the CPU, in one transfer for each source",
    "best_heads": "as above",
    "__call__": "the charts themselves",
    "to_ragged": "its tensors are on the CPU",
}


class Reads(TorchDispatchMode):
    """Count the operations that need the values of a tensor on the host, by the function that calls them."""

    def __init__(self) -> None:
        super().__init__()
        self.functions: Counter[str] = Counter()

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        packet = operation.overloadpacket
        by_mask = packet in INDEXING and any(
            index is not None and index.dtype == torch.bool for index in args[1]
        )
        if packet in READING or by_mask:
            self.functions[caller()] += 1
        return operation(*args, **(kwargs or {}))


class Transfers(TorchFunctionMode):
    """Count the methods that copy a tensor to the host, by the function that calls them."""

    def __init__(self, reads: Reads) -> None:
        super().__init__()
        self.reads = reads

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(function, "__name__", "") in ("tolist", "numpy", "cpu"):
            self.reads.functions[caller()] += 1
        return function(*args, **(kwargs or {}))


def caller() -> str:
    """Return the name of the innermost function of the package, or of all if the package has none."""
    frame: Any = sys._getframe(2)
    while frame is not None and "hf_xst" not in Path(frame.f_code.co_filename).parts:
        frame = frame.f_back
    return "outside the package" if frame is None else frame.f_code.co_name


def reads_of(work: Callable[[], object]) -> Counter[str]:
    reads = Reads()
    with Transfers(reads), reads:
        work()
    return reads.functions


@pytest.mark.parametrize("make", [supervised, on_charts])
@pytest.mark.parametrize("kind", KINDS)
def test_training_steps(kind: str, make: Any, tmp_path: Path) -> None:
    rows = gold((1, 3, 5, 4))
    rows = rows if make is supervised else charts(kind, rows)
    trainer = make(kind, arguments(tmp_path), rows)
    batch = trainer.data_collator(list(rows))
    found = reads_of(lambda: trainer.training_step(trainer.model, batch, batch["units"].sum()))
    expected = {"sentence_losses"} if make is on_charts else set()
    if make is on_charts and kind == "parser":
        expected |= {"_fast_where_safe"}
    assert set(found) - CHECKS == expected <= set(STEP)
    assert found["sentence_losses"] <= 1
    assert found["_fast_where_safe"] <= 2  # one for each sum


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", ["pool", "linear", "union"])
def test_charts(kind: str, rule: Any) -> None:
    pool = SourcePool({f"source{seed}": model_of(kind, seed) for seed in (1, 2)})
    make, rows = ChartMaker(pool, ChartSettings(rule)), list(gold((1, 3, 5, 4)))
    with torch.no_grad():
        few, many = (reads_of(lambda rows=rows: make(rows)) for rows in (rows, rows * 3))
    assert set(few) - CHECKS <= set(CHARTS)
    del few["to_ragged"], many["to_ragged"]
    assert few == many
