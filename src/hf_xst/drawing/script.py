"""What must be known of a text before it is drawn: its direction, its width, what cannot be shown."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

_NARROW = frozenset("iljftrI.,:;'!|()[]{}/\\-`\"")
_BROAD = frozenset("mwMWQ@%&ÆŒæœ")


def printable(text: str) -> str:
    """Return the text with control characters and line breaks shown as `�`, so that it stays on its line."""
    return "".join("�" if unicodedata.category(letter) in ("Cc", "Zl", "Zp") else letter for letter in text)


def display_width(text: str) -> int:
    """Return how many terminal cells a text takes: 2 for wide East Asian characters, 0 for combining ones."""
    return sum(_cells(letter) for letter in text)


def _cells(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf") or "\u1160" <= letter <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1


def is_right_to_left(words: Iterable[str]) -> bool:
    """Say whether most words begin, as far as direction goes, with a letter that runs from right to left."""
    votes = [_direction(word) for word in words]
    return votes.count("R") > votes.count("L")


def _direction(word: str) -> str:
    """Return L or R by the first letter that has a direction of its own, "" where there is none."""
    for letter in word:
        kind = unicodedata.bidirectional(letter)
        if kind in ("L", "R", "AL"):
            return "L" if kind == "L" else "R"
    return ""


def has_right_to_left(text: str) -> bool:
    """Say whether any letter of a text runs from right to left."""
    return any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text)


def text_width(text: str, size: float) -> float:
    """Estimate, rather too much than too little, how wide a text in a sans-serif font will be.

    Args:
        text: one line.
        size: of the font.
    """
    return size * sum(map(_letter_width, text))


def _letter_width(letter: str) -> float:
    cells = display_width(letter)
    if cells != 1:
        return 0.55 * cells
    if letter in _NARROW:
        return 0.4
    if letter in _BROAD:
        return 1.0
    return 0.72 if letter.isupper() or ord(letter) >= 0x900 else 0.62
