"""Draw charts given as tensors of candidates, whatever their structure, as a picture and as text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from hf_xst.drawing.charts import STAR, Candidate, chain_chart_svg, count_text, tree_chart_svg
from hf_xst.drawing.markup import is_right_to_left
from hf_xst.drawing.notebook import Drawing
from hf_xst.drawing.tables import (
    Columns,
    chain_candidates,
    chain_column,
    check_drawable,
    distribution_svg,
    tree_candidates,
    tree_column,
)
from hf_xst.drawing.text import isolated
from hf_xst.structures import DependencyTreeCRF
from hf_xst.structures.base import Structure

# Larger charts are drawn as tables, because so many lines would be unreadable.
MOST_ARCS = 50
MOST_PAIRS = 300
Item = TypeVar("Item")


@dataclass(frozen=True)
class ChartView:
    """A chart of one sentence, to be drawn.

    Attributes:
        space: any distribution over the structures of this one sentence (B = 1); its scores do not matter.
        names: names along the label axes.
        kept: bool (G, C), the chart.
        words: the words.
        upos: tags to be shown below the words.
        gold: the gold columns, if known.
        best: the columns of the best structure of the chart.
        pooled: (G, C), probabilities for the table that replaces a drawing of too many lines.
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
            ValueError: if the structure is neither a tree nor a chain.
        """
        check_drawable(self.space)
        is_tree = isinstance(self.space, DependencyTreeCRF)
        svg, lines = self._draw_trees() if is_tree else self._draw_chains()
        return Drawing(svg, "\n".join(lines), is_right_to_left(self.words))

    def _draw_trees(self) -> tuple[str, list[str]]:
        allowed = tree_candidates(self.kept, self.names)[: len(self.words)]
        gold, best = (None if each is None else tree_column(each) for each in (self.gold, self.best))
        log_count = self.log_count()
        count, heads = count_text(log_count, "trees"), ["ROOT", *self.words]

        def spell(candidate: Candidate) -> str:
            return f"{isolated(candidate[1])}({isolated(heads[candidate[0]])})"

        lines = [*_chart_lines(self.words, allowed, gold, best, spell), count]
        if sum(len({head for head, _ in candidates}) for candidates in allowed) > MOST_ARCS:
            return self._table("heads", count), lines
        picture = tree_chart_svg(
            self.words, allowed, gold=gold, best=best, log_count=log_count, upos=self.upos
        )
        return picture, lines

    def _draw_chains(self) -> tuple[str, list[str]]:
        tags, pairs = chain_candidates(self.kept, self.names, len(self.words))
        gold, best = (None if each is None else chain_column(each) for each in (self.gold, self.best))
        log_count = self.log_count()
        count = count_text(log_count, "tag sequences")
        lines = [*_chart_lines(self.words, [sorted(each) for each in tags], gold, best, isolated), count]
        if sum(map(len, pairs)) > MOST_PAIRS:
            return self._table("tags", count), lines
        picture = chain_chart_svg(self.words, pairs, tags=tags, gold=gold, best=best, log_count=log_count)
        return picture, lines

    def _table(self, noun: str, count: str) -> str:
        zeros = torch.zeros_like(self.kept, dtype=torch.float64)
        return distribution_svg(
            self.space,
            self.names,
            zeros if self.pooled is None else self.pooled,
            self.words,
            kept=self.kept,
            gold=self.gold,
            caption=f"Allowed {noun} are framed. The chart holds {count}.",
            title=f"Chart of allowed {noun}: {' '.join(self.words)}",
        )


def _chart_lines(
    words: Sequence[str],
    allowed: Sequence[Collection[Item]],
    gold: Sequence[Item] | None,
    best: Sequence[Item] | None,
    spell: Callable[[Item], str],
) -> list[str]:
    """Write the allowed candidates of each word on a line, gold starred, best in brackets."""
    star, lines = STAR.strip(), []
    for index, (word, candidates) in enumerate(zip(words, allowed, strict=True)):
        right = None if gold is None else gold[index]
        entries = []
        for each in candidates:
            entry = star + spell(each) if each == right else spell(each)
            entries.append(f"[{entry}]" if best is not None and each == best[index] else entry)
        if right is not None and right not in candidates:
            entries.append(f"(not allowed: {star}{spell(right)})")
        lines.append(f"{index + 1} {isolated(word)}: {' '.join(entries)}")
    return lines
