"""The steps agree with the library for every kind of model, and run no model twice."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers.small_models import KINDS, UPOS, WORDS, model_of
from hf_xst.charts import pool, pooled_chart
from hf_xst.charts.chart import FLOOR
from hf_xst.space.steps import LONGEST, TaskModels, run_steps

SOURCES = ("one", "two", "three")
ONE_EACH = dict.fromkeys(SOURCES, 1.0)


@pytest.fixture(scope="module", params=KINDS)
def models(request):
    return TaskModels({name: model_of(request.param, seed) for seed, name in enumerate(SOURCES)})


def read(models, length):
    tags = {"upos": [UPOS[index % 3] for index in range(length)]}
    words = WORDS[:length]
    return models.distributions(words, **tags), models.pool.distributions([{"words": words, **tags}])


@given(
    length=st.integers(1, 6),
    sigma=st.floats(0.05, 1.0),
    weights=st.lists(st.floats(0, 1), min_size=3, max_size=3).filter(lambda result: sum(result) > 0.1),
)
def test_charts_and_best_structures_match_the_library(models, length, sigma, weights):
    sentence, distributions = read(models, length)
    result = run_steps(sentence, dict(zip(SOURCES, weights, strict=True)), sigma)
    possible = torch.stack([each.group_view(each.marginals()) for each in distributions])[:, 0].gt(0).any(0)
    chart = pooled_chart(distributions, sigma, weights, FLOOR)
    assert torch.equal(result.kept, chart[0] & possible)
    pooled = pool(distributions, weights, FLOOR)
    scores = distributions[0].group_view(pooled.scores)[0]
    torch.testing.assert_close(result.pooled, scores.exp())
    within = pooled.restricted_to(pooled.part_view(result.kept.unsqueeze(0)))
    assert torch.equal(result.best, within.best_candidates()[0])
    groups = int(distributions[0].group_lengths[0])
    assert result.kept[:groups].any(1).all()
    expected = [float(result.pooled[group, result.best[group]]) for group in range(groups)]
    assert result.confidence()[:groups] == pytest.approx(expected)


def test_selected_sources_are_pooled(models):
    sentence, distributions = read(models, 4)
    result = run_steps(sentence.select(["three", "one"]), ONE_EACH, 0.7)
    chart = pooled_chart([distributions[0], distributions[2]], 0.7, None, FLOOR)
    assert torch.equal(result.kept, chart[0])
    for name, distribution in zip(SOURCES, distributions, strict=True):
        expected = distribution.group_view(distribution.marginals())[0]
        torch.testing.assert_close(sentence.marginals(name), expected)
    with pytest.raises(ValueError, match="choose at least one of the sources one, two, three"):
        sentence.select([])
    with pytest.raises(ValueError, match="unknown: four"):
        sentence.select(["four"])


def test_models_run_once_per_sentence(models, monkeypatch):
    runs = []
    ask = models.pool.distributions
    monkeypatch.setattr(models.pool, "distributions", lambda rows: runs.append(rows) or ask(rows))
    tags = ["NOUN", "VERB", "ADJ"]
    for sigma in (0.3, 0.6, 0.9):
        for weight in (0.0, 0.5):
            sentence = models.distributions(["fresh", "w1", "w2"], upos=tags)
            run_steps(sentence.select(SOURCES[:2]), ONE_EACH | {"one": weight}, sigma)
    assert len(runs) == 1
    models.distributions(["w2", "w1", "fresh"], upos=tags)
    assert len(runs) == 2


def test_structures_are_decoded(models):
    sentence, _ = read(models, 3)
    result = run_steps(sentence, ONE_EACH, 0.9)
    columns = models.decode(sentence, result.best)
    assert tuple(columns) == models.columns
    assert {len(values) for values in columns.values()} == {3}


def test_prediction_is_that_of_the_uniform_pool():
    models = TaskModels({name: model_of("tagger", seed) for seed, name in enumerate(SOURCES)})
    _, distributions = read(models, 5)
    expected = pool(distributions, None, FLOOR).best()[0, 1:-1].tolist()
    assert models.predict(WORDS[:5]) == {"upos": [models.names[tag] for tag in expected]}


def test_labels_are_those_of_all_sources():
    one = model_of("tagger")
    models = TaskModels({"one": one, "two": model_of("tagger", 1, labels=["NOUN", "X"])})
    assert models.names == ["NOUN", "VERB", "ADJ", "X", *one.names[-2:]]
    sentence = models.distributions(["w1", "w2"])
    probabilities = sentence.marginals("two").view(3, 6, 6)
    assert float(probabilities[:, [1, 2]].sum()) == 0
    result = run_steps(sentence, {"one": 1, "two": 1}, 1.0)
    assert int((result.best >= 0).sum()) == 3


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ({"words": []}, "the sentence has 0 words; expected 1 to 60"),
        ({"words": ["w"] * (LONGEST + 1)}, "the sentence has 61 words"),
    ],
)
def test_invalid_sentences_are_rejected(models, sentence, message):
    with pytest.raises(ValueError, match=message):
        models.distributions(**sentence)


def test_invalid_settings_are_rejected():
    with pytest.raises(ValueError, match="must all predict the same columns"):
        TaskModels({"one": model_of("parser"), "two": model_of("tagger")})
    models = TaskModels({"one": model_of("parser", uses_upos=True)})
    with pytest.raises(ValueError, match="the models read upos, which"):
        models.distributions(["w1"])
    sentence = models.distributions(["w1"], upos=["NOUN"])
    with pytest.raises(ValueError, match="not all zero"):
        run_steps(sentence, {"one": 0.0}, 0.9)
    with pytest.raises(ValueError, match="sigma is 0"):
        run_steps(sentence, {"one": 1.0}, 0.0)
