"""Compare the sums, best trees, charts and weights of parsers with those of the published procedure.

The procedure is restated here from its description, not copied: sums over trees by determinants after adding
1e-8 to the weight of every arc, best trees and votes with any number of roots, and weights by the search of
`published_weights.py`. A determinant of 400 digits decides which of two results is right.

    python scripts/study/against_published.py --sources NAME=FOLDER ... --treebank FILE --output RESULTS.json
    python scripts/study/against_published.py --page RESULTS.json > docs/results/against_the_published_code.md
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import torch
from published_weights import published_weights
from torch import Tensor

from hf_xst.charts import best_mask, chart_loss, log_opinion_pool, threshold
from hf_xst.charts.chart import FLOOR, SIGMA, ChartSettings, SourceDistributions, make_chart
from hf_xst.commands.learn_weights import Lesson, draw_sentences
from hf_xst.commands.sentences import gold_rows
from hf_xst.data.preparation import first_rows
from hf_xst.metrics import score
from hf_xst.models.running import in_batches
from hf_xst.numerics import safe_log
from hf_xst.sources.loading import load_sources
from hf_xst.sources.pool import SourcePool
from hf_xst.structures import DependencyTreeCRF

CONSTANT, VISIBLE = 1e-8, 1e-9
DIGITS, LONGEST, JUDGED = 400, 30, 12
REMOVED = -1e9  # published in place of minus infinity


def published_log_partition(scores: Tensor, constant: float = CONSTANT) -> Tensor:
    """Return the log-partition of trees with one root by a determinant: (N+1, N+1, L) to a number."""
    weights = scores.clamp(min=REMOVED).logsumexp(-1).exp() + constant
    inner = weights[1:, 1:] * (1 - torch.eye(len(weights) - 1, dtype=weights.dtype))
    laplacian = inner.sum(0).diag() - inner
    laplacian = torch.cat([weights[:1, 1:], laplacian[1:]])
    return torch.linalg.slogdet(laplacian).logabsdet


def published_log_marginals(scores: Tensor, constant: float = CONSTANT) -> Tensor:
    """Return the logarithms of the marginals, by the gradient: (N+1, N+1, L)."""
    leaf = scores.clamp(min=REMOVED).detach().requires_grad_()
    (marginals,) = torch.autograd.grad(published_log_partition(leaf, constant), leaf)
    return safe_log(marginals.clamp(min=0))


def judge(scores: Tensor) -> tuple[float, Tensor]:
    """Return log-partition and log-marginals of one sentence from determinants of 400 digits."""
    with mpmath.workdps(DIGITS):
        exact = np.vectorize(mpmath.exp, otypes=[object])(scores.numpy())
        weights, words = exact.sum(-1), len(scores) - 1
        matrix = mpmath.zeros(words)
        for head in range(1, words + 1):
            for dependent in range(1, words + 1):
                if head != dependent:
                    matrix[dependent - 1, dependent - 1] += weights[head, dependent]
                    matrix[head - 1, dependent - 1] -= weights[head, dependent]
        for dependent in range(1, words + 1):
            matrix[0, dependent - 1] = weights[0, dependent]
        inverse, total = matrix**-1, mpmath.log(mpmath.det(matrix))
        marginals = torch.zeros_like(scores)
        for dependent in range(1, words + 1):
            for head in range(words + 1):
                if head == 0:
                    share = inverse[dependent - 1, 0]
                else:  # the first row holds the root's scores
                    share = inverse[dependent - 1, dependent - 1] if dependent > 1 else 0
                    share -= inverse[dependent - 1, head - 1] if head > 1 else 0
                for label in range(scores.shape[2]):
                    marginals[head, dependent, label] = float(share * exact[head, dependent, label])
    return float(total), safe_log(marginals)


def sums(scale: float, sentences: int = 50, words: int = 10, labels: int = 3) -> dict[str, float]:
    """Return the largest error of the chart loss of both ways, in nats.

    Scores are normalised over heads and labels as a parser's; the chart is the best tree of another parser
    with a tenth of all candidates.
    """
    draw = torch.Generator().manual_seed(0)
    errors: dict[str, list[float]] = {"published": [], "ours": []}
    shape = (words + 1, words + 1, labels)
    for _ in range(sentences):
        own, other = scale * torch.randn(2, *shape, generator=draw, dtype=torch.float64)
        scores = own - own.logsumexp((0, 2), keepdim=True)
        whole, another = DependencyTreeCRF(scores[None]), DependencyTreeCRF(other[None])
        keep = torch.rand(whole.valid.shape, generator=draw) < 0.1
        keep |= best_mask(another)
        allowed = scores.masked_fill(~whole.part_view(keep)[0], -torch.inf)
        right = judge(scores)[0] - judge(allowed)[0]
        theirs = published_log_partition(scores) - published_log_partition(allowed)
        errors["published"].append(abs(float(theirs) - right))
        errors["ours"].append(abs(float(chart_loss(whole, keep)) - right))
    return {"scale": scale, **{name: max(found) for name, found in errors.items()}}


def charts_of(trees: Sequence[DependencyTreeCRF], log_marginals: Tensor, best: Tensor) -> list[Tensor]:
    """Return the pooled and the union chart from marginals (S, 1, G, C) and best candidates (S, 1, G)."""
    valid = trees[0].valid
    pooled = threshold(log_opinion_pool(log_marginals, None, FLOOR, valid=valid), SIGMA, valid)
    union = torch.stack([threshold(each, SIGMA, valid) for each in log_marginals]).any(0)
    marked = torch.zeros_like(valid).scatter(-1, best.clamp(min=0).permute(1, 2, 0), True) & valid
    return [pooled | marked, union | marked]


def compare(sources: Sequence[DependencyTreeCRF], gold: Tensor) -> dict[str, float]:
    """Count for one sentence what agrees; the distributions have one sentence, gold has shape (G,)."""
    trees = [DependencyTreeCRF(source.scores.double()) for source in sources]
    many = [DependencyTreeCRF(each.scores, single_root=False) for each in trees]
    ours = SourceDistributions(trees)
    own = [make_chart(ours, ChartSettings(rule)).allowed for rule in ("pool", "union")]
    one_root, any_root = ours.best, SourceDistributions(many).best

    def marginals(of: Callable[[Tensor], Tensor]) -> Tensor:
        return torch.stack([tree.group_view(of(tree.scores[0])[None]) for tree in trees])

    with_constant, without = (
        marginals(published_log_marginals),
        marginals(lambda s: published_log_marginals(s, 0)),
    )
    ways = {
        "published": charts_of(trees, with_constant, any_root),
        "without the constant": charts_of(trees, without, any_root),
        "with one root": charts_of(trees, with_constant, one_root),
        "without both": charts_of(trees, without, one_root),
    }
    result: dict[str, float] = {"sentences": 1, "trees": len(trees)}
    for way, charts in ways.items():
        for name, theirs, chart in zip(("pool", "union"), charts, own, strict=True):
            result[f"{name}, {way}"] = int(torch.equal(theirs, chart))
    roots = (DependencyTreeCRF.best(each)[0].eq(0).sum() for each in many)
    result["several roots"] = sum(int(count) > 1 for count in roots)
    if trees[0].lengths.item() <= JUDGED:
        right = charts_of(trees, marginals(lambda s: judge(s)[1]), one_root)
        result |= {"judged": 2, "right, ours": sum(map(torch.equal, right, own))}
        result["right, published"] = sum(map(torch.equal, right, ways["with one root"]))
    # Recall of arcs: a gold arc counts if it is visible in the chart's distribution.
    chart, arcs = own[0], trees[0].scores.new_zeros(trees[0].scores.shape[1:])
    inside = arcs.masked_fill(~trees[0].part_view(chart)[0], -torch.inf)
    visible = trees[0].group_view(published_log_marginals(inside)[None])[0]
    support = trees[0].group_view(DependencyTreeCRF(inside[None]).marginals())[0]
    labels = arcs.shape[2]
    heads = gold // labels
    groups = torch.arange(len(gold))
    by_head = [
        each.reshape(len(gold), -1, labels).sum(-1)[groups, heads] for each in (visible.exp(), support)
    ]
    result |= {"gold": len(gold), "recall, published": int((by_head[0] > VISIBLE).sum())}
    return result | {"recall, exact": int((by_head[1] > 0).sum())}


def votes(pool: SourcePool, rows: Any, gold: Any) -> Iterator[dict[str, Any]]:
    """Yield the scores of the majority vote with one root and with any number."""
    for single_root in (True, False):

        def vote(batch: list[Any], single_root: bool = single_root) -> list[dict[str, Any]]:
            lengths = torch.tensor([len(row["words"]) for row in batch])
            trees = [
                DependencyTreeCRF(each.scores, lengths, single_root=single_root).best()
                for each in pool.distributions(batch)
            ]
            heads, labels = (torch.stack(each) for each in zip(*trees, strict=True))
            best = DependencyTreeCRF.majority(heads, labels, lengths, single_root=single_root)
            return pool.kind.decode(best, lengths, pool.names)

        scores = score(list(in_batches(rows, vote)), gold, pool.kind.columns)
        yield {"one root": single_root, "uas": scores["uas"], "las": scores["las"]}


def weights(pool: SourcePool, gold: Any) -> dict[str, float]:
    """Learn the weights of 50 sentences by the published search and by the convex problem."""
    drawn = list(gold.select(draw_sentences(len(gold), 50, 0)))
    lesson = Lesson.read(pool, drawn, drawn)
    published, updates = published_weights(lesson.groups, np.array(lesson.lengths) + 1)
    losses = lesson.learn()["nll"]
    return {
        "updates": updates,
        "published": lesson.loss(published),
        "optimum": losses["learned"],
        "uniform": losses["uniform"],
    }


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return all comparisons."""
    pool = SourcePool(load_sources(options.sources))
    gold, _ = gold_rows(
        options.treebank, options.split, [], pool.kind.columns, max_length=LONGEST, added_tokens=0
    )
    gold = first_rows(gold, options.sentences)
    counts: dict[str, float] = {}
    for row in gold:
        sources = pool.distributions([row])
        found = compare(sources, pool.gold_candidates([row], sources[0])[0])
        counts = {name: counts.get(name, 0) + found.get(name, 0) for name in {**counts, **found}}
    return {
        "sums": [sums(scale) for scale in (1.0, 10.0, 100.0)],
        "counts": counts,
        "weights": weights(pool, gold),
        "votes": list(votes(pool, gold, gold)),
        "data": {"treebank": options.name, "sources": pool.source_names, "sentences": len(gold)},
    }


