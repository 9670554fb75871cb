"""Unlabelled text in all its forms gives one layout."""

from __future__ import annotations

import gzip
import io
import json

import pytest
from datasets import Dataset

from hf_xst.data import (
    ConlluError,
    TextError,
    iterate_unlabelled,
    prepared_features,
    read_conllu,
    read_unlabelled,
    write_conllu,
)

WORDS = [["Zwei", "12\u00a0000"], ["_", "<root>", "#"]]
TEXT = "\ufeffZwei  12\u00a0000 \r\n\n_ <root> #"
JSONL = "\n".join(
    json.dumps(row)
    for row in ({"words": WORDS[0], "upos": ["NUM", "NUM"], "sent_id": "j"}, {"tokens": WORDS[1], "other": 1})
)
CONLLU = "".join(
    "".join(f"{n}\t{w}\t_\tX\t_\t_\t9\t_\t_\t_\n" for n, w in enumerate(words, 1)) + "\n" for words in WORDS
)
FILES = {"a.txt": TEXT, "a.jsonl": JSONL + "\n\n", "a.conllu": CONLLU}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("zipped", [False, True])
def test_every_format_gives_the_same_words(write, name, zipped):
    content = FILES[name].encode()
    path = write(f"{name}.gz" if zipped else name, gzip.compress(content) if zipped else content)
    data = read_unlabelled(path)
    assert data.features == prepared_features(gold=False)
    assert data["words"][:] == WORDS
    assert data["sent_id"][:] == ["j" if name == "a.jsonl" else f"{name}:1", f"{name}:2"]
    tags = {"a.txt": ["_", "_"], "a.jsonl": ["NUM", "NUM"], "a.conllu": ["X", "X"]}[name]
    assert data["upos"][0] == tags
    assert [len(t) for t in data["upos"]] == [2, 3]
    stream = read_unlabelled(io.BytesIO(content), format=path.name.split(".")[1].replace("txt", "text"))
    assert stream["words"][:] == WORDS


@pytest.mark.parametrize("name", FILES)
def test_streamed_sentences_can_be_written(write, name):
    out = io.StringIO()
    write_conllu(iterate_unlabelled(write(name, FILES[name])), out)
    again = list(read_conllu(io.StringIO(out.getvalue())))
    assert [s.words for s in again] == WORDS


def test_streaming_is_lazy(write):
    sentences = iterate_unlabelled(write("a.jsonl", '{"words": ["a"]}\nno json\n'))
    assert next(sentences).words == ["a"]
    with pytest.raises(TextError, match=r"a.jsonl:2: found no JSON"):
        next(sentences)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"words": ["a"], "sent_id": "x\\ny"}', "sent_id, expected text without tabs and line breaks"),
        ('{"words": ["\\ud800"]}', "for form, of which half a character cannot be written"),
        ("[" * 100_000, "found no JSON"),
    ],
)
def test_json_that_no_conllu_can_hold_is_refused_where_it_stands(write, line, message):
    sentences = iterate_unlabelled(write("a.jsonl", f'{{"words": ["a"]}}\n{line}\n'))
    assert next(sentences).words == ["a"]
    with pytest.raises(TextError, match=rf"(?s)a\.jsonl:2: .*{message}"):
        next(sentences)


def test_edited_text_is_read_anew(write, tmp_path):
    assert read_unlabelled(write("a.txt", "a b"), cache_dir=tmp_path / "c")["words"][:] == [["a", "b"]]
    assert read_unlabelled(write("a.txt", "c"), cache_dir=tmp_path / "c")["words"][:] == [["c"]]
    assert len(read_unlabelled(write("e.txt", "\n \n"))) == 0


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "fine\n1\tw\t_", r"a.txt:2: found '1\\tw\\t_' for form.*say format='conllu'"),
        ("a.jsonl", "[1]", r"a.jsonl:1: found \[1\], expected an object with 'words' or 'tokens'"),
        ("a.jsonl", '{"text": "a b"}', "expected an object with 'words'"),
        (
            "a.jsonl",
            '\n{"words": ["a", 1]}',
            r"a.jsonl:2: found words \['a', 1\], expected a list of strings",
        ),
        ("a.jsonl", '{"words": "ab"}', "found words 'ab'"),
        ("a.jsonl", '{"words": ["a"], "upos": [1]}', r"found upos \[1\]"),
        ("a.jsonl", '{"words": ["a"], "upos": ["X", "Y"]}', "found 2 values for upos, expected 1"),
        ("a.jsonl", '{"words": []}', "at least one word"),
        ("a.jsonl", '{"words": ["a\\nb"]}', "without tabs and line breaks"),
        ("a.doc", "a b", "found suffix '.doc', expected one of .conllu, .txt, .jsonl"),
    ],
)
def test_errors_name_file_and_line(write, name, content, message):
    with pytest.raises(TextError, match=message):
        read_unlabelled(write(name, content))


def test_formats_can_be_said(write):
    path = write("a.odd", "a b")
    assert read_unlabelled(path, format="text")["words"][:] == [["a", "b"]]
    with pytest.raises(TextError, match="found format 'word'"):
        iterate_unlabelled(path, format="word")
    with pytest.raises(TextError, match="found suffix ''"):
        iterate_unlabelled(io.StringIO("a"))
    with pytest.raises(ConlluError, match="found 1 columns"):
        read_unlabelled(path, format="conllu")
    with pytest.raises(ValueError, match="found column 'x'"):
        read_unlabelled(path, column="x")


def test_columns_of_data_sets():
    data = Dataset.from_dict({"toks": [["a", "b"], [], ["c"]], "n": [1, 2, 3]})
    found = read_unlabelled(data, column="toks")
    assert found.features == prepared_features(gold=False)
    assert found[:] == {
        "sent_id": ["sentence:1", "sentence:3"],
        "words": [["a", "b"], ["c"]],
        "upos": [["_", "_"], ["_"]],
    }
    named = Dataset.from_dict({"tokens": [["a"]], "upos": [["X"]], "sent_id": ["s"], "head": [["no head"]]})
    assert read_unlabelled(named)[:] == {"sent_id": ["s"], "words": [["a"]], "upos": [["X"]]}
    with pytest.raises(ValueError, match="expected a list of strings called words or tokens"):
        read_unlabelled(data)
    with pytest.raises(ValueError, match="text must be split into words first"):
        read_unlabelled(Dataset.from_dict({"text": ["a b"]}), column="text")


@pytest.mark.parametrize("name", ["p06_heads_blank", "p06_heads_stale"])
def test_field_cases_of_heads_that_must_not_matter(shared, name):
    data = read_unlabelled(shared("fieldcases", "files", f"{name}.conllu"))
    assert data["sent_id"][:] == ["p06-tr", "p06-ar"]
    assert [len(words) for words in data["words"]] == [5, 4]
