"""Charts as rows and back, and candidates moved from one alphabet to another."""

from __future__ import annotations

import hashlib

import torch
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st

from helpers.categorical import IndependentGroups
from hf_xst.charts.alphabet import Relabelling
from hf_xst.charts.dataset import (
    CHART_FEATURES,
    chart_features,
    from_ragged,
    structure_triples,
    to_mask,
    to_ragged,
    words_hash,
)
from hf_xst.data import prepared_features
from hf_xst.structures import DependencyTreeCRF, LinearChainCRF

charts = st.tuples(st.integers(1, 5), st.integers(1, 6)).flatmap(
    lambda shape: st.lists(
        st.lists(st.booleans(), min_size=shape[1], max_size=shape[1]), min_size=shape[0], max_size=shape[0]
    )
)


@given(st.lists(charts, min_size=1, max_size=4), st.integers(0, 2))
def test_there_and_back_in_one_batch(batch, padding):
    masks = [torch.tensor(rows) for rows in batch]
    rows = [
        to_ragged(torch.nn.functional.pad(mask, (0, 0, 0, padding), value=True), len(mask)) for mask in masks
    ]
    groups, width = max(len(mask) for mask in masks), max(mask.shape[1] for mask in masks)
    found = to_mask(from_ragged(rows), torch.ones(len(masks), groups, width, dtype=torch.bool))
    for place, mask in enumerate(masks):
        assert found[place, : len(mask), : mask.shape[1]].equal(mask)
        assert int(found[place].sum()) == int(mask.sum())


@given(charts)
def test_log_probabilities_are_aligned(rows):
    mask = torch.tensor(rows)
    log_probs = -torch.arange(mask.numel(), dtype=torch.float32).view(mask.shape) / 8
    row = to_ragged(mask, len(mask), log_probs)
    for _, group, candidate in from_ragged([row]).tolist():
        place = row["offsets"][group] + row["candidates"][
            row["offsets"][group] : row["offsets"][group + 1]
        ].index(candidate)
        assert row["log_probs"][place] == log_probs[group, candidate].item()
    assert len(row["log_probs"]) == int(mask.sum())


def test_the_stored_schema_keeps_what_was_put_in():
    mask = torch.tensor([[True, False, True], [False, False, False]])
    row = {
        "sent_id": "s",
        "words": ["a", "b"],
        "upos": ["X", "X"],
        **to_ragged(mask, 2, torch.tensor([[-0.5, -9.0, -1.25], [0.0, 0.0, 0.0]])),
        "source_best": [[0, 2], [-1, -1]],
        "pool_best": [0, 1],
        "words_hash": words_hash(["a", "b"]),
        "format_version": 1,
    }
    stored = Dataset.from_list([row], features=chart_features(prepared_features(gold=False)))
    assert stored[0] == row
    assert set(CHART_FEATURES) < set(stored.column_names)
    assert row["offsets"] == [0, 2, 2]


def test_no_rows_and_no_groups_give_no_triples():
    assert from_ragged([]).shape == (0, 3)
    assert structure_triples([[-1, -1]]).shape == (0, 3)
    assert to_ragged(torch.zeros(0, 4, dtype=torch.bool), 0)["offsets"] == [0]


def test_structures_leave_out_what_is_not_there():
    assert structure_triples([[4, -1], [0]]).tolist() == [[0, 0, 4], [1, 0, 0]]


def test_a_hash_is_of_the_words_and_their_borders():
    hashes = {
        words_hash(words) for words in (["ab", "c"], ["a", "bc"], ["abc"], ["c", "ab"], ["ab", "c", ""], [])
    }
    assert len(hashes) == 6
    expected = hashlib.sha256(b"\0\0\0\x02\xc3\xa9\0\0\0\x01x").hexdigest()
    assert words_hash(["é", "x"]) == expected


ALPHABETS = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=5, unique=True)


@given(
    ALPHABETS, ALPHABETS, st.sampled_from([IndependentGroups, DependencyTreeCRF, LinearChainCRF]), st.data()
)
def test_candidates_move_by_name(old, new, structure, data):
    there, back = Relabelling.between(old, new, structure), Relabelling.between(new, old, structure)
    axes = len(structure.LABEL_AXES)
    heads = data.draw(st.integers(0, 4)) if axes == 1 else 0
    chosen = data.draw(st.lists(st.sampled_from(old), min_size=axes, max_size=axes))
    index = heads
    for name in chosen:
        index = index * len(old) + old.index(name)
    moved = there.candidates(torch.tensor([[index, -1]]))
    assert moved[0, 1] == -1
    if set(chosen) <= set(new):
        expected = heads
        for name in chosen:
            expected = expected * len(new) + new.index(name)
        assert moved[0, 0] == expected
        assert back.candidates(moved)[0, 0] == index
    else:
        assert moved[0, 0] == -1
    assert there.dropped == [name for name in old if name not in new]
    assert there.is_identity == (old == new)


@given(ALPHABETS, ALPHABETS)
def test_scores_move_with_their_candidates(old, new):
    for structure, shape in ((DependencyTreeCRF, (1, 3, 3)), (LinearChainCRF, (1, 2))):
        axes = len(structure.LABEL_AXES)
        move = Relabelling.between(old, new, structure)
        scores = torch.randn(*shape, *[len(old)] * axes)
        moved = move.scores(scores, -torch.inf)
        before, after = structure(scores), structure(moved)
        flat, target = before.group_view(before.scores), after.group_view(after.scores)
        for candidate in range(flat.shape[-1]):
            place = int(move.candidates(torch.tensor(candidate)))
            if place >= 0:
                torch.testing.assert_close(target[..., place], flat[..., candidate])
        reached = {int(move.candidates(torch.tensor(c))) for c in range(flat.shape[-1])}
        for candidate in set(range(target.shape[-1])) - reached:
            assert (target[..., candidate] == -torch.inf).all()


def test_another_order_is_no_identity_and_no_candidate_is_invented():
    move = Relabelling.between(["a", "b"], ["b", "a"], IndependentGroups)
    assert not move.is_identity
    assert move.candidates(torch.tensor([0, 1])).tolist() == [1, 0]
