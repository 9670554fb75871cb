"""Replace sources by files of their predictions, as other tools write them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from hf_xst.data import ConlluSentence, write_conllu
from hf_xst.models.modeling import Row
from hf_xst.models.running import in_batches
from hf_xst.sources.annotated import load_annotated
from hf_xst.sources.pool import PooledSource, SourcePool
from hf_xst.structures import DependencyTreeCRF
from hf_xst.structures.base import Structure

PROBABILITY = {True: "ArcProb", False: "TagProb"}  # by whether the structure is a tree


def as_files(pool: SourcePool, rows: Sequence[Row], folder: Path, *, probabilities: bool) -> SourcePool:
    """Write the predictions of each source, and return a pool of the files.

    Args:
        pool: the sources.
        rows: the sentences.
        folder: for the files.
        probabilities: whether the files state the probability of each arc or tag.
    """
    files = {}
    for source in pool.sources:
        path = folder / f"{source.name}.conllu"
        write_conllu(_sentences(pool, source, rows, probabilities), path)
        labels = pool.names[: len(pool.names) - len(pool.kind.special_names)]
        files[source.name] = load_annotated(path, pool.kind.columns, labels=labels)
    return SourcePool(files, pool.names)


def _sentences(
    pool: SourcePool, source: PooledSource, rows: Sequence[Row], probabilities: bool
) -> Iterable[ConlluSentence]:
    def run(batch: list[Row]) -> list[tuple[dict[str, list[Any]], list[float]]]:
        distribution = source.distribution(batch)
        best, lengths = distribution.best(), torch.tensor([len(row["words"]) for row in batch])
        columns = pool.kind.decode(best, lengths, pool.names)
        return list(zip(columns, word_probabilities(distribution, best).tolist(), strict=True))

    for row, (columns, probs) in zip(rows, in_batches(rows, run), strict=True):
        cells = {name: [str(value) for value in values] for name, values in columns.items()}
        if probabilities:
            name = PROBABILITY["head" in columns]
            cells["misc"] = [f"{name}={value:.4f}" for value, _ in zip(probs, row["words"], strict=False)]
        yield ConlluSentence.from_words(row["words"], sent_id=row["sent_id"], columns=cells)


def word_probabilities(distribution: Structure, best: Any) -> torch.Tensor:
    """Return the marginal probability of the best arc or tag of each word: (B, words, padded)."""
    candidates = distribution.candidates(best).clamp(min=0)
    marginals = distribution.group_view(distribution.marginals())
    if isinstance(distribution, DependencyTreeCRF):
        return marginals.gather(2, candidates[..., None])[..., 0]
    tags = distribution.scores.shape[-1]
    next_tags = candidates % tags  # group g is the pair of positions g and g + 1
    return marginals.unflatten(2, (tags, tags)).sum(2).gather(2, next_tags[..., None])[..., 0]
