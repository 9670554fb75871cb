"""Test label columns of data sets, JSON lines and MISC, and the normalisation of span labels."""

from __future__ import annotations

import io

import datasets
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value

from hf_xst.data import (
    TREEBANK_FEATURES,
    ConlluSentence,
    GoldError,
    TextError,
    bio_alphabet,
    load_treebank,
    prepare,
    read_conllu,
    sentences_to_dataset,
    to_bio,
)
from hf_xst.data.labels import check_bio
from hf_xst.data.sentence import misc_attribute

STRINGS = List(Value("string"))
CLASSES = List(ClassLabel(names=["O", "B-PER", "I-PER"]))
WORDS = [["Ana", "Lu", "naps"], ["Yes"]]
LABELS = [["B-PER", "I-PER", "O"], ["O"]]
NUMBERS = [[1, 2, 0], [0]]
EXPECTED = {
    "sent_id": ["sentence:1", "sentence:2"],
    "words": WORDS,
    "upos": [["_"] * 3, ["_"]],
    "ner_tags": LABELS,
}


def labelled(ner_tags: object, feature: object = STRINGS, words: str = "tokens") -> Dataset:
    columns = {"id": ["0", "1"], words: WORDS, "ner_tags": ner_tags}
    features = Features({"id": Value("string"), words: STRINGS, "ner_tags": feature})
    return Dataset.from_dict(columns, features=features)


@pytest.mark.parametrize(
    "data",
    [labelled(LABELS), labelled(LABELS, words="words"), labelled(NUMBERS, CLASSES)],
    ids=["tokens", "words", "class labels"],
)
def test_label_column_of_a_data_set(data):
    prepared, report = prepare(data, gold=False, labels=["ner_tags"])
    assert prepared[:] == EXPECTED
    assert prepared.features["ner_tags"] == STRINGS
    assert report.kept == 2
    assert prepare(prepared, gold=False, labels=["ner_tags"])[0][:] == prepared[:]
    assert prepare(prepared, gold=False)[0].column_names == ["sent_id", "words", "upos"]


def test_missing_class_labels_are_blank():
    prepared, _ = prepare(labelled([[1, None, -1], [0]], CLASSES), gold=False, labels=["ner_tags"])
    assert prepared[0]["ner_tags"] == ["B-PER", "_", "_"]


def test_unusable_columns_are_rejected():
    with pytest.raises(ValueError, match=r"name the values .* dataset.cast_column\('ner_tags'"):
        prepare(labelled(NUMBERS, List(Value("int64"))), gold=False, labels=["ner_tags"])
    with pytest.raises(ValueError, match="found the columns id, tokens, ner_tags, expected also chunks"):
        prepare(labelled(LABELS), gold=False, labels=["chunks"])


def test_sentences_without_labels_are_faulty():
    rows = labelled([["B-PER", "I-PER"], ["_"]])
    message = r"2 labels in ner_tags for 3 words.*no word has a label in ner_tags \(a column.* in MISC\)"
    with pytest.raises(GoldError, match=message):
        prepare(rows, gold=False, labels=["ner_tags"])
    prepared, report = prepare(rows, gold=False, labels=["ner_tags"], faulty="skip")
    assert (len(prepared), report.faulty) == (0, 2)


def test_labels_in_misc_and_xpos():
    columns = {"ner_tags": LABELS[0], "xpos": ["NP", "NP", "_"]}
    sentence = ConlluSentence.from_words(WORDS[0], sent_id="a").with_annotation(columns)
    rows = sentences_to_dataset(read_conllu(io.StringIO(sentence.raw)))
    prepared, _ = prepare(rows, gold=False, labels=["ner_tags", "xpos"])
    assert prepared[0]["ner_tags"] == LABELS[0]
    assert prepared[0]["xpos"] == ["NP", "NP", "_"]
    with pytest.raises(GoldError, match="a: no word has a label in chunks"):
        prepare(rows, gold=False, labels=["chunks"])


