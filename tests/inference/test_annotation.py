"""Models over a stream of sentences: order, batches, bounded memory, long sentences."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from itertools import islice

import pytest
import torch

from helpers.small_models import KINDS, gold, model_of
from helpers.tiny_models import model_over, save_bert
from hf_xst.data import ConlluSentence
from hf_xst.inference import annotation
from hf_xst.inference.annotation import (
    AnnotationSettings,
    Annotator,
    check_tagger,
    find_tagger,
    load_tagger,
    read_blocks,
)
from hf_xst.inference.confidence import Annotation
from hf_xst.models.pretrained_words import PretrainedWords
from hf_xst.models.running import run_rows
from hf_xst.sources.pool import SourcePool

CONFIDENCE = AnnotationSettings(confidence=True, kbest=2)


def rows(count, seed=0):
    draw = random.Random(seed)
    return list(gold([draw.randrange(1, 12) for _ in range(count)], seed))


def close(one: Annotation, other: Annotation):
    assert one.columns == other.columns
    assert one.log_probs == pytest.approx(other.log_probs, abs=1e-4)
    assert one.probabilities.keys() == other.probabilities.keys()
    for part, values in one.probabilities.items():
        assert values == pytest.approx(other.probabilities[part], abs=1e-5)
    log_probs = [each.log_prob for each in other.ranked]  # of equally probable ones any may come first
    assert [each.log_prob for each in one.ranked] == pytest.approx(log_probs, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch_words", [1, 30, None])
def test_order_is_kept_and_batches_do_not_matter(kind, batch_words):
    model, sentences = model_of(kind, 1), rows(25)
    together = Annotator([model], replace(CONFIDENCE, batch_words=batch_words)).annotate(sentences)
    for row, results in zip(sentences, together, strict=True):
        (alone,) = Annotator([model], CONFIDENCE).annotate([row])
        close(results, alone)
        assert len(results.columns[model.columns[0]]) == len(row["words"])


@pytest.mark.parametrize("kind", ["parser", "tagger"])
def test_bfloat16_changes_scores_a_little(kind):
    model, sentences = model_of(kind, 1), rows(12)
    outputs, log_probs = [], []
    for bf16 in (False, True):
        pool = SourcePool({"one": model}, bf16=bf16)
        outputs += [run_rows(model, sentences, bf16=bf16).scores, pool.distributions(sentences)[0].scores]
        annotations = Annotator([model], replace(CONFIDENCE, bf16=bf16)).annotate(sentences)
        log_probs.append([value for each in annotations for value in each.log_probs.values()])
    assert {scores.dtype for scores in outputs} == {torch.float32}
    for exact, near in zip(outputs[:2], outputs[2:], strict=True):
        shown = exact.isfinite()
        torch.testing.assert_close(near[shown], exact[shown], rtol=0.02, atol=0.1)
        assert not torch.equal(near, exact)
    assert log_probs[1] == pytest.approx(log_probs[0], rel=0.1, abs=0.5)
    assert log_probs[1] != log_probs[0]


def test_later_model_reads_earlier_predictions():
    tagger, parser = model_of("tagger", 2), model_of("parser", 3)
    sentences = rows(9)
    untagged = [{**row, "upos": ["_"] * len(row["words"])} for row in sentences]
    chain = Annotator([tagger, parser], CONFIDENCE)
    assert chain.columns == ("upos", "head", "deprel")
    for row, results in zip(sentences, chain.annotate(untagged), strict=True):
        (tags,) = tagger.predict([row])
        (tree,) = parser.predict([{**row, **tags}])
        assert results.columns == {**tags, **tree}
        assert set(results.log_probs) == {"tags", "tree"}
        assert set(results.probabilities) == {"tag", "head", "label", "arc"}
        assert [set(each.columns) for each in results.ranked] == [{"head", "deprel"}] * len(results.ranked)


def test_shared_frozen_encoder_runs_once(tmp_path, monkeypatch):
    one, other = model_over(save_bert(tmp_path)), model_over(tmp_path)
    calls = []
    plain = PretrainedWords.forward
    monkeypatch.setattr(
        PretrainedWords, "forward", lambda self, *a, **k: calls.append(1) or plain(self, *a, **k)
    )
    sentences = [{"words": ["a", "dog"]}, {"words": ["the"]}]
    alone = Annotator([other]).annotate(sentences)
    assert len(calls) == 1
    assert Annotator([one, other]).annotate(sentences) == alone
    assert len(calls) == 2


def test_rows_have_the_columns_that_models_read():
    sentence = ConlluSentence.from_words(["w1", "w2"], sent_id="s", columns={"upos": ["NOUN", "X"]})
    assert Annotator([model_of("parser")]).row(sentence) == {
        "sent_id": "s",
        "words": ["w1", "w2"],
        "upos": ["NOUN", "X"],
    }
    assert Annotator([model_of("tagger")]).row(sentence) == {"sent_id": "s", "words": ["w1", "w2"]}


def test_one_block_is_read_ahead(monkeypatch):
    monkeypatch.setattr(annotation, "BLOCK", 8)
    read, done = [], []

    def endless():
        for number, row in enumerate(iter(lambda: rows(1)[0], None)):
            read.append(number)
            yield row

    annotator = Annotator([model_of("tagger")])
    for number, block in enumerate(islice(read_blocks(endless()), 4), start=1):
        assert len(annotator.annotate(block, done.append)) == 8
        assert len(read) == 8 * number
        assert sum(done) == 8 * number


def test_blocks_do_not_depend_on_earlier_blocks(monkeypatch):
    monkeypatch.setattr(annotation, "BLOCK", 5)
    annotator, sentences = Annotator([model_of("parser", 1)], CONFIDENCE), rows(18)
    whole = list(map(annotator.annotate, read_blocks(sentences)))
    assert [len(block) for block in whole] == [5, 5, 5, 3]
    assert list(map(annotator.annotate, read_blocks(sentences[10:]))) == whole[2:]  # to the last bit


def test_long_sentences_are_skipped_or_rejected():
    sentences = list(gold((3, 9, 2, 7, 10)))
    results = Annotator([model_of("parser")], AnnotationSettings(max_words=7)).annotate(sentences)
    assert [one.skipped for one in results] == [
        None,
        "9 words, more than max_words=7",
        None,
        None,
        "10 words, more than max_words=7",
    ]
    assert results[1] == Annotation(skipped=results[1].skipped)
    assert [len(one.columns["head"]) for one in results if one.columns] == [3, 2, 7]
    strict = Annotator([model_of("parser")], AnnotationSettings(max_words=7, too_long="error"))
    with pytest.raises(ValueError, match=r"sentence s1 has 9 words, more than max_words=7; raise"):
        strict.annotate(sentences)


def test_gpu_out_of_memory_message(monkeypatch):
    def full(*arguments, **settings):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(annotation, "run_rows", full)
    with pytest.raises(ValueError, match=r"ran out of memory on 2 sentences of up to 3 words; lower --batch"):
        Annotator([model_of("parser")]).annotate(list(gold((3, 2))))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_words": 0}, "batch_words is 0; expected at least 1"),
        ({"max_words": -1}, "max_words is -1"),
        ({"too_long": "cut"}, "too_long is 'cut'; expected 'skip' or 'error'"),
        ({"decoding": "worst"}, "decoding is 'worst'; expected 'best' or 'minimum-risk'"),
        ({"kbest": "2"}, "kbest is '2'; expected int"),
        ({"confidence": "yes"}, "confidence is 'yes'; expected bool"),
        ({"kbest": -1}, "kbest is -1; expected at least 0"),
    ],
)
def test_invalid_settings_are_rejected(arguments, message):
    with pytest.raises(ValueError, match=message):
        AnnotationSettings(**arguments)


def test_find_tagger(tmp_path):
    model_of("parser").save_pretrained(tmp_path / "parser")
    assert find_tagger(str(tmp_path / "parser")) is None
    (tmp_path / "parser" / "tagger").mkdir()
    assert find_tagger(str(tmp_path / "parser")) is None  # an empty folder is not a model
    model_of("tagger").save_pretrained(tmp_path / "parser" / "tagger")
    results = find_tagger(str(tmp_path / "parser"))
    assert load_tagger(results).columns == ("upos",)
    shutil.copytree(tmp_path / "parser", tmp_path / "copy")
    assert find_tagger(str(tmp_path / "copy")) == str(tmp_path / "copy" / "tagger")


def test_find_tagger_needs_the_hub_or_a_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ValueError, match=r"cannot determine .*someone/parser.*\(--tagger none; in a pip"):
        find_tagger("someone/parser")


def test_tagger_of_other_tags_is_rejected():
    tagger, parser = model_of("tagger"), model_of("parser")
    assert Annotator([tagger, parser]).columns == ("upos", "head", "deprel")
    tagger.config.set_labels([f"x{label}" for label in tagger.config.labels])
    with pytest.raises(ValueError, match="knows none of the tagger"):
        Annotator([tagger, parser])


def test_model_of_other_columns_is_not_a_tagger():
    with pytest.raises(ValueError, match=r"that predicts head and deprel; expected a tagger of UPOS tags"):
        check_tagger(model_of("parser"), "that")
    with pytest.raises(ValueError, match=r"that predicts xpos; expected a tagger of UPOS tags \(upos\)"):
        check_tagger(model_of("tagger", column="xpos"), "that")
