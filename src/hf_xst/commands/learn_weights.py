"""The command `hf-xst learn-weights`: learn pool weights from a few labelled sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table

from hf_xst.charts import GoldGroups
from hf_xst.charts.chart import FLOOR
from hf_xst.charts.gold_groups import Array
from hf_xst.charts.weights import best_weights
from hf_xst.commands.options import LabelledArguments, takes_options
from hf_xst.commands.presets import length_limits
from hf_xst.commands.runs import RunFolder
from hf_xst.commands.sentences import annotate, gold_rows, read_word_vectors, source_pool
from hf_xst.console import print_table, progress, say
from hf_xst.files import RESULTS, WEIGHTS
from hf_xst.models.modeling import Row
from hf_xst.models.running import BATCH_WORDS, length_batches
from hf_xst.processes import share
from hf_xst.records import option
from hf_xst.sources.agreement import write_weights
from hf_xst.sources.loading import load_sources
from hf_xst.sources.pool import SourcePool
from hf_xst.sources.word_checks import check_text


@dataclass(frozen=True, kw_only=True)
class LearnWeightsArguments(LabelledArguments):
    """Learn the weights of source models in the pool from a few labelled sentences."""

    sentences: int = option("Number of labelled sentences to draw.", 50)


@takes_options(LearnWeightsArguments)
def learn_weights(options: LearnWeightsArguments) -> dict[str, Any]:
    """Learn weights, write them by source name to OUTPUT/weights.yaml, and return OUTPUT/run/results.json.

    Raises:
        ValueError: the sources or the sentences do not fit, or at floor 0 a source excludes gold.
    """
    folder = RunFolder(options.output, options, WEIGHTS)
    lesson, note = read_lesson(options)
    results = {**lesson.learn(), "floor": options.floor, "seed": options.seed, "data": note}
    folder.begin()
    if folder.is_main:
        write_weights(folder.path / WEIGHTS, results["weights"])
    folder.write_json(RESULTS, results)
    _show(results)
    return results


def read_lesson(options: LearnWeightsArguments) -> tuple[Lesson, str]:
    """Run the sources over the sentences that are drawn; also return a note on these sentences."""
    vectors = read_word_vectors(options)
    models = load_sources(options.sources, vectors, options)
    sources = source_pool(options, models)
    model = sources.kind
    limits = length_limits(model, options.max_length)
    gold, note = gold_rows(
        options.treebank, options.split, options.data, model.columns, faulty="skip", **limits
    )
    gold = gold.select(draw_sentences(len(gold), options.sentences, options.seed))
    rows = annotate(gold, options.tagger, vectors)
    check_text(models, rows)
    return Lesson.read(sources, list(gold), list(rows), options.floor, options.batch_words), note


def draw_sentences(total: int, count: int, seed: int) -> list[int]:
    """Draw `count` sentences, at least 1, or all if there are fewer; return their sorted indices."""
    if count < 1:
        raise ValueError(f"--sentences is {count}; at least one labelled sentence is required")
    if count > total:
        say(f"{count} sentences were requested, but there are {total}; all of them are used", "yellow")
    return sorted(np.random.default_rng(seed).choice(total, size=min(count, total), replace=False).tolist())


@dataclass(frozen=True)
class Lesson:
    """The distributions of the sources over the gold of some sentences."""

    names: Sequence[str]  # of the sources
    sent_ids: Sequence[str]
    lengths: Sequence[int]  # words of each sentence
    groups: GoldGroups  # the groups with a gold candidate
    left_out: int  # number of groups with a label that no source knows

    @classmethod
    def read(
        cls,
        sources: SourcePool,
        gold: Sequence[Row],
        rows: Sequence[Row],
        floor: float = FLOOR,
        batch_words: int = BATCH_WORDS,
    ) -> Lesson:
        """Run all sources over `rows`, which `gold` has with gold; raise ValueError if none is known."""
        lengths = [len(row["words"]) for row in rows]
        with progress("reading gold", len(rows)) as advance:

            def read(batch: list[int]) -> tuple[GoldGroups, int]:
                distributions = sources.read([rows[index] for index in batch])
                space = distributions.space
                candidates = sources.gold_candidates([gold[index] for index in batch], space)
                groups = GoldGroups.of(
                    distributions.log_marginals, candidates, floor, valid=distributions.valid, sentences=batch
                )
                advance(len(batch))
                return groups, int(space.group_lengths.sum())

            parts = share(list(length_batches(lengths, batch_words)), read)
        groups = GoldGroups.joined([part for part, _ in parts])
        all_groups = sum(count for _, count in parts)
        sent_ids = [row["sent_id"] for row in gold]
        groups.check(lambda sentence: sent_ids[sentence])
        return cls(sources.source_names, sent_ids, lengths, groups, all_groups - len(groups))

    def learn(self) -> dict[str, Any]:
        """Return the optimal weights and their loss; see `learn_weights`."""
        count = len(self.names)
        learned = best_weights(self.groups)
        nll: dict[str, Any] = {
            "uniform": self.loss(np.full(count, 1 / count)),
            "learned": self.loss(learned),
            "alone": {name: self.loss(row) for name, row in zip(self.names, np.eye(count), strict=True)},
        }
        return {
            "weights": dict(zip(self.names, learned.tolist(), strict=True)),
            "nll": nll,
            "sentences": len(self.sent_ids),
            "sent_ids": list(self.sent_ids),
            "words": sum(self.lengths),
            "groups": len(self.groups),
            "left_out": self.left_out,
        }

    def loss(self, weights: Array) -> float:
        """Return the negative log-likelihood of gold under the pool, in nats per word."""
        return float(self.groups.losses(weights).sum() / sum(self.lengths))


def _show(results: Mapping[str, Any]) -> None:
    """Print the weights and losses of all pools."""
    names = list(results["weights"])
    title = f"Gold of {results['sentences']} sentences under the pool ({results['words']} words)"
    table = Table("weights", *names, "nats per word", title=title)
    nll = results["nll"]
    rows: list[tuple[str, Mapping[str, float], float]] = [
        ("uniform", dict.fromkeys(names, 1 / len(names)), nll["uniform"]),
        ("learned", results["weights"], nll["learned"]),
        *((f"{name} alone", {name: 1.0}, nll["alone"][name]) for name in names),
    ]
    for label, weights, loss in rows:
        table.add_row(label, *(f"{weights.get(name, 0.0):.3f}" for name in names), f"{loss:.4f}")
    print_table(table)
    if results["left_out"]:
        say(f"{results['left_out']} groups have a label that no source knows and do not count", "yellow")
