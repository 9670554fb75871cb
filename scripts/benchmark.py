"""What the chosen algorithms save: running times beside the usual ways to compute the same numbers.

Every line is the ratio of two medians from one run, taken after both ways were found to agree. Ratios depend
on the machine and its threads; absolute times on whatever else it does. Run on the CPU, in float32.

    python scripts/benchmark.py [--quick] [--threads N] [--json FILE]
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from rich.console import Console
from timing import Line, machine, medians, table
from torch import Tensor
from transformers import TrainingArguments
from usual_ways import LABEL_SCORES, Arcs, DenseScorer, searches, torch_struct_chain_loss

from hf_xst.charts import best_mask, chart_loss
from hf_xst.charts.dataset import to_ragged, words_hash
from hf_xst.commands.presets import PUBLISHED
from hf_xst.data import UPOS_TAGS, WordVectors
from hf_xst.files import write_text
from hf_xst.models import BiaffineParser, BiaffineParserConfig
from hf_xst.models.modeling import StructuredOutput
from hf_xst.structures import DependencyTreeCRF, LinearChainCRF
from hf_xst.structures.base import Structure
from hf_xst.training.transfer import ChartTrainer

Rows = list[dict[str, Any]]


class Sizes(NamedTuple):
    """How large the inputs are, and for how many seconds a comparison is repeated."""

    sentences: int
    words: int
    labels: int
    arc_size: int
    label_size: int
    word_size: int
    layers: int
    chain_words: int
    tags: int
    seconds: float


FULL = Sizes(80, 25, 40, 512, 128, 300, 6, 40, 20, 20.0)
QUICK = Sizes(4, 8, 5, 16, 8, 16, 1, 8, 5, 0.1)


def check_equal(what: str, one: Tensor, other: Tensor, tolerance: float = 1e-4) -> None:
    """Raise ValueError unless two ways gave the same numbers, relative to the largest."""
    gap, size = float((one - other).abs().max()), float(one.abs().max())
    if not gap <= tolerance * max(1.0, size):
        raise ValueError(f"{what}: the two ways differ by {gap:.2e} where numbers go up to {size:.2e}")


def random_heads(words: int) -> list[int]:
    """Draw a tree with one root: the head of every word."""
    order = [0, *(torch.randperm(words) + 1).tolist()]
    heads = {order[1]: 0}
    for place, dependent in enumerate(order[2:], 2):
        heads[dependent] = order[int(torch.randint(1, place, ()))]
    return [heads[dependent] for dependent in range(1, words + 1)]


def parser_and_rows(sizes: Sizes, layers: int) -> tuple[BiaffineParser, Rows]:
    """Make a fresh parser of encoder A and invented sentences of one length with gold columns."""
    labels = [f"label{i}" for i in range(sizes.labels)]
    config = BiaffineParserConfig(
        labels=labels,
        upos_names=list(UPOS_TAGS),
        arc_size=sizes.arc_size,
        label_size=sizes.label_size,
        context_layers=layers,
    )
    words = [f"word{i}" for i in range(1000)]
    matrix = torch.randn(len(words), sizes.word_size).numpy()
    model = BiaffineParser.from_vectors(config, WordVectors(words, matrix, "invented", "0" * 64))

    def drawn(names: Sequence[str]) -> list[str]:
        return [names[i] for i in torch.randint(len(names), (sizes.words,)).tolist()]

    columns = {"words": words, "upos": UPOS_TAGS, "deprel": labels}
    rows: Rows = [{name: drawn(names) for name, names in columns.items()} for _ in range(sizes.sentences)]
    return model, [{**row, "head": random_heads(sizes.words)} for row in rows]


def random_chart(structure: Structure, share: float) -> Tensor:
    """Make charts that hold some structure: the best one and a share of all candidates."""
    return best_mask(structure) | (structure.valid & (torch.rand(structure.valid.shape) < share))


# -- the comparisons -----------------------------------------------------------------------------------


def label_scores(sizes: Sizes) -> Iterator[Line]:
    """Compare a parser's supervised step over ready word states, its label score factored or dense."""
    for name, (pairs, share) in LABEL_SCORES.items():
        part = sizes._replace(sentences=max(1, int(share * sizes.sentences)))
        factored, rows = parser_and_rows(part, layers=0)
        dense = copy.deepcopy(factored)
        dense.add_module("scorer", DenseScorer(dense.scorer, pairs))
        inputs = factored.featurise(rows) | {"labels": factored.encode_gold(rows)}

        def step(model: BiaffineParser, inputs: dict[str, Tensor] = inputs) -> Tensor:
            model.zero_grad()
            loss: Tensor = model(**inputs).loss
            torch.autograd.backward(loss)
            return loss.detach()

        for model in (factored, dense):
            model.train(False)  # without dropout, which draws anew
        check_equal(f"the loss, {name}", step(factored), step(dense))
        for (parameter, mine), theirs in zip(factored.named_parameters(), dense.parameters(), strict=True):
            if mine.grad is not None and theirs.grad is not None:
                check_equal(f"the gradient of {parameter}, {name}", mine.grad, theirs.grad)
        for model in (factored, dense):
            model.train()
        times = medians(partial(step, factored), partial(step, dense), seconds=sizes.seconds)
        what = f"parser: supervised step, {part.sentences} sentences"
        yield Line(what, "labels head side first", times[0], name, times[1])


