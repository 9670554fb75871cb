"""Measure running times beside other packages, and how they grow.

Each part replaces its figures in FILE, of which `docs/performance.py` makes tables and plots. Times are CPU
seconds of the process, which hardly depend on other load; real time where a note says so. Ways to compute the
same are checked to agree before they are timed.

    python scripts/benchmark.py [PART ...] [--quick] [--figures FILE]
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import torch
from benchmark_corpora import corpus, memory, processes
from torch import Tensor
from torch.nn.functional import pad
from transformers import TrainingArguments, XLMRobertaConfig, XLMRobertaModel
from usual_ways import (
    DenseScorer,
    Sums,
    chain_sums,
    pair_scores,
    phrase_best,
    phrase_sums,
    searches,
    tree_sums,
)

from hf_xst.charts import best_mask, chart_loss, pooled_chart
from hf_xst.charts.chart import ChartSettings, SourceDistributions, make_chart
from hf_xst.charts.dataset import to_ragged, words_hash
from hf_xst.commands.presets import PUBLISHED
from hf_xst.data import UPOS_TAGS, ConlluSentence, WordVectors, iterate_unlabelled, write_conllu
from hf_xst.files import write_text
from hf_xst.inference.annotation import AnnotationSettings, Annotator, read_blocks
from hf_xst.inference.outputs import WRITERS
from hf_xst.inference.resuming import ResumableFile
from hf_xst.models import BiaffineParser, BiaffineParserConfig
from hf_xst.models.modeling import StructuredOutput
from hf_xst.structures import ConstituencyTreeCRF, DependencyTreeCRF, LinearChainCRF
from hf_xst.structures.base import Structure
from hf_xst.training.transfer import ChartTrainer

FIGURES = Path(__file__).parent.parent / "docs" / "performance" / "figures.json"
PACKAGES = "hf_xst torch numpy numba transformers torch-struct supar ufal.chu_liu_edmonds".split()
Line = dict[str, Any]
Works = Mapping[str, Callable[[], object]]


class Sizes(NamedTuple):
    """Sizes of the inputs, and seconds for which a comparison is repeated."""

    sentences: int
    words: int
    labels: int
    tags: int
    layers: int
    parser: Mapping[str, int]
    points: int
    seconds: float


FULL = Sizes(80, 25, 40, 20, 6, {"arc_size": 512, "label_size": 128}, 99, 8.0)
QUICK = Sizes(4, 8, 5, 5, 1, {"arc_size": 16, "label_size": 8, "feed_forward_size": 16}, 2, 0.0)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Give PyTorch so many threads, and the former number afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def fastest(works: Works, seconds: float, clock: Callable[[], float] = time.process_time) -> dict[str, float]:
    """Return the least running time of each piece of work, in seconds, after a warm-up.

    Args:
        works: what is timed; they take turns, so that a slow spell of the machine strikes all of them.
        seconds: after 5 rounds, up to 25 are added until this much real time has passed.
        clock: CPU time of the process, or `time.perf_counter` for real time.
    """
    times: dict[str, list[float]] = {name: [] for name in works}
    begin = time.perf_counter()
    for count in range(31):
        if count > 5 and time.perf_counter() - begin > seconds:
            break
        for name, work in works.items():
            start = clock()
            work()
            times[name].append(clock() - start)
    return {name: min(own[1:]) for name, own in times.items()}


def lines(
    what: str, works: Works, sizes: Sizes, note: str = "", count: int = 1, **options: Any
) -> Iterator[Line]:
    """Time the first way beside the others.

    Args:
        what: what is computed.
        works: the ways.
        sizes: for how long they are repeated.
        note: may contain {share}, own time by that of the other way, and {own} and {other}, items per second.
        count: number of items.
        options: of `fastest`.
    """
    (way, own), *others = fastest(works, sizes.seconds, **options).items()
    for name, other in others:
        text = note.format(share=own / other, own=count / own, other=count / other)
        yield {"what": what, "way": way, "seconds": own, "other": name, "other_seconds": other, "note": text}


def check_equal(what: str, one: Tensor, other: Tensor, tolerance: float = 1e-4) -> None:
    """Raise ValueError unless two ways gave the same numbers, relative to the largest."""
    gap, size = float((one - other).abs().max()), float(one.abs().max())
    if not gap <= tolerance * max(1.0, size):
        raise ValueError(f"{what}: the two ways differ by {gap:.2e} where numbers go up to {size:.2e}")


def compared(
    what: str,
    works: Mapping[str, Callable[[], Sequence[Tensor]]],
    sizes: Sizes,
    tolerance: float = 1e-4,
    **more: Any,
) -> Iterator[Line]:
    """Time ways to compute the same numbers, see `lines`; ValueError if they differ."""
    results = {name: work() for name, work in works.items()}
    for name, result in results.items():
        for one, other in zip(next(iter(results.values())), result, strict=True):
            check_equal(f"{what}, {name}", one, other, tolerance)
    return lines(what, works, sizes, **more)


def machine() -> dict[str, Any]:
    """Describe what the figures are measured on."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    info = Path("/proc/cpuinfo")
    facts = info.read_text().splitlines() if info.exists() else []
    models = [fact.split(": ")[1] for fact in facts if "model name" in fact]
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 1),
        "versions": versions,
    }


