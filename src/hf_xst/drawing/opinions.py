"""What a distribution says about each word, as a table, whatever its structure; candidates read by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from hf_xst.drawing.charts import Candidate
from hf_xst.drawing.tables import LEAST, heat_svg
from hf_xst.models.configuration import BOUNDARIES
from hf_xst.structures import DependencyTreeCRF, LinearChainCRF
from hf_xst.structures.base import Structure

Columns = Mapping[str, Sequence[Any]]
"""Predicted or gold columns of a sentence as models give them: `head` and `deprel`, or one column of tags."""


def opinion_svg(
    space: Structure,
    names: Sequence[str],
    shares: Tensor,
    words: Sequence[str],
    *,
    kept: Tensor | None = None,
    gold: Columns | None = None,
    caption: str | None = None,
    title: str,
) -> str:
    """Draw what a distribution over each group's candidates says: heads or tags of each word.

    Args:
        space: any distribution over the structures of this one sentence.
        names: names along the label axes.
        shares: (G, C), probabilities.
        words: the words.
        kept: bool (G, C), a chart, to be framed.
        gold: the right columns, to be starred.
        caption: a line below.
        title: what the table shows.

    Raises:
        ValueError: nobody knows how to draw this structure.
    """
    draw = {DependencyTreeCRF: _tree_table, LinearChainCRF: _chain_table}.get(type(space))
    if draw is None:
        raise ValueError(f"cannot draw a {type(space).__name__}; expected trees or chains")
    return draw(names, shares, words, kept, gold, caption, title)


def _tree_table(
    names: Sequence[str],
    shares: Tensor,
    words: Sequence[str],
    kept: Tensor | None,
    gold: Columns | None,
    caption: str | None,
    title: str,
) -> str:
    of_labels = shares[: len(words)].reshape(len(words), -1, len(names))
    heads = ["ROOT", *words]
    values = of_labels.sum(2)
    notes = {
        (word, head): f"{heads[head]} is the head of {words[word]}: {values[word, head]:.3f}"
        f" ({_best_labels(of_labels[word, head], names)})"
        for word, head in torch.nonzero(values >= LEAST).tolist()
    }
    framed = (
        [] if kept is None else torch.nonzero(kept[: len(words)].reshape(of_labels.shape).any(2)).tolist()
    )
    return heat_svg(
        words,
        heads,
        values.tolist(),
        allowed={(word, head) for word, head in framed},
        gold=set() if gold is None else {(word, head) for word, (head, _) in enumerate(tree_column(gold))},
        notes=notes,
        caption=caption,
        title=title,
    )


def _best_labels(shares: Tensor, names: Sequence[str], most: int = 3) -> str:
    best = shares.topk(min(most, len(names)))
    return ", ".join(
        f"{names[label]} {share:.2f}"
        for share, label in zip(best.values.tolist(), best.indices.tolist(), strict=True)
        if share >= LEAST
    )


def _chain_table(
    names: Sequence[str],
    shares: Tensor,
    words: Sequence[str],
    kept: Tensor | None,
    gold: Columns | None,
    caption: str | None,
    title: str,
) -> str:
    values = shares[: len(words)].reshape(len(words), len(names), len(names)).sum(1)
    columns = list(names[: -len(BOUNDARIES)])
    column_of = {name: column for column, name in enumerate(columns)}
    allowed = [] if kept is None else chain_candidates(kept, names, len(words))[0]
    return heat_svg(
        words,
        columns,
        values[:, : len(columns)].tolist(),
        allowed={
            (word, column_of[tag]) for word, tags in enumerate(allowed) for tag in tags if tag in column_of
        },
        gold=set()
        if gold is None
        else {(word, column_of[tag]) for word, tag in enumerate(chain_column(gold)) if tag in column_of},
        caption=caption,
        title=title,
    )


def tree_candidates(kept: Tensor, names: Sequence[str]) -> list[list[Candidate]]:
    """Return each word's candidates by name: (G, C) with head * L + label in C."""
    found: list[list[Candidate]] = [[] for _ in range(len(kept))]
    for group, candidate in torch.nonzero(kept).tolist():
        head, label = divmod(candidate, len(names))
        found[group].append((head, names[label]))
    return found


def tree_column(columns: Columns) -> list[Candidate]:
    """Return each word's head and label out of columns."""
    return [(int(head), label) for head, label in zip(columns["head"], columns["deprel"], strict=True)]


def chain_candidates(
    kept: Tensor, names: Sequence[str], words: int
) -> tuple[list[set[str]], list[set[tuple[str, str]]]]:
    """Return each word's tags, and the pairs between neighbours, by name.

    Args:
        kept: bool (G, C), previous tag * T + next tag in C; a boundary before and after the words.
        names: the tags, boundaries included.
        words: how many words there are, G - 1.
    """
    between: list[set[tuple[str, str]]] = [set() for _ in range(words + 1)]
    for group, candidate in torch.nonzero(kept[: words + 1]).tolist():
        before, after = divmod(candidate, len(names))
        between[group].add((names[before], names[after]))
    tags = [
        {after for _, after in before_word} & {before for before, _ in after_word}
        for before_word, after_word in pairwise(between)
    ]
    inner = [
        {(before, after) for before, after in pairs if before in tags[place] and after in tags[place + 1]}
        for place, pairs in enumerate(between[1:-1])
    ]
    return tags, inner


def chain_column(columns: Columns) -> list[str]:
    """Return each word's tag out of columns, of which there is one."""
    (tags,) = columns.values()
    return list(tags)
