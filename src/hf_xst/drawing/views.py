"""Draw trees, and charts given as tensors of candidates, as pictures for pages and as text for a shell."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeVar

import torch
from torch import Tensor

from hf_xst.drawing.arcs import dependency_svg
from hf_xst.drawing.charts import STAR, Candidate, chain_chart_svg, count_text, tree_chart_svg
from hf_xst.drawing.markup import FONTS, element, is_right_to_left, standalone
from hf_xst.drawing.tables import (
    Columns,
    chain_candidates,
    chain_column,
    check_drawable,
    distribution_svg,
    tree_candidates,
    tree_column,
)
from hf_xst.drawing.text import isolated, tree_text
from hf_xst.files import write_text
from hf_xst.structures import DependencyTreeCRF
from hf_xst.structures.base import Structure

# Larger charts are drawn as tables, because so many lines would be unreadable.
MOST_ARCS = 50
MOST_PAIRS = 300
Item = TypeVar("Item")


@dataclass(frozen=True)
class Drawing:
    """A picture of a sentence, and the same for a terminal.

    A picture wider than the page shows its right end first if `right_to_left`.
    """

    svg: str
    text: str
    right_to_left: bool = False

    @classmethod
    def tree(
        cls,
        words: Sequence[str],
        heads: Sequence[int],
        labels: Sequence[str],
        *,
        upos: Sequence[str] | None = None,
        confidence: Sequence[float] | None = None,
        title: str | None = None,
    ) -> Drawing:
        """Draw a dependency tree; see `dependency_svg` and `tree_text`.

        Raises:
            ValueError: if the columns differ in length or the heads do not form a tree.
        """
        text = tree_text(words, heads, labels, upos)
        svg = dependency_svg(words, heads, labels, upos=upos, confidence=confidence, title=title)
        return cls(svg, text, is_right_to_left(words))

    def _repr_html_(self) -> str:
        return scrolling(self.svg, self.right_to_left)

    def __str__(self) -> str:
        return self.text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture as an SVG file with its own colours, for light and dark pages."""
        write_text(path, standalone(self.svg))


def scrolling(svg: str, right_to_left: bool = False) -> str:
    """Wrap a picture in a box that scrolls sideways on narrow pages."""
    return element("div", svg, style="overflow-x:auto;max-width:100%", dir="rtl" if right_to_left else "ltr")


def html_page(drawings: Iterable[tuple[str, Drawing]], title: str) -> str:
    """Write an HTML page with a heading and a picture for each drawing."""
    sections = "".join(
        f"<section><h2>{escape(name)}</h2>{drawing._repr_html_()}</section>\n" for name, drawing in drawings
    )
    style = (
        f":root{{color-scheme:light dark;font-family:{FONTS}}}body{{margin:1.5rem}}"
        "h1{font-size:1.2rem}h2{font-size:.9rem;font-weight:normal;opacity:.75}"
    )
    return (
        "<!doctype html>\n<!-- written by hf-xst show -->\n<html>\n"
        f'<head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{style}</style></head>\n<body>\n<h1>{escape(title)}</h1>\n{sections}</body>\n</html>\n"
    )


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
        """Draw the chart; raise ValueError if the structure is neither a tree nor a chain."""
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
