"""From charts as tensors of candidates to charts as people read them, whatever their structure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hf_xst.drawing.charts import STAR, Candidate, count_text, tree_chart_svg
from hf_xst.drawing.lattices import chain_chart_svg
from hf_xst.drawing.notebook import Drawing
from hf_xst.drawing.opinions import (
    Columns,
    chain_candidates,
    chain_column,
    opinion_svg,
    tree_candidates,
    tree_column,
)
from hf_xst.drawing.script import is_right_to_left
from hf_xst.drawing.text import isolated
from hf_xst.structures import DependencyTreeCRF, LinearChainCRF
from hf_xst.structures.base import Structure

# A drawing of more lines is a thicket: a table says more.
MOST_ARCS = 50
MOST_PAIRS = 300


@dataclass(frozen=True)
class ChartView:
    """A chart of one sentence, to be drawn.

    Attributes:
        space: any distribution over the structures of this one sentence (B = 1); its scores do not matter.
        names: names along the label axes.
        kept: bool (G, C), the chart.
        words: the words.
        upos: tags to be shown below the words.
        gold: the right columns, if they are known.
        best: the columns of the chart's best structure.
        pooled: (G, C), probabilities for the table that stands in for a drawing of too many arcs.
    """

    space: Structure
    names: Sequence[str]
    kept: Tensor
    words: Sequence[str]
    upos: Sequence[str] | None = None
    gold: Columns | None = None
    best: Columns | None = None
    pooled: Tensor | None = None

    def log_count(self) -> float:
        """Return the logarithm of the number of structures in the chart; -inf for none."""
        kept = self.space.part_view(self.kept.unsqueeze(0)) & self.space.valid_parts
        even = self.space.with_scores(torch.zeros_like(self.space.scores, dtype=torch.float64))
        return float(even.restricted_to(kept).log_count()[0])

    def drawing(self) -> Drawing:
        """Draw the chart.

        Raises:
            ValueError: nobody knows how to draw this structure.
        """
        if isinstance(self.space, DependencyTreeCRF):
            return self._tree_drawing()
        if isinstance(self.space, LinearChainCRF):
            return self._chain_drawing()
        raise ValueError(f"cannot draw a {type(self.space).__name__}; expected trees or chains")

    def _tree_drawing(self) -> Drawing:
        allowed = tree_candidates(self.kept, self.names)[: len(self.words)]
        gold, best = (None if each is None else tree_column(each) for each in (self.gold, self.best))
        log_count = self.log_count()
        count = count_text(log_count, "trees")
        if len({(head, place) for place, each in enumerate(allowed) for head, _ in each}) > MOST_ARCS:
            svg = self._table("heads", count)
        else:
            svg = tree_chart_svg(
                self.words, allowed, gold=gold, best=best, log_count=log_count, upos=self.upos
            )
        text = tree_chart_text(self.words, allowed, gold, best)
        return Drawing(svg, f"{text}\n{count}", is_right_to_left(self.words))

    def _chain_drawing(self) -> Drawing:
        tags, pairs = chain_candidates(self.kept, self.names, len(self.words))
        gold, best = (None if each is None else chain_column(each) for each in (self.gold, self.best))
        log_count = self.log_count()
        count = count_text(log_count, "tag sequences")
        if sum(map(len, pairs)) > MOST_PAIRS:
            svg = self._table("tags", count)
        else:
            svg = chain_chart_svg(self.words, pairs, tags=tags, gold=gold, best=best, log_count=log_count)
        text = chain_chart_text(self.words, tags, gold, best)
        return Drawing(svg, f"{text}\n{count}", is_right_to_left(self.words))

    def _table(self, what: str, count: str) -> str:
        shares = torch.zeros_like(self.kept, dtype=torch.float64) if self.pooled is None else self.pooled
        return opinion_svg(
            self.space,
            self.names,
            shares,
            self.words,
            kept=self.kept,
            gold=self.gold,
            caption=f"Allowed {what} are framed. The chart holds {count}.",
            title=f"Chart of allowed {what}: {' '.join(self.words)}",
        )


def tree_chart_text(
    words: Sequence[str],
    allowed: Sequence[Sequence[Candidate]],
    gold: Sequence[Candidate] | None = None,
    best: Sequence[Candidate] | None = None,
) -> str:
    """Write a chart of trees, a line a word: allowed labels and heads, gold starred, best in brackets."""
    names = ["ROOT", *words]
    rows = []
    for place, candidates in enumerate(allowed):
        right = None if gold is None else gold[place]
        chosen = None if best is None else best[place]
        shown = [
            _marked(f"{label}({isolated(names[head])})", (head, label) == right, (head, label) == chosen)
            for head, label in candidates
        ]
        rows.append(
            _row(
                place,
                words[place],
                shown,
                None if right is None or right in candidates else f"{right[1]}({isolated(names[right[0]])})",
            )
        )
    return "\n".join(rows)


def chain_chart_text(
    words: Sequence[str],
    tags: Sequence[set[str]],
    gold: Sequence[str] | None = None,
    best: Sequence[str] | None = None,
) -> str:
    """Write a chart of tag sequences, a line a word: allowed tags, gold starred, best in brackets."""
    rows = []
    for place, allowed in enumerate(tags):
        right = None if gold is None else gold[place]
        shown = [
            _marked(tag, tag == right, best is not None and tag == best[place]) for tag in sorted(allowed)
        ]
        rows.append(_row(place, words[place], shown, None if right in allowed else right))
    return "\n".join(rows)


def _marked(text: str, is_gold: bool, is_best: bool) -> str:
    marked = f"{STAR.strip()}{text}" if is_gold else text
    return f"[{marked}]" if is_best else marked


def _row(place: int, word: str, shown: Sequence[str], missing: str | None) -> str:
    lost = [] if missing is None else [f"(not allowed: {STAR.strip()}{missing})"]
    return f"{place + 1} {isolated(word)}: {' '.join([*shown, *lost])}"
