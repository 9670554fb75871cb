"""Memory does not grow with the number of sentences, beyond some bytes each."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pyarrow as pa
import pytest
from datasets import Dataset, Features

from helpers.small_models import UPOS, model_of
from hf_xst.data import prepare, prepared_features
from hf_xst.data.layout import content_hash
from hf_xst.sources.word_checks import check_text
from hf_xst.training.batches import BucketSampler, sentence_lengths

pytestmark = pytest.mark.slow

BYTES = 40
"""Most bytes for each sentence; the lists of its words alone take over 200."""


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> list[Dataset]:
    """Memory-mapped sentences: a first corpus to fill caches, one of the same size, and a larger one."""
    folder = tmp_path_factory.mktemp("corpora")
    corpora = []
    for name, size in (("first", 1200), ("small", 1200), ("large", 3600)):
        rows = [
            {"sent_id": f"{name}{i}", "words": ["a", "b", f"c{i}"] * 2, "upos": list(UPOS[:2]) * 3}
            for i in range(size)
        ]
        saved = Dataset.from_list(rows, features=Features(prepared_features(gold=False)))
        saved.save_to_disk(str(folder / name))
        corpora.append(Dataset.load_from_disk(str(folder / name)))
    return corpora


@pytest.mark.parametrize(
    "use",
    [
        lambda rows: prepare(rows, gold=False, max_length=5 + len(rows) % 2),
        lambda rows: prepare(rows, gold=False, max_length=2),
        content_hash,
        lambda rows: check_text({"tagger": model_of("parser")}, rows),
        lambda rows: sum(1 for _ in BucketSampler(sentence_lengths(rows), 80, seed=1)),
    ],
    ids=["prepare", "prepare too long", "content_hash", "check_text", "BucketSampler"],
)
def test_memory_is_flat(corpora: list[Dataset], use: Callable[[Dataset], object]) -> None:
    peaks = []
    for rows in corpora:
        arrow = pa.total_allocated_bytes()
        tracemalloc.start()
        kept = use(rows)
        peaks.append(tracemalloc.get_traced_memory()[1] + pa.total_allocated_bytes() - arrow)
        tracemalloc.stop()
        del kept
    assert peaks[2] - peaks[1] < BYTES * (len(corpora[2]) - len(corpora[1]))
