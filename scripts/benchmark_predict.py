"""Measure the time that `hf-xst predict` spends in the model and around it, and the cost of confidence.

Every line is the ratio of two medians from one run on invented sentences, on a GPU if available.

    python scripts/benchmark_predict.py [--quick] [--threads N] [--model FOLDER] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from benchmark import FULL, QUICK, Sizes, parser_and_rows
from rich.console import Console
from timing import Line, machine, medians, table

from hf_xst.data import ConlluSentence, iterate_unlabelled, write_conllu
from hf_xst.files import write_text
from hf_xst.inference.annotation import AnnotationSettings, Annotator
from hf_xst.inference.outputs import WRITERS
from hf_xst.inference.resuming import ResumableFile
from hf_xst.models.modeling import StructuredModel
from hf_xst.sources.loading import ready_model

SENTENCES = {FULL: 200, QUICK: 6}


def end_to_end(annotator: Annotator, source: Path, output: Path, form: str) -> Callable[[], None]:
    """Return a function that does the work of the command from file to file."""

    def work() -> None:
        write = WRITERS[form](annotator)
        with ResumableFile(output, {}) as file:
            for block in annotator.blocks(iterate_unlabelled(source), annotator.row):
                file.add(write(block, None), {"sentences": len(block)})

    return work


def lines(model: StructuredModel, source: Path, sizes: Sizes) -> Iterator[Line]:
    """Compare the model alone with the command, and the command with and without confidence."""
    plain, confident = (Annotator([model], AnnotationSettings(confidence=c)) for c in (False, True))
    rows = [plain.row(sentence) for sentence in iterate_unlabelled(source)]
    for name, annotator in (("", plain), (", confidence", confident)):
        for form, output in (("conllu", "out.conllu"), ("conllu", "out.conllu.gz"), ("jsonl", "out.jsonl")):
            work = end_to_end(annotator, source, source.with_name(output), form)
            model_time, total = medians(partial(annotator.annotate, rows), work, seconds=sizes.seconds)
            note = f"{model_time / total:.1%} in the model, {len(rows) / total:,.0f} sentences/s"
            yield Line(
                f"predict to {output}{name}", "the model", model_time, "from file to file", total, note
            )
    works = [
        end_to_end(each, source, source.with_name("out.conllu"), "conllu") for each in (plain, confident)
    ]
    without, with_ = medians(*works, seconds=sizes.seconds)
    yield Line("predict to out.conllu", "plain", without, "with confidence", with_)


def invented(sizes: Sizes, folder: Path, rows: Sequence[dict[str, Any]], count: int) -> Path:
    """Write invented sentences as CoNLL-U."""
    path = folder / "in.conllu"
    sentences = [
        ConlluSentence.from_words(row["words"], sent_id=f"s{index}", columns={"upos": row["upos"]})
        for index, row in enumerate((list(rows) * count)[:count])
    ]
    write_conllu(sentences, path)
    return path


def main(argv: Sequence[str] | None = None) -> int:
    """Run all comparisons, print the table, and write the figures if requested."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to check that everything works")
    parser.add_argument("--threads", type=int, help="threads of PyTorch; defaults to its own choice")
    parser.add_argument("--model", help="folder of a model, instead of a random one")
    parser.add_argument("--json", metavar="FILE", help="also write the figures as JSON")
    options = parser.parse_args(argv)
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    sizes = QUICK if options.quick else FULL
    with torch.random.fork_rng(), tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        random_model, rows = parser_and_rows(sizes, sizes.layers)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        model = (
            torch.nn.Module.to(random_model, device) if options.model is None else ready_model(options.model)
        )
        source = invented(sizes, Path(folder), rows, SENTENCES[sizes])
        results = list(lines(model, source, sizes))
    about = machine()
    Console().print(table(results, about))
    if options.json is not None:
        figures = [{**line._asdict(), "ratio": line.ratio} for line in results]
        write_text(options.json, json.dumps({"machine": about, "lines": figures}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
