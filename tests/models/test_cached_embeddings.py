"""Cached embeddings of frozen encoders."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from safetensors.torch import save
from tokenizers import normalizers, pre_tokenizers

from helpers.small_models import RELATIONS, UPOS, WORDS, arguments, gold, model_of, unlabelled, vectors
from hf_xst import BiaffineParser, BiaffineParserConfig, SupervisedTrainer
from hf_xst.charts.chart import ChartSettings
from hf_xst.models import cached_embeddings, pretrained_words
from hf_xst.models.cached_embeddings import (
    CachedEmbeddings,
    SharedEncoder,
    encode_words,
    encoder_fingerprint,
    share_encoders,
)
from hf_xst.models.running import predict_rows, run_rows
from hf_xst.sources.building import ChartMaker
from hf_xst.sources.loading import model_digest
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


def test_cached_embeddings_equal_the_encoder_output(bert, tmp_path):
    model = parser_over(bert, 1)
    cache = CachedEmbeddings.compute(model, [])
    sentences = [list(words) for words in ROWS["words"]]
    cache.add(model, sentences, batch_words=6)
    cache.add(model, sentences[:1])
    assert len(cache) == 4
    result, expected = cache.batch(sentences), encode_words(model, sentences)
    torch.testing.assert_close(result, expected, rtol=1e-3, atol=1e-3)
    assert result.dtype == torch.float32
    assert (result[2, 1:] == 0).all()
    cache.save(tmp_path)
    again = CachedEmbeddings.load(tmp_path)
    assert again.fingerprint == encoder_fingerprint(model)
    assert torch.equal(again.batch(sentences), result)
    with pytest.raises(KeyError, match="no cached embeddings for the sentence 'new words'"):
        cache.batch([["new", "words"]])


def test_training_on_cached_embeddings_has_the_same_losses(bert, tmp_path):
    rows = gold((2, 5, 1, 3))
    losses = []
    for is_cached in (False, True):
        model = parser_over(bert, 1)
        cache = CachedEmbeddings.compute(model, []) if is_cached else None
        if cache is not None:
            cache.add(model, rows["words"])
        trainer = SupervisedTrainer(model, arguments(tmp_path, 2), rows, eval_dataset=rows, embeddings=cache)
        trainer.train()
        losses.append([entry["loss"] for entry in trainer.state.log_history if "loss" in entry])
    assert losses[0] == pytest.approx(losses[1], rel=1e-2)


def test_sources_with_equal_encoders_encode_each_batch_once(bert, monkeypatch):
    models = {"first": parser_over(bert, 1), "second": parser_over(bert, 2), "vectors": model_of("parser")}
    shared = share_encoders(models)
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
    assert ChartMaker(pool, ChartSettings())(rows) == ChartMaker(alone, ChartSettings())(rows)


def test_sources_with_equal_frozen_layers_run_them_once_a_batch(bert, monkeypatch):
    rows = list(ROWS)
    models = {name: parser_over(bert, seed, frozen_layers=1) for seed, name in enumerate(("one", "two"))}
    with torch.no_grad():
        for parameter in models["two"].encoder.words.model.parameters():
            parameter.mul_(1 + 0.1 * parameter.requires_grad)  # the upper layer has been trained
    expected = [model.distribution(run_rows(model, rows)).scores for model in models.values()]
    runs = []
    layer = type(models["one"].encoder.words.lower_layers[0])
    usual = layer.forward
    monkeypatch.setattr(layer, "forward", lambda *args, **options: runs.append(1) or usual(*args, **options))
    depth = models["one"].encoder.words.model.config.num_hidden_layers

    def read() -> int:
        runs.clear()
        assert all(map(torch.equal, expected, [each.scores for each in pool.distributions(rows)]))
        return len(runs)

    for _ in range(2):  # pools of the same models do not get in each other's way
        pool = SourcePool(models)
        assert read() == 2 * depth - 1
    assert read() == 2 * depth - 2  # the frozen layer has seen these sentences
    with torch.no_grad():
        models["two"].encoder.words.lower_layers[0].attention.self.query.weight.mul_(3.0)
    expected[1] = models["two"].distribution(run_rows(models["two"], rows)).scores
    assert not torch.equal(expected[1], expected[0])
    assert read() == 2 * depth - 2  # each layer, now different, has seen the sentences once more
    pool.distributions(rows[:2])
    assert read() == 2 * depth
    with torch.enable_grad():
        runs.clear()
        models["one"](**models["one"].featurise(rows))
    assert len(runs) == depth


def test_outputs_in_half_precision_are_not_taken_for_others(bert):
    rows, models = list(ROWS), {str(seed): parser_over(bert, seed, frozen_layers=1) for seed in range(2)}
    alone = [model.distribution(run_rows(model, rows)).scores for model in models.values()]
    pools = {bf16: SourcePool(models, bf16=bf16) for bf16 in (True, False)}
    near = [each.scores for each in pools[True].distributions(rows)]
    exact = [each.scores for each in pools[False].distributions(rows)]
    assert not any(map(torch.equal, alone, near))
    assert all(map(torch.equal, alone, exact))


def test_a_tokenizer_is_described_once_for_all_models_and_layers(bert):
    models = {str(seed): parser_over(bert, seed, frozen_layers=1) for seed in range(3)}
    pretrained_words._tokenizer_json.cache_clear()
    for _ in range(2):
        SourcePool(models)
    run_rows(models["0"], list(ROWS))  # may set padding, which the tokenizer's JSON then has
    model_digest(models["0"])
    assert pretrained_words._tokenizer_json.cache_info().misses <= 2


def test_different_or_trained_encoders_are_not_shared(bert):
    trained = parser_over(bert, 2, frozen_layers=1)
    assert share_encoders({"one": parser_over(bert, 1), "other": trained}) == {}
    assert CachedEmbeddings.compute(trained, []) is None
    assert CachedEmbeddings.compute(model_of("parser"), []) is None
    other = parser_over(bert, 2, piece_pooling="first")
    assert share_encoders({"one": parser_over(bert, 1), "other": other}) == {}


def test_predictions_from_cached_embeddings_are_unchanged(bert):
    models = {"first": parser_over(bert, 1), "second": parser_over(bert, 2)}
    cache = CachedEmbeddings.compute(models["first"], ROWS["words"])
    for model in models.values():
        assert list(predict_rows(model, ROWS, embeddings=cache)) == list(predict_rows(model, ROWS))


def test_a_cache_folder_grows(bert, tmp_path):
    model, words = parser_over(bert, 1), list(ROWS["words"])
    first = CachedEmbeddings.compute(model, words[:2], tmp_path)
    again = CachedEmbeddings.compute(parser_over(bert, 2), words, tmp_path)
    assert (len(first), len(again)) == (2, len({tuple(each) for each in words}))
    (folder,) = tmp_path.iterdir()
    assert len(CachedEmbeddings.load(folder)) == len(again)
    assert CachedEmbeddings.compute(model_of("parser"), words, tmp_path) is None
    path = folder / cached_embeddings.EMBEDDINGS_FILE
    content = path.read_bytes()
    swapped = content.replace(first.fingerprint.encode(), first.fingerprint[::-1].encode())
    edits = (content[:-1], content[:-1] + bytes([content[-1] ^ 1]), swapped)
    for edited in (*edits, save({"states": torch.ones(2)})):
        path.write_bytes(edited)
        with pytest.raises(ValueError, match=r"states\.safetensors is damaged .*; remove it"):
            CachedEmbeddings.compute(model, words, tmp_path)


def test_threads_get_the_embeddings_of_their_own_batches(monkeypatch):
    """Marks of the sentences stand for their embeddings; threads switch as often as possible."""
    monkeypatch.setattr(
        cached_embeddings, "encode_words", lambda model, batch: torch.tensor([int(batch[0][0])])
    )
    encoder = SharedEncoder(model_of("parser"))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def mixed(thread):
        marks = [str(10 * (number % 3) + thread) for number in range(1500)]
        return [mark for mark in marks if int(encoder.batch([[mark]])) != int(mark)]

    try:
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(mixed, range(4))) == [[]] * 4
    finally:
        sys.setswitchinterval(interval)


def change_normaliser(tokenizer):
    tokenizer.backend_tokenizer.normalizer = normalizers.Replace("1", "2")


def change_words(tokenizer):
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Split("w", "removed")


def change_special(tokenizer):
    tokenizer.unk_token = "[MASK]"


@pytest.mark.parametrize("change", [change_normaliser, change_words, change_special, None])
def test_all_digests_depend_on_the_tokenizer(bert, tmp_path, change):
    one, other = parser_over(bert, 1), parser_over(bert, 1)
    list(predict_rows(one, ROWS))  # use does not change what a model is
    if change is None:
        other.encoder.words.model.config.layer_norm_eps = 0.1
    else:
        change(other.encoder.words.tokenizer)
    assert encoder_fingerprint(one) == encoder_fingerprint(parser_over(bert, 2))
    assert encoder_fingerprint(one) != encoder_fingerprint(other)
    assert model_digest(one) == model_digest(parser_over(bert, 1)) != model_digest(other)
    assert share_encoders({"one": one, "other": other}) == {}
    CachedEmbeddings.compute(one, ROWS["words"], tmp_path)
    cached = CachedEmbeddings.compute(other, ROWS["words"], tmp_path)
    torch.testing.assert_close(
        cached.batch(ROWS["words"]), encode_words(other, ROWS["words"]), rtol=1e-3, atol=1e-3
    )


@pytest.mark.parametrize("kind", ["parser", "tagger", "groups"])
def test_the_digest_of_a_model_covers_frozen_vectors_words_and_settings(kind):
    digests = {model_digest(model_of(kind)), model_digest(model_of(kind, context_dropout=0.5))}
    for words, seed in ((WORDS, 1), (WORDS[::-1], 0)):
        model = model_of(kind)
        model.replace_word_vectors(vectors(words=words, seed=seed))
        model.config.vector_space = None
        digests.add(model_digest(model))
    assert len(digests) == 4
    assert model_digest(model_of(kind)) in digests


def test_encoding_keeps_the_training_mode(bert):
    model = parser_over(bert, 1)
    for mode in (True, False):
        model.train(mode)
        SharedEncoder(model).batch([["w1", "w2"]])
        assert model.training is mode
        assert list(predict_rows(model, ROWS))
        assert model.training is mode
