"""Measure whole commands on texts of the invented languages, for `benchmark.py`."""

from __future__ import annotations

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
    """Measure commands on two processes of one thread and on one, by the clock and with their start."""
    count, batch, updates = (20_000, 80, 600) if full else (8, 2, 2)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = small_parsers(folder, full)
        text = invented_text(folder / "text.conllu", count)
        long_text = invented_text(folder / "long.conllu", count, copies=5)
        initial, model = sources[0].split("=")
        charts = folder / "build-charts-1"
        build = ["build-charts", "--sources", *sources, "--text", text, "--init-from", initial]
        predict = ["predict", "--model", model, "--input", long_text]
        train = ["transfer", "--init-from", model, "--charts", charts, "--batch-size", batch]
        commands = {
            f"build-charts, 4 parsers, {count:,} sentences": build,
            f"predict, {5 * count:,} sentences": predict,
            f"transfer, {batch * updates:,} sentences": train,
        }
        for what, words in commands.items():
            seconds = {}
            for number in (1, 2):
                launcher = ["torch.distributed.run", "--standalone", "--nproc_per_node", number, "-m"]
                output = folder / f"{words[0]}-{number}{'.conllu' * (words is predict)}"
                more = ["--max-steps", updates // number] if words is train else []
                line = [sys.executable, "-m", *launcher, "hf_xst", *words, "--output", output, *more]
                cache = {"HF_DATASETS_CACHE": f"{folder}/cache-{words[0]}-{number}", "OMP_NUM_THREADS": "1"}
                start = time.perf_counter()
                subprocess.run([*map(str, line)], check=True, env=os.environ | cache)  # noqa: S603
                seconds[number] = time.perf_counter() - start
            yield {
                "what": what, "way": "2 processes", "seconds": seconds[2], "other": "1 process",
                "other_seconds": seconds[1], "note": "real time",
            }  # fmt: skip
