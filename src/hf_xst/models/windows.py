"""Overlapping windows over the pieces of a long sentence, each word read where it is most central."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Window:
    """A stretch of pieces: their ids, and the slot of each piece's word (-1 where another window has it)."""

    ids: list[int]
    slots: list[int]


def window_starts(pieces: int, room: int) -> list[int]:
    """Return where windows of `room` pieces start: every half window, the last one flush with the end."""
    if pieces <= room:
        return [0]
    stride = max(room // 2, 1)
    return [*range(0, pieces - room, stride), pieces - room]


def assign_words(word_of: list[int], room: int) -> list[int]:
    """Say for each piece which window its word is read from.

    A word goes with the window whose middle is nearest to the word's own; the pieces of a word that is
    longer than half a window go one by one, so none is ever cut off.

    Args:
        word_of: the word of each piece, ascending.
        room: pieces in a window.

    Returns:
        A window's index for each piece.
    """
    starts = window_starts(len(word_of), room)
    if len(starts) == 1:
        return [0] * len(word_of)

    def nearest(middle: float) -> int:
        return min(range(len(starts)), key=lambda window: abs(starts[window] + (room - 1) / 2 - middle))

    windows: list[int] = []
    while len(windows) < len(word_of):
        first = len(windows)
        end = first
        while end < len(word_of) and word_of[end] == word_of[first]:
            end += 1
        if end - first > room // 2:
            windows += [nearest(piece) for piece in range(first, end)]
        else:
            windows += [nearest((first + end - 1) / 2)] * (end - first)
    return windows


def cut_windows(ids: list[int], slots: list[int], window_of: list[int], room: int) -> list[Window]:
    """Cut a sentence's pieces into windows.

    Args:
        ids: piece ids.
        slots: the slot of each piece's word.
        window_of: what `assign_words` gave.
        room: pieces in a window.

    Returns:
        The windows in order; each piece's slot stands in exactly one of them.
    """
    windows = []
    for index, start in enumerate(window_starts(len(ids), room)):
        stretch = range(start, min(start + room, len(ids)))
        windows.append(
            Window(
                [ids[piece] for piece in stretch],
                [slots[piece] if window_of[piece] == index else -1 for piece in stretch],
            )
        )
    return windows
