"""Test the reader of word vector files."""

from __future__ import annotations

import gzip
import hashlib
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_xst.data import VectorError, read_conllu, read_vectors
from hf_xst.data.vectors import VectorStream, example_file_name, space_of
from hf_xst.models.words import FIRST_WORD, WordTable

SPACED = ["pera", "12\u00a0000", "\u00a0", "học sinh", "\u3000", "«\u202foui", "12 000", " ", ""]


def rows(words: list[str], width: int = 3, end: str = "\n") -> str:
    return "".join(
        f"{word} {' '.join(str(n + i / 8) for i in range(width))}{end}" for n, word in enumerate(words)
    )


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("end", ["\n", " \n", "\r\n"])
@pytest.mark.parametrize("header", [True, False])
def test_words_may_contain_spaces(write, zipped, end, header):
    content = ((f"{len(SPACED)} 3{end}" if header else "") + rows(SPACED, end=end)).encode()
    name = "space.xx.vec.gz" if zipped else "space.xx.vec"
    path = write(name, gzip.compress(content) if zipped else content)
    vectors = read_vectors(path)
    assert vectors.words == SPACED
    assert vectors.matrix.dtype == np.float32
    np.testing.assert_array_equal(vectors.matrix, [[n, n + 0.125, n + 0.25] for n in range(len(SPACED))])
    assert (vectors.name, vectors.dimension) == ("space", 3)
    assert vectors.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("start", ["", "\ufeff", "\n", "4 3\n", "\ufeff4 3\n"])
def test_words_may_be_numbers(write, start):
    vectors = read_vectors(write("n.txt", start + rows(["2024", "3", "luna", "мост"]) + "\n\n"))
    assert vectors.words == ["2024", "3", "luna", "мост"]
    assert vectors.matrix.shape == (4, 3)


@pytest.mark.parametrize(
    ("content", "words", "width"),
    [
        ("7 1\n8 2\n", ["8"], 1),  # a header: the second number is the width of the next row
        ("7 5\n8 2\n", ["7", "8"], 1),
        ("a 1\nb 2\n", ["a", "b"], 1),
        ("1 2\nnew york 1 2\n", ["new york"], 2),
    ],
)
def test_header_detection(write, content, words, width):
    vectors = read_vectors(write("h.vec", content))
    assert (vectors.words, vectors.dimension) == (words, width)


def test_first_of_duplicates_is_kept(write):
    vectors = read_vectors(write("d.vec", "a 1 2\nb 3 4\na 5 6\n"))
    assert vectors.words == ["a", "b"]
    np.testing.assert_array_equal(vectors.matrix, [[1, 2], [3, 4]])


@pytest.mark.parametrize("limit", [0, 1, 2, 99])
@pytest.mark.parametrize("header", ["", "3 2\n"])
def test_limit_counts_rows(write, limit, header):
    vectors = read_vectors(write("l.vec", header + rows(["a", "b", "c"], 2)), limit=limit)
    assert vectors.words == ["a", "b", "c"][:limit]
    assert vectors.matrix.shape == (min(limit, 3), 2)


def test_vocabulary_keeps_all_lookup_forms(write):
    path = write("v.vec", rows(["paris", "Paris", "0000", "x", "q0", "học sinh"], 2))
    vectors = read_vectors(path, vocabulary={"PARIS", "1987", "Q7", "học sinh"})
    assert vectors.words == ["paris", "0000", "q0", "học sinh"]
    np.testing.assert_array_equal(vectors.matrix[:, 0], [0, 2, 4, 5])
    table, full = WordTable(vectors.words), WordTable(read_vectors(path).words)
    for word in ("PARIS", "1987", "Q7", "học sinh"):
        assert vectors.words[table.lookup(word) - 2] == full.words[full.lookup(word) - 2]
    assert read_vectors(path, vocabulary=[]).matrix.shape == (0, 2)


def test_files_of_several_blocks(write):
    words = [f"w{n}" for n in range(20_000)]
    vectors = read_vectors(write("m.vec", rows(words, 2)))
    assert vectors.words == words
    np.testing.assert_array_equal(vectors.matrix, [[n, n + 0.125] for n in range(20_000)])


