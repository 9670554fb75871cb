"""Score source models on a target, each alone and combined without training.

Writes a JSON list of scores: method, split, metric, value. --config changes the configuration of the models.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import torch
from as_files import Prediction, as_files, predictions_of
from datasets import Dataset
from grouped_weights import GroupedWeights
from truth import infer_truth

from hf_xst.charts import log_opinion_pool
from hf_xst.charts.chart import FLOOR, Rule, SourceDistributions
from hf_xst.commands.initial_model import model_fields
from hf_xst.commands.presets import length_limits
from hf_xst.commands.sentences import annotate, gold_rows, leave_out, split_of
from hf_xst.commands.vote import combine
from hf_xst.data import WordVectors, first_rows, prepare, read_vectors
from hf_xst.files import write_text
from hf_xst.metrics import score
from hf_xst.metrics.attachment import PUNCTUATION
from hf_xst.metrics.rows import MISSING
from hf_xst.models.cached_embeddings import CachedEmbeddings, encoder_fingerprint, share_encoders
from hf_xst.models.modeling import Row, StructuredModel
from hf_xst.models.pretrained_words import PretrainedWords
from hf_xst.models.running import in_batches, length_batches, predict_rows
from hf_xst.sources.agreement import (
    SELECTION_SENTENCES,
    agreement_weights,
    measure_sources,
    rank_sources,
    read_weights,
)
from hf_xst.sources.averaging import average_models
from hf_xst.sources.loading import SourceSettings, SourceSpec, load_sources
from hf_xst.sources.pool import AnySource, SourcePool, kind_of

Models = Mapping[str, AnySource]
Columns = dict[str, list[Any]]
Combine = Callable[[SourceDistributions], Any]  # to the best structures of a batch
Predictions = Sequence[Sequence[Prediction]]  # of each source, for each sentence
Predict = Callable[[SourcePool, Sequence[Row], Predictions], list[Columns]]
SCORES = ("las", "uas", "accuracy", "las_punct", "uas_punct")


def main(arguments: argparse.Namespace) -> None:
    """Rank the sources, score them and their combinations, and write the scores."""
    vectors = read_vectors(arguments.vectors) if arguments.vectors else None
    places = [*arguments.sources, *arguments.beside]
    models = load_sources(places, vectors, SourceSettings(task=arguments.task))
    for model in models.values() if arguments.config else ():
        for name, value in model_fields(type(model), arguments.config).items():
            setattr(model.config, name, value)
    pooled: Models = {spec.name: models[spec.name] for spec in SourceSpec.parse_all(arguments.sources)}
    rows: list[dict[str, Any]] = []
    agreement: dict[str, float] = {}
    if arguments.text:
        pooled, agreement, rows = rank(pooled, arguments, vectors)
    singles = {f"direct:{name}": model for name, model in models.items()}
    if "average" in arguments.rules:
        singles["average"] = average_models(pooled)
    if "average-agreement" in arguments.rules:
        singles["average-agreement"] = average_models(pooled, agreement)
    rules = combinations(arguments, agreement, SourcePool(pooled))
    for split in ("dev", "test"):
        given = getattr(arguments, split)
        if given:
            rows += score_split(split, given, singles, pooled, rules, arguments, vectors)
    write_text(Path(arguments.output), json.dumps(rows, indent=1) + "\n")


def rank(
    models: Models, arguments: argparse.Namespace, vectors: WordVectors | None
) -> tuple[Models, dict[str, float], list[dict[str, Any]]]:
    """Return the selected sources, their agreement weights and the measures of all, as for charts."""
    treebank, split = arguments.text
    text, _ = prepare(
        split_of(treebank, split, []), gold=False, **length_limits(kind_of(next(iter(models.values()))))
    )
    text = annotate(leave_out(text, arguments.exclude), arguments.tagger, vectors)
    text = first_rows(text, SELECTION_SENTENCES)
    pool = partial(SourcePool, bf16=bool(arguments.bf16))
    measures = measure_sources(pool(models), text)
    order = rank_sources(measures)[: arguments.select]
    selected = {name: model for name, model in models.items() if name in order}
    rows = [
        {"method": f"direct:{name}", "split": "text", "metric": metric, "value": value}
        for name, found in measures.items()
        for metric, value in [*found.items(), *([("rank", order.index(name) + 1)] if name in order else [])]
    ]
    if len(selected) < len(models):
        measures = measure_sources(pool(selected), text)
    return selected, agreement_weights(measures), rows


def score_split(
    split: str,
    treebank: Sequence[str],
    singles: Models,
    pooled: Models,
    rules: tuple[Mapping[str, Combine], Mapping[str, Predict]],
    arguments: argparse.Namespace,
    vectors: WordVectors | None,
) -> Iterator[dict[str, Any]]:
    """Yield the scores of all models and combinations on one split, and its size."""
    columns = next(iter(singles.values())).columns
    gold, _ = gold_rows(*treebank, [], columns)
    rows = annotate(gold, arguments.tagger, vectors)
    with torch.autocast("cpu", torch.bfloat16, enabled=bool(arguments.bf16)):
        embeddings = cache_embeddings(singles, rows, arguments.embedding_cache)
    pool = SourcePool(pooled, states={name: embeddings.get(f"direct:{name}") for name in pooled})
    combined, others = rules
    is_model = all(isinstance(model, StructuredModel) for model in pooled.values())
    found = [] if is_model and not (combined or others) else run_sources(pool, rows, list(combined.values()))
    by_sentence = [each.predictions for each in found]
    predictions = {
        f"direct:{name}": [each[index].columns for each in by_sentence]
        for index, name in enumerate(pool.source_names)
    }
    predictions |= {
        name: list(predict_rows(model, rows, embeddings=embeddings.get(name)))
        for name, model in singles.items()
        if isinstance(model, StructuredModel)  # with labels that the pool may lack
    }
    for name in [name for name in singles if name not in predictions]:  # of other packages, and not pooled
        alone = run_sources(SourcePool({name: singles[name]}), rows, [])
        predictions[name] = [each.predictions[0].columns for each in alone]
    predictions |= {name: [each.combined[index] for each in found] for index, name in enumerate(combined)}
    predictions |= {name: predict(pool, rows, by_sentence) for name, predict in others.items()}
    counts: dict[str, Any] = {"sentences": len(gold), "words": sum(map(len, gold["words"]))}
    for method, predicted in predictions.items():
        scores = score(predicted, gold, columns)
        names = SCORES if split == "test" else SCORES[:3]
        yield from row_of(method, split, {name: scores[name] for name in names if name in scores})
        if split == "test":
            right, scored = right_words(predicted, gold, columns)
            yield from row_of(method, split, {"right_by_sentence": right})
            counts["scored_by_sentence"] = scored
        counts |= {name: scores[name] for name in ("words_without_punct",) if name in scores}
    yield from row_of("data", split, counts)


def right_words(
    predicted: Sequence[Columns], gold: Dataset, columns: Sequence[str]
) -> tuple[list[int], list[int]]:
    """Return for each sentence how many words are right, and how many count, as in `hf_xst.metrics.score`.

    Words without a gold tag do not count, and punctuation does not in trees.
    """
    column, skipped = ("upos", PUNCTUATION) if "head" in columns else (columns[0], MISSING)
    right, scored = [], []
    for found, row in zip(predicted, gold, strict=True):
        counted = [index for index, tag in enumerate(row[column]) if tag not in skipped]
        equal = [
            all(plain(found[name][index]) == plain(row[name][index]) for name in columns) for index in counted
        ]
        right.append(sum(equal))
        scored.append(len(counted))
    return right, scored


def plain(label: str | int) -> str:
    """Return a relation without its subtype, and anything else as it is."""
    return str(label).partition(":")[0]


def row_of(method: str, split: str, values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row per metric."""
    return (
        {"method": method, "split": split, "metric": key, "value": value} for key, value in values.items()
    )


