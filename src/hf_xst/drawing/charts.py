"""Charts as pictures: the allowed arcs of a sentence, or its lattice of allowed tags, gold and best marked.

This is figure 1 of Kurniawan et al. (2021) for any sentence: what is left of all structures once the unlikely
candidates are gone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

from hf_xst.drawing.arcs import Arc, Look
from hf_xst.drawing.markup import GREEN, VERMILION
from hf_xst.drawing.svg import arc_diagram

Candidate = tuple[int, str]
"""A head (0 for the root) and a label."""

ALLOWED = Look("allowed", width=1.1, opacity=0.6)
BEST = Look("best of the chart", width=2.6)
GOLD = Look("★ gold", GREEN, 2.6, weight="bold")
MISSING = Look("★ gold, not allowed", VERMILION, 2.2, "2 3", weight="bold")
STAR = "★ "
_NAMES = 2  # labels written on one arc; the others are counted there and listed for the pointer


def count_text(log_count: float, what: str) -> str:
    """Say how many structures there are.

    Args:
        log_count: the natural logarithm of their number; -inf for none.
        what: what they are, in the plural.
    """
    if log_count == -math.inf:
        return f"no {what}"
    if log_count < math.log(1e6):
        count = round(math.exp(log_count))
        return f"{count:,} {what.removesuffix('s') if count == 1 else what}"
    exponent = math.floor(log_count / math.log(10))
    return f"about {math.exp(log_count - exponent * math.log(10)):.1f} · 10{_superscript(exponent)} {what}"


def _superscript(number: int) -> str:
    return str(number).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def tree_chart_svg(
    words: Sequence[str],
    allowed: Sequence[Collection[Candidate]],
    *,
    gold: Sequence[Candidate] | None = None,
    best: Sequence[Candidate] | None = None,
    log_count: float | None = None,
    upos: Sequence[str] | None = None,
    right_to_left: bool | None = None,
    title: str | None = None,
) -> str:
    """Draw a chart of trees as the set of its arcs; labels of arcs between the same words share one arc.

    Args:
        words: the words.
        allowed: for each word the candidates that the chart allows.
        gold: for each word the right one; marked, and drawn even where the chart lacks it.
        best: for each word that of the chart's best tree.
        log_count: logarithm of the number of trees in the chart.
        upos: for each word its tag, if tags shall be shown.
        right_to_left: the sentence's direction; by default that of most words.
        title: what the picture is called; by default the sentence.

    Returns:
        An `<svg>` element.

    Raises:
        ValueError: the columns differ in length, or a head is no word of the sentence.
    """
    check_chart(words, allowed, gold, best)
    arcs = chart_arcs(allowed, gold, best)
    used = {arc.look.name for arc in arcs}
    captions = [] if log_count is None else [f"The chart holds {count_text(log_count, 'trees')}."]
    return arc_diagram(
        words,
        arcs,
        upos=upos,
        right_to_left=right_to_left,
        legend=[look for look in (ALLOWED, BEST, GOLD, MISSING) if look.name in used],
        captions=captions,
        title=title or f"Chart of allowed arcs: {' '.join(words)}",
        kind="chart",
    )


def check_chart(
    words: Sequence[str],
    allowed: Sequence[Collection[Candidate]],
    gold: Sequence[Candidate] | None,
    best: Sequence[Candidate] | None,
) -> None:
    """Check the columns of a chart of trees; see `tree_chart_svg`."""
    for name, column in (("allowed", allowed), ("gold", gold), ("best", best)):
        if column is not None and len(column) != len(words):
            raise ValueError(
                f"{name} has {len(column)} entries for {len(words)} words; give one for each word."
            )
    for position, candidates in enumerate(allowed, start=1):
        for head, label in [
            *candidates,
            *([gold[position - 1]] if gold else []),
            *([best[position - 1]] if best else []),
        ]:
            if not 0 <= head <= len(words) or head == position:
                raise ValueError(
                    f"Word {position} has a candidate with the head {head} ({label}); "
                    f"expected 0 for the root or another word, 1 to {len(words)}."
                )


def chart_arcs(
    allowed: Sequence[Collection[Candidate]],
    gold: Sequence[Candidate] | None = None,
    best: Sequence[Candidate] | None = None,
) -> list[Arc]:
    """Turn a chart of trees into arcs to draw: one for each pair of words, gold and best by their look."""
    arcs = []
    for position, candidates in enumerate(allowed, start=1):
        right = None if gold is None else gold[position - 1]
        chosen = None if best is None else best[position - 1]
        for head in sorted({head for head, _ in candidates}):
            arcs.append(
                _chart_arc(position, head, [label for one, label in candidates if one == head], right, chosen)
            )
        if right is not None and right not in candidates:
            arcs.append(Arc(right[0], position, STAR + right[1], MISSING, "gold, but not in the chart"))
    return arcs


def _chart_arc(
    position: int, head: int, labels: list[str], gold: Candidate | None, best: Candidate | None
) -> Arc:
    is_gold = gold is not None and gold[0] == head and gold[1] in labels
    is_best = best is not None and best[0] == head and best[1] in labels
    first = [*([gold[1]] if is_gold and gold else []), *([best[1]] if is_best and best else [])]
    ordered = list(dict.fromkeys([*first, *labels]))
    shown = ordered[:_NAMES] if len(ordered) > _NAMES + 1 else ordered
    label = (STAR if is_gold else "") + "/".join(shown)
    if len(shown) < len(ordered):
        label += f" +{len(ordered) - len(shown)}"
    look = GOLD if is_gold else BEST if is_best else ALLOWED
    if is_gold and not is_best and best is not None:
        look = replace(GOLD, width=1.6)
    note = "; ".join(
        part
        for part in (
            "gold" if is_gold else "",
            "best of the chart" if is_best else "",
            f"labels {', '.join(ordered)}" if len(ordered) > 1 else "",
        )
        if part
    )
    return Arc(head, position, label, look, note)