def random_heads(words: int) -> list[int]:
    """Draw a tree with one root: the head of every word."""
    order = [0, *(torch.randperm(words) + 1).tolist()]
    heads = {order[1]: 0}
    for place, dependent in enumerate(order[2:], 2):
        heads[dependent] = order[int(torch.randint(1, place, ()))]
    return [heads[dependent] for dependent in range(1, words + 1)]


def parser_and_rows(sizes: Sizes, layers: int) -> tuple[BiaffineParser, list[dict[str, Any]]]:
    """Make a fresh parser of encoder A and invented sentences of one length with gold columns."""
    labels = [f"label{i}" for i in range(sizes.labels)]
    config = BiaffineParserConfig(
        labels=labels, upos_names=list(UPOS_TAGS), context_layers=layers, **sizes.parser
    )
    words = [f"word{i}" for i in range(1000)]
    vectors = WordVectors(words, torch.randn(len(words), 300).numpy(), "invented", "0" * 64)
    columns = {"words": words, "upos": UPOS_TAGS, "deprel": labels}
    rows: list[dict[str, Any]] = []
    for _ in range(sizes.sentences):
        drawn = {
            n: [each[i] for i in torch.randint(len(each), (sizes.words,))] for n, each in columns.items()
        }
        rows.append({**drawn, "head": random_heads(sizes.words)})
    return BiaffineParser.from_vectors(config, vectors), rows


def random_chart(structure: Structure, share: float) -> Tensor:
    """Make charts that hold some structure: the best one and a share of all candidates."""
    return best_mask(structure) | (structure.valid & (torch.rand(structure.valid.shape) < share))


def spans(sentences: int, words: int, labels: int) -> Tensor:
    """Draw scores of spans (B, N, N, L + 1) of which those of label 0, no constituent, are 0."""
    return pad(torch.randn(sentences, words, words, labels), (1, 0))


def sums_and_best(structure: Structure) -> dict[str, Callable[[], object]]:
    """Return the two computations whose growth is measured."""
    return {"log Z and marginals": structure.marginals_and_total, "best": structure.best}


# -- comparisons ---------------------------------------------------------------------------------------


def with_gradient(total: Callable[[Tensor], Tensor], scores: Tensor) -> tuple[Tensor, Tensor]:
    """Compute log Z and its gradient, the marginals."""
    leaf = scores.clone().requires_grad_()
    log_partition = total(leaf)
    return log_partition.detach(), torch.autograd.grad(log_partition.sum(), leaf)[0]


def sums(sizes: Sizes) -> Iterator[Line]:
    """Compare log Z and marginals."""
    nodes, transitions = sizes.words + 1, torch.randn(sizes.tags, sizes.tags)
    kinds: dict[str, tuple[Tensor, Callable[[Tensor], Structure], Sums]] = {
        "trees": (
            torch.randn(sizes.sentences, nodes, nodes),
            lambda x: DependencyTreeCRF(x[..., None]),
            tree_sums(),
        ),
        "chains": (
            torch.randn(sizes.sentences, sizes.words, sizes.tags),
            lambda x: LinearChainCRF(pair_scores(x, transitions)),
            chain_sums(transitions),
        ),
        "phrases": (
            spans(sizes.sentences, sizes.words, sizes.tags)[..., 1:],
            lambda x: ConstituencyTreeCRF(pad(x, (1, 0))),
            phrase_sums(),
        ),
    }
    for kind, (scores, structure, others) in kinds.items():
        ways = {"hf_xst": lambda x, of=structure: of(x).log_partition(), **others}
        works = {name: partial(with_gradient, total, scores) for name, total in ways.items()}
        exact = structure(100 * scores.double()).log_partition()
        # torch-struct adds 1e-5 to the weights of arcs.
        for line in compared(f"{kind}: log Z and marginals", works, sizes, 1e-3):
            error = float((ways[line["other"]](100 * scores) - exact).detach().abs().max())
            yield line | {"note": f"error of log Z at scores of scale 100: {error:.2g}"}


