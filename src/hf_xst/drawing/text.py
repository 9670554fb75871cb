"""Dependency trees for the terminal, in box characters: as brackets beside the sentence, or as an outline."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

_STEP = 3  # characters from one bracket to the next: the bracket itself, a line, an arrowhead
_CORNERS = {"first": "┌", "middle": "├", "last": "└"}


def tree_text(
    words: Sequence[str], heads: Sequence[int], deprels: Sequence[str], upos: Sequence[str] | None = None
) -> str:
    """Draw a tree with one line a word: brackets, relation, word, tag.

    Every head with dependents opens one bracket, a vertical line at which its own line and an arrow to each
    dependent meet; the arrow ends at the relation. Brackets further left are nearer to the root. `┼` is a
    crossing of two lines that do not meet; only trees that are not projective have any.

    Args:
        words: the words.
        heads: for each word its head, counted from 1; 0 for the root.
        deprels: for each word the relation to its head.
        upos: for each word its tag, if tags shall be shown.

    Returns:
        Lines joined by newlines, without a final one; "" for no words.

    Raises:
        ValueError: the columns differ in length, or the heads are no tree.
    """
    _check(words, heads, deprels, upos)
    depths = _depths(heads)
    canvas = _canvas(heads, _bracket_columns(heads, depths))
    columns = [deprels, words] if upos is None else [deprels, words, upos]
    padded = [_padded([printable(cell) for cell in column]) for column in columns]
    return "\n".join(
        "  ".join(cells).rstrip() if not lines else f"{lines} {'  '.join(cells)}".rstrip()
        for lines, *cells in zip(canvas, *padded, strict=True)
    )


def outline_text(
    words: Sequence[str], heads: Sequence[int], deprels: Sequence[str], upos: Sequence[str] | None = None
) -> str:
    """Draw a tree as an outline, dependents indented below their head: position, word, tag and relation.

    Args:
        words: the words.
        heads: for each word its head, counted from 1; 0 for the root.
        deprels: for each word the relation to its head.
        upos: for each word its tag, if tags shall be shown.

    Returns:
        Lines joined by newlines, without a final one; "" for no words.

    Raises:
        ValueError: the columns differ in length, or the heads are no tree.
    """
    _check(words, heads, deprels, upos)
    _depths(heads)
    dependents = _dependents(heads)
    lines = []
    waiting = [(root, "", "") for root in reversed(dependents[0])]
    while waiting:
        position, prefix, indent = waiting.pop()
        cells = [words[position - 1], *([] if upos is None else [upos[position - 1]]), deprels[position - 1]]
        lines.append(f"{prefix}{position} {' '.join(printable(cell) for cell in cells)}")
        below = dependents[position]
        for child in reversed(below):
            branch, rest = ("└─ ", "   ") if child == below[-1] else ("├─ ", "│  ")
            waiting.append((child, indent + branch, indent + rest))
    return "\n".join(lines)


def printable(text: str) -> str:
    """Return the text with control characters and line breaks shown as `�`, so that it stays on its line."""
    return "".join("�" if unicodedata.category(letter) in ("Cc", "Zl", "Zp") else letter for letter in text)


def display_width(text: str) -> int:
    """Return how many terminal cells a text takes: 2 for wide East Asian characters, 0 for combining ones."""
    return sum(_letter_width(letter) for letter in text)


def _letter_width(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf") or "\u1160" <= letter <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1


def _padded(cells: Sequence[str]) -> list[str]:
    width = max((display_width(cell) for cell in cells), default=0)
    return [cell + " " * (width - display_width(cell)) for cell in cells]


def _check(
    words: Sequence[str], heads: Sequence[int], deprels: Sequence[str], upos: Sequence[str] | None
) -> None:
    for name, column in (("heads", heads), ("deprels", deprels), ("upos", upos)):
        if column is not None and len(column) != len(words):
            raise ValueError(f"{len(column)} {name} for {len(words)} words; give one for each word.")
    for position, head in enumerate(heads, start=1):
        if not 0 <= head <= len(words):
            raise ValueError(
                f"Word {position} has the head {head}; expected 0 for the root or a word, 1 to {len(words)}."
            )


def _dependents(heads: Sequence[int]) -> list[list[int]]:
    """Return for each position, 0 being the root, its dependents in sentence order."""
    dependents: list[list[int]] = [[] for _ in range(len(heads) + 1)]
    for position, head in enumerate(heads, start=1):
        dependents[head].append(position)
    return dependents


def _depths(heads: Sequence[int]) -> list[int]:
    """Return each position's distance from the root, index 0 being the root itself."""
    dependents = _dependents(heads)
    depths = [0] * (len(heads) + 1)
    reached = list(dependents[0])
    for position in reached:
        depths[position] = depths[heads[position - 1]] + 1
        reached.extend(dependents[position])
    if len(reached) < len(heads):
        lost = sorted(set(range(1, len(heads) + 1)) - set(reached))
        raise ValueError(f"The heads are no tree: no path leads from the root to words {lost}.")
    return depths


def _bracket_columns(heads: Sequence[int], depths: Sequence[int]) -> dict[int, tuple[int, int, int]]:
    """Place each head's bracket: position -> (column, first row, last row), columns counted from the left.

    Nearer to the root goes further left; brackets in one column share no row. In a projective tree this makes
    the column the head's depth.
    """
    dependents = _dependents(heads)
    placed: dict[int, tuple[int, int, int]] = {}
    in_column: list[list[tuple[int, int]]] = []
    for position in sorted(range(1, len(heads) + 1), key=lambda word: depths[word]):
        if not dependents[position]:
            continue
        rows = [position, *dependents[position]]
        first, last = min(rows) - 1, max(rows) - 1
        head = heads[position - 1]
        column = placed[head][0] + 1 if head else 0
        while column < len(in_column) and any(a <= last and first <= b for a, b in in_column[column]):
            column += 1
        while column >= len(in_column):
            in_column.append([])
        in_column[column].append((first, last))
        placed[position] = (column, first, last)
    return placed


def _canvas(heads: Sequence[int], brackets: dict[int, tuple[int, int, int]]) -> list[str]:
    """Draw the brackets: one string a word, all of one length."""
    width = _STEP * (1 + max((column for column, _, _ in brackets.values()), default=-1))
    rows = [[" "] * width for _ in heads]
    for position, head in enumerate(heads, start=1):
        end = _STEP * brackets[position][0] if position in brackets else width
        if head:
            _draw_line(rows[position - 1], _STEP * brackets[head][0] + 1, end)
            rows[position - 1][end - 1] = "►"
        if position in brackets:
            _draw_line(rows[position - 1], end + 1, width)
    for position, (column, first, last) in brackets.items():
        ends = {position - 1} | {row for row, head in enumerate(heads) if head == position}
        for row in range(first, last + 1):
            beneath = rows[row][_STEP * column]
            rows[row][_STEP * column] = _bracket_part(row, first, last, row in ends, beneath)
    return ["".join(row) for row in rows]


def _draw_line(row: list[str], start: int, stop: int) -> None:
    row[start:stop] = "─" * (stop - start)


def _bracket_part(row: int, first: int, last: int, meets: bool, beneath: str) -> str:
    if not meets:
        return "┼" if beneath == "─" else "│"
    return _CORNERS["first" if row == first else "last" if row == last else "middle"]
