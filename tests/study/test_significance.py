"""Intervals of differences on the same sentences, and the sign test over targets."""

from __future__ import annotations

import json

import numpy as np
import pytest
from significance import intervals, read_counts, sign_test


def test_an_interval_contains_the_difference_and_shrinks_with_more_sentences():
    draw = np.random.default_rng(1)
    widths = []
    for sentences in (100, 10_000):
        scored = draw.integers(5, 20, sentences)
        vote = draw.binomial(scored, 0.70)
        right = {"vote": vote, "pool": draw.binomial(scored, 0.75), "average": vote}
        found = {(method, metric): value for method, metric, value in intervals(right, scored)}
        low, high = found["pool", "over:vote:low"], found["pool", "over:vote:high"]
        assert low < 100 * (right["pool"] - vote).sum() / scored.sum() < high
        assert found["average", "over:vote:low"] == found["average", "over:vote:high"] == 0
        widths.append(high - low)
    assert widths[1] == pytest.approx(widths[0] / 10, rel=0.2)


def test_a_sign_test_counts_halves_of_coins():
    assert sign_test([0.1] * 5 + [0.0]) == pytest.approx(2 / 2**5)
    assert sign_test([1, -2, 3, -4]) == 1
    assert sign_test([]) == sign_test([0.0]) == 1


def test_counts_of_ensembles_and_models_are_gathered(tmp_path):
    def rows(method, right):
        return [
            {"method": method, "split": "test", "metric": "las", "value": 50.0},
            {"method": method, "split": "test", "metric": "right_by_sentence", "value": right},
            {"method": "data", "split": "test", "metric": "scored_by_sentence", "value": [2, 3]},
        ]

    (tmp_path / "ensembles.json").write_text(json.dumps(rows("vote", [1, 2])))
    for seed, right in (("9", [2, 2]), ("10", [0, 0])):
        (tmp_path / "models" / "recommended" / seed / "run").mkdir(parents=True)
        scores = tmp_path / "models" / "recommended" / seed / "run" / "scores.json"
        scores.write_text(json.dumps(rows("direct:model", right)))
    models = [tmp_path / f"models/recommended/{seed}/run/scores.json" for seed in (9, 10)]
    right, scored = read_counts(tmp_path / "ensembles.json", models)
    assert {name: each.tolist() for name, each in right.items()} == {"vote": [1, 2], "recommended": [2, 2]}
    assert scored.tolist() == [2, 3]
