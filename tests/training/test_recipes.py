"""What a recipe fills in where nothing is told."""

from __future__ import annotations

import pytest

from hf_xst.training.arguments import TransferArguments
from hf_xst.training.jobs.transfer import learning_rate_of
from hf_xst.training.recipes import as_in_recipe, chart_use

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
        lambda: chart_use("newer"),
    ):
        with pytest.raises(ValueError, match="made by the recipe 'newer'; this package knows published"):
            ask()
