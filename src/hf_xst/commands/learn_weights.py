"""Learn the weights of the pool from a few labelled sentences of the target language."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from datasets import Dataset
from rich.table import Table

from hf_xst.charts import GoldGroups, learn_grouped_weights, published_weights, stacked_log_marginals
from hf_xst.charts.gold_groups import Array
from hf_xst.charts.pooling import possible_candidates
from hf_xst.charts.weights import best_weights
from hf_xst.commands.options import OutputArguments, SentenceArguments, VectorArguments, option, required
from hf_xst.commands.presets import chart_limits
from hf_xst.commands.runs import RunFolder, check_output
from hf_xst.commands.sentences import annotate, gold_rows, read_word_vectors
from hf_xst.console import console, progress, say
from hf_xst.files import RESULTS, write_text
from hf_xst.models.modeling import Row, StructuredModel
from hf_xst.models.running import BATCH_WORDS, length_batches
from hf_xst.sources.agreement import write_weights
from hf_xst.sources.loading import SourceSpec, load_sources
from hf_xst.sources.pool import SourcePool

WEIGHTS_FILE = "weights.yaml"
GROUPED_FILE = "grouped_weights.json"


@dataclass(kw_only=True)
class LearnWeightsArguments(OutputArguments, SentenceArguments, VectorArguments):
    """Learn the weights of source models in the pool from a few labelled sentences."""

    sources: list[str] = required("Source models: NAME=PATH_OR_ID[@REVISION] ...")
    sentences: int = option("How many labelled sentences to draw.", 50)
    procedure: Literal["exact", "published"] = option(
        "The optimum of the convex problem; or the published search, which draws sentences with replacement "
        "and often stops after one step. Both are reported.",
        "exact",
    )
    grouped: bool = option("Also learn weights by group, from how sure each source is of it.", False)
    floor: float = option("Added to every marginal probability before the logarithm.", 1e-9)
    max_length: int | None = option(
        "Longest sentence, added tokens counted; 30 (parser) or 60 (tagger) without it."
    )
    batch_words: int = option("Words of a batch, padding included.", BATCH_WORDS)


def learn_weights(arguments: LearnWeightsArguments) -> dict[str, Any]:
    """Learn weights; write them by the sources' names to OUTPUT/weights.yaml, and what they are worth.

    Args:
        arguments: see the class.

    Returns:
        What OUTPUT/run/results.json holds: `weights` of the chosen procedure, `learned` and `published`, by
        source; `grouped` if it was asked for; `nll`, nats per word of gold under the pool, for `uniform`,
        `learned`, `published` (and `grouped`) weights and, by source, `alone`; `sentences`, `sent_ids`,
        `words`, `groups`, `left_out` (groups with a label that no source knows), and how it was done.

    Raises:
        ValueError: the sources or the sentences do not fit, or at floor 0 a source excludes what is right.
    """
    check_output(arguments.output)
    specs = SourceSpec.parse_all(arguments.sources)
    vectors = read_word_vectors(arguments)
    models = load_sources(specs, vectors)
    sources = SourcePool(models)
    gold, note = _labelled(arguments, next(iter(models.values())))
    say(note)
    drawn = draw_sentences(len(gold), arguments.sentences, arguments.seed, arguments.procedure == "published")
    gold = gold.select(drawn)
    rows = annotate(gold, arguments.tagger, vectors)
    lesson = Lesson.read(sources, list(gold), list(rows), arguments.floor, arguments.batch_words)
    results = {
        "procedure": arguments.procedure,
        **lesson.learn(arguments.procedure, arguments.seed, grouped=arguments.grouped),
        "floor": arguments.floor,
        "seed": arguments.seed,
        "data": note,
        "command": shlex.join(sys.argv),
    }
    folder = RunFolder(arguments.output, arguments)
    folder.begin()
    write_weights(folder.path / WEIGHTS_FILE, results["weights"])
    if arguments.grouped:
        write_text(folder.path / GROUPED_FILE, json.dumps(results["grouped"], indent=1) + "\n")
    folder.write_json(RESULTS, results)
    _show(results)
    return results


def draw_sentences(total: int, wanted: int, seed: int, replace: bool = False) -> list[int]:
    """Draw sentences at random, all of them where there are no more.

    Args:
        total: sentences that there are.
        wanted: how many to draw.
        seed: of the drawing.
        replace: draw with replacement; as published, what is drawn twice counts once.

    Returns:
        Their places, in order.

    Raises:
        ValueError: fewer than one is wanted.
    """
    if wanted < 1:
        raise ValueError(f"--sentences is {wanted}; at least one labelled sentence is needed")
    draw = np.random.default_rng(seed)
    if replace:
        return sorted(set(draw.integers(total, size=wanted).tolist()))
    if wanted > total:
        say(f"{wanted} sentences are wanted, but there are {total}; all of them are taken", "yellow")
    return sorted(draw.choice(total, size=min(wanted, total), replace=False).tolist())


@dataclass(frozen=True)
class Lesson:
    """What the sources say about the gold of some sentences.

    Args:
        names: of the sources.
        sent_ids: of the sentences.
        lengths: words of each sentence.
        groups: the groups with gold.
        left_out: how many groups have no gold candidate.
    """

    names: Sequence[str]
    sent_ids: Sequence[str]
    lengths: Sequence[int]
    groups: GoldGroups
    left_out: int

    @classmethod
    def read(
        cls,
        sources: SourcePool,
        gold: Sequence[Row],
        rows: Sequence[Row],
        floor: float = 1e-9,
        batch_words: int = BATCH_WORDS,
    ) -> Lesson:
        """Ask all sources about the sentences, batch by batch; of each only the groups with gold are kept.

        Args:
            sources: the source models over the union of their labels.
            gold: rows with gold.
            rows: the same rows as the models shall read them.
            floor: of the pool.
            batch_words: see `hf_xst.models.running`.

        Raises:
            ValueError: there is no gold that the sources know, or at floor 0 a source excludes some.
        """
        lengths, all_groups, parts = [len(row["words"]) for row in rows], 0, []
        with progress("reading gold", len(rows)) as advance:
            for batch in length_batches(lengths, batch_words):
                distributions = sources.distributions([rows[place] for place in batch])
                space = distributions[0]
                right = sources.gold_candidates([gold[place] for place in batch], space)
                marginals, possible = stacked_log_marginals(distributions), possible_candidates(distributions)
                parts.append(GoldGroups.of(marginals, right, floor, valid=possible, sentences=batch))
                all_groups += int(space.group_lengths.sum())
                advance(len(batch))
        groups = GoldGroups.joined(parts)
        sent_ids = [row["sent_id"] for row in gold]
        groups.check(lambda sentence: sent_ids[sentence])
        names = [source.name for source in sources.sources]
        return cls(names, sent_ids, lengths, groups, all_groups - len(groups))

    def learn(self, procedure: str = "exact", seed: int = 0, *, grouped: bool = False) -> dict[str, Any]:
        """Return the weights of both procedures, and what they are worth; see `learn_weights`.

        Args:
            procedure: `"exact"` or `"published"`, of the chosen `weights`.
            seed: of the published search.
            grouped: also learn weights by group.
        """
        count = len(self.names)
        found = published_weights(self.groups, np.array(self.lengths) + 1, seed=seed)
        best = {"learned": best_weights(self.groups), "published": found.weights}
        values = {"uniform": np.full(count, 1 / count), **best}
        results: dict[str, Any] = {name: self._by_name(weights) for name, weights in best.items()}
        results["published_updates"] = found.updates
        results["weights"] = results["learned" if procedure == "exact" else "published"]
        if grouped:
            by_group = learn_grouped_weights(self.groups)
            results["grouped"] = by_group.by_name(self.names)
            values["grouped"] = by_group.of_groups(self.groups)
        nll: dict[str, Any] = {name: self._per_word(weights) for name, weights in values.items()}
        nll["alone"] = {
            name: self._per_word(row) for name, row in zip(self.names, np.eye(count), strict=True)
        }
        return results | {
            "nll": nll,
            "sentences": len(self.sent_ids),
            "sent_ids": list(self.sent_ids),
            "words": sum(self.lengths),
            "groups": len(self.groups),
            "left_out": self.left_out,
        }

    def _by_name(self, weights: Array) -> dict[str, float]:
        return dict(zip(self.names, weights.tolist(), strict=True))

    def _per_word(self, weights: Array) -> float:
        return float(self.groups.losses(weights).sum() / sum(self.lengths))


def _labelled(arguments: LearnWeightsArguments, model: StructuredModel) -> tuple[Dataset, str]:
    """Load the sentences that are drawn from; faulty gold is left out and counted."""
    if arguments.treebank is None:
        raise ValueError("give --treebank: weights are learned from gold annotation")
    return gold_rows(
        arguments.treebank,
        arguments.split,
        arguments.data,
        model.columns,
        faulty="skip",
        **chart_limits(model, arguments.max_length),
    )


def _show(results: Mapping[str, Any]) -> None:
    """Print what each pool is worth, and its weights."""
    names = list(results["weights"])
    title = f"Gold of {results['sentences']} sentences under the pool ({results['words']} words)"
    table = Table("weights", *names, "nats per word", title=title)
    rows: dict[str, Mapping[str, float]] = {
        "uniform": dict.fromkeys(names, 1 / len(names)),
        "learned": results["learned"],
        "published": results["published"],
        **{f"{name} alone": {name: 1.0} for name in names},
    }
    nll = results["nll"] | {f"{name} alone": value for name, value in results["nll"]["alone"].items()}
    for label, weights in rows.items():
        shares = [f"{weights.get(name, 0.0):.3f}" for name in names]
        table.add_row(label, *shares, f"{nll[label]:.4f}")
    if "grouped" in nll:
        table.add_row("by group", *["" for _ in names], f"{nll['grouped']:.4f}")
    console.print(table)
    say(
        f"updates of the published search: {results['published_updates']}; it ends "
        f"{nll['published'] - nll['learned']:.4f} nats per word above the optimum"
    )
    if results["left_out"]:
        say(f"{results['left_out']} groups have a label that no source knows and do not count", "yellow")
