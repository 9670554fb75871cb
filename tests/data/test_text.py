"""Test the formats of unlabelled text."""

from __future__ import annotations

import gzip
import io
import json

import pytest

from hf_xst.data import (
    ConlluError,
    TextError,
    hub_text,
    is_hub_text,
    iterate_unlabelled,
    prepared_features,
    read_conllu,
    read_unlabelled,
    stream_from_hub,
    write_conllu,
)
from hf_xst.data.text import read_labelled_jsonl

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
def test_all_formats_yield_the_same_words(write, name, zipped):
    content = FILES[name].encode()
    path = write(f"{name}.gz" if zipped else name, gzip.compress(content) if zipped else content)
    data = read_unlabelled(path)
    assert data.features == prepared_features(gold=False)
    assert data["words"][:] == WORDS
    names = {"a.txt": ["a.txt:1", "a.txt:3"], "a.jsonl": ["j", "a.jsonl:2"]}
    assert data["sent_id"][:] == names.get(name, ["a.conllu:1", "a.conllu:2"])
    tags = {"a.txt": ["_", "_"], "a.jsonl": ["NUM", "NUM"], "a.conllu": ["X", "X"]}[name]
    assert data["upos"][0] == tags
    assert [len(t) for t in data["upos"]] == [2, 3]
    format = path.name.split(".")[1].replace("txt", "text")
    assert [s.words for s in iterate_unlabelled(io.BytesIO(content), format=format)] == WORDS
    out = io.StringIO()
    write_conllu(iterate_unlabelled(path), out)
    assert [s.words for s in read_conllu(io.StringIO(out.getvalue()))] == WORDS


@pytest.mark.parametrize(
    ("content", "format", "numbers"),
    [
        ("\n\na b\n\n \nc\n", "text", [3, 6]),
        ("a\r\n\r\nb", "text", [1, 3]),
        ('\n{"words": ["a"]}\n\n\n{"tokens": ["b"]}\n', "jsonl", [2, 5]),
        ("\nOne. Two.\n\nThree.", "raw", [1, 2, 3]),
    ],
)
def test_empty_lines_do_not_shift_the_lines_that_name_sentences(write, content, format, numbers):
    sentences = iterate_unlabelled(write("t.txt", content), format=format)
    assert [sentence.sent_id for sentence in sentences] == [f"t.txt:{number}" for number in numbers]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", r"found \[1\], expected an object with 'words' or 'tokens'"),
        ('{"text": "a b"}', "expected an object with 'words'"),
        ('{"words": ["a", 1]}', r"found words \['a', 1\], expected a list of strings"),
        ('{"words": "ab"}', "found words 'ab'"),
        ('{"words": ["a"], "upos": [1]}', r"found upos \[1\]"),
        ('{"words": ["a"], "upos": ["X", "Y"]}', "found 2 values for upos, expected 1"),
        ('{"words": []}', "at least one word"),
        ('{"words": ["a\\nb"]}', "without tabs and line breaks"),
        ('{"words": ["a"], "sent_id": "x\\ny"}', "sent_id, expected text without tabs and line breaks"),
        ('{"words": ["\\ud800"]}', "for form, which contains half of a surrogate pair"),
        ("{", "invalid JSON"),
        ("[" * 100_000, "invalid JSON"),
    ],
)
def test_json_errors_give_file_and_line(write, line, message):
    sentences = iterate_unlabelled(write("a.jsonl", f'{{"words": ["a"]}}\n{line}\n'))
    assert next(sentences).words == ["a"]  # reading is lazy
    with pytest.raises(TextError, match=rf"(?s)a\.jsonl:2: .*{message}"):
        next(sentences)


@pytest.mark.parametrize(
    ("row", "sent_id", "text"),
    [
        ({"sent_id": 0}, "0", "a b"),
        ({"sent_id": "", "text": "ab"}, "r.jsonl:1", "ab"),
        ({"sent_id": "x", "text": "a\u00a0 b\n"}, "x", "a\u00a0 b"),
        ({"sent_id": 1.5, "text": "a\tb\r\nc"}, "1.5", "a b c"),
        ({"text": None}, "r.jsonl:1", "a b"),
        ({"text": 3, "sent_id": None}, "r.jsonl:1", "a b"),
    ],
)
def test_sent_id_and_text_of_json_lines_are_kept(write, row, sent_id, text):
    file = write("r.jsonl", json.dumps({"words": ["a", "b"], **row}))
    for sentence in (*iterate_unlabelled(file), *read_labelled_jsonl(file)):
        assert (sentence.sent_id, sentence.text) == (sent_id, text)