@pytest.mark.parametrize("word", ["0.1", "-3", "1 000 000", "Boeing 747", "v1.5 beta", "3.x", "a .", "e 1e"])
def test_words_that_hold_numbers_are_not_numbers_too_many(write, word):
    vectors = read_vectors(write("w.vec", f"a 0.5 1\n{word} 0.5 1\n"))
    assert vectors.words == ["a", word]
    if not word[-1].isdigit() or word.replace(" ", "").isdigit():
        assert read_vectors(write("w.vec", f"a 5 1\n{word} 5 1\n")).words == ["a", word]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no rows"),
        ("\n\n", "no rows"),
        ("4 3\n", "no rows"),
        ("word\n", r"b.vec:1: found a row without numbers"),
        ("a\t1\t2\n", r"b.vec:1: found a row without numbers"),
        ("4 3\na 1 2\n", r"b.vec:2: found 2 numbers after a header that announces 3"),
        ("2 2\na 1 2\nb 1\n", r"b.vec:3: found 1 numbers after the word, expected 2"),
        ("a 1 2\nb 1\n", r"b.vec:2: found 1 numbers after the word, expected 2"),
        ("a 1 2\nb 1 x\n", r"b.vec:2: found 'x', expected a finite number"),
        ("a 1 2\nb 1 1_0\n", r"b.vec:2: found '1_0'"),
        ("a 1 2\nb 1 nan\n", r"b.vec:2: found 'nan'"),
        ("a 1 2\nb 1 1e39\n", r"b.vec:2: found '1e39'"),
        ("a 1 2\nb 1 é\n", r"b.vec:2: found"),
        ("a 1 \t2\n", r"b.vec:1: found '\\t2', expected a finite number"),
        ("a 1 2\nb 1\x0b 3\n", r"b.vec:2: found '1\\x0b'"),
        ("1 1\na \x1c0\n", r"b.vec:2: found '\\x1c0'"),
        ("a 1 2\nb 1 2\xa0\n", r"b.vec:2: found"),
        ("a 1 2\nb  1\n", r"b.vec:2: found '', expected a finite number"),
        ("a 1 2\nHaus 0.1 0.2 0.3\n", r"b.vec:2: found 0.1 before the last 2 numbers, expected a word"),
        ("2 2\nHaus 0.5 1\nBaum -1 0.2 0.3\n", r"b.vec:3: found -1 before the last 2 numbers"),
        ("a 1 2\nnew york 1e-5 0.2 0.3\n", r"b.vec:2: found 1e-5 before the last 2 numbers"),
        ("a 1 2\nHaus 3 0 2\n", r"b.vec:2: found 3 before the last 2 numbers"),
        ("a 1 2\n2024 .5 0.2 0.3\n", r"b.vec:2: found .5 before the last 2 numbers"),
        (b"a 1 2\n\xff 1 2\n", r"b.vec:2: found 0xff .* expected UTF-8"),
        (gzip.compress(rows(["a", "b"] * 999, 4).encode())[:-9], "damaged or truncated"),
    ],
)
def test_errors_give_file_and_line(write, content, message):
    with pytest.raises(VectorError, match=message):
        read_vectors(write("b.vec", content))


def test_each_pass_over_a_stream_yields_all_blocks(write):
    path = write("v.vec", "".join(f"w{n} {n} 0.50\n" for n in range(20_000)) + "w7 1 1\n")
    stream = VectorStream(path)
    for _ in range(2):
        assert stream.count() == 20_000
        assert (stream.rows, stream.duplicates, stream.width) == (20_001, 1, 2)
        blocks = list(stream.blocks())
        assert [word for block in blocks for word in block.words] == [f"w{n}" for n in range(20_000)]
        assert all(block.matrix.shape == (len(block.words), 2) for block in blocks)
        assert blocks[0].numbers[3] == "3 0.50"
    assert len(blocks) > 1


def test_a_stream_keeps_exactly_the_requested_words(write):
    path = write("v.vec", "A 1\na 2\nb 3\n")
    assert [block.words for block in VectorStream(path, words=["a", "B"]).blocks()] == [["a"]]
    assert list(VectorStream(path, words=[]).blocks()) == []
    assert VectorStream(path, limit=2, words=["b"]).count() == 0
    with pytest.raises(VectorError, match=r"v.vec:3: found 0 numbers"):
        VectorStream(write("v.vec", "A 1\na 2\nb\n")).count()