def best_structures(sizes: Sizes) -> Iterator[Line]:
    """Compare searches for the best tree, of which those of others go sentence by sentence."""
    for kind, bonus in (("random", 0.0), ("trained-like", 5.0)):
        scores = torch.randn(sizes.sentences, sizes.words + 1, sizes.words + 1, 1)
        for one in scores:
            one[random_heads(sizes.words), torch.arange(1, sizes.words + 1)] += bonus
        trees = DependencyTreeCRF(scores)

        def total(search: Callable[[Tensor], Tensor], trees: DependencyTreeCRF = trees) -> list[Tensor]:
            heads = search(trees.scores[..., 0])
            assert trees.contains((heads, torch.zeros_like(heads))).all()
            return [trees.score_of(heads)]  # with one label the candidates are the heads

        ways = {"hf_xst": lambda _, trees=trees: trees.best()[0], **searches()}
        works = {name: partial(total, search) for name, search in ways.items()}
        options = {"note": "{own:,.0f} against {other:,.0f} trees/s", "count": sizes.sentences}
        yield from compared(f"trees: best, {kind} scores", works, sizes, 1e-9, **options)
    scores = spans(sizes.sentences, sizes.words, sizes.tags)
    phrases = ConstituencyTreeCRF(scores)
    own = {"hf_xst": lambda: [phrases.score_of(phrases.best_candidates())]}
    others = {name: lambda best=best: [best(scores[..., 1:])] for name, best in phrase_best().items()}
    yield from compared("phrases: best", own | others, sizes)