def test_edited_file_is_read_again(write, tmp_path):
    assert read_unlabelled(write("a.txt", "a b"), cache_dir=tmp_path / "c")["words"][:] == [["a", "b"]]
    assert read_unlabelled(write("a.txt", "c"), cache_dir=tmp_path / "c")["words"][:] == [["c"]]
    assert len(read_unlabelled(write("e.txt", "\n \n"))) == 0


def test_formats(write):
    path = write("a.odd", "a b")
    assert read_unlabelled(path, format="text")["words"][:] == [["a", "b"]]
    with pytest.raises(TextError, match="found format 'word'"):
        iterate_unlabelled(path, format="word")
    for source, suffix in ((io.StringIO("a"), ""), (path, ".odd")):
        with pytest.raises(
            TextError, match=f"found suffix '{suffix}', expected one of .conllu, .txt, .jsonl"
        ):
            iterate_unlabelled(source)
    with pytest.raises(TextError, match=r"t.txt:2: found a tab.*pass format='conllu'"):
        list(iterate_unlabelled(write("t.txt", "fine\n1\tw\t_")))
    with pytest.raises(ConlluError, match="found 1 columns"):
        read_unlabelled(path, format="conllu")


@pytest.mark.parametrize("name", ["p06_heads_blank", "p06_heads_stale"])
def test_field_case_p06_heads_are_ignored(shared, name):
    data = read_unlabelled(shared("fieldcases", "files", f"{name}.conllu"))
    assert data["sent_id"][:] == ["p06-tr", "p06-ar"]
    assert [len(words) for words in data["words"]] == [5, 4]


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([{"words": WORDS[0], "upos": ["NUM", "X"], "sent_id": "a"}], [("a", WORDS[0], ["NUM", "X"])]),
        ([{"tokens": WORDS[0]}, {"tokens": []}, {"tokens": WORDS[1]}], [("1", WORDS[0]), ("3", WORDS[1])]),
        ([{"words": ["a"], "upos": [3]}], [("1", ["a"])]),
        (
            [{"text": "One two. Three!\n\nFour"}],
            [("1.1", ["One", "two", "."]), ("1.2", ["Three", "!"]), ("1.3", ["Four"])],
        ),
    ],
)
def test_data_sets_are_streamed(tmp_path, rows, expected):
    write_jsonl(tmp_path / "train.jsonl", rows)
    found = stream_from_hub(str(tmp_path), cache_dir=tmp_path.parent / f"{tmp_path.name}-cache")
    assert found.features == prepared_features(gold=False)
    for row, (name, words, *tags) in zip(found, expected, strict=True):
        assert row["sent_id"] in (name, f"{tmp_path.name}:{name}")
        assert (row["words"], row["upos"]) == (words, tags[0] if tags else ["_"] * len(words))


def test_streaming_reads_the_given_rows_once(tmp_path, monkeypatch):
    write_jsonl(tmp_path / "train.jsonl", [{"words": [str(number)]} for number in range(9)])
    cache = tmp_path.parent / f"{tmp_path.name}-cache"
    assert stream_from_hub(str(tmp_path), "train", 2, 5, cache_dir=cache)["words"][:] == [["2"], ["3"], ["4"]]
    monkeypatch.setattr(hub_text, "load_dataset", None)
    assert len(stream_from_hub(str(tmp_path), "train", 2, 5, cache_dir=cache)) == 3
    renamed = (tmp_path / "train.jsonl").rename(tmp_path / "dev.jsonl")
    with pytest.raises(TypeError):  # read again: names decide about splits
        stream_from_hub(str(tmp_path), "train", 2, 5, cache_dir=cache)
    renamed.write_text('{"words": ["new"]}\n')
    with pytest.raises(TypeError):
        stream_from_hub(str(tmp_path), "train", 2, 5, cache_dir=cache)


def test_data_sets_without_text_are_rejected(tmp_path):
    write_jsonl(tmp_path / "train.jsonl", [{"sentence": "a b", "words": 3}])
    with pytest.raises(ValueError, match=r":1 has the columns sentence, words; expected words or tokens"):
        stream_from_hub(str(tmp_path), cache_dir=tmp_path / "cache")
    with pytest.raises(ValueError, match=r"dev cannot be read: .*dev"):
        stream_from_hub(str(tmp_path), "dev", cache_dir=tmp_path / "cache")


@pytest.mark.parametrize(
    ("name", "is_hub"),
    [
        ("owner/name", True),
        ("owner/name:en@v1", True),
        ("owner/na.me@refs/convert/parquet", True),
        ("data/text.txt", False),
        ("a/b.conllu.gz", False),
        ("name", False),
        ("a/b/c", False),
        ("/dev/null", False),
    ],
)
def test_names_of_data_sets(name, is_hub):
    assert is_hub_text(name) == is_hub
