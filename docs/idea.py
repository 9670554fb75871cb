"""Draw `docs/idea.svg`, an overview of the method: `python docs/idea.py`.

Distributions, pool, chart and number of trees are computed by the package from the scores below.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from hf_xst.charts import log_opinion_pool, pooled_chart, stacked_log_marginals
from hf_xst.drawing.arcs import arc_diagram
from hf_xst.drawing.charts import chart_arcs, count_text
from hf_xst.drawing.markup import BLUE, ORANGE, element, picture, standalone, text
from hf_xst.files import write_text
from hf_xst.structures import DependencyTreeCRF

WORDS = ["Saya", "makan", "nasi", "."]
SHOWN = 2  # the word whose heads are shown
SIGMA = 0.95
# One row per word: scores of the root and of each word as its head. Trees are unlabelled here.
SOURCES = {
    "English": [[1, 0, 4, 0, 0], [4, 0, 0, 1, 0], [0, 0, 4, 0, 0], [0, 0, 4, 1, 0]],
    "German": [[1, 0, 4, 2, 0], [3, 0, 0, 2, 0], [2, 0, 2.5, 0, 0], [0, 0, 4, 2, 0]],
    "Arabic": [[0, 0, 3, 0, 0], [4, 2, 0, 0, 0], [0, 2.5, 2.5, 0, 0], [0, 0, 3, 0, 0]],
}
ROWS = (92, 162, 232)  # base lines of the three sources' bars
MIDDLE = ROWS[1] - 15
WIDTH, HEIGHT = 1090, 320
SMALL = 12.0


def bars(probabilities: Tensor, x: float, y: float, tall: float, kept: Tensor | None = None) -> list[str]:
    """Draw a distribution over heads, with outlines for heads that the chart excludes.

    Args:
        probabilities: (N + 1,) of root and words.
        x: Left end.
        y: Baseline.
        tall: Height of probability 1.
        kept: Bool (N + 1,), the heads in the chart; all if omitted.
    """
    heads = [index for index in range(len(WORDS) + 1) if index != SHOWN + 1]
    parts = []
    for column, head in enumerate(heads):
        left, height = x + 34 * column + 5, max(1.5, tall * float(probabilities[head]))
        inside = kept is None or bool(kept[head])
        colour = BLUE if kept is None else ORANGE
        fill = {"fill": colour} if inside else {"fill": "none", "stroke": colour, "stroke_dasharray": "3 2"}
        parts.append(element("rect", x=left, y=y - height, width=24, height=height, rx=1.5, **fill))
    ends = f"M{x} {y}h{34 * len(heads)}"
    return [*parts, element("path", d=ends, stroke="currentColor", fill="none", stroke_opacity=0.6)]


def bar_names(x: float, y: float) -> list[str]:
    """Draw the names of the heads below bars."""
    names = ["root", *(word for index, word in enumerate(WORDS) if index != SHOWN)]
    return [text(name, x + 34 * index + 17, y, 10.5) for index, name in enumerate(names)]


def arrow(x: float, y: float, end_x: float, end_y: float) -> str:
    """Draw an arrow between two points, with a horizontal head."""
    path = f"M{x} {y}L{end_x} {end_y}M{end_x - 7} {end_y - 5}l7 5l-7 5"
    return element("path", d=path, stroke="currentColor", fill="none", stroke_width=1.4, stroke_opacity=0.7)


def box(words: str, x: float, y: float, width: float, height: float, *more: str) -> list[str]:
    """Draw a box with lines of text; x is its left end, y its centre."""
    lines = [words, *more]
    first = y + 5 - 10 * (len(lines) - 1)
    frame = {"stroke": "currentColor", "fill": "none", "stroke_width": 1.4}
    return [
        element("rect", x=x, y=y - height / 2, width=width, height=height, rx=7, **frame),
        *(text(line, x + width / 2, first + 20 * index, 14) for index, line in enumerate(lines)),
    ]


def draw() -> str:
    """Return the picture as SVG."""
    scores = {name: torch.tensor(rows, dtype=torch.float64).T for name, rows in SOURCES.items()}
    full = {name: torch.zeros(1, 5, 5, 1, dtype=torch.float64) for name in scores}
    for name, of_source in scores.items():
        full[name][0, :, 1:, 0] = of_source
    distributions = [DependencyTreeCRF(each) for each in full.values()]
    log_marginals = stacked_log_marginals(distributions)
    pooled = log_opinion_pool(log_marginals).exp()[0, SHOWN]
    chart = pooled_chart(distributions, SIGMA)
    inside = distributions[0].restricted_to(distributions[0].part_view(chart)).log_count()
    allowed = [[(int(head), "") for head in torch.nonzero(group)[:, 0]] for group in chart[0]]
    counts = f"{count_text(float(inside), '')}of {count_text(float(distributions[0].log_count()), 'trees')}"
    trees = arc_diagram(WORDS, chart_arcs(allowed), captions=[counts], title="the chart", kind="chart")
    return _assembled(log_marginals.exp()[:, 0, SHOWN], pooled, chart[0, SHOWN], trees)


def _assembled(marginals: Tensor, pooled: Tensor, kept: Tensor, trees: str) -> str:
    bold = {"font_weight": "bold"}
    parts = [
        text("source models", 80, 30, 15, **bold),
        text(f"heads of “{WORDS[SHOWN]}”", 270, 30, 15, **bold),
        text("pool", 515, 30, 15, **bold),
        text("chart", 735, 30, 15, **bold),
        text("your model", 975, 30, 15, **bold),
    ]
    for index, name in enumerate(SOURCES):
        parts += box(name, 25, ROWS[index] - 15, 110, 38)
        parts += [arrow(140, ROWS[index] - 15, 192, ROWS[index] - 15)]
        parts += bars(marginals[index], 202, ROWS[index], 44)
        parts += [arrow(346, ROWS[index] - 15, 432, MIDDLE + 12 * (index - 1))]
    parts += [*bar_names(202, ROWS[-1] + 16), *bars(pooled, 447, ROWS[1] + 30, 100, kept)]
    parts += bar_names(447, ROWS[1] + 46)
    parts += [arrow(596, MIDDLE, 630, MIDDLE), arrow(858, MIDDLE, 880, MIDDLE)]
    parts += [trees.replace("<svg ", '<svg x="635" y="58" ', 1)]
    parts += box("trained to maximise", 885, MIDDLE, 180, 80, "the probability", "of the charts")
    captions = {
        80: ("trained by anyone;", "their data stays private"),
        270: ("exact marginal probabilities", "for an unlabelled sentence"),
        515: ("geometric mean; the fewest heads", f"that reach σ = {SIGMA} are kept"),
        735: ("the kept arcs of all words, and", "each source's best tree"),
        975: ("no labels in its language;", "loss: −log p(chart), exact"),
    }
    for x, lines in captions.items():
        parts += [text(line, x, HEIGHT - 40 + 17 * index, SMALL) for index, line in enumerate(lines)]
    return standalone(
        picture(
            WIDTH,
            HEIGHT,
            parts,
            title="From source models to a model of the new language",
            description="Three source models read an unlabelled sentence. Their probabilities for the "
            "head of each word are pooled. The most probable heads make a chart of trees. A model for "
            "the new language is trained to maximise the probability of such charts.",
            kind="idea",
        )
    )


if __name__ == "__main__":
    write_text(Path(__file__).with_suffix(".svg"), draw())
