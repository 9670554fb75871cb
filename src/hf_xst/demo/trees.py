"""Trees under construction: words that know their head and where they stand around it."""

from __future__ import annotations

from typing import Any


class Node:
    """A word with its dependents.

    Attributes:
        form: the word.
        upos: its tag.
        deprel: its relation to the head.
        head: the word it hangs on, none for the root.
        parts: its dependents with their ranks: below 0 stands before the word, above 0 after it.
        moved: whether it leaves its place for the end of the sentence.
        position: its place in the sentence from 1, once it is known.
    """

    __slots__ = ("deprel", "form", "head", "moved", "parts", "position", "upos")

    def __init__(self, form: str, upos: str, deprel: str = "root") -> None:
        self.form = form
        self.upos = upos
        self.deprel = deprel
        self.head: Node | None = None
        self.parts: list[tuple[int, Node]] = []
        self.moved = False
        self.position = 0

    def attach(self, part: Node, rank: int) -> None:
        """Make a word depend on this one."""
        part.head = self
        self.parts.append((rank, part))


def sentence_row(root: Node, final: Node) -> dict[str, Any]:
    """Put a finished tree into a row.

    Args:
        root: the tree, without its final mark.
        final: the final mark, which comes after all that has moved to the end.

    Returns:
        `words`, `upos`, `head` (from 1; 0 for the root) and `deprel`.
    """
    nodes: list[Node] = []
    moved: list[Node] = []
    _emit(root, nodes, moved)
    for part in moved:  # grows while it is gone through where a moved part holds another one
        _emit(part, nodes, moved)
    root.attach(final, 99)
    nodes.append(final)
    for position, node in enumerate(nodes, start=1):
        node.position = position
    return {
        "words": [node.form for node in nodes],
        "upos": [node.upos for node in nodes],
        "head": [0 if node.head is None else node.head.position for node in nodes],
        "deprel": [node.deprel for node in nodes],
    }


def _emit(node: Node, nodes: list[Node], moved: list[Node]) -> None:
    node.parts.sort(key=_rank)
    placed = False
    for rank, part in node.parts:
        if rank > 0 and not placed:
            nodes.append(node)
            placed = True
        if part.moved:
            moved.append(part)
        else:
            _emit(part, nodes, moved)
    if not placed:
        nodes.append(node)


def _rank(part: tuple[int, Node]) -> int:
    return part[0]
