"""Dependency trees for the terminal, in box characters: as brackets beside the sentence, or as an outline."""

from __future__ import annotations

from collections.abc import Sequence

from hf_xst.drawing.script import display_width, has_right_to_left, is_right_to_left, printable

_STEP = 3  # characters from one bracket to the next: the bracket itself, a line, an arrowhead
_CORNERS = {"first": "┌", "middle": "├", "last": "└"}
_MIRROR = str.maketrans("┌├└►", "┐┤┘◄")
_ISOLATE, _END_OF_ISOLATE = "\u2068", "\u2069"


def tree_text(
    words: Sequence[str],
    heads: Sequence[int],
    deprels: Sequence[str],
    upos: Sequence[str] | None = None,
    *,
    right_to_left: bool | None = None,
) -> str:
    """Draw a tree with one line a word: brackets, relation, word, tag.

    Every head with dependents opens one bracket, a vertical line at which its own line and an arrow to each
    dependent meet; the arrow ends at the relation. Brackets further left are nearer to the root. `┼` is a
    crossing of two lines that do not meet; only trees that are not projective have any.

    A sentence that runs from right to left is drawn as in a mirror, brackets at the right. Its words are
    isolated (U+2068), so that a terminal that reorders text leaves everything else in its place.

    Args:
        words: the words.
        heads: for each word its head, counted from 1; 0 for the root.
        deprels: for each word the relation to its head.
        upos: for each word its tag, if tags shall be shown.
        right_to_left: the sentence's direction; by default that of most words.

    Returns:
        Lines joined by newlines, without a final one; "" for no words.

    Raises:
        ValueError: the columns differ in length, or the heads are no tree.
    """
    depths = _checked_depths(words, heads, deprels, upos)
    mirrored = is_right_to_left(words) if right_to_left is None else right_to_left
    canvas = _canvas(heads, _bracket_columns(heads, depths))
    columns = [deprels, words] if upos is None else [deprels, words, upos]
    if mirrored:
        canvas = [line[::-1].translate(_MIRROR) for line in canvas]
        columns.reverse()
    padded = [_padded([isolated(text) for text in column], mirrored) for column in columns]
    rows = [[lines, "  ".join(cells)] for lines, *cells in zip(canvas, *padded, strict=True)]
    return "\n".join(" ".join(filter(None, row[::-1] if mirrored else row)).rstrip() for row in rows)


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
    _checked_depths(words, heads, deprels, upos)
    dependents = _dependents(heads)
    lines = []
    waiting = [(root, "", "") for root in reversed(dependents[0])]
    while waiting:
        position, prefix, indent = waiting.pop()
        cells = [words[position - 1], *([] if upos is None else [upos[position - 1]]), deprels[position - 1]]
        lines.append(f"{prefix}{position} {' '.join(map(isolated, cells))}")
        below = dependents[position]
        for child in reversed(below):
            branch, rest = ("└─ ", "   ") if child == below[-1] else ("├─ ", "│  ")
            waiting.append((child, indent + branch, indent + rest))
    return "\n".join(lines)


def isolated(text: str) -> str:
    """Return a text that stays on its line, and in its place where a terminal reorders text."""
    shown = printable(text)
    return f"{_ISOLATE}{shown}{_END_OF_ISOLATE}" if has_right_to_left(shown) else shown


def _padded(cells: Sequence[str], to_the_right: bool) -> list[str]:
    width = max((display_width(cell) for cell in cells), default=0)
    blanks = [" " * (width - display_width(cell)) for cell in cells]
    return [blank + cell if to_the_right else cell + blank for blank, cell in zip(blanks, cells, strict=True)]


def _checked_depths(
    words: Sequence[str], heads: Sequence[int], deprels: Sequence[str], upos: Sequence[str] | None
) -> list[int]:
    check_columns(words, heads, deprels=deprels, upos=upos)
    return _depths(heads)


def check_columns(words: Sequence[str], heads: Sequence[int], **columns: Sequence[object] | None) -> None:
    """Check that every column has a value for each word, and that heads are words or the root.

    Args:
        words: the words.
        heads: a column of heads.
        columns: further columns by name.

    Raises:
        ValueError: something is wrong; the message says what.
    """
    for name, column in ({"heads": heads} | columns).items():
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