@pytest.mark.parametrize(
    ("cell", "value"),
    [("a=1|ner=B-X", "B-X"), ("ner=", "_"), ("nerd=x", "_"), ("ner", "_"), ("_", "_"), (None, "_")],
)
def test_misc_attribute(cell, value):
    assert misc_attribute(cell, "ner") == value


def test_json_lines_as_a_treebank(write):
    lines = (
        '{"words": ["Ana", "Lu"], "ner_tags": ["B-PER", "I-PER"], "upos": ["PROPN", "PROPN"], '
        '"head": [0, 1], '
        '"deprel": ["root", "flat"], "text": "Ana Lu", "sent_id": "s", "scores": [1, 2], "note": null}\n\n'
        '{"tokens": ["Yes"], "ner_tags": ["O"]}\n'
    )
    path = write("c.jsonl", lines)
    rows = load_treebank(path)["data"]
    assert rows.features == TREEBANK_FEATURES
    prepared, _ = prepare(rows, gold=False, labels=["ner_tags"])
    assert prepared["ner_tags"][:] == [["B-PER", "I-PER"], ["O"]]
    assert prepared["sent_id"][:] == ["s", "c.jsonl:3"]
    assert prepare(rows.select([0]), gold=True)[0][0]["head"] == [0, 1]
    assert list(load_treebank(f"train={path},dev={write('dev.jsonl', lines)}")) == ["train", "dev"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"words": ["a"], "ner_tags": ["O", "O"]}', "b.jsonl:1: .*found 2 values for ner_tags, expected 1"),
        ('{"words": ["a"], "upos": [3]}', "b.jsonl:1: found upos"),
        ('{"words": ["a"], "ner_tags": ["a|b"]}', r"found 'a\|b' for ner_tags"),
    ],
)
def test_malformed_json_lines_are_rejected(write, line, message):
    with pytest.raises(TextError, match=message):
        load_treebank(write("b.jsonl", line))


def test_hub_data_set_of_words_and_labels(monkeypatch):
    splits = DatasetDict({"validation": labelled(NUMBERS, CLASSES)})
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: splits)
    rows = load_treebank("some/names")["dev"]
    assert prepare(rows, gold=False, labels=["ner_tags"])[0][:] == EXPECTED
    assert prepare(rows, gold=False)[0]["words"][:] == WORDS
    with pytest.raises(ValueError, match="expected also sent_id, upos, head, deprel"):
        prepare(rows, gold=True)


@pytest.mark.parametrize(
    ("labels", "bio"),
    [
        (["I-A", "I-A", "B-A", "O", "I-B"], ["B-A", "I-A", "B-A", "O", "B-B"]),  # IOB1
        (["B-A", "I-A", "E-A", "S-A", "S-B"], ["B-A", "I-A", "I-A", "B-A", "B-B"]),  # BIOES
        (["B-A", "L-A", "U-A", "I-A"], ["B-A", "I-A", "B-A", "B-A"]),  # BILOU
        (["I-A", "E-A", "E-A"], ["B-A", "I-A", "B-A"]),  # IOE2
        (["_", "I-A", None, "I-B", "X", "I-A"], ["_", "I-A", None, "I-B", "X", "B-A"]),
        (["I-a-b", "E-a-b"], ["B-a-b", "I-a-b"]),
        ([], []),
    ],
)
def test_to_bio(labels, bio):
    assert to_bio(labels) == bio


def test_bio_alphabet():
    assert bio_alphabet({"S-A", "E-B", "X"}) == ["B-A", "B-B", "I-A", "I-B", "O", "X"]
    assert bio_alphabet([]) == ["O"]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["O", "S-A", "B-A"], "found the labels S-A; the scheme bio has O, B-X and I-X"),
        (["NOUN"], "found the labels NOUN"),
        (["B-"], "found the labels B-"),
        (["O", "I-A", "B-B"], "found the label I-A without B-A"),
    ],
)
def test_check_bio_rejects_other_label_sets(labels, message):
    check_bio(["O", "B-a-b", "I-a-b", "B-B-x"])
    with pytest.raises(ValueError, match=message):
        check_bio(labels)
