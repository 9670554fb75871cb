"""Draw distributions as tables of shaded cells: a row per word, a column per possible head or tag."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

from torch import Tensor

from hf_xst.drawing import markup as svg
from hf_xst.drawing.charts import STAR, Candidate
from hf_xst.models.configuration import BOUNDARIES
from hf_xst.structures import DependencyTreeCRF, LinearChainCRF
from hf_xst.structures.base import Structure

CELL, HEIGHT, SIZE = 34.0, 20.0, 12.0  # width and height of a cell, font size
MINIMUM = 0.005  # cells below stay empty: their number would read .00
_NAMED_LABELS = 3

Columns = Mapping[str, Sequence[Any]]
"""Predicted or gold columns of a sentence: `head` and `deprel`, or one column of tags."""
Cells = Collection[tuple[int, int]]
"""Cells of a table as (row, column), from 0."""


def distribution_svg(
    space: Structure,
    names: Sequence[str],
    probabilities: Tensor,
    words: Sequence[str],
    *,
    kept: Tensor | None = None,
    gold: Columns | None = None,
    caption: str | None = None,
    title: str,
) -> str:
    """Draw the probabilities of the candidates of each word, summed to heads or tags.

    The probabilities are (G, C). A chart, bool (G, C), is framed, and gold is starred. `space` is any
    distribution over the structures of this one sentence, `names` are those along its label axes.

    Raises:
        ValueError: if the structure is neither a tree nor a chain.
    """
    check_drawable(space)
    notes = {}
    if isinstance(space, DependencyTreeCRF):
        by_label = probabilities[: len(words)].reshape(len(words), -1, len(names))  # (N, N + 1, L)
        columns, values = ["ROOT", *words], by_label.sum(2)
        for word, head in (values >= MINIMUM).nonzero().tolist():
            labels = _best_labels(by_label[word, head], names)
            notes[word, head] = (
                f"{columns[head]} is the head of {words[word]}: {values[word, head]:.3f} ({labels})"
            )
        framed = [] if kept is None else kept[: len(words)].reshape(by_label.shape).any(2).nonzero().tolist()
        allowed = {(word, head) for word, head in framed}
        right = [] if gold is None else [head for head, _ in tree_column(gold)]
    else:
        # Group i ends in the tag of word i, so summing over the tag before it leaves the word's tag: (N, T).
        values = probabilities[: len(words)].reshape(len(words), len(names), len(names)).sum(1)
        columns = list(names[: -len(BOUNDARIES)])
        values = values[:, : len(columns)]
        column_of = {name: column for column, name in enumerate(columns)}
        tags = [] if kept is None else chain_candidates(kept, names, len(words))[0]
        allowed = {(word, column_of[tag]) for word, each in enumerate(tags) for tag in each & set(columns)}
        right = [] if gold is None else [column_of.get(tag, -1) for tag in chain_column(gold)]
    return heat_svg(
        words,
        columns,
        values.tolist(),
        allowed=allowed,
        gold=set(enumerate(right)),
        notes=notes,
        caption=caption,
        title=title,
    )


def _best_labels(probabilities: Tensor, names: Sequence[str]) -> str:
    best = probabilities.topk(min(_NAMED_LABELS, len(names)))
    pairs = zip(best.values.tolist(), best.indices.tolist(), strict=True)
    return ", ".join(f"{names[label]} {value:.2f}" for value, label in pairs if value >= MINIMUM)


def check_drawable(space: Structure) -> None:
    """Raise ValueError unless the structure is a tree or a chain."""
    if not isinstance(space, DependencyTreeCRF | LinearChainCRF):
        raise ValueError(f"cannot draw a {type(space).__name__}; expected trees or chains")


# -- candidates by name ----------------------------------------------------------------------------------


def tree_candidates(kept: Tensor, names: Sequence[str]) -> list[list[Candidate]]:
    """Name the candidates of each word in a chart: (G, C) with head * L + label in C."""
    candidates: list[list[Candidate]] = [[] for _ in range(len(kept))]
    for group, candidate in kept.nonzero().tolist():
        head, label = divmod(candidate, len(names))
        candidates[group].append((head, names[label]))
    return candidates


def tree_column(columns: Columns) -> list[Candidate]:
    """Return the head and label of each word."""
    return [(int(head), label) for head, label in zip(columns["head"], columns["deprel"], strict=True)]


def chain_candidates(
    kept: Tensor, names: Sequence[str], words: int
) -> tuple[list[set[str]], list[set[tuple[str, str]]]]:
    """Name the tags of each word, and the pairs between neighbours, in a chart.

    The chart, bool (G, C), has previous tag * T + next tag in C, and a boundary before and after the words.
    """
    between: list[set[tuple[str, str]]] = [set() for _ in range(words + 1)]
    for group, candidate in kept[: words + 1].nonzero().tolist():
        before, after = divmod(candidate, len(names))
        between[group].add((names[before], names[after]))
    tags = [{tag for _, tag in left} & {tag for tag, _ in right} for left, right in pairwise(between)]
    pairs = [
        {(one, two) for one, two in each if one in before and two in after}
        for each, (before, after) in zip(between[1:-1], pairwise(tags), strict=True)
    ]
    return tags, pairs


def chain_column(columns: Columns) -> list[str]:
    """Return the tag of each word from the only column."""
    (tags,) = columns.values()
    return list(tags)


# -- any table -------------------------------------------------------------------------------------------


def heat_svg(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float]],
    *,
    allowed: Cells = (),
    gold: Cells = (),
    notes: Mapping[tuple[int, int], str] | None = None,
    caption: str | None = None,
    title: str,
) -> str:
    """Draw a table of probabilities: the darker the cell, the more probable.

    Rows whose names run from right to left have their first column at the right.

    `values` has one list per row. Allowed cells are framed and gold ones starred; `notes` are tooltips, which
    default to names and value.

    Raises:
        ValueError: if the shape of the values does not match rows and columns.
    """
    if len(values) != len(rows) or any(len(row) != len(columns) for row in values):
        raise ValueError(f"the values are not of {len(rows)} rows with {len(columns)} columns each.")
    mirrored = svg.is_right_to_left(rows)
    side = max((svg.text_width(name, SIZE) for name in rows), default=0) + svg.GAP
    # Column names slant at 45 degrees, so the last ones reach beyond the table.
    slanted = [svg.text_width(name, SIZE) * 0.72 for name in columns]
    beyond = [reach - CELL * (len(columns) - index - 0.5) for index, reach in enumerate(slanted)]
    width = side + CELL * len(columns) + 4 + max([0.0, *beyond])
    if caption is not None:
        width = max(width, svg.text_width(caption, SIZE) + svg.GAP)
    top = max(slanted, default=0) + 14
    bottom = top + HEIGHT * len(rows)
    xs = [side + CELL * (index + 0.5) for index in range(len(columns))]
    names_x, slant, anchor = side / 2, -45, "start"
    if mirrored:
        xs, names_x, slant, anchor = [width - x for x in xs], width - names_x, 45, "end"
    parts = [
        svg.text(name, names_x, top + HEIGHT * (row + 0.7), SIZE, class_="row")
        for row, name in enumerate(rows)
    ]
    for x, name in zip(xs, columns, strict=True):
        turn = f"translate({x:.1f} {top - 6:.1f}) rotate({slant})"
        parts.append(svg.text(name, 0, 0, SIZE, class_="column", text_anchor=anchor, transform=turn))
    for row, line in enumerate(values):
        for column, value in enumerate(line):
            is_allowed, is_gold = (row, column) in allowed, (row, column) in gold
            if value >= MINIMUM or is_allowed or is_gold:
                note = (notes or {}).get((row, column)) or f"{rows[row]}, {columns[column]}: {value:.3f}"
                parts.append(_draw_cell(xs[column], top + HEIGHT * row, value, note, is_allowed, is_gold))
    if caption is not None:
        parts.append(svg.text(caption, width / 2, bottom + SIZE + 2, SIZE, class_="caption"))
    height = bottom + (4 if caption is None else 2 * SIZE)
    description = _most_probable(rows, columns, values)
    return svg.picture(width, height, parts, title=title, description=description, kind="heat")


def _most_probable(rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float]]) -> str:
    """Describe the table: the most probable column of each row."""
    if not columns:
        return ""
    best = [max(range(len(columns)), key=line.__getitem__) for line in values]
    entries = [
        f"{name}: {columns[b]} {line[b]:.2f}" for name, line, b in zip(rows, values, best, strict=True)
    ]
    return "likeliest: " + "; ".join(entries)


def _draw_cell(x: float, y: float, value: float, note: str, is_allowed: bool, is_gold: bool) -> str:
    box = {"x": x - CELL / 2 + 1, "y": y + 1, "width": CELL - 2, "height": HEIGHT - 2}
    colour = svg.GREEN if is_gold else "currentColor"
    number = ("1" if value >= 0.995 else f"{value:.2f}".removeprefix("0")) if value >= MINIMUM else ""
    label = (STAR.strip() if is_gold else "") + number
    parts = [svg.element("rect", fill=svg.BLUE, fill_opacity=f"{min(1.0, value) * 0.75:.3f}", **box)]
    if is_allowed:
        parts.append(svg.element("rect", fill="none", stroke=colour, stroke_width=1.6, class_="frame", **box))
    if label:
        parts.append(svg.text(label, x, y + HEIGHT * 0.7, 10.5))
    return svg.element("g", svg.tooltip(note), *parts, class_="cell")