def label_scores(sizes: Sizes) -> Iterator[Line]:
    """Compare a parser's supervised step over ready word states, its label score factored or dense."""
    factored, rows = parser_and_rows(sizes._replace(sentences=max(1, sizes.sentences // 4)), layers=0)
    dense = copy.deepcopy(factored)
    dense.add_module("scorer", DenseScorer(dense.scorer))
    inputs = factored.featurise(rows) | {"labels": factored.encode_gold(rows)}

    def step(model: BiaffineParser) -> list[Tensor]:
        model.zero_grad()
        loss: Tensor = model(**inputs).loss
        torch.autograd.backward(loss)
        return [loss.detach(), *(each.grad for each in model.parameters() if each.grad is not None)]

    works = {"factored": partial(step, factored.eval()), "dense": partial(step, dense.eval())}
    yield from compared(f"parser: supervised step, {len(rows)} sentences", works, sizes)


def structured_share(sizes: Sizes) -> Iterator[Line]:
    """Time the chart loss of a parser, given its scores, beside a whole training step on charts."""
    for name, layers in ((f"{sizes.layers} layers of encoder A", sizes.layers), ("ready word states", 0)):
        model, rows = parser_and_rows(sizes, layers)
        with tempfile.TemporaryDirectory() as folder:
            arguments = TrainingArguments(folder, use_cpu=True, report_to="none", disable_tqdm=True)
            trainer = ChartTrainer(model, arguments, l2=PUBLISHED[model.config.model_type].l2["pool"])
        output = model.eval()(**model.featurise(rows))
        distribution = model.distribution(output)
        best, chart = distribution.best_candidates(), random_chart(distribution, 0.01)
        for row, allowed, own in zip(rows, chart, best.tolist(), strict=True):
            row |= {**to_ragged(allowed, sizes.words), "source_best": [own], "pool_best": own}
            row["words_hash"] = words_hash(row["words"])
        inputs, optimizer = trainer.data_collator(rows), trainer.create_optimizer()
        scores = output.scores.detach()

        def loss(trainer: ChartTrainer = trainer, inputs: Any = inputs, scores: Tensor = scores) -> None:
            given = StructuredOutput(scores=scores.clone().requires_grad_(), lengths=inputs["lengths"])
            torch.autograd.backward(trainer.sentence_losses(given, inputs).mean())

        def step(trainer: ChartTrainer = trainer, inputs: Any = inputs, optimizer: Any = optimizer) -> None:
            trainer.training_step(trainer.model, inputs, inputs["units"].sum())
            optimizer.step()
            optimizer.zero_grad()

        what = f"parser: step on charts, {len(rows)} sentences, {name}"
        works = {"chart loss": loss, "whole step": step}
        yield from lines(what, works, sizes, "chart loss: {share:.1%} of the step")


def prediction(sizes: Sizes) -> Iterator[Line]:
    """Compare the model alone with `hf-xst predict` from file to file, with and without confidence."""
    model, invented = parser_and_rows(sizes, sizes.layers)
    if torch.cuda.is_available():
        torch.nn.Module.to(model, "cuda")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "in.conllu")
        write_conllu(
            [ConlluSentence.from_words(r["words"], columns={"upos": r["upos"]}) for r in invented], source
        )

        def from_file_to_file(annotator: Annotator, output: Path) -> None:
            write = WRITERS[output.name.split(".")[1]](annotator)
            with ResumableFile(output, {}, overwrite=True) as file:
                for block in map(annotator.annotate_block, read_blocks(iterate_unlabelled(source))):
                    file.add(write(block, None), {"sentences": len(block)})

        for confidence in (False, True):
            annotator = Annotator([model], AnnotationSettings(confidence=confidence))
            rows = [annotator.row(sentence) for sentence in iterate_unlabelled(source)]
            for name in ("out.conllu", "out.conllu.gz", "out.jsonl"):
                works = {
                    "the model": partial(annotator.annotate, rows),
                    "predict": partial(from_file_to_file, annotator, Path(folder, name)),
                }
                note = "{share:.1%} in the model, {other:,.0f} sentences/s of real time"
                what = f"predict to {name}{', confidence' if confidence else ''}"
                yield from lines(what, works, sizes, note, len(rows), clock=time.perf_counter)


def base_encoder(sizes: Sizes) -> Callable[[], Tensor]:
    """Return a run of a pretrained encoder of base size over as many sentences, of 1.4 pieces a word."""
    small = {} if sizes is FULL else {"hidden_size": 24, "num_hidden_layers": 1}
    base = XLMRobertaModel(XLMRobertaConfig(vocab_size=1000, **small)).eval()
    pieces = torch.randint(5, 1000, (sizes.sentences, sizes.words * 7 // 5))
    return lambda: base(input_ids=pieces).last_hidden_state


@torch.no_grad()
def half_precision(sizes: Sizes) -> Iterator[Line]:
    """Compare models in bfloat16, as `--bf16` runs them, with the same in float32."""
    model, rows = parser_and_rows(sizes, sizes.layers)
    encoder, inputs = base_encoder(sizes), model.eval().featurise(rows)
    works = {"parser, scores": lambda: model(**inputs).scores[:, 0, 1:], "encoder B, base size": encoder}
    for name, work in works.items():
        in_half = torch.autocast("cpu", torch.bfloat16)(work)
        gap = float((in_half() - work()).std() / work().std())
        note = f"numbers differ by {gap:.1%} of their standard deviation"
        yield from lines(
            f"{name}, {len(rows)} sentences", {"bfloat16": in_half, "float32": work}, sizes, note
        )


def structures_on_threads(sizes: Sizes) -> Iterator[Line]:
    """Compare structures on one thread and on several, alone and beside a process that is always busy."""
    trees = DependencyTreeCRF(torch.randn(sizes.sentences, sizes.words + 1, sizes.words + 1, sizes.labels))
    chains = LinearChainCRF(torch.randn(sizes.sentences, sizes.words - 1, sizes.tags, sizes.tags))

    def loss(structure: Structure, chart: Tensor) -> None:
        leaf = structure.scores.clone().requires_grad_()
        torch.autograd.backward(chart_loss(structure.with_scores(leaf), chart).sum())

    works: dict[str, Callable[[], object]] = {
        "best trees": trees.best,
        "chart loss of trees": partial(loss, trees, random_chart(trees, 0.01)),
        "chart loss of chains": partial(loss, chains, random_chart(chains, 0.2)),
    }

    def on_threads(count: int, work: Callable[[], object]) -> None:
        with threads(count):
            work()

    for place in ("alone", "beside a busy process"):
        busy = [sys.executable, "-c", "while True: pass"]
        process = None if place == "alone" else subprocess.Popen(busy)  # noqa: S603
        try:
            for name, work in works.items():
                runs = {"1 thread": partial(on_threads, 1, work), "2 threads": partial(on_threads, 2, work)}
                yield from lines(f"{name}, {place}", runs, sizes, "real time", clock=time.perf_counter)
        finally:
            if process is not None:
                process.kill()
                process.wait()


# -- growth --------------------------------------------------------------------------------------------


def structures(sentences: int, words: int, labels: int, tags: int, phrases: int) -> dict[str, Works]:
    """Make sentences of a length: trees, chains of tags, and phrases with labels."""
    return {
        "trees": sums_and_best(DependencyTreeCRF(torch.randn(sentences, words + 1, words + 1, labels))),
        "chains": sums_and_best(LinearChainCRF(torch.randn(sentences, words - 1, tags, tags))),
        "phrases": sums_and_best(ConstituencyTreeCRF(spans(sentences, words, phrases))),
    }


def by_sources(count: int) -> dict[str, Works]:
    """Make distributions of sources over 16 sentences of 20 words."""
    trees = [DependencyTreeCRF(torch.randn(16, 21, 21, 40)) for _ in range(count)]
    chains = [LinearChainCRF(torch.randn(16, 19, 17, 17)) for _ in range(count)]
    return {
        "trees": {"pooled chart": partial(pooled_chart, trees, 0.95)},
        "chains": {"pooled chart": partial(pooled_chart, chains, 0.95)},
    }


GROWTH: dict[str, tuple[Callable[[int], dict[str, Works]], Sequence[int]]] = {
    "length": (lambda words: structures(4, words, 1, 17, 4), (5, 10, 20, 50, 100, 200, 400)),
    "labels": (lambda labels: structures(16, 20, labels, labels, labels), (1, 2, 5, 10, 20, 50, 100)),
    "sources": (by_sources, (1, 2, 5, 10, 20)),
}


def growth(part: str, sizes: Sizes) -> Iterator[Line]:
    """Measure points of curves: a `curve`, its `size`, and `seconds`."""
    make, points = GROWTH[part]
    for size in points[: sizes.points]:
        works = {f"{kind}: {name}": work for kind, each in make(size).items() for name, work in each.items()}
        for name, work in works.items():
            (seconds,) = fastest({name: work}, sizes.seconds / 8).values()
            yield {"curve": name, "size": size, "seconds": seconds}


def units(sizes: Sizes) -> Iterator[Line]:
    """Measure the seconds per sentence of the steps that a large corpus needs."""
    count, words = sizes.sentences, sizes.words
    model, rows = parser_and_rows(sizes, sizes.layers)
    encoder = base_encoder(sizes)
    trees = [DependencyTreeCRF(torch.randn(count, words + 1, words + 1, sizes.labels)) for _ in range(20)]
    read = SourceDistributions(trees)
    assert read.log_marginals.shape[0] == len(read.best)
    inputs = model.eval().featurise(rows)
    works: Works = {
        "encoder A, scores": lambda: model(**inputs),
        "encoder B, base size": encoder,
        "marginals and best tree": lambda: (trees[0].marginals_and_total(), trees[0].best_candidates()),
        "pool and chart": lambda: make_chart(read, ChartSettings()),
    }
    with torch.no_grad():
        for name, work in works.items():
            (seconds,) = fastest({name: work}, sizes.seconds).values()
            yield {"unit": name, "seconds": seconds / count, "words": words, "sources": len(trees)}


PARTS: dict[str, Sequence[Callable[[Sizes], Iterator[Line]]]] = {
    "peers": (sums, best_structures, label_scores),
    "steps": (structured_share, prediction, half_precision),
    "threads": (structures_on_threads,),
    **{part: (partial(growth, part),) for part in GROWTH},
    "corpus": (lambda sizes: corpus(sizes is FULL),),
    "memory": (lambda sizes: memory(sizes is FULL),),
    "processes": (lambda sizes: processes(sizes is FULL),),
    "units": (units,),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure parts and write their figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"default: all ({', '.join(PARTS)})")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does everything work?")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="file of figures")
    options = parser.parse_args(argv)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown part {unknown.pop()}; expected one of {', '.join(PARTS)}")
    with threads(1), torch.random.fork_rng():
        for part in options.parts or PARTS:
            torch.manual_seed(0)
            measured = [line for each in PARTS[part] for line in each(QUICK if options.quick else FULL)]
            figures = json.loads(options.figures.read_text()) if options.figures.exists() else {}
            figures[part] = {"machine": machine(), "lines": measured}
            write_text(options.figures, json.dumps(figures, indent=1) + "\n")
            print(part, *(json.dumps(line) for line in measured), sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
