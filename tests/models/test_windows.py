from __future__ import annotations

from itertools import groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_xst.models.pretrained_words import Pieces, assign_words, cut_windows, window_starts


@given(st.integers(1, 60), st.integers(1, 20))
def test_windows_cover_every_piece_and_overlap(pieces: int, room: int) -> None:
    starts = window_starts(pieces, room)
    covered = {piece for start in starts for piece in range(start, min(start + room, pieces))}
    assert covered == set(range(pieces))
    assert starts[0] == 0
    assert starts == sorted(set(starts))
    assert all(later - earlier <= max(room // 2, 1) for earlier, later in pairwise(starts))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=25), st.integers(1, 15))
def test_each_piece_is_used_once(sizes: list[int], room: int) -> None:
    word_of = [word for word, size in enumerate(sizes) for _ in range(size)]
    ids = list(range(len(word_of)))
    windows = cut_windows(Pieces(ids, word_of, [101], [102]), 1000, room + 2)
    assert all(len(window.ids) == len(window.slots) <= room + 2 for window in windows)
    assert all((window.ids[0], window.ids[-1]) == (101, 102) for window in windows)
    used = sorted(
        (piece, slot)
        for window in windows
        for piece, slot in zip(window.ids, window.slots, strict=True)
        if slot >= 0
    )
    assert used == [(piece, 1000 + word) for piece, word in zip(ids, word_of, strict=True)]
    window_of = assign_words(word_of, room)
    for _, group in groupby(range(len(word_of)), key=word_of.__getitem__):
        pieces = list(group)
        if len(pieces) <= room // 2:
            assert len({window_of[piece] for piece in pieces}) == 1


@given(st.lists(st.integers(1, 3), min_size=10, max_size=40), st.integers(6, 12))
def test_words_are_read_in_the_nearest_window(sizes: list[int], room: int) -> None:
    word_of = [word for word, size in enumerate(sizes) for _ in range(size)]
    starts, window_of = window_starts(len(word_of), room), assign_words(word_of, room)
    if len(starts) == 1:
        assert set(window_of) == {0}
        return
    for word in range(len(sizes)):
        pieces = [piece for piece, owner in enumerate(word_of) if owner == word]
        middle = sum(pieces) / len(pieces)
        gap = [abs(start + (room - 1) / 2 - middle) for start in starts]
        assert gap[window_of[pieces[0]]] == min(gap)


def test_context_on_both_sides_is_at_least_a_quarter_window() -> None:
    window_of = assign_words(list(range(200)), 20)
    starts = window_starts(200, 20)
    for piece in range(5, 195):
        start = starts[window_of[piece]]
        assert start + 4 <= piece <= start + 15


@pytest.mark.parametrize("pieces", [1, 10])
def test_short_sentences_are_one_window(pieces: int) -> None:
    ids = list(range(pieces))
    (window,) = cut_windows(Pieces(ids, ids, [], []), 0, 10)
    assert window.ids == window.slots == ids
