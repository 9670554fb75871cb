"""The steps on kept marginals say what the library says, for every kind of model, and run no model twice."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.small_models import KINDS, UPOS, WORDS, model_of
from hf_xst.charts import pool, pooled_chart
from hf_xst.space.steps import FLOOR, LONGEST, TaskModels, steps

SOURCES = ("one", "two", "three")
ONE_EACH = dict.fromkeys(SOURCES, 1.0)


@pytest.fixture(scope="module", params=KINDS)
def models(request):
    return TaskModels({name: model_of(request.param, seed) for seed, name in enumerate(SOURCES)})


def read(models, length):
    tags = {"upos": [UPOS[place % 3] for place in range(length)]}
    words = WORDS[:length]
    return models.reading(words, **tags), models.pool.distributions([{"words": words, **tags}])


@given(
    length=st.integers(1, 6),
    sigma=st.floats(0.05, 1.0),
    weights=st.lists(st.floats(0, 1), min_size=3, max_size=3).filter(lambda found: sum(found) > 0.1),
)
@settings(max_examples=20, deadline=None)
def test_charts_and_best_structures_are_the_librarys(models, length, sigma, weights):
    reading, distributions = read(models, length)
    found = steps(reading, dict(zip(SOURCES, weights, strict=True)), sigma)
    possible = torch.stack([each.group_view(each.marginals()) for each in distributions])[:, 0].gt(0).any(0)
    chart = pooled_chart(distributions, sigma, weights, FLOOR)
    assert torch.equal(found.kept, chart[0] & possible)
    pooled = pool(distributions, weights, FLOOR)
    scores = distributions[0].group_view(pooled.scores)[0]
    torch.testing.assert_close(found.pooled, scores.exp())
    within = pooled.restricted_to(pooled.part_view(found.kept.unsqueeze(0)))
    assert torch.equal(found.best, within.best_candidates()[0])
    groups = int(distributions[0].group_lengths[0])
    assert found.kept[:groups].any(1).all()
    expected = [float(found.pooled[group, found.best[group]]) for group in range(groups)]
    assert found.confidence()[:groups] == pytest.approx(expected)


def test_a_subset_of_sources_is_a_pool_of_its_own(models):
    reading, distributions = read(models, 4)
    found = steps(reading.of(["three", "one"]), ONE_EACH, 0.7)
    chart = pooled_chart([distributions[0], distributions[2]], 0.7, None, FLOOR)
    assert torch.equal(found.kept, chart[0])
    for name, distribution in zip(SOURCES, distributions, strict=True):
        expected = distribution.group_view(distribution.marginals())[0]
        torch.testing.assert_close(reading.marginals(name), expected)
    with pytest.raises(ValueError, match="choose at least one of the sources one, two, three"):
        reading.of([])
    with pytest.raises(ValueError, match="there is no four"):
        reading.of(["four"])


def test_what_is_moved_is_answered_without_the_models(models, monkeypatch):
    runs = []
    ask = models.pool.distributions
    monkeypatch.setattr(models.pool, "distributions", lambda rows: runs.append(rows) or ask(rows))
    tags = ["NOUN", "VERB", "ADJ"]
    for sigma in (0.3, 0.6, 0.9):
        for weight in (0.0, 0.5):
            reading = models.reading(["fresh", "w1", "w2"], upos=tags)
            steps(reading.of(SOURCES[:2]), ONE_EACH | {"one": weight}, sigma)
    assert len(runs) == 1
    models.reading(["w2", "w1", "fresh"], upos=tags)
    assert len(runs) == 2


def test_structures_become_columns(models):
    reading, _ = read(models, 3)
    found = steps(reading, ONE_EACH, 0.9)
    columns = models.columns_of(reading, found.best)
    assert tuple(columns) == models.columns
    assert {len(values) for values in columns.values()} == {3}


def test_a_pools_prediction_is_that_of_equal_weights():
    models = TaskModels({name: model_of("tagger", seed) for seed, name in enumerate(SOURCES)})
    _, distributions = read(models, 5)
    expected = pool(distributions, None, FLOOR).best()[0, 1:-1].tolist()
    assert models.predicted(WORDS[:5]) == {"upos": [models.names[tag] for tag in expected]}


def test_labels_of_all_sources_are_there():
    one = model_of("tagger")
    models = TaskModels({"one": one, "two": model_of("tagger", 1, labels=["NOUN", "X"])})
    assert models.names == ["NOUN", "VERB", "ADJ", "X", *one.names[-2:]]
    reading = models.reading(["w1", "w2"])
    shares = reading.marginals("two").view(3, 6, 6)
    assert float(shares[:, [1, 2]].sum()) == 0
    found = steps(reading, {"one": 1, "two": 1}, 1.0)
    assert int((found.best >= 0).sum()) == 3


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ({"words": []}, "a sentence of 0 words; expected 1 to 60"),
        ({"words": ["w"] * (LONGEST + 1)}, "a sentence of 61 words"),
    ],
)
def test_sentences_that_are_refused(models, sentence, message):
    with pytest.raises(ValueError, match=message):
        models.reading(**sentence)


def test_wrong_settings():
    with pytest.raises(ValueError, match="there is no source model"):
        TaskModels({})
    with pytest.raises(ValueError, match="must all be models of one kind"):
        TaskModels({"one": model_of("parser"), "two": model_of("tagger")})
    models = TaskModels({"one": model_of("parser", uses_upos=True)})
    with pytest.raises(ValueError, match="the models read upos beside the words"):
        models.reading(["w1"])
    reading = models.reading(["w1"], upos=["NOUN"])
    with pytest.raises(ValueError, match="not all zero"):
        steps(reading, {"one": 0.0}, 0.9)
    with pytest.raises(ValueError, match="sigma is 0"):
        steps(reading, {"one": 1.0}, 0.0)
