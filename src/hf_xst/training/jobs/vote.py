"""Combine source models without training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from datasets import Dataset

from hf_xst.charts import pool
from hf_xst.data import write_conllu
from hf_xst.data.sentence import ConlluSentence
from hf_xst.metrics import score
from hf_xst.models.base import Row

from ..arguments import VoteArguments
from ..inference import in_batches
from ..runs import RunFolder, say, summary
from ..sentences import annotate, gold_rows, read_word_vectors, unlabelled_rows
from ..sources import SourcePool, SourceSpec, joint_names, read_weights, ready_model


def vote(arguments: VoteArguments) -> dict[str, Any]:
    """Combine, write OUTPUT/predictions.conllu, and score where the treebank has gold.

    Args:
        arguments: see the class.

    Returns:
        The scores; empty for unlabelled text.

    Raises:
        ValueError: the sources, their weights or the sentences do not fit.
    """
    by_name = read_weights(arguments.weights) if arguments.weights else None
    specs = SourceSpec.parse_all(arguments.sources)
    vectors = read_word_vectors(arguments)
    models = {spec.name: ready_model(spec.path, spec.revision, vectors) for spec in specs}
    sources = SourcePool(models, joint_names(list(models.values())))
    weights = sources.weights(by_name)
    columns = next(iter(models.values())).columns
    gold, note = _rows(arguments, columns)
    say(note)
    rows = annotate(gold, arguments.tagger, vectors)
    found = combined(sources, rows, arguments.rule, weights, arguments.floor, arguments.batch_words)
    folder = RunFolder(arguments.output, arguments)
    folder.begin()
    write_conllu(
        (
            ConlluSentence.from_words(row["words"], sent_id=row["sent_id"]).replaced(columns)
            for row, columns in zip(rows, found, strict=True)
        ),
        folder.path / "predictions.conllu",
    )
    if arguments.text is not None:
        return {}
    scores: dict[str, Any] = score(found, gold, columns)
    folder.write_json("scores.json", {"data": note, **scores})
    summary(f"{arguments.rule} of {', '.join(models)}", scores)
    return scores


def combined(
    sources: SourcePool,
    rows: Dataset | Sequence[Row],
    rule: str,
    weights: Sequence[float] | None = None,
    floor: float = 1e-9,
    batch_words: int = 2000,
) -> list[dict[str, list[Any]]]:
    """Return the ensemble's own structure for each row as columns.

    Args:
        sources: the source models over the union of their labels.
        rows: prepared rows.
        rule: `"majority"` (votes on substructures) or `"pool"` (best structure under the pooled marginals).
        weights: of the pool.
        floor: of the pool.
        batch_words: see `hf_xst.training.inference`.
    """

    def run(batch: list[Row]) -> list[dict[str, list[Any]]]:
        distributions = sources.distributions(batch)
        if rule == "majority":
            first = distributions[0]
            best = first.majority_of([each.best() for each in distributions], first.lengths, **first.options)
        else:
            best = pool(distributions, weights, floor).best()
        lengths = torch.tensor([len(row["words"]) for row in batch])
        return sources.sources[0].model.decode(best, lengths, sources.names)

    return list(in_batches(rows, run, batch_words))


def _rows(arguments: VoteArguments, columns: Sequence[str]) -> tuple[Dataset, str]:
    if arguments.text is None and arguments.treebank is not None:
        return gold_rows(arguments.treebank, arguments.split, arguments.data, columns)
    return unlabelled_rows(arguments)
