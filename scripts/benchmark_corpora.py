"""Measure whole commands on texts of the invented languages, for `benchmark.py`."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq

from hf_xst import build_charts
from hf_xst.data import ConlluSentence, write_conllu
from hf_xst.demo.languages import generate_language
from hf_xst.demo.settings import target_language
from hf_xst.demo.small_models import small_sources

TIME_LIMIT = 900.0
"""Seconds that the largest corpus may take, judged by the one before."""
Line = dict[str, Any]


def small_parsers(folder: Path, full: bool) -> list[str]:
    """Save four small parsers of the invented languages; return them as `--sources` takes them."""
    quick = {} if full else {"sentences": 8, "epochs": 1}
    models = small_sources(folder / "cache" if quick else None, **quick)["parser"]
    for name, model in models.items():
        model.save_pretrained(folder / name)
    return [f"{name}={folder / name}" for name in models]


def invented_text(path: Path, sentences: int, copies: int = 1) -> Path:
    """Write sentences of the invented target language, the whole several times."""
    rows = generate_language(target_language(), sentences=sentences, seed=7).sentences
    write_conllu(
        (
            ConlluSentence.from_words(
                r["words"], sent_id=f"{copy}-{r['sent_id']}", columns={"upos": r["upos"]}
            )
            for copy in range(copies)
            for r in rows
        ),
        path,
    )
    return path


def corpus(full: bool) -> Iterator[Line]:
    """Measure `build-charts` with four small parsers of the invented languages: `bytes` are of charts."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources, seconds, before = small_parsers(folder, full), 0.0, 1
        for size in (1000, 3000, 10_000, 30_000, 100_000) if full else (10, 20):
            if seconds * size / before > TIME_LIMIT:
                break
            text, charts = invented_text(folder / f"{size}.conllu", size), folder / f"charts-{size}"
            start = time.process_time()
            build_charts(sources=sources, text=str(text), output=str(charts))
            seconds, before = time.process_time() - start, size
            stored = sum(file.stat().st_size for file in charts.rglob("*.parquet"))
            yield {"curve": "build-charts, 4 parsers", "size": size, "seconds": seconds, "bytes": stored}


def memory(full: bool) -> Iterator[Line]:
    """Measure memory and CPU time of `build-charts`, as `corpus`, after each tenth of a million sentences."""
    size, copies = (200_000, 5) if full else (400, 5)
    with tempfile.TemporaryDirectory() as name:
        folder, found, made = Path(name), list[Line](), threading.Event()
        sources, charts = small_parsers(folder, full), folder / "charts"
        text = invented_text(folder / "text.conllu", size, copies)
        options = {"sources": sources, "text": str(text), "output": str(charts)}

        def rows() -> int:
            return sum(pq.ParquetFile(file).metadata.num_rows for file in charts.glob("data/*.parquet"))

        def watch() -> None:
            for tenth in range(1, 11):
                while rows() < size * copies * tenth // 10 and not made.wait(5 if full else 0.1):
                    pass
                line = {"seconds": time.process_time(), "memory": psutil.Process().memory_info().rss}
                found.append({"curve": "build-charts, 4 parsers", "size": rows(), **line})

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            build_charts(**options)
        finally:
            made.set()
            watcher.join()
        yield from found


def processes(full: bool) -> Iterator[Line]:
    """Measure commands on one and two processes of one thread, by turns, by the clock and with their start.

    What the machine allows: two unrelated processes at the same time, with half of the input each.
    """
    count, batch, most, turns = (50_000, 80, 1200, 2) if full else (16, 2, 4, 1)
    sizes = {"few": 8, "half": count // 2, "all": count}
    updates = {"few": 2, "half": most // 2, "all": most}
    with tempfile.TemporaryDirectory() as name:
        folder, outputs = Path(name), dict[str, Path]()
        sources, numbers = small_parsers(folder, full), itertools.count()
        texts = {part: invented_text(folder / f"{part}.conllu", size) for part, size in sizes.items()}
        initial, model = sources[0].split("=")

        def start(command: str, part: str, number: int) -> subprocess.Popen[bytes]:
            options = {
                "build-charts": ["--sources", *sources, "--init-from", initial, "--text", texts[part]],
                "predict": ["--model", model, "--input", *[texts[part]] * 5],
                "transfer": [
                    *("--init-from", model, "--charts", outputs.get("build-charts"), "--batch-size", batch),
                    *("--max-steps", updates[part] // number),
                ],
            }[command]
            output = folder / f"{command}-{next(numbers)}{'.conllu' * (command == 'predict')}"
            outputs[command] = output
            launcher = ["torch.distributed.run", "--standalone", "--nproc_per_node", number, "-m", "hf_xst"]
            line = [sys.executable, "-m", *launcher, command, *options, "--output", output]
            cache = {"HF_DATASETS_CACHE": f"{output}-cache", "OMP_NUM_THREADS": "1"}
            return subprocess.Popen([*map(str, line)], env=os.environ | cache)  # noqa: S603

        def seconds(command: str, part: str, number: int = 1, runs: int = 1) -> float:
            begin = time.perf_counter()
            if any([run.wait() for run in [start(command, part, number) for _ in range(runs)]]):
                raise RuntimeError(f"{command} failed")
            return time.perf_counter() - begin

        sentences = {"build-charts": count, "predict": 5 * count, "transfer": batch * most}
        for command, size in sentences.items():
            begin, begin_two = (seconds(command, "few", number) if full else 0.0 for number in (1, 2))
            runs = [
                (
                    seconds(command, "half", runs=2),
                    *(seconds(command, "all", number) for number in (1, 2)),
                )
                for _ in range(turns)
            ]
            apart, one, two = map(min, zip(*runs, strict=True))
            yield {
                "what": f"{command}, {size:,} sentences", "way": "2 processes", "seconds": two,
                "other": "1 process", "other_seconds": one,
                "note": f"without the start {(one - begin) / (two - begin_two):.2f}; apart {one / apart:.2f}",
            }  # fmt: skip
