"""Every step as HTML, for typed, uploaded and example sentences."""

from __future__ import annotations

import base64
import gzip
import re

import pytest

from helpers.small_models import RELATIONS, model_of
from hf_xst.data import ConlluSentence
from hf_xst.space.backend import (
    MAX_TEXT,
    MAX_UPLOAD,
    Answer,
    Backend,
    gold_of,
    typed_sentence,
    uploaded_sentences,
    upos_of,
)
from hf_xst.space.steps import TaskModels

SOURCES = ["one", "two"]
WEIGHTS = {"one": 1.0, "two": 0.5}


@pytest.fixture(scope="module")
def backend():
    return Backend(
        {
            "parser": TaskModels(
                {name: model_of("parser", seed, uses_upos=True) for seed, name in enumerate(SOURCES)}
            ),
            "tagger": TaskModels({name: model_of("tagger", seed) for seed, name in enumerate(SOURCES)}),
        }
    )


def annotated(**columns):
    default = {"upos": ["NOUN", "VERB", "ADJ"], "head": ["2", "0", "2"], "deprel": ["obj:x", "root", "amod"]}
    return ConlluSentence.from_words(["w1", "w2", "w3"], sent_id="s", columns=default | columns)


@pytest.mark.parametrize("task", ["parser", "tagger"])
@pytest.mark.parametrize(
    "sentence", [annotated(), typed_sentence("w1 ?"), typed_sentence("שלום עולם")], ids=str
)
def test_every_step_is_drawn(backend, task, sentence):
    marginals = backend.marginals(task, sentence, SOURCES)
    assert marginals.count("<svg") == 2
    assert marginals.count("<figure>") == 2
    answer = backend.answer(task, sentence, SOURCES, WEIGHTS, 0.9)
    for html in (answer.pool, answer.chart, answer.best):
        assert html.count("<svg") == 1
    assert "The chart holds" in answer.chart
    direction = "rtl" if sentence.words[0] == "שלום" else "ltr"
    assert f'dir="{direction}"><svg' in answer.best
    assert '<pre class="drawn" dir="ltr">' in answer.best


def test_known_gold_is_marked(backend):
    answer = backend.answer("parser", annotated(), SOURCES, WEIGHTS, 0.9)
    assert answer.pool.count("★") == 3
    assert "★" in answer.chart
    assert "★" not in backend.answer("parser", annotated(head=["_"] * 3), SOURCES, WEIGHTS, 0.9).chart


def downloaded(answer: Answer) -> str:
    (content,) = re.findall(r'href="data:text/plain;charset=utf-8;base64,([^"]*)"', answer.download)
    return base64.b64decode(content).decode()


def test_answer_can_be_downloaded(backend):
    sentence = annotated(misc=["A=1", "_", "_"])
    text = downloaded(backend.answer("parser", sentence, SOURCES, WEIGHTS, 0.9))
    lines = [line.split("\t") for line in text.splitlines() if "\t" in line]
    assert text.startswith("# sent_id = s\n")
    assert text.endswith("\n\n")
    assert [line[1] for line in lines] == ["w1", "w2", "w3"]
    assert {line[7] for line in lines} <= set(RELATIONS)
    assert [line[6] for line in lines].count("0") == 1
    assert lines[0][9] == "A=1"


def test_missing_tags_are_predicted(backend):
    lines = [
        line.split("\t")
        for line in downloaded(
            backend.answer("parser", typed_sentence("w1 w2"), SOURCES, WEIGHTS, 0.9)
        ).splitlines()
        if "\t" in line
    ]
    assert [line[3] for line in lines] == backend.tasks["tagger"].predict(["w1", "w2"])["upos"]
    alone = Backend({"parser": backend.tasks["parser"]})
    with pytest.raises(ValueError, match="these parsers read tags: type word/TAG"):
        alone.answer("parser", typed_sentence("w1"), SOURCES, WEIGHTS, 0.9)
    assert alone.answer("parser", typed_sentence("w1/NOUN"), SOURCES, WEIGHTS, 0.9).best