def peak_of_a_cut(path: Path) -> int:
    tracemalloc.start()
    try:
        assert len(read_vectors(path, vocabulary=["w5", "w77"]).words) == 3  # w0 too: digits as 0
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_file(tmp_path):
    row = " ".join(["0.12345"] * 40)
    peaks = []
    for count in (1_000, 30_000):
        path = tmp_path / f"{count}.vec"
        path.write_text("".join(f"w{n} {row}\n" for n in range(count)))
        peaks.append(peak_of_a_cut(path))
    assert path.stat().st_size > 9_000_000
    assert peaks[1] < peaks[0] + 500_000


def test_negative_limit_is_rejected(write):
    with pytest.raises(ValueError, match="found limit -1"):
        read_vectors(write("b.vec", "a 1\n"), limit=-1)


@pytest.mark.parametrize(("announced", "warns"), [(2, False), (3, True)])
def test_wrong_row_count_in_the_header_is_reported(write, caplog, announced, warns):
    path = write("c.vec", f"{announced} 2\n" + rows(["a", "b"], 2))
    assert len(read_vectors(path).words) == 2
    assert ("announces 3 rows, the file has 2" in caplog.text) == warns
    caplog.clear()
    read_vectors(path, limit=1)
    assert not caplog.text


@pytest.mark.parametrize(
    ("path", "space"),
    [
        ("/some.where/me5.de.vec.gz", "me5"),
        ("vectors", "vectors"),
        ("cc.de.300.vec", "cc.de"),
        ("wiki.de.vec", "wiki.de"),
        ("wiki.de.align.vec", "wiki"),
        ("wiki.multi.de.vec", "wiki"),
        ("cc.vec", "cc"),
    ],
)
def test_vector_spaces_of_file_names(path, space):
    assert space_of(path) == space
    if "." not in space:
        assert space_of(example_file_name(space)) == space


WORD = st.text(
    st.characters(blacklist_characters="\n\r", blacklist_categories=("Cs",)), min_size=1, max_size=5
).filter(lambda word: not set(word.rpartition(" ")[2]) & set("0123456789") or " " not in word)
NUMBER = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(st.dictionaries(WORD, st.tuples(NUMBER, NUMBER, NUMBER), min_size=1, max_size=6))
def test_any_table_with_a_header_is_read(tmp_path_factory, table):
    path = tmp_path_factory.mktemp("v") / "h.vec"
    lines = [f"{len(table)} 3", *(f"{word} {' '.join(map(repr, row))}" for word, row in table.items())]
    path.write_text("\n".join(lines), encoding="utf-8", newline="")
    vectors = read_vectors(path)
    assert vectors.words == list(table)
    np.testing.assert_array_equal(vectors.matrix, np.array(list(table.values()), np.float32))


def test_field_case_p11_space_like_words(shared):
    vectors = read_vectors(shared("fieldcases", "files", "p11_space_like.vec"))
    assert vectors.words == ["pera", "12\u00a0000", "\u00a0", "học sinh", "\u3000", "«\u202foui"]
    assert vectors.matrix.shape == (6, 3)
    table = WordTable(vectors.words)
    path = shared("fieldcases", "files", "p03_form_with_spaces.conllu")
    assert "học sinh" in {word for sentence in read_conllu(path) for word in sentence.words}
    row = table.lookup("học sinh") - FIRST_WORD
    np.testing.assert_allclose(vectors.matrix[row], [-0.1, -0.2, -0.3])


def test_field_case_p12_count_line(shared):
    with_header, without = (
        read_vectors(shared("fieldcases", "files", f"p12_{name}.vec"))
        for name in ("with_header", "no_header")
    )
    assert with_header.words == without.words == ["2024", "3", "luna", "мост"]
    np.testing.assert_array_equal(with_header.matrix, without.matrix)
    assert without.matrix[0].tolist() == [0.5, 0.25, 0.125]


@pytest.mark.real
def test_real_vectors(shared):
    path = shared("vectors", "me5.es.vec.gz")
    vectors = read_vectors(path)
    assert (vectors.name, vectors.matrix.shape) == ("me5", (30673, 128))
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        lines = stream.read().split("\n")
    for index in (0, 9_999, 30_672):
        word, *numbers = lines[index + 1].split(" ")
        assert vectors.words[index] == word
        np.testing.assert_array_equal(vectors.matrix[index], np.array(numbers, np.float32))
