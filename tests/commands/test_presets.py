"""Presets fill in what is not given."""

from __future__ import annotations

import pytest

from hf_xst.charts.chart import ChartSettings
from hf_xst.charts.dataset import ChartInfo, ChartSource
from hf_xst.commands.options import TrainSourceArguments, TransferArguments
from hf_xst.commands.presets import chart_use, length_limits, resolve_steps, resolve_transfer
from hf_xst.training.collation import ChartUse

TAGGER, PARSER = "hf_xst_crf_tagger", "hf_xst_biaffine_parser"


def charts(preset="paper", model_type=TAGGER, **settings):
    return ChartInfo(model_type, ["A"], [ChartSource("en")], ChartSettings(**settings), "en", preset=preset)


def transfer(**options):
    return TransferArguments(charts="c", output="o", **options)


def resolve(info, **options):
    return resolve_transfer(transfer(**options), info)


@pytest.mark.parametrize(("preset", "steps", "batch_size"), [("recommended", 200, 20), ("paper", 800, 80)])
def test_steps_and_batch_size_come_from_the_preset_unless_given(preset, steps, batch_size):
    plan = resolve(charts(preset))
    assert (plan.max_steps, plan.epochs, plan.batch_size) == (steps, None, batch_size)
    plan = resolve(charts(preset), max_steps=7, batch_size=3)
    assert (plan.max_steps, plan.epochs, plan.batch_size) == (7, None, 3)
    plan = resolve(charts(preset), epochs=2)
    assert (plan.max_steps, plan.epochs) == (None, 2)


def test_max_steps_takes_precedence_over_epochs_in_every_command(capsys):
    plan = resolve(charts(), max_steps=7, epochs=2)
    assert (plan.max_steps, plan.epochs) == (7, None)
    assert "--epochs 2 is ignored because --max-steps 7 was given" in capsys.readouterr().err
    source = resolve_steps(TrainSourceArguments(output="o", treebank="t", max_steps=7))
    assert (source.max_steps, source.epochs) == (7, None)
    assert capsys.readouterr().err == ""  # nobody gave epochs


@pytest.mark.parametrize(
    ("info", "options", "rate", "l2"),
    [
        (charts("recommended"), {}, 1e-4, 4.7e-3),
        (charts(), {}, 2.6e-4, 4.7e-3),
        (charts(rule="union"), {}, 5.9e-5, 0.1),
        (charts(weights={"en": 1.0}), {}, 4.7e-4, 0.062),
        (charts(model_type=PARSER), {}, 9.4e-5, 1.6e-4),
        (charts("recommended"), {"learning_rate": 0.0, "l2": 0.5}, 0.0, 0.5),
        (charts(), {"init_from": "scratch"}, 2.6e-4, 0.0),
    ],
)
def test_rate_and_pull_come_from_the_preset_or_the_paper(info, options, rate, l2):
    plan = resolve(info, **options)
    assert (plan.learning_rate, plan.l2) == (rate, l2)


@pytest.mark.parametrize("preset", ["paper", "recommended"])
def test_a_new_model_over_an_encoder_is_trained_longer(preset):
    info = charts(preset)
    plan = resolve(info, init_from="scratch", encoder="some/encoder")
    assert (plan.learning_rate, plan.max_steps, plan.batch_size, plan.l2) == (5e-4, 1000, 20, 0.0)
    plan = resolve(info, init_from="scratch", encoder="some/encoder", learning_rate=1e-5, epochs=3)
    assert (plan.learning_rate, plan.max_steps, plan.epochs) == (1e-5, None, 3)


def test_an_unknown_preset_is_rejected():
    with pytest.raises(ValueError, match="with the preset 'newer'; this package knows paper, recommended"):
        resolve(charts("newer"))


@pytest.mark.parametrize(
    ("info", "options", "expected"),
    [
        (charts(), {}, ChartUse()),
        (charts(), {"sigma": 0.8}, ChartUse(sigma=0.8)),
        (charts("recommended", sigma=0.999), {}, ChartUse("pool", 0.95, 0.5)),
        (charts("recommended", sigma=0.999), {"soft": 0.0, "best": "none"}, ChartUse("none", 0.95, 0.0)),
        # Charts narrower than the preset are used as a whole, and nothing else is recorded.
        (charts("recommended", sigma=0.9), {}, ChartUse("pool", None, 0.5)),
        (charts("recommended", sigma=0.9), {"sigma": 0.9}, ChartUse("pool", 0.9, 0.5)),
    ],
)
def test_chart_use_comes_from_the_preset_unless_given(info, options, expected):
    assert chart_use(transfer(**options), info) == expected


def test_charts_cannot_be_widened():
    with pytest.raises(ValueError, match=r"--sigma is 0\.99, but the charts hold 0\.95 .* --sigma 0\.99"):
        chart_use(transfer(sigma=0.99), charts())


def test_models_that_the_paper_does_not_have_require_settings():
    info = charts(model_type="mine")
    plan = resolve(info, learning_rate=1e-3, l2=0.1)
    assert (plan.learning_rate, plan.l2) == (1e-3, 0.1)
    with pytest.raises(ValueError, match="the paper has no settings for a mine: give --learning-rate"):
        resolve(info, l2=0.1)
    with pytest.raises(ValueError, match="the paper has no settings for a mine: give --l2"):
        resolve(info, learning_rate=1e-3)


def test_length_limits_reject_zero():
    with pytest.raises(ValueError, match="max_length is 0; expected at least 1"):
        length_limits(None, 0)
