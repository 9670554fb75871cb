"""Combine source models without training."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from torch import Tensor

from hf_xst.charts import (
    GroupedWeights,
    infer_truth,
    linear_opinion_pool,
    log_opinion_pool,
    stacked_log_marginals,
)
from hf_xst.charts.pooling import possible_candidates
from hf_xst.commands.options import VoteArguments
from hf_xst.commands.runs import RunFolder, check_output, summary
from hf_xst.commands.sentences import annotate, gold_rows, read_word_vectors, unlabelled_rows
from hf_xst.console import say
from hf_xst.data import write_conllu
from hf_xst.data.sentence import ConlluSentence
from hf_xst.metrics import score
from hf_xst.models.modeling import Row
from hf_xst.models.running import in_batches
from hf_xst.sources.agreement import read_weights
from hf_xst.sources.pool import SourcePool, SourceSpec, load_sources
from hf_xst.sources.word_checks import tell_of_unknown_words
from hf_xst.structures.base import Structure

Columns = dict[str, list[Any]]
Answers = list[list[str]]
"""Of a sentence: by source, a label for each word."""
RULES = ("majority", "pool", "linear", "grouped", "truth")


def vote(arguments: VoteArguments) -> dict[str, Any]:
    """Combine, write OUTPUT/predictions.conllu, and score where the treebank has gold.

    Args:
        arguments: see the class.

    Returns:
        The scores; empty for unlabelled text.

    Raises:
        ValueError: the sources, their weights or the sentences do not fit, or not the rule.
    """
    check_output(arguments.output)
    _check_flags(arguments)
    by_name = read_weights(arguments.weights) if arguments.weights else None
    specs = SourceSpec.parse_all(arguments.sources)
    grouped = _grouped(arguments, [spec.name for spec in specs])
    vectors = read_word_vectors(arguments)
    models = load_sources(specs, vectors)
    sources = SourcePool(models)
    weights = sources.weights(by_name)
    columns, scheme = next((model.columns, model.scheme) for model in models.values())
    gold, note = _rows(arguments, columns)
    say(note)
    rows = annotate(gold, arguments.tagger, vectors)
    tell_of_unknown_words(next(iter(models.values())), rows["words"])
    found = combined(
        sources, rows, arguments.rule, weights, arguments.floor, arguments.batch_words, grouped=grouped
    )
    folder = RunFolder(arguments.output, arguments)
    folder.begin()
    write_conllu(
        (
            ConlluSentence.from_words(row["words"], sent_id=row["sent_id"]).annotated(columns)
            for row, columns in zip(rows, found, strict=True)
        ),
        folder.path / "predictions.conllu",
    )
    if arguments.text is not None:
        say(f"{folder.path / 'predictions.conllu'} is written")
        return {}
    scores: dict[str, Any] = score(found, gold, columns, scheme)
    folder.write_json("scores.json", {"data": note, **scores})
    summary(f"{arguments.rule} of {', '.join(models)}", scores)
    return scores


def _check_flags(arguments: VoteArguments) -> None:
    """Refuse weights that the rule would not look at: its scores would pass for weighted ones."""
    for given, flag, rules in (
        (arguments.weights, "--weights", ("pool", "linear")),
        (arguments.grouped_weights, "--grouped-weights", ("grouped",)),
    ):
        if given is not None and arguments.rule not in rules:
            raise ValueError(
                f"{flag} is for --rule {' and '.join(rules)}, found {arguments.rule}: leave it out, or "
                "choose that rule"
            )


def combined(
    sources: SourcePool,
    rows: Dataset | Sequence[Row],
    rule: str,
    weights: Sequence[float] | None = None,
    floor: float = 1e-9,
    batch_words: int = 2000,
    *,
    grouped: GroupedWeights | None = None,
) -> list[Columns]:
    """Return the ensemble's own structure for each row as columns.

    Args:
        sources: the source models over the union of their labels.
        rows: prepared rows.
        rule: `"majority"` (votes on substructures), `"pool"` or `"linear"` (best structure under the pooled
            marginals), `"grouped"` (that of the logarithmic pool with weights by group), or `"truth"` (truth
            inference over the labels of all words, for models of one label a word).
        weights: of the pools, in the order of the sources.
        floor: of the logarithmic pools.
        batch_words: see `hf_xst.models.running`.
        grouped: weights by group, for their rule.

    Raises:
        ValueError: there is no such rule, it needs weights by group, or it does not fit the models.
    """
    if rule not in RULES:
        raise ValueError(f"the rule is {rule!r}; expected one of {', '.join(RULES)}")
    if rule == "truth":
        return _inferred(sources, rows, batch_words)
    choose = _majority if rule == "majority" else _decoding(_opinion(rule, weights, floor, grouped))

    def run(batch: list[Row]) -> list[Columns]:
        lengths = torch.tensor([len(row["words"]) for row in batch])
        best = choose(sources.distributions(batch))
        return sources.sources[0].model.decode(best, lengths, sources.names)

    return list(in_batches(rows, run, batch_words))


Opinion = Callable[[Tensor, Tensor], Tensor]
"""Takes log-marginals (S, B, G, C) and what is valid (B, G, C); returns pooled log-probabilities."""


def _opinion(
    rule: str, weights: Sequence[float] | None, floor: float, grouped: GroupedWeights | None
) -> Opinion:
    if rule == "pool":
        return lambda marginals, valid: log_opinion_pool(marginals, weights, floor, valid=valid)
    if rule == "linear":
        return lambda marginals, valid: linear_opinion_pool(marginals, weights, valid=valid)
    if grouped is None:
        raise ValueError("the rule grouped needs weights by group, which learn-weights --grouped finds")
    return lambda marginals, valid: log_opinion_pool(
        marginals, grouped.weights(marginals), floor, valid=valid
    )


def _decoding(opinion: Opinion) -> Callable[[list[Structure]], Any]:
    def choose(distributions: list[Structure]) -> Any:
        first = distributions[0]
        marginals = stacked_log_marginals(distributions)
        pooled = opinion(marginals, possible_candidates(distributions))
        return first.with_scores(first.part_view(pooled)).best()

    return choose


def _majority(distributions: list[Structure]) -> Any:
    first = distributions[0]
    return first.majority_of([each.best() for each in distributions], first.lengths, **first.options)


def _inferred(sources: SourcePool, rows: Dataset | Sequence[Row], batch_words: int) -> list[Columns]:
    """Let the labels that all sources give to all words tell how far each source can be trusted."""
    model = sources.sources[0].model
    if len(model.columns) > 1:
        raise ValueError(
            f"the rule truth is for models of one label a word; these predict {' and '.join(model.columns)}, "
            "which must agree within a sentence: use majority, pool or linear"
        )
    (column,) = model.columns

    def run(batch: list[Row]) -> list[Answers]:
        lengths = torch.tensor([len(row["words"]) for row in batch])
        found = [model.decode(each.best(), lengths, sources.names) for each in sources.distributions(batch)]
        return [[columns[column] for columns in sentence] for sentence in zip(*found, strict=True)]

    answers = list(in_batches(rows, run, batch_words))
    labels = iter(_true_labels(answers))
    return [{column: list(islice(labels, len(by_source[0])))} for by_source in answers]


def _true_labels(answers: Sequence[Answers]) -> Iterator[str]:
    """Give the likeliest label of each word of all sentences."""
    by_source = [list(chain.from_iterable(labels)) for labels in zip(*answers, strict=True)]
    names = sorted(set(chain.from_iterable(by_source)))
    place = {name: index for index, name in enumerate(names)}
    predictions = torch.tensor([[place[label] for label in labels] for labels in by_source])
    best = infer_truth(predictions, len(names)).argmax(1).tolist() if names else []
    return (names[index] for index in best)


def _grouped(arguments: VoteArguments, names: Sequence[str]) -> GroupedWeights | None:
    if arguments.grouped_weights is None:
        return None
    path = Path(arguments.grouped_weights)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError(f"found {str(content)[:80]!r}")
        return GroupedWeights.from_names(content, names)
    except ValueError as error:
        raise ValueError(f"{path}: expected what learn-weights --grouped writes ({error})") from error


def _rows(arguments: VoteArguments, columns: Sequence[str]) -> tuple[Dataset, str]:
    if arguments.text is None and arguments.treebank is not None:
        return gold_rows(arguments.treebank, arguments.split, arguments.data, columns)
    return unlabelled_rows(arguments)
