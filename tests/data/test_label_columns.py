"""Labels beside CoNLL-U's own: columns of data sets, JSON lines, and attributes in MISC."""

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
    load_treebank,
    prepare,
    read_conllu,
    sentences_to_dataset,
)
from hf_xst.data.sentence import attribute

STRINGS = List(Value("string"))
NAMES = ["O", "B-PER", "I-PER"]
WORDS = [["Ana", "Lu", "naps"], ["Yes"]]
LABELS = [["B-PER", "I-PER", "O"], ["O"]]
EXPECTED = {
    "sent_id": ["sentence:1", "sentence:2"],
    "words": WORDS,
    "upos": [["_"] * 3, ["_"]],
    "ner_tags": LABELS,
}
CONLLU = (
    "# sent_id = a\n"
    "1\tAna\t_\tPROPN\tNP\t_\t_\t_\t_\tner_tags=B-PER|SpaceAfter=No\n"
    "2\tLu\t_\tPROPN\tNP\t_\t_\t_\t_\tx=y|ner_tags=I-PER\n"
    "3\tnaps\t_\tVERB\t_\t_\t_\t_\t_\tner_tags=O\n\n"
)


def labelled(ner_tags: object, feature: object = STRINGS, words: str = "tokens") -> Dataset:
    columns = {"id": ["0", "1"], words: WORDS, "ner_tags": ner_tags}
    features = Features({"id": Value("string"), words: STRINGS, "ner_tags": feature})
    return Dataset.from_dict(columns, features=features)


@pytest.mark.parametrize("words", ["tokens", "words"])
def test_strings_of_a_data_set(words):
    found, report = prepare(labelled(LABELS, words=words), gold=False, labels=["ner_tags"])
    assert found[:] == EXPECTED
    assert found.features["ner_tags"] == STRINGS
    assert report.kept == 2


def test_class_labels_get_their_names():
    numbers = [[1, 2, 0], [0]]
    found, _ = prepare(
        labelled(numbers, List(ClassLabel(names=NAMES))), gold=False, labels=["ner_tags"], num_proc=1
    )
    assert found[:] == EXPECTED
    missing = labelled([[1, None, -1], [0]], List(ClassLabel(names=NAMES)))
    assert prepare(missing, gold=False, labels=["ner_tags"])[0][0]["ner_tags"] == ["B-PER", "_", "_"]


def test_numbers_without_names_are_refused():
    with pytest.raises(ValueError, match=r"numbers get names by dataset.cast_column\('ner_tags'"):
        prepare(labelled([[1, 2, 0], [0]], List(Value("int64"))), gold=False, labels=["ner_tags"])
    with pytest.raises(ValueError, match="found the columns id, tokens, ner_tags, expected also chunks"):
        prepare(labelled(LABELS), gold=False, labels=["chunks"])


def test_preparing_twice_changes_nothing():
    once, _ = prepare(labelled(LABELS), gold=False, labels=["ner_tags"])
    assert prepare(once, gold=False, labels=["ner_tags"])[0][:] == once[:]
    assert prepare(once, gold=False)[0].column_names == ["sent_id", "words", "upos"]


def test_sentences_without_labels_are_faulty():
    rows = labelled([["B-PER", "I-PER"], ["_"]])
    message = r"2 labels in ner_tags for 3 words.*no word has a label in ner_tags \(a column.* in MISC\)"
    with pytest.raises(GoldError, match=message):
        prepare(rows, gold=False, labels=["ner_tags"])
    found, report = prepare(rows, gold=False, labels=["ner_tags"], faulty="skip")
    assert (len(found), report.faulty) == (0, 2)


def test_attributes_and_xpos_of_conllu():
    rows = sentences_to_dataset(read_conllu(io.StringIO(CONLLU)))
    found, _ = prepare(rows, gold=False, labels=["ner_tags", "xpos"])
    assert found[0]["ner_tags"] == ["B-PER", "I-PER", "O"]
    assert found[0]["xpos"] == ["NP", "NP", "_"]
    with pytest.raises(GoldError, match="a: no word has a label in chunks"):
        prepare(rows, gold=False, labels=["chunks"])