def cache_embeddings(models: Models, rows: Dataset, folder: str | None) -> dict[str, CachedEmbeddings]:
    """Encode the rows once for all models with the same frozen encoder, and once for each trained encoder."""
    caches: dict[str, CachedEmbeddings] = {}
    embeddings, trained = {}, dict[str, StructuredModel]()
    for name, model in models.items():
        if not isinstance(model, StructuredModel) or not isinstance(model.encoder.words, PretrainedWords):
            continue
        key = encoder_fingerprint(model) or name
        if key not in caches:
            cache = CachedEmbeddings.compute(model, rows["words"], Path(folder) if folder else None)
            if cache is None:
                trained[name] = model
                cache = CachedEmbeddings(name)
            caches[key] = cache
        embeddings[name] = caches[key]
    share_encoders(trained)
    words = list(rows["words"])
    for batch in length_batches([len(each) for each in words]):  # frozen layers run once a batch
        for name, model in trained.items():
            caches[name].add(model, [words[index] for index in batch])
    return embeddings


def combinations(
    arguments: argparse.Namespace, agreement: Mapping[str, float], pool: SourcePool
) -> tuple[dict[str, Combine], dict[str, Predict]]:
    """Return the combinations to score, by name: those of a batch's distributions, and others."""

    def pooled(rule: Rule = "pool", weights: Mapping[str, float] | None = None) -> Combine:
        by_source = pool.weights(weights)
        return lambda sources: sources.with_pooled(sources.pooled(rule, by_source, FLOOR)).best()

    def of_files(rule: Literal["majority", "pool"], stated: bool) -> Predict:
        def predict(pool: SourcePool, rows: Sequence[Row], found: Predictions) -> list[Columns]:
            with TemporaryDirectory() as folder:
                files = as_files(pool, rows, found, Path(folder), stated=stated)
                return list(combine(files, rows, rule))

        return predict

    combined: dict[str, Combine] = {
        "vote": lambda sources: sources.voted(),
        "pool": pooled(),
        "linear-pool": pooled("linear"),
    }
    others: dict[str, Predict] = {
        "vote-files": of_files("majority", False),
        "pool-files": of_files("pool", False),
        "pool-probabilities": of_files("pool", True),
    }
    if agreement:
        combined["pool-agreement"] = pooled(weights=agreement)
    if len(pool.kind.columns) == 1:  # parts of a tree depend on each other
        others["truth"] = true_labels
    if arguments.other_weights:
        other = json.loads(Path(arguments.other_weights).read_text(encoding="utf-8"))
        combined["pool-published"] = pooled(weights=other["published"])
        combined["pool-grouped"] = by_group(GroupedWeights.from_names(other["grouped"], pool.source_names))
    combined = {name: each for name, each in combined.items() if name in arguments.rules}
    if arguments.weights:
        combined["pool-learned"] = pooled(weights=read_weights(arguments.weights))
    return combined, {name: each for name, each in others.items() if name in arguments.rules}