def page(found: dict[str, Any]) -> str:
    """Return the page of the results, in Markdown."""
    counts, weight, data = found["counts"], found["weights"], found["data"]
    losses = "\n".join(
        f"| {row['scale']:g} | {row['published']:.2g} | {row['ours']:.2g} |" for row in found["sums"]
    )
    ways = ("published", "without the constant", "with one root", "without both")
    charts = "\n".join(
        f"| {way} | {counts[f'pool, {way}']:g} | {counts[f'union, {way}']:g} |" for way in ways
    )
    votes = "\n".join(
        f"| {'one root' if row['one root'] else 'any number'} | {row['uas']:.1f} | {row['las']:.1f} |"
        for row in found["votes"]
    )
    recall = [f"{100 * counts[f'recall, {way}'] / counts['gold']:.1f}" for way in ("published", "exact")]
    return f"""# Against the published code

What the published code (kmkurn/uxtspwsd) computes otherwise than this package, and which is right. The code
itself was not run: [against_published.py](../../scripts/study/against_published.py) restates its procedure
for parsers in double precision: sums by determinants after adding 1e-8 to the weight of every arc, best trees
and votes with any number of roots, and weights by its search. Sentences: the first {data["sentences"]} of
{data["treebank"]} with at most {LONGEST} words; sources: {", ".join(data["sources"])} of
[mean](mean/README.md). A determinant of {DIGITS} digits decides.

## Chart loss

Largest error in nats over 50 random sentences of 10 words, whose scores are multiplied by the scale and
normalised like a parser's; the chart is the best tree of another random parser and a tenth of all candidates.

| scale | published | here |
| ---: | ---: | ---: |
{losses}

The constant gives weight to arcs outside the chart, so that the loss of an improbable chart is too small.

## Charts

How many of {counts["sentences"]:g} charts are equal to those of this package:

| way | pool | union |
| --- | ---: | ---: |
{charts}

Sentences of up to {JUDGED} words have {counts["judged"]:g} of these charts: {counts["right, ours"]:g} of
ours, and {counts["right, published"]:g} of those with the constant and one root, equal the charts made from
marginals of {DIGITS} digits.

- **Several roots**: {counts["several roots"]:g} of {counts["trees"]:g} best trees have more than one root if
  the search allows it.
- **Recall of gold arcs in pooled charts**: {recall[0]} % if an arc counts whose marginal in the chart exceeds
  1e-9, as published, {recall[1]} % if it must be part of a tree of the chart.

## Majority vote

| roots | UAS | LAS |
| --- | ---: | ---: |
{votes}

## Weights

Negative log-likelihood of 50 sentences in nats per word: {weight["uniform"]:.4f} with uniform weights,
{weight["published"]:.4f} where the published search stops (updates: {weight["updates"]:g}),
{weight["optimum"]:.4f} at the optimum.

## Not compared

Running times (the restated procedure is not the published code), taggers (their sums have no such constant),
and training. [The map of the paper](../paper_map.md) lists all differences.
"""


def main() -> None:
    """Measure, or print the page of earlier measurements."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--page", type=Path)
    parser.add_argument("--sources", nargs="+", default=[])
    parser.add_argument("--treebank")
    parser.add_argument("--name", help="of the treebank, for the page")
    parser.add_argument("--split", default="data")
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    if options.page:
        print(page(json.loads(options.page.read_text(encoding="utf-8"))), end="")
    else:
        options.output.write_text(json.dumps(measure(options), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