@pytest.mark.parametrize(
    ("cell", "value"),
    [("a=1|ner=B-X", "B-X"), ("ner=", "_"), ("nerd=x", "_"), ("ner", "_"), ("_", "_"), (None, "_")],
)
def test_an_attribute(cell, value):
    assert attribute(cell, "ner") == value


def test_what_conllu_has_no_column_for_goes_to_misc_and_comes_back():
    (sentence,) = read_conllu(io.StringIO(CONLLU))
    found = sentence.annotated({"xpos": ["A", "B", "C"], "ner_tags": ["O", "_", "B-LOC"], "n": [1, 2, 3]})
    assert found.xpos == ["A", "B", "C"]
    assert found.column("misc") == ["SpaceAfter=No|ner_tags=O|n=1", "x=y|n=2", "ner_tags=B-LOC|n=3"]
    assert found.annotated({}) == found
    with pytest.raises(ValueError, match=r"found 'a\|b' for ner_tags, expected text without \|"):
        sentence.annotated({"ner_tags": ["a|b", "c", "d"]})
    with pytest.raises(ValueError, match="found 1 values for ner_tags, expected 3"):
        sentence.annotated({"ner_tags": ["a"]})


def test_json_lines_are_a_treebank(write):
    lines = (
        '{"words": ["Ana", "Lu"], "ner_tags": ["B-PER", "I-PER"], "upos": ["PROPN", "PROPN"], '
        '"head": [0, 1], '
        '"deprel": ["root", "flat"], "text": "Ana Lu", "sent_id": "s", "scores": [1, 2], "note": null}\n\n'
        '{"tokens": ["Yes"], "ner_tags": ["O"]}\n'
    )
    for name in ("a.jsonl", "dev.jsonl"):
        write(name, lines)
    place = write("c.jsonl", lines)
    rows = load_treebank(place)["data"]
    assert rows.features == TREEBANK_FEATURES
    found, _ = prepare(rows, gold=False, labels=["ner_tags"])
    assert found["ner_tags"][:] == [["B-PER", "I-PER"], ["O"]]
    assert found["sent_id"][:] == ["s", "c.jsonl:2"]
    assert prepare(rows.select([0]), gold=True)[0][0]["head"] == [0, 1]
    parts = load_treebank(f"train={place.parent}/a.jsonl,dev={place.parent}/dev.jsonl")
    assert list(parts) == ["train", "dev"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"words": ["a"], "ner_tags": ["O", "O"]}', "b.jsonl:1: .*found 2 values for ner_tags, expected 1"),
        ('{"words": ["a"], "upos": [3]}', "b.jsonl:1: found upos"),
        ('{"words": ["a"], "ner_tags": ["a|b"]}', r"found 'a\|b' for ner_tags"),
    ],
)
def test_broken_json_lines_are_named(write, line, message):
    with pytest.raises(TextError, match=message):
        load_treebank(write("b.jsonl", line))


def test_a_missing_file_of_json_lines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no file or folder gone\.jsonl"):
        load_treebank("gone.jsonl")


def test_a_data_set_of_the_hub_keeps_its_labels(monkeypatch):
    parts = DatasetDict({"validation": labelled([[1, 2, 0], [0]], List(ClassLabel(names=NAMES)))})
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: parts)
    rows = load_treebank("some/names")["dev"]
    assert prepare(rows, gold=False, labels=["ner_tags"])[0][:] == EXPECTED
    assert prepare(rows, gold=False)[0]["words"][:] == WORDS
    with pytest.raises(ValueError, match="expected also sent_id, upos, head, deprel"):
        prepare(rows, gold=True)


def test_labels_of_words_survive_the_way_through_conllu():
    sentence = ConlluSentence.from_words(WORDS[0]).annotated({"ner_tags": LABELS[0]})
    rows = sentences_to_dataset(read_conllu(io.StringIO(sentence.raw)))
    assert prepare(rows, gold=False, labels=["ner_tags"])[0][0]["ner_tags"] == LABELS[0]