def chain_loss(sizes: Sizes) -> Iterator[Line]:
    """Compare the chart loss of a chain, forward and backward, with torch-struct's."""
    scores = torch.randn(sizes.sentences, sizes.chain_words - 1, sizes.tags, sizes.tags)
    chart = random_chart(LinearChainCRF(scores), 0.2)
    keep = LinearChainCRF(scores).part_view(chart)

    def both(loss: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
        leaf = scores.clone().requires_grad_()
        losses = loss(leaf)
        return losses.detach(), torch.autograd.grad(losses.sum(), leaf)[0]

    def mine() -> tuple[Tensor, Tensor]:
        return both(lambda leaf: chart_loss(LinearChainCRF(leaf), chart))

    def theirs() -> tuple[Tensor, Tensor]:
        return both(lambda leaf: torch_struct_chain_loss(leaf, keep))

    for what, one, other in zip(("losses", "gradients"), mine(), theirs(), strict=True):
        check_equal(f"the chart loss's {what}", one, other)
    times = medians(mine, theirs, seconds=sizes.seconds)
    yield Line("chain: chart loss", "LinearChainCRF", times[0], "torch-struct", times[1])


def structured_share(sizes: Sizes) -> Iterator[Line]:
    """Time the chart loss of a parser, given its scores, beside a whole training step on charts."""
    for name, layers in ((f"{sizes.layers} layers of encoder A", sizes.layers), ("ready word states", 0)):
        model, rows = parser_and_rows(sizes, layers)
        with tempfile.TemporaryDirectory() as folder:
            arguments = TrainingArguments(folder, use_cpu=True, report_to="none", disable_tqdm=True)
            trainer = ChartTrainer(model, arguments, l2=PUBLISHED[model.config.model_type].l2["pool"])
        output = model.train(False)(**model.featurise(rows))
        distribution = model.distribution(output)
        best, chart = distribution.best_candidates(), random_chart(distribution, 0.01)
        for row, allowed, own in zip(rows, chart, best.tolist(), strict=True):
            row |= {**to_ragged(allowed, sizes.words), "source_best": [own], "pool_best": own}
            row["words_hash"] = words_hash(row["words"])
        inputs = trainer.data_collator(rows)
        part = structured_part(trainer, output, inputs)
        times = medians(part, chart_step(trainer, inputs), seconds=sizes.seconds)
        note = f"chart loss: {times[0] / times[1]:.1%} of the step"
        yield Line(f"parser: step on charts, {name}", "chart loss", times[0], "whole step", times[1], note)


def structured_part(
    trainer: ChartTrainer, output: StructuredOutput, inputs: dict[str, Any]
) -> Callable[[], None]:
    """Return the chart loss, forward and backward, on the scores of an output."""
    assert output.scores is not None
    scores = output.scores.detach()

    def part() -> None:
        given = StructuredOutput(scores=scores.detach().requires_grad_(), lengths=output.lengths)
        torch.autograd.backward(trainer.sentence_losses(given, inputs).mean())

    return part


def chart_step(trainer: ChartTrainer, inputs: dict[str, Any]) -> Callable[[], None]:
    """Return what the Trainer does with a batch: loss, gradients, pull to the start, Adam."""
    optimizer, events, model = trainer.create_optimizer(), trainer.callback_handler, trainer.model
    assert model is not None
    state = (trainer.args, trainer.state, trainer.control)
    events.on_train_begin(*state)

    def step() -> None:
        trainer.training_step(model, inputs, inputs["units"].sum())
        events.on_pre_optimizer_step(*state)
        optimizer.step()
        optimizer.zero_grad()

    return step


def best_trees(sizes: Sizes) -> Iterator[Line]:
    """Compare the batched search for the best tree with one root with searches sentence by sentence."""
    for kind, bonus in (("random", 0.0), ("trained-like", 5.0)):
        scores = torch.randn(sizes.sentences, sizes.words + 1, sizes.words + 1, 1)
        for one in scores:
            one[random_heads(sizes.words), torch.arange(1, sizes.words + 1)] += bonus
        distribution, arcs = DependencyTreeCRF(scores), scores[..., 0].double().numpy()
        own = total(arcs, distribution.best()[0].tolist())
        for name, search in searches().items():
            check_equal(f"scores of best trees by {name}", own, total(arcs, search(arcs)), 1e-9)
            times = medians(distribution.best, lambda: search(arcs), seconds=sizes.seconds / 4)  # noqa: B023
            note = " against ".join(f"{sizes.sentences / seconds:,.0f}" for seconds in times) + " trees/s"
            what = f"best trees, {kind} scores, greedy heads a tree in {greedy_trees(distribution):.0%}"
            yield Line(what, "best()", times[0], name, times[1], note)


def total(arcs: Arcs, heads: Sequence[Sequence[int]]) -> Tensor:
    """Add up the scores of each tree's arcs, (B,); -inf unless it has exactly one root."""
    words = np.arange(1, arcs.shape[1])
    sums = [
        one[own, words].sum() if own.count(0) == 1 else -np.inf for one, own in zip(arcs, heads, strict=True)
    ]
    return torch.tensor(sums)


def greedy_trees(distribution: DependencyTreeCRF) -> float:
    """Say in what share of the sentences the best heads of all words happen to be a tree of the space."""
    greedy = distribution.group_view(distribution.scores.masked_fill(~distribution.valid_parts, -torch.inf))
    return float(distribution.contains(distribution.best_from_candidates(greedy.argmax(2))).float().mean())


def structures_on_threads(sizes: Sizes) -> Iterator[Line]:
    """Compare structures on one thread and on several, alone and beside a process that is always busy."""
    several = max(2, torch.get_num_threads())
    tree_scores = torch.randn(sizes.sentences, sizes.words + 1, sizes.words + 1, sizes.labels)
    chain_scores = torch.randn(sizes.sentences, sizes.chain_words - 1, sizes.tags, sizes.tags)
    tree_chart = random_chart(DependencyTreeCRF(tree_scores), 0.01)
    chain_chart = random_chart(LinearChainCRF(chain_scores), 0.2)

    def loss(kind: Callable[[Tensor], Structure], scores: Tensor, chart: Tensor) -> None:
        leaf = scores.clone().requires_grad_()
        torch.autograd.backward(chart_loss(kind(leaf), chart).sum())

    works: dict[str, Callable[[], object]] = {
        "best trees": DependencyTreeCRF(tree_scores).best,
        "chart loss of trees": partial(loss, DependencyTreeCRF, tree_scores, tree_chart),
        "chart loss of chains": partial(loss, LinearChainCRF, chain_scores, chain_chart),
    }

    def on_threads(count: int, work: Callable[[], object]) -> None:
        before = torch.get_num_threads()
        torch.set_num_threads(count)
        try:
            work()
        finally:
            torch.set_num_threads(before)

    for place in ("alone", "beside a busy process"):
        busy = [sys.executable, "-c", "while True: pass"]
        process = None if place == "alone" else subprocess.Popen(busy)  # noqa: S603
        try:
            for name, work in works.items():
                runs = [partial(on_threads, count, work) for count in (1, several)]
                times = medians(*runs, seconds=sizes.seconds / 4)
                note = f"load {os.getloadavg()[0]:.1f}"
                yield Line(f"threads: {name}, {place}", "1", times[0], str(several), times[1], note)
        finally:
            if process is not None:
                process.kill()
                process.wait()


COMPARISONS = (label_scores, chain_loss, structured_share, best_trees, structures_on_threads)


def main(argv: Sequence[str] | None = None) -> int:
    """Run all comparisons, print the table, and write the figures where that is wanted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does everything work?")
    parser.add_argument("--threads", type=int, help="threads of PyTorch; its own choice by default")
    parser.add_argument("--json", metavar="FILE", help="also write the figures as JSON")
    options = parser.parse_args(argv)
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    sizes = QUICK if options.quick else FULL
    with torch.random.fork_rng():
        torch.manual_seed(0)
        lines = [line for comparison in COMPARISONS for line in comparison(sizes)]
    about = machine()
    Console().print(table(lines, about))
    if options.json is not None:
        figures = [{**line._asdict(), "ratio": line.ratio} for line in lines]
        content = {"machine": about, "sizes": sizes._asdict(), "lines": figures}
        write_text(options.json, json.dumps(content, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
