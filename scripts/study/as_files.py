"""Replace sources by files of their predictions, as other tools write them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from hf_xst.charts.chart import SourceDistributions
from hf_xst.data import ConlluSentence, write_conllu
from hf_xst.models.columns import StructureColumns
from hf_xst.models.modeling import Columns, Row
from hf_xst.sources.annotated import load_annotated
from hf_xst.sources.pool import SourcePool
from hf_xst.structures import LinearChainCRF
from hf_xst.structures.base import Structure


class Prediction(NamedTuple):
    """What a source predicts for a sentence, and the probability of the arc or tag of each word."""

    columns: Columns
    probabilities: list[float]


def predictions_of(
    sources: SourceDistributions, kind: StructureColumns, lengths: Tensor, names: Sequence[str]
) -> list[list[Prediction]]:
    """Return the predictions of each source for a batch of sentences of (B,) words."""
    found = []
    for source, marginals in zip(sources.sources, sources.log_marginals, strict=True):
        best = source.best()
        probabilities = word_probabilities(source, best, marginals.exp()).tolist()
        found.append(list(map(Prediction, kind.decode(best, lengths, names), probabilities)))
    return found


def as_files(
    pool: SourcePool,
    rows: Sequence[Row],
    predictions: Sequence[Sequence[Prediction]],
    folder: Path,
    *,
    stated: bool,
) -> SourcePool:
    """Write the predictions of each source, and return a pool of the files.

    Args:
        pool: the S sources.
        rows: the sentences.
        predictions: for each sentence those of the S sources.
        folder: for the files.
        stated: whether the files state the probabilities.
    """
    files = {}
    for index, name in enumerate(pool.source_names):
        path = folder / f"{name}.conllu"
        write_conllu(_sentences(rows, [each[index] for each in predictions], stated), path)
        labels = pool.names[: len(pool.names) - len(pool.kind.special_names)]
        files[name] = load_annotated(path, pool.kind.columns, labels=labels)
    return SourcePool(files, pool.names)


def _sentences(
    rows: Sequence[Row], predictions: Sequence[Prediction], stated: bool
) -> Iterator[ConlluSentence]:
    for row, (columns, probabilities) in zip(rows, predictions, strict=True):
        cells = {name: [str(value) for value in values] for name, values in columns.items()}
        if stated:
            key = "ArcProb" if "head" in columns else "TagProb"
            pairs = zip(probabilities, row["words"], strict=False)
            cells["misc"] = [f"{key}={probability:.4f}" for probability, _ in pairs]
        yield ConlluSentence.from_words(row["words"], sent_id=row["sent_id"], columns=cells)


def word_probabilities(distribution: Structure, best: Any, marginals: Tensor) -> Tensor:
    """Return the probability of the best arc or tag of each word from (B, G, C) marginals: (B, words)."""
    candidates = distribution.candidates(best).clamp(min=0)
    if isinstance(distribution, LinearChainCRF):  # group g is the pair of positions g and g + 1
        tags = distribution.scores.shape[-1]
        marginals, candidates = marginals.unflatten(2, (tags, tags)).sum(2), candidates % tags
    return marginals.gather(2, candidates[..., None])[..., 0]