class Found(NamedTuple):
    """The structures of each combination for a sentence, and the predictions of each source."""

    combined: list[Columns]
    predictions: list[Prediction]


def run_sources(pool: SourcePool, rows: Sequence[Row], rules: Sequence[Combine]) -> list[Found]:
    """Run all sources once over all rows."""
    kind, names = pool.kind, pool.names

    def run(batch: list[Row]) -> list[Found]:
        sources = pool.read(batch)
        lengths = torch.tensor([len(row["words"]) for row in batch])
        combined = [kind.decode(rule(sources), lengths, names) for rule in rules]
        predictions = predictions_of(sources, kind, lengths, names)
        return [
            Found([each[index] for each in combined], [each[index] for each in predictions])
            for index in range(len(batch))
        ]

    return list(in_batches(rows, run))


def by_group(weights: GroupedWeights) -> Combine:
    """Decode the pool with weights by group."""

    def best(sources: SourceDistributions) -> Any:
        marginals = sources.log_marginals
        pooled = log_opinion_pool(marginals, weights.weights(marginals), FLOOR, valid=sources.valid)
        return sources.with_pooled(pooled).best()

    return best


def true_labels(pool: SourcePool, rows: Sequence[Row], found: Predictions) -> list[Columns]:
    """Infer the labels of words from those that all sources predict."""
    (column,) = pool.kind.columns
    votes = [[prediction.columns[column] for prediction in sentence] for sentence in found]
    by_source = [list(chain.from_iterable(labels)) for labels in zip(*votes, strict=True)]
    names = sorted(set(chain.from_iterable(by_source)))
    index = {name: number for number, name in enumerate(names)}
    answers = torch.tensor([[index[label] for label in labels] for labels in by_source])
    best = iter(infer_truth(answers, len(names)).argmax(1).tolist())
    return [{column: [names[next(best)] for _ in sentence[0]]} for sentence in votes]


def parse_arguments() -> argparse.Namespace:
    """Parse the command line; splits are given as TREEBANK SPLIT, sources as NAME=FOLDER."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("sources", "beside", "rules", "config", "exclude"):
        parser.add_argument(f"--{name}", nargs="+", default=[], required=name == "sources")
    for name in ("text", "dev", "test"):
        parser.add_argument(f"--{name}", nargs=2, metavar=("TREEBANK", "SPLIT"))
    for name in ("weights", "other-weights", "tagger", "vectors", "embedding-cache"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--select", type=int)
    parser.add_argument("--task", choices=["parser", "tagger"])
    parser.add_argument("--bf16", choices=["true"])
    parser.add_argument("--output", required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main(parse_arguments())
