"""Draw dependency trees for the terminal, as brackets of box characters beside the sentence."""

from __future__ import annotations

from collections.abc import Sequence

from hf_xst.console import printable
from hf_xst.drawing.markup import display_width, has_right_to_left, is_right_to_left

MAX_DRAWN = 1000
"""Most words of a drawing, whose size grows with their square."""
_STEP = 3  # characters from one bracket to the next: the bracket itself, a line, an arrowhead
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
    """Draw a tree with one line per word: brackets, relation, word, tag.

    Every head with dependents opens one bracket: a vertical line that joins its own line and an arrow to each
    dependent. Brackets further left are nearer to the root. `┼` is a crossing of two lines that do not meet;
    only non-projective trees have any.

    A right-to-left sentence is mirrored, with brackets at the right. Its words are isolated (U+2068), so that
    a terminal that reorders text leaves everything else in its place.

    Heads count from 1, and 0 is the root. The direction defaults to that of most words.

    Returns:
        Lines joined by newlines, without a final one; "" for no words.

    Raises:
        ValueError: if the columns differ in length or the heads do not form a tree.
    """
    check_columns(words, heads=heads, deprels=deprels, upos=upos)
    dependents: list[list[int]] = [[] for _ in range(len(heads) + 1)]
    for position, head in enumerate(heads, start=1):
        check_head(words, position, head)
        dependents[head].append(position)
    canvas = _canvas(heads, _bracket_columns(heads, dependents))
    columns = [deprels, words] if upos is None else [deprels, words, upos]
    mirrored = is_right_to_left(words) if right_to_left is None else right_to_left
    if mirrored:
        canvas = [line[::-1].translate(_MIRROR) for line in canvas]
        columns.reverse()
    padded = [_padded([isolated(text) for text in column], mirrored) for column in columns]
    rows = [[lines, "  ".join(cells)] for lines, *cells in zip(canvas, *padded, strict=True)]
    return "\n".join(" ".join(filter(None, row[::-1] if mirrored else row)).rstrip() for row in rows)


def isolated(text: str) -> str:
    """Keep a text on its line, and in its place where a terminal reorders text."""
    shown = printable(text)
    return f"{_ISOLATE}{shown}{_END_OF_ISOLATE}" if has_right_to_left(shown) else shown


def check_columns(words: Sequence[str], **columns: Sequence[object] | None) -> None:
    """Raise ValueError unless every column has one value per word, and the words can be drawn."""
    if len(words) > MAX_DRAWN:
        raise ValueError(f"found {len(words):,} words; a drawing shows at most {MAX_DRAWN:,}")
    for name, column in columns.items():
        if column is not None and len(column) != len(words):
            raise ValueError(f"{len(column)} {name} for {len(words)} words; give one for each word.")


def check_head(words: Sequence[str], position: int, head: int) -> None:
    """Raise ValueError unless the head of a word is the root (0) or another word."""
    if not 0 <= head <= len(words) or head == position:
        expected = f"expected 0 for the root or another word, 1 to {len(words)}"
        raise ValueError(f"Word {position} has the head {head}; {expected}.")


def _padded(cells: Sequence[str], to_the_right: bool) -> list[str]:
    width = max(map(display_width, cells), default=0)
    blanks = [" " * (width - display_width(cell)) for cell in cells]
    return [blank + cell if to_the_right else cell + blank for blank, cell in zip(blanks, cells, strict=True)]


def _depths(heads: Sequence[int], dependents: Sequence[Sequence[int]]) -> list[int]:
    """Return the distance of each position from the root, which has index 0."""
    depths = [0] * (len(heads) + 1)
    reached = list(dependents[0])
    for position in reached:
        depths[position] = depths[heads[position - 1]] + 1
        reached.extend(dependents[position])
    if len(reached) < len(heads):
        lost = sorted(set(range(1, len(heads) + 1)) - set(reached))
        raise ValueError(f"The heads do not form a tree: no path leads from the root to words {lost}.")
    return depths


def _bracket_columns(
    heads: Sequence[int], dependents: Sequence[Sequence[int]]
) -> dict[int, tuple[int, int, int]]:
    """Assign each head's bracket (column, first row, last row), columns counted from the left.

    A bracket is right of its head's bracket, and brackets of one column share no row. In a projective tree
    the column is therefore the depth of the head.
    """
    depths = _depths(heads, dependents)
    brackets: dict[int, tuple[int, int, int]] = {}
    in_column: list[list[tuple[int, int]]] = []
    for position in sorted(range(1, len(heads) + 1), key=lambda word: depths[word]):
        if not dependents[position]:
            continue
        rows = [position, *dependents[position]]
        first, last = min(rows) - 1, max(rows) - 1
        head = heads[position - 1]
        column = brackets[head][0] + 1 if head else 0
        while column < len(in_column) and any(a <= last and first <= b for a, b in in_column[column]):
            column += 1
        if column == len(in_column):
            in_column.append([])
        in_column[column].append((first, last))
        brackets[position] = (column, first, last)
    return brackets


def _canvas(heads: Sequence[int], brackets: dict[int, tuple[int, int, int]]) -> list[str]:
    """Draw the brackets: one string per word, all of one length."""
    width = _STEP * (1 + max((column for column, _, _ in brackets.values()), default=-1))
    rows = [[" "] * width for _ in heads]
    for row, (position, head) in zip(rows, enumerate(heads, start=1), strict=True):
        end = _STEP * brackets[position][0] if position in brackets else width
        if head:
            start = _STEP * brackets[head][0] + 1
            row[start:end] = [*"─" * (end - start - 1), "►"]
        if position in brackets:
            row[end + 1 :] = "─" * (width - end - 1)
    for position, (column, first, last) in brackets.items():
        ends = {position - 1} | {index for index, head in enumerate(heads) if head == position}
        for index in range(first, last + 1):
            beneath = rows[index][_STEP * column]
            if index in ends:
                joint = "┌" if index == first else "└" if index == last else "├"
            else:
                joint = "┼" if beneath == "─" else "│"
            rows[index][_STEP * column] = joint
    return ["".join(row) for row in rows]
