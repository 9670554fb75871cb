"""Small source models of the invented languages."""

from __future__ import annotations

import unicodedata

import pytest

from hf_xst.demo import small_models
from hf_xst.demo.small_models import example_sentences, small_sources, target_languages, target_vectors
from hf_xst.drawing.markup import is_right_to_left
from hf_xst.space.steps import TaskModels, run_steps


def test_examples_alternate_between_both_directions():
    sentences = example_sentences()
    assert [is_right_to_left(sentence.words) for sentence in sentences] == [False, True] * (
        len(sentences) // 2
    )
    assert all(sentence.heads.count("0") == 1 for sentence in sentences)
    known = set(target_vectors().words)
    assert {word for sentence in sentences for word in sentence.words} <= known


def test_twin_differs_only_in_its_letters():
    target, twin = target_languages()
    assert target.word_order == twin.word_order
    assert {unicodedata.bidirectional(letter) for letter in twin.consonants + twin.vowels} == {"R"}


@pytest.mark.slow
def test_models_are_trained_once(tmp_path, monkeypatch):
    models = small_sources(tmp_path, sentences=20, epochs=1)
    assert {task: len(by_language) for task, by_language in models.items()} == {"parser": 4, "tagger": 4}
    flat = [model for by_language in models.values() for model in by_language.values()]
    assert len({id(model.encoder.words) for model in flat}) == 1

    def refuse(*arguments):
        raise AssertionError("trained again")

    monkeypatch.setattr(small_models, "_train", refuse)
    assert list(small_sources(tmp_path, sentences=20, epochs=1)) == list(models)
    with pytest.raises(AssertionError, match="trained again"):
        small_sources(tmp_path, sentences=20, epochs=2)
    assert not [path for path in tmp_path.rglob(".*") if path.is_dir()]  # no incomplete folder remains


@pytest.mark.slow
def test_pool_annotates_both_languages(tmp_path):
    sources, examples = small_sources(tmp_path), example_sentences()
    for task, column in (("parser", "head"), ("tagger", "upos")):
        models = TaskModels(sources[task])
        for language in (0, 1):
            correct = total = 0
            for sentence in examples[language::2]:
                distributions = models.distributions(sentence.words, upos=sentence.upos)
                steps = run_steps(distributions, dict.fromkeys(models.sources, 1.0), 0.9)
                predicted = [str(value) for value in models.decode(distributions, steps.best)[column]]
                correct += sum(a == b for a, b in zip(predicted, sentence.column(column), strict=True))
                total += len(predicted)
            assert correct / total > 0.4, (task, language, correct / total)
