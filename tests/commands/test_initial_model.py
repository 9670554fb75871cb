"""A model from scratch that fits charts, without any other model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from helpers.small_models import RELATIONS, UPOS, charts, gold, model_of, vectors
from helpers.tiny_models import save_bert
from hf_xst.charts.chart import ChartSettings
from hf_xst.charts.dataset import ChartInfo, ChartSource
from hf_xst.commands.initial_model import model_from_scratch, resolve_initial_model
from hf_xst.commands.options import NewModelArguments, TransferArguments
from hf_xst.models.kinds import model_class


def info(like, **fields):
    return ChartInfo(like.config.model_type, like.names, [ChartSource("en")], ChartSettings(), "en", **fields)


@pytest.mark.parametrize("recorded", ["", "sourcez: [en=x]\n", "sources: []\n"])
def test_a_configuration_without_sources_does_not_place_them(tmp_path, recorded):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text(f"seed: 1\n{recorded}")
    options = TransferArguments(output="o", charts=str(tmp_path))
    with pytest.raises(ValueError, match="a source called en, whose place is not recorded: give --init-from"):
        resolve_initial_model(options, info(model_of("parser")))


@pytest.mark.parametrize("recorded", ["3", "en=x", "[3]", "{en: x}"])
def test_a_configuration_with_other_sources_is_named(tmp_path, recorded):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text(f"sources: {recorded}\n")
    options = TransferArguments(output="o", charts=str(tmp_path))
    with pytest.raises(ValueError, match=r"config\.yaml: sources"):
        resolve_initial_model(options, info(model_of("parser")))


@pytest.mark.parametrize("kind", ["parser", "tagger"])
def test_it_has_the_labels_of_the_charts(kind):
    like = model_of(kind)
    model = model_from_scratch(info(like), charts(kind, gold()), NewModelArguments(), vectors())
    assert type(model) is type(like)
    assert model.names == like.names
    assert model.config.labels == (RELATIONS if kind == "parser" else UPOS)
    assert model.encoder.words.table.words == like.encoder.words.table.words
    if kind == "parser":
        assert sorted(model.config.upos_names) == sorted(UPOS)


def test_it_reads_no_tags_if_the_charts_have_none():
    like = model_of("parser")
    blank = charts("parser", gold()).map(lambda row: {"upos": ["_"] * len(row["words"])})
    assert not model_from_scratch(info(like), blank, NewModelArguments(), vectors()).config.uses_upos


def test_it_requires_either_vectors_or_an_encoder():
    like = model_of("parser")
    for encoder, words in ((None, None), ("some/encoder", vectors())):
        options = NewModelArguments(encoder=encoder)
        with pytest.raises(ValueError, match="give either --vectors"):
            model_from_scratch(info(like), charts("parser", gold()), options, words)
    with pytest.raises(ValueError, match="unknown type 'unheard_of'"):
        model_class("unheard_of")


@pytest.mark.parametrize(("given", "layers", "context"), [({}, 2, 1), ({"encoder_layers": 3}, 3, 1)])
def test_it_reads_the_first_half_of_an_encoder(tmp_path, given, layers, context):
    save_bert(tmp_path, num_hidden_layers=4)
    options = NewModelArguments(encoder=str(tmp_path), **given)
    model = model_from_scratch(info(model_of("parser")), charts("parser", gold()), options)
    assert model.config.encoder_config["num_hidden_layers"] == layers
    assert model.config.context_depth == context
    options = replace(options, model=["context_layers=0"])
    model = model_from_scratch(info(model_of("parser")), charts("parser", gold()), options)
    assert model.config.context_depth == 0


def test_it_has_the_label_settings_of_the_charts():
    like = model_of("tagger", labels=["B-A", "I-A", "O"], scheme="bio", column="ner_tags")
    model = model_from_scratch(
        info(like, label_settings=like.label_settings),
        charts("tagger", gold()),
        NewModelArguments(),
        vectors(),
    )
    assert (model.scheme, model.columns, model.names) == ("bio", ("ner_tags",), like.names)
    assert model.predict([{"words": ["w1", "w2"]}])[0].keys() == {"ner_tags"}
