"""Reading is bounded: linear time, limits for lines and sentences, and no archives taken for text."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tracemalloc
import zipfile

import pytest

from hf_xst.data import (
    ConlluError,
    ConlluSentence,
    TextError,
    VectorError,
    conllu,
    iterate_unlabelled,
    read_conllu,
    read_vectors,
    streams,
    text,
)
from hf_xst.data.segmentation import segment
from hf_xst.data.sentence import MAX_WORDS, head_number
from hf_xst.data.streams import InputError, numbered_bytes

ROW = "1\tw\t_\tX\t_\t_\t0\troot\t_\t_\n"
REPEATED = 30_000  # a quadratic algorithm would take minutes


def read_file(path):
    """Read a file by the reader of its suffix."""
    return read_vectors(path) if ".vec" in path.name else list(iterate_unlabelled(path))


@pytest.mark.parametrize("unit", [".!", "!)", "a@b.", "a.b@c."])
def test_segmentation_is_linear(unit):
    words = [word for sentence in segment(unit * REPEATED + " a") for word in sentence]
    assert "".join(words) == unit * REPEATED + "a"


@pytest.mark.parametrize("value", ["a" + " " * REPEATED + "b", " \t" * REPEATED + "a", "= " * REPEATED + "b"])
def test_white_space_of_comments_is_stripped_in_linear_time(value):
    (sentence,) = read_conllu(io.StringIO(f"# sent_id = {value} \t\n# text={value}\n{ROW}"))
    assert sentence.sent_id == sentence.text == value.strip()


def test_long_line_of_a_gzip_file_is_never_in_memory(tmp_path):
    path = tmp_path / "bomb.conllu"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(ROW.encode() + b"\n")
        for _ in range(50):
            stream.write(b"#" * 1_000_000)
    tracemalloc.start()
    with pytest.raises(ConlluError, match=r"bomb\.conllu:3: found a line of more than 10,000,000 bytes"):
        list(read_conllu(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * streams.MAX_BYTES


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.conllu", ROW + "\n# " + "x" * 200, r"x\.conllu:3: found a line of more than 100 bytes"),
        ("x.conllu", "\n" + "# x\n" * 40 + ROW, r"x\.conllu:2: found over 10,000 lines or 100 bytes"),
        ("x.txt", "a\n" + "b " * 100, r"x\.txt:2: found a line"),
        ("x.jsonl", '{"words": ["' + "b" * 100 + '"]}', r"x\.jsonl:1: found a line"),
        ("x.vec", "a 1 2\nb 1 2" + "0" * 100, r"x\.vec:2: found a line"),
    ],
)
def test_long_lines_and_sentences_are_errors(write, monkeypatch, name, content, message):
    for module in (streams, conllu):
        monkeypatch.setattr(module, "MAX_BYTES", 100)
    with pytest.raises(InputError, match=message):
        read_file(write(name, content))


def test_long_paragraphs_are_errors(write, monkeypatch):
    monkeypatch.setattr(text, "MAX_BYTES", 100)
    path = write("x.txt", "Fine.\n\n" + "A sentence.\n" * 20)
    with pytest.raises(TextError, match=r"x\.txt:3: found over 100 bytes without an empty line"):
        list(iterate_unlabelled(path, format="raw"))


def test_lines_of_exactly_the_limit_are_read(monkeypatch):
    monkeypatch.setattr(streams, "MAX_BYTES", 5)
    assert list(numbered_bytes(io.BytesIO(b"abcd\nab"))) == [(1, b"abcd\n"), (2, b"ab")]
    with pytest.raises(InputError, match="<stream>:1: found a line"):
        list(numbered_bytes(io.BytesIO(b"abcde\nab")))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.conllu", f"# sent_id = s\n{ROW}" * MAX_WORDS, "x.conllu:1: found over 10,000 lines"),
        ("x.txt", "a\n" + "b " * (MAX_WORDS + 1), "x.txt:2: found 10,001 words, expected at most 10,000"),
    ],
)
def test_sentences_of_too_many_words_are_errors(write, name, content, message):
    with pytest.raises(InputError, match=message):
        read_file(write(name, content))
    assert len(ConlluSentence.from_words(["a"] * MAX_WORDS).words) == MAX_WORDS


def zipped(content):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("x.conllu", content)
    return stream.getvalue()


@pytest.mark.parametrize("name", ["x.conllu", "x.txt", "x.jsonl", "x.vec"])
@pytest.mark.parametrize(
    ("pack", "kind"),
    [
        (zipped, "a zip archive"),
        (bz2.compress, "bz2 data"),
        (lzma.compress, "xz data"),
        (lambda content: gzip.compress(gzip.compress(content)), "gzip inside gzip"),
        (lambda content: gzip.compress(b"x.conllu" + b"\0" * 92 + content), "binary data"),
        (lambda content: content.decode().encode("utf-16-le"), "binary data"),
    ],
)
def test_archives_and_binary_files_are_named(write, name, pack, kind):
    path = write(name, pack(ROW.encode() * 3))
    with pytest.raises(
        InputError, match=rf"{name}: found {kind}, expected UTF-8 text, plain or gzipped; unpack"
    ):
        read_file(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"2 3\na \0\0\x80\x3f\0\0\0@\x01\x02\x03\x04\nb ", r"x\.vec:2: found binary data after the header"),
        (b"\xba\x16\x4f\x2f\x0c\0\0\0", r"x\.vec: found binary data, expected UTF-8 text"),
        (b"9" * 5000 + b" 300\na 1 2\n", r"x\.vec:2: found 2 numbers after a header that announces 300"),
        (b"a 1\nb " + b"9" * 5000, r"x\.vec:2: found '9+, expected a finite number"),
    ],
)
def test_vector_files_in_other_formats_are_errors(write, content, message):
    with pytest.raises(VectorError, match=message) as error:
        read_vectors(write("x.vec", content))
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    ("head", "number"),
    [("0", 0), ("12", 12), (3, 3), ("9" * 5000, None), ("-1", None), ("²", None), ("٣", None), ("01", None)],
)
def test_heads_are_short_ascii_numbers(head, number):
    assert head_number(head) == number


def test_ids_and_json_numbers_of_many_digits_are_errors(write):
    digits = "9" * 5000
    with pytest.raises(ConlluError, match=r"x\.conllu:1: found ID '1-9+', expected word 1"):
        read_file(write("x.conllu", f"1-{digits}\tw" + "\t_" * 8))
    with pytest.raises(TextError, match=r"x\.jsonl:1: invalid JSON"):
        read_file(write("x.jsonl", f'{{"words": ["a"], "n": {digits}}}'))