def test_sigma_and_weights_change_the_answer(backend):
    answers = [
        backend.answer("parser", annotated(), SOURCES, weights, sigma)
        for weights, sigma in ((WEIGHTS, 0.2), (WEIGHTS, 0.99), ({"one": 0.1, "two": 1.0}, 0.99))
    ]
    assert answers[0].pool != answers[1].pool  # its frames
    assert len({answer.chart for answer in answers}) == 3
    assert len({answer.pool for answer in answers}) == 3


def test_moving_a_slider_runs_no_model(backend, monkeypatch):
    sentence = typed_sentence("w3 w2 w1")
    backend.marginals("parser", sentence, SOURCES)

    def refuse(rows):
        raise AssertionError("a model ran again")

    for models in backend.tasks.values():
        monkeypatch.setattr(models.pool, "distributions", refuse)
    for sigma in (0.4, 0.8):
        backend.answer("parser", sentence, SOURCES[:1], WEIGHTS, sigma)
    with pytest.raises(AssertionError, match="a model ran again"):
        backend.answer("parser", typed_sentence("w9 w2 w1"), SOURCES, WEIGHTS, 0.4)


def test_typed_text_is_never_markup(backend):
    answer = backend.answer(
        "tagger", typed_sentence("<script>alert(1)</script> & \" '"), SOURCES, WEIGHTS, 0.9
    )
    for html in (answer.pool, answer.chart, answer.best, answer.download):
        assert "<script" not in html


@pytest.mark.parametrize(
    ("text", "words", "tags"),
    [
        ("the dog barks.", ["the", "dog", "barks", "."], None),
        (" the/DET  dog/NOUN ", ["the", "dog"], ["DET", "NOUN"]),
        ("a/b/X", ["a/b"], ["X"]),
        ("the/DET dog", ["the", "/", "DET", "dog"], None),
        ("it/ITS", ["it", "/", "ITS"], None),
        ("He left. She stayed.", ["He", "left", ".", "She", "stayed", "."], None),
    ],
)
def test_typed_sentences(text, words, tags):
    sentence = typed_sentence(text)
    assert sentence.words == words
    assert upos_of(sentence) == tags


def test_empty_input_is_rejected(tmp_path):
    with pytest.raises(ValueError, match="type at least one word"):
        typed_sentence(" \n")
    empty = tmp_path / "empty.txt"
    empty.write_text("\n")
    with pytest.raises(ValueError, match=r"empty\.txt contains no sentences"):
        uploaded_sentences(str(empty))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.conllu", b"1\tw\n"),
        ("a.txt", b"\xff\n"),
        ("a.jsonl", b"{}\n"),
        ("a.conllu", b"\x1f\x8bx"),
        ("a.txt", None),
    ],
)
def test_errors_name_the_upload_without_its_folder(tmp_path, name, content):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(name)) as caught:
        uploaded_sentences(str(path))
    assert str(tmp_path) not in str(caught.value)


def test_uploaded_sentences(tmp_path):
    file = tmp_path / "some.conllu"
    file.write_text(annotated().raw * 300)
    assert len(uploaded_sentences(str(file))) == 200
    (tmp_path / "lines.txt").write_text("a b\nc\n")
    assert [sentence.words for sentence in uploaded_sentences(str(tmp_path / "lines.txt"))] == [
        ["a", "b"],
        ["c"],
    ]


def test_texts_and_uploads_are_limited(tmp_path):
    with pytest.raises(ValueError, match=r"the text has 2,001 characters; expected at most 2,000"):
        typed_sentence("a" * (MAX_TEXT + 1))
    bomb = tmp_path / "bomb.conllu"
    bomb.write_bytes(gzip.compress(annotated().with_comments(["# " + "x" * 20_000]).raw.encode() * 100))
    assert bomb.stat().st_size < MAX_UPLOAD
    with pytest.raises(ValueError, match=r"^bomb\.conllu holds more than 1,000,000 characters"):
        uploaded_sentences(str(bomb))


def test_gold_of_sentences():
    assert gold_of(annotated(), ("head", "deprel")) == {
        "head": ["2", "0", "2"],
        "deprel": ["obj", "root", "amod"],
    }
    assert gold_of(annotated(), ("upos",)) == {"upos": ["NOUN", "VERB", "ADJ"]}
    assert gold_of(annotated(head=["2", "_", "2"]), ("head", "deprel")) is None
    assert gold_of(annotated(head=["2", "x", "2"]), ("head", "deprel")) is None
