"""A fresh model that fits charts, without any other model."""

from __future__ import annotations

import pytest

from helpers.small_models import RELATIONS, UPOS, charts, gold, model_of, vectors
from hf_xst.commands.initial_model import fresh_model
from hf_xst.models.kinds import model_class


@pytest.mark.parametrize("kind", ["parser", "tagger"])
def test_it_has_the_labels_of_the_charts(kind, tmp_path):
    like = model_of(kind)
    provenance = {"model_type": like.config.model_type, "names": like.names}
    made = fresh_model(provenance, charts(kind, gold()), vectors())
    assert type(made) is type(like)
    assert made.names == like.names
    assert made.config.labels == (RELATIONS if kind == "parser" else UPOS)
    assert made.encoder.words.table.words == like.encoder.words.table.words
    if kind == "parser":
        assert sorted(made.config.upos_names) == sorted(UPOS)


def test_without_tags_in_the_charts_it_reads_none():
    like = model_of("parser")
    blank = charts("parser", gold()).map(lambda row: {"upos": ["_"] * len(row["words"])})
    made = fresh_model({"model_type": like.config.model_type, "names": like.names}, blank, vectors())
    assert not made.config.uses_upos


def test_it_reads_words_by_one_thing():
    provenance = {"model_type": model_of("parser").config.model_type, "names": RELATIONS}
    for given in ({}, {"vectors": vectors(), "encoder": "some/encoder"}):
        with pytest.raises(ValueError, match="needs either --vectors"):
            fresh_model(provenance, charts("parser", gold()), **given)
    with pytest.raises(ValueError, match="'unheard_of', which is unknown here"):
        model_class("unheard_of")
