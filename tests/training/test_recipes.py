"""What a recipe fills in where nothing is told."""

from __future__ import annotations

import pytest

from hf_xst.commands.options import TransferArguments
from hf_xst.commands.presets import as_in_recipe, chart_use, target_length
from hf_xst.commands.transfer import learning_rate_of
from hf_xst.training.collation import ChartUse

CHARTS = [({"recipe": "recommended"}, 200, 20), ({"recipe": "published"}, 800, 80), ({}, 800, 80)]


@pytest.mark.parametrize(("provenance", "updates", "batch_size"), CHARTS)
def test_length_and_batches_are_the_recipes_unless_told(provenance, updates, batch_size):
    filled = as_in_recipe(TransferArguments(charts="c", output="o"), provenance)
    assert (filled.updates, filled.batch_size) == (updates, batch_size)
    told = as_in_recipe(TransferArguments(charts="c", output="o", updates=7, batch_size=3), provenance)
    assert (told.updates, told.batch_size) == (7, 3)


def test_the_step_is_the_recipes_then_the_published_one():
    charts = {"model_type": "hf_xst_crf_tagger", "rule": "pool"}
    arguments = TransferArguments(charts="c", output="o")
    assert learning_rate_of(arguments, charts | {"recipe": "recommended"}) == 1e-4
    assert learning_rate_of(arguments, charts) == 2.6e-4
    told = TransferArguments(charts="c", output="o", learning_rate=0.0)
    assert learning_rate_of(told, charts | {"recipe": "recommended"}) == 0.0


def test_a_recipe_of_a_newer_package_is_refused():
    for ask in (
        lambda: as_in_recipe(TransferArguments(charts="c", output="o"), {"recipe": "newer"}),
        lambda: chart_use({"recipe": "newer", "sigma": 0.95}),
    ):
        with pytest.raises(ValueError, match="made by the recipe 'newer'; this package knows published"):
            ask()


RECOMMENDED = {"recipe": "recommended"}


@pytest.mark.parametrize(
    ("provenance", "told", "expected"),
    [
        ({"sigma": 0.95}, {}, ChartUse()),
        ({"sigma": 0.95}, {"sigma": 0.8}, ChartUse(sigma=0.8)),
        (RECOMMENDED | {"sigma": 0.999}, {}, ChartUse("pool", 0.95, 0.5)),
        (RECOMMENDED | {"sigma": 0.999}, {"soft": 0.0, "best": "none"}, ChartUse("none", 0.95, 0.0)),
        # Narrower charts than the recipe's are taken as they are, and nothing else is put on record.
        (RECOMMENDED | {"sigma": 0.9}, {}, ChartUse("pool", None, 0.5)),
        (RECOMMENDED | {"sigma": 0.9}, {"sigma": 0.9}, ChartUse("pool", 0.9, 0.5)),
    ],
)
def test_the_use_of_charts_is_the_recipes_unless_told(provenance, told, expected):
    assert chart_use(provenance, **told) == expected


def test_charts_cannot_be_widened():
    with pytest.raises(ValueError, match=r"sigma is 0\.99, but the charts hold 0\.95 .* --sigma 0\.99"):
        chart_use({"sigma": 0.95}, sigma=0.99)


def test_kinds_of_models_that_the_paper_does_not_have_need_to_be_told():
    charts = {"model_type": "mine", "rule": "pool"}
    told = TransferArguments(charts="c", output="o", learning_rate=1e-3)
    assert learning_rate_of(told, charts) == 1e-3
    with pytest.raises(ValueError, match="the paper has no settings for a mine: give --learning-rate"):
        learning_rate_of(TransferArguments(charts="c", output="o"), charts)
    with pytest.raises(ValueError, match="give --max-length"):
        target_length("mine")
