"""The small source models of the invented languages: trained once, found again, of some use."""

from __future__ import annotations

import unicodedata

import pytest

from hf_xst.demo import ready
from hf_xst.demo.ready import example_sentences, ready_sources, target_languages, target_vectors
from hf_xst.drawing.markup import is_right_to_left
from hf_xst.space.steps import TaskModels, steps


def test_examples_are_of_both_directions_and_annotated():
    sentences = example_sentences()
    assert [is_right_to_left(sentence.words) for sentence in sentences] == [False, True] * (
        len(sentences) // 2
    )
    assert all(sentence.heads.count("0") == 1 for sentence in sentences)
    known = set(target_vectors().words)
    assert {word for sentence in sentences for word in sentence.words} <= known


def test_the_twin_differs_in_its_letters_alone():
    one, twin = target_languages()
    assert one.word_order == twin.word_order
    assert {unicodedata.bidirectional(letter) for letter in twin.consonants + twin.vowels} == {"R"}


@pytest.mark.slow
def test_models_are_trained_once(tmp_path, monkeypatch):
    first = ready_sources(tmp_path, sentences=20, epochs=1)
    assert {task: len(models) for task, models in first.models.items()} == {"parser": 4, "tagger": 4}
    models = [model for of_task in first.models.values() for model in of_task.values()]
    assert len({id(model.encoder.words) for model in models}) == 1

    def refuse(*arguments):
        raise AssertionError("trained again")

    monkeypatch.setattr(ready, "_trained", refuse)
    second = ready_sources(tmp_path, sentences=20, epochs=1)
    assert [sentence.raw for sentence in second.sentences] == [sentence.raw for sentence in first.sentences]
    with pytest.raises(AssertionError, match="trained again"):
        ready_sources(tmp_path, sentences=20, epochs=2)
    assert not [path for path in tmp_path.rglob(".*") if path.is_dir()]  # nothing half made is left


@pytest.mark.slow
def test_the_pool_reads_both_languages(tmp_path):
    ready = ready_sources(tmp_path)
    for task, column in (("parser", "head"), ("tagger", "upos")):
        models = TaskModels(ready.models[task])
        for which in (0, 1):
            right = total = 0
            for sentence in ready.sentences[which::2]:
                reading = models.reading(sentence.words, upos=sentence.upos)
                found = steps(reading, dict.fromkeys(models.sources, 1.0), 0.9)
                predicted = [str(value) for value in models.columns_of(reading, found.best)[column]]
                right += sum(a == b for a, b in zip(predicted, sentence.column(column), strict=True))
                total += len(predicted)
            assert right / total > 0.4, (task, which, right / total)
