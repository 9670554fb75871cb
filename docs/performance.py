"""Make `docs/performance.md`, its plots and a section of `docs/scaling.md`: `python docs/performance.py`.

All numbers are computed from `docs/performance/figures.json`, which `scripts/benchmark.py` measures.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from textwrap import fill as fill_lines
from typing import Any

import numpy as np

from hf_xst.files import write_text

DOCS = Path(__file__).parent
FOLDER = DOCS / "performance"
LANGUAGES, SENTENCES = 100, 10_000_000
HEADING = "## 100 languages, 20 sources, 10 million sentences"
PARTS = {
    "peers": (
        "Other packages",
        "Every way was checked to give the same numbers: 80 sentences of 25 words, 20 tags or labels of "
        "phrases (constituency trees), trees without labels. hf_xst sums in float64 and without subtraction, "
        "exactly at every scale; determinants, which others use for trees, are faster but overflow.",
    ),
    "length": (
        "Sentence length",
        "Four sentences; trees without labels, chains of 17 tags, phrases with 4 labels. "
        "Columns are words a sentence.",
    ),
    "labels": ("Labels", "16 sentences of 20 words. Columns are labels."),
    "sources": (
        "Sources",
        "Marginals of all sources, pool and chart of 16 sentences of 20 words; trees with 40 "
        "labels, chains of 17 tags. Columns are sources.",
    ),
    "corpus": (
        "Corpus",
        "`hf-xst build-charts` with four small parsers of the invented languages, from text to "
        "charts on disk. Columns are sentences; the first run includes imports and compilation.",
    ),
    "memory": (
        "A long run",
        "`hf-xst build-charts` as in the corpus above, in one run over a million sentences. CPU seconds "
        "count from the start, and include making and reading the text before the first chart.",
    ),
    "processes": (
        "Several processes",
        "Whole commands by the clock, on two processes of one thread and on one, with small parsers of the "
        "invented languages: the least of two runs, by turns. The start, most of it imports, is the time of "
        "the same command on few sentences (8, predict 40) or two updates in all. Apart: two unrelated "
        "processes at the same time, with half of the input each, which is what the machine allows.",
    ),
    "steps": (
        "Training and prediction",
        "A parser with encoder A, 512 arc and 128 label features, 40 labels; sentences of 25 words. The last "
        "rows compare bfloat16, as with `--bf16`, with float32; encoder B has the base size.",
    ),
    "threads": (
        "Threads",
        "Real time on one and two threads, alone and beside a process that is always busy.",
    ),
}
Part = dict[str, Any]
fill = partial(fill_lines, width=118, break_long_words=False, break_on_hyphens=False)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, ["---"] * len(header), *rows])


def number(value: float) -> str:
    """Format a positive number with three digits."""
    digits = f"{value:.3g}"
    return f"{float(digits):,.0f}" if "e+" in digits or value >= 100 else digits


def curves(part: Part) -> dict[str, dict[int, float]]:
    """Return the seconds by curve and size."""
    found: dict[str, dict[int, float]] = {}
    for line in part["lines"]:
        found.setdefault(line["curve"], {})[line["size"]] = line["seconds"]
    return found


def exponent(curve: dict[int, float]) -> float:
    """Return the power with which seconds grow over the larger sizes, by least squares in logs."""
    half = len(curve) // 2
    sizes, seconds = np.log(list(curve)[half:]), np.log(list(curve.values())[half:])
    return float(np.polyfit(sizes, seconds, 1)[0])


def section(name: str, part: Part) -> str:
    """Return a section of the page: settings, machine, table and plot."""
    title, about = PARTS[name]
    machine = part["machine"]
    versions = ", ".join(f"{package} {each}" for package, each in machine["versions"].items())
    place = (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['threads']} thread(s), load average "
        f"{machine['load']}; {versions}"
    )
    if "curve" in part["lines"][0]:
        by_curve = curves(part)
        header = ["CPU seconds", *(f"{size:,}" for size in next(iter(by_curve.values()))), "exponent"]
        rows = [
            [curve, *map(number, points.values()), f"{exponent(points):.2f}"]
            for curve, points in by_curve.items()
        ]
        if "bytes" in part["lines"][0]:
            rows.append(
                ["bytes of charts a sentence", *(number(x["bytes"] / x["size"]) for x in part["lines"]), ""]
            )
        if "memory" in part["lines"][0]:
            rows.append(["memory, MB", *(number(line["memory"] / 1e6) for line in part["lines"]), ""])
    else:
        header = ["", "one way, ms", "other way, ms", "ratio", ""]
        rows = [
            [
                line["what"],
                f"{line['way']}: {number(1000 * line['seconds'])}",
                f"{line['other']}: {number(1000 * line['other_seconds'])}",
                f"{line['other_seconds'] / line['seconds']:.2f}",
                line["note"],
            ]
            for line in part["lines"]
        ]
    picture = f"![{title}](performance/{name}.svg)"
    return "\n\n".join([f"## {title}", fill(about), table(header, rows), f"*{place}*", picture])


def page(figures: dict[str, Part]) -> str:
    """Return `docs/performance.md`."""
    intro = (
        "Measured by `scripts/benchmark.py`; `docs/performance.py` computes this page from "
        "[figures.json](performance/figures.json). Times are CPU time, the least of several runs, in float32 "
        "on invented inputs; real time where noted. A ratio above 1 means that the other way takes longer. "
        "Exponents are fitted by least squares in logarithms over the larger half of the sizes; 1 is linear."
    )
    sections = [section(name, figures[name]) for name in PARTS]
    return "\n\n".join(["# Performance", fill(intro), *sections]) + "\n"


def costs(figures: dict[str, Part]) -> dict[str, tuple[float, float]]:
    """Return CPU seconds a sentence of each step, and how often it runs for each sentence of a language."""
    unit = {line["unit"]: line for line in figures["units"]["lines"]}
    sources = unit["pool and chart"]["sources"]
    training = next(line for line in figures["steps"]["lines"] if "encoder A" in line["what"])
    sentences = int(re.findall(r"(\d+) sentences", training["what"])[0])
    seconds = {name: line["seconds"] for name, line in unit.items()}
    return {
        "encoder B (size of XLM-R base) of each source": (seconds["encoder B, base size"], sources),
        "or: one shared, frozen encoder B": (seconds["encoder B, base size"], 1),
        "or: encoder A of each source": (seconds["encoder A, scores"], sources),
        "marginals and best tree of each source": (seconds["marginals and best tree"], sources),
        "pool and chart": (seconds["pool and chart"], 1),
        "one epoch of training on the charts, encoder A": (training["other_seconds"] / sentences, 1),
    }


def scaling(figures: dict[str, Part]) -> str:
    """Return the section of `docs/scaling.md`."""
    steps, total = costs(figures), LANGUAGES * SENTENCES
    hours = {name: seconds * times * total / 3600 for name, (seconds, times) in steps.items()}
    rows = [
        [name, number(1000 * seconds), str(times), f"{number(hours[name])}", number(hours[name] / 24_000)]
        for name, (seconds, times) in steps.items()
    ]
    largest = figures["corpus"]["lines"][-1]
    stored = largest["bytes"] / largest["size"]
    words = figures["units"]["lines"][0]["words"]
    slowest = max(hours, key=lambda name: hours[name])
    structures = max((name for name in hours if "encoder" not in name), key=lambda name: hours[name])
    setting = (
        "Computed by `docs/performance.py` from [unit costs](performance/figures.json): sentences of "
        f"{words} words, trees with 40 labels, one core. GPUs were not measured."
    )
    facts = (
        f"The **bottleneck** is the encoder if each source has its own: {number(hours[slowest])} core-hours, "
        f"{number(hours[slowest] / hours[structures])} times the most expensive step without one "
        f"({structures}). Sources that share a frozen encoder, or frozen layers, run these once. "
        f"**Storage**: charts took {number(stored)} bytes a sentence in the [corpus](performance.md#corpus) "
        f"of short sentences and four sources, {number(stored * total / 1e12)} TB in all; embeddings of 768 "
        f"numbers a word in half precision would take {number(words * 768 * 2 * total / 1e12)} TB: embed "
        "shard by shard. Sentences are independent: languages, shards and processes divide the hours."
    )
    steps_table = table(["step", "ms", "times a sentence", "core-hours", "days on 1,000 cores"], rows)
    return "\n\n".join([HEADING, fill(setting), steps_table, fill(facts)]) + "\n"


def with_section(text: str, section: str) -> str:
    """Replace a section of a page, up to the next heading, or append it."""
    before, found, after = text.partition(HEADING)
    rest = re.search(r"^## ", after, flags=re.MULTILINE) if found else None
    return before.rstrip() + "\n\n" + section + (f"\n{after[rest.start() :]}" if rest else "")


def draw(name: str, part: Part) -> None:
    """Plot curves, or ratios, as FOLDER/NAME.svg."""
    from matplotlib import pyplot

    with pyplot.rc_context({"svg.fonttype": "none", "svg.hashsalt": "hf_xst", "font.size": 8}):
        figure, axes = pyplot.subplots(figsize=(6, 3), layout="constrained")
        if "curve" in part["lines"][0]:
            for curve, points in curves(part).items():
                axes.plot(list(points), list(points.values()), marker=".", label=curve)
            axes.set(xscale="log", yscale="log", xlabel=PARTS[name][0].lower(), ylabel="CPU seconds")
            axes.legend(fontsize=7)
        else:
            names = [f"{line['what']}: {line['other']}" for line in part["lines"]][::-1]
            ratios = [line["other_seconds"] / line["seconds"] for line in part["lines"]][::-1]
            axes.plot(ratios, names, "o")
            axes.axvline(1, color="black", linewidth=0.8)
            axes.set(xlabel="ratio", **({"xscale": "log"} if max(ratios) > 2 else {"xlim": (0, 2)}))
        figure.savefig(FOLDER / f"{name}.svg", metadata={"Date": None})
        pyplot.close(figure)


def read() -> dict[str, Part]:
    """Return the committed figures."""
    figures: dict[str, Part] = json.loads((FOLDER / "figures.json").read_text(encoding="utf-8"))
    return figures


def main() -> None:
    """Write the page, its plots and the section."""
    figures = read()
    write_text(DOCS / "performance.md", page(figures))
    page_of_scaling = DOCS / "scaling.md"
    text = page_of_scaling.read_text(encoding="utf-8")
    write_text(page_of_scaling, with_section(text, scaling(figures)))
    for name in PARTS:
        draw(name, figures[name])


if __name__ == "__main__":
    main()
