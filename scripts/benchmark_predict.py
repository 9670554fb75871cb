"""Where `hf-xst predict` spends its time, in the model or around it, and what confidence costs.

Every line is the ratio of two medians from one run on invented sentences. Run on a GPU if there is one.

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


def whole(annotator: Annotator, given: Path, output: Path, form: str) -> Callable[[], None]:
    """Return what the command does from file to file."""

    def work() -> None:
        write = WRITERS[form](annotator)
        with ResumableFile(output, {}) as file:
            for block in annotator.blocks(iterate_unlabelled(given), annotator.row):
                file.add(write(block, None), {"sentences": len(block)})

    return work


def lines(model: StructuredModel, given: Path, sizes: Sizes) -> Iterator[Line]:
    """Compare the models' share with the whole, and the whole with and without confidence."""
    plain, sure = (Annotator([model], AnnotationSettings(confidence=c)) for c in (False, True))
    rows = [plain.row(sentence) for sentence in iterate_unlabelled(given)]
    for name, annotator in (("", plain), (", confidence", sure)):
        for form, output in (("conllu", "out.conllu"), ("conllu", "out.conllu.gz"), ("jsonl", "out.jsonl")):
            work = whole(annotator, given, given.with_name(output), form)
            part, all_ = medians(partial(annotator.annotate, rows), work, seconds=sizes.seconds)
            note = f"{part / all_:.1%} in the model, {len(rows) / all_:,.0f} sentences/s"
            yield Line(f"predict to {output}{name}", "the model", part, "from file to file", all_, note)
    works = [whole(each, given, given.with_name("out.conllu"), "conllu") for each in (plain, sure)]
    without, with_ = medians(*works, seconds=sizes.seconds)
    yield Line("predict to out.conllu", "plain", without, "with confidence", with_)


def invented(sizes: Sizes, folder: Path, rows: Sequence[dict[str, Any]], count: int) -> Path:
    """Write invented sentences as CoNLL-U."""
    path = folder / "in.conllu"
    made = [
        ConlluSentence.from_words(row["words"], sent_id=f"s{place}", columns={"upos": row["upos"]})
        for place, row in enumerate((list(rows) * count)[:count])
    ]
    write_conllu(made, path)
    return path


def main(argv: Sequence[str] | None = None) -> int:
    """Run all comparisons, print the table, and write the figures where that is wanted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does everything work?")
    parser.add_argument("--threads", type=int, help="threads of PyTorch; its own choice by default")
    parser.add_argument("--model", help="a model's folder in place of an invented one")
    parser.add_argument("--json", metavar="FILE", help="also write the figures as JSON")
    options = parser.parse_args(argv)
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    sizes = QUICK if options.quick else FULL
    with torch.random.fork_rng(), tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        fresh, rows = parser_and_rows(sizes, sizes.layers)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        model = torch.nn.Module.to(fresh, device) if options.model is None else ready_model(options.model)
        given = invented(sizes, Path(folder), rows, SENTENCES[sizes])
        found = list(lines(model, given, sizes))
    about = machine()
    Console().print(table(found, about))
    if options.json is not None:
        figures = [{**line._asdict(), "ratio": line.ratio} for line in found]
        write_text(options.json, json.dumps({"machine": about, "lines": figures}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
