"""The settings that the commands take by default are the paper's."""

from __future__ import annotations

import json

import pytest

from hf_xst.commands.presets import PUBLISHED


@pytest.mark.parametrize(
    ("model_type", "task"), [("hf_xst_biaffine_parser", "parsing"), ("hf_xst_crf_tagger", "tagging")]
)
def test_learning_rates_pull_and_length_limits_match_the_paper(shared, model_type, task):
    paper = json.loads(shared("paper", "results.json").read_text(encoding="utf-8"))["hyperparameters"][task]
    ours = PUBLISHED[model_type]
    assert ours.max_words == paper["max_length_train"]
    for rule, name in (("union", "pptx"), ("pool", "lop_uniform")):
        assert ours.learning_rate[rule] == paper[name]["lr"]
        assert ours.l2[rule] == paper[name]["l2"]
