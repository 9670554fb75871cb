"""States of a frozen encoder: the same numbers, computed once."""

from __future__ import annotations

import pytest
import torch

from helpers.small_models import RELATIONS, UPOS, WORDS, arguments, gold, model_of, unlabelled
from hf_xst import BiaffineParser, BiaffineParserConfig, SupervisedTrainer
from hf_xst.charts.dataset import ChartSettings
from hf_xst.models.cached_states import (
    FrozenStates,
    SharedEncoder,
    encode,
    encoder_fingerprint,
    shared_encoders,
)
from hf_xst.models.running import predict_rows
from hf_xst.sources.building import ChartMaker
from hf_xst.sources.pool import SourcePool

ROWS = unlabelled(gold((2, 5, 1, 3)))


def parser_over(bert, seed, **changes):
    settings = {"labels": RELATIONS, "upos_names": UPOS, "upos_size": 4, "arc_size": 6, "label_size": 5}
    settings |= {"word_dropout": 0.0, "output_dropout": 0.0}
    torch.manual_seed(seed)
    model = BiaffineParser.from_encoder(BiaffineParserConfig(**(settings | changes)), str(bert))
    with torch.no_grad():
        for parameter in model.scorer.parameters():
            parameter.copy_(torch.randn(parameter.shape) / parameter.shape[-1] ** 0.5)
    return model


def test_a_store_gives_back_what_the_encoder_gave(bert, tmp_path):
    model = parser_over(bert, 1)
    states = FrozenStates.of(model)
    sentences = [list(words) for words in ROWS["words"]]
    states.add(model, sentences, batch_words=6)
    states.add(model, sentences[:1])
    assert len(states) == 4
    found, expected = states.batch(sentences), encode(model, sentences)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)
    assert found.dtype == torch.float32
    assert (found[2, 1:] == 0).all()
    states.save(tmp_path)
    again = FrozenStates.load(tmp_path)
    assert again.fingerprint == encoder_fingerprint(model)
    assert torch.equal(again.batch(sentences), found)
    with pytest.raises(KeyError, match="no states are kept for the sentence 'new words'"):
        states.batch([["new", "words"]])


def test_training_from_the_store_follows_training_from_words(bert, tmp_path):
    rows = gold((2, 5, 1, 3))
    found = []
    for keep in (False, True):
        model = parser_over(bert, 1)
        states = FrozenStates.of(model) if keep else None
        if states is not None:
            states.add(model, rows["words"])
        trainer = SupervisedTrainer(model, arguments(tmp_path, 2), rows, eval_dataset=rows, states=states)
        trainer.train()
        found.append([entry["loss"] for entry in trainer.state.log_history if "loss" in entry])
    assert found[0] == pytest.approx(found[1], rel=1e-2)


def test_sources_over_one_encoder_run_it_once_a_batch_and_keep_nothing(bert, monkeypatch):
    models = {"first": parser_over(bert, 1), "second": parser_over(bert, 2), "vectors": model_of("parser")}
    shared = shared_encoders(models)
    assert set(shared) == {"first", "second"}
    assert shared["first"] is shared["second"]
    runs = []
    for name, model in models.items():
        usual = model.encoder.words.forward
        monkeypatch.setattr(
            model.encoder.words,
            "forward",
            lambda *args, usual=usual, name=name, **kwargs: (runs.append(name), usual(*args, **kwargs))[1],
        )
    pool = SourcePool(models, models["first"].names)
    rows = list(ROWS)
    together = [distribution.scores for distribution in pool.distributions(rows)]
    assert sorted(runs) == ["first", "vectors"]
    pool.distributions(rows[:2])
    assert len(shared["first"].batch([row["words"] for row in rows[:2]])) == 2
    alone = SourcePool(models, models["first"].names, {})
    for mine, other in zip(together, alone.distributions(rows), strict=True):
        torch.testing.assert_close(mine, other.scores)
    made = ChartMaker(pool, ChartSettings())(rows)
    assert made == ChartMaker(alone, ChartSettings())(rows)


def test_an_encoder_of_ones_own_is_not_shared(bert):
    trained = parser_over(bert, 2, frozen_layers=1)
    assert shared_encoders({"one": parser_over(bert, 1), "other": trained}) == {}
    assert FrozenStates.of(trained) is None
    assert FrozenStates.of(model_of("parser")) is None
    for model in (trained, model_of("parser")):
        with pytest.raises(ValueError, match="wholly frozen pretrained encoder"):
            encoder_fingerprint(model)
    other = parser_over(bert, 2, piece_pooling="first")
    assert shared_encoders({"one": parser_over(bert, 1), "other": other}) == {}


def test_a_store_for_several_sources_gives_their_predictions(bert):
    models = {"first": parser_over(bert, 1), "second": parser_over(bert, 2)}
    states = FrozenStates.kept(models["first"], ROWS["words"])
    for model in models.values():
        kept = list(predict_rows(model, ROWS, states=states))
        assert kept == list(predict_rows(model, ROWS))


def test_a_store_grows_in_its_folder(bert, tmp_path):
    model, words = parser_over(bert, 1), list(ROWS["words"])
    first = FrozenStates.kept(model, words[:2], tmp_path)
    again = FrozenStates.kept(parser_over(bert, 2), words, tmp_path)
    assert (len(first), len(again)) == (2, len({tuple(each) for each in words}))
    (place,) = tmp_path.iterdir()
    assert len(FrozenStates.load(place)) == len(again)
    assert FrozenStates.kept(model_of("parser"), words, tmp_path) is None


def test_encoding_leaves_the_mode_of_the_model(bert):
    model = parser_over(bert, 1)
    assert WORDS
    for mode in (True, False):
        model.train(mode)
        SharedEncoder(model).batch([["w1", "w2"]])
        assert model.training is mode
