"""Vector files: words with spaces, headers or none, limits, and what is said of broken rows."""

from __future__ import annotations

import gzip
import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_xst.data import VectorError, WordTable, read_conllu, read_vectors

SPACED = ["pera", "12\u00a0000", "\u00a0", "học sinh", "\u3000", "«\u202foui", "12 000", " ", ""]


def rows(words: list[str], width: int = 3, end: str = "\n") -> str:
    return "".join(
        f"{word} {' '.join(str(n + i / 8) for i in range(width))}{end}" for n, word in enumerate(words)
    )


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("end", ["\n", " \n", "\r\n"])
@pytest.mark.parametrize("header", [True, False])
def test_words_are_all_but_the_last_fields(write, zipped, end, header):
    content = ((f"{len(SPACED)} 3{end}" if header else "") + rows(SPACED, end=end)).encode()
    path = write(
        "space.xx.vec.gz" if zipped else "space.xx.vec", gzip.compress(content) if zipped else content
    )
    found = read_vectors(path)
    assert found.words == SPACED
    assert found.matrix.dtype == np.float32
    np.testing.assert_array_equal(found.matrix, [[n, n + 0.125, n + 0.25] for n in range(len(SPACED))])
    assert (found.name, found.dimension) == ("space", 3)
    assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert read_vectors(path, name="other").name == "other"


@pytest.mark.parametrize("start", ["", "\ufeff", "\n", "4 3\n", "\ufeff4 3\n"])
def test_words_that_are_numbers(write, start):
    found = read_vectors(write("n.txt", start + rows(["2024", "3", "luna", "мост"]) + "\n\n"))
    assert found.words == ["2024", "3", "luna", "мост"]
    assert found.matrix.shape == (4, 3)


@pytest.mark.parametrize(
    ("content", "words", "width"),
    [
        ("7 1\n8 2\n", ["8"], 1),  # a header by the rule: the second number is the next row's width
        ("7 5\n8 2\n", ["7", "8"], 1),
        ("a 1\nb 2\n", ["a", "b"], 1),
        ("1 2\nnew york 1 2\n", ["new york"], 2),
    ],
)
def test_headers_by_the_rule(write, content, words, width):
    found = read_vectors(write("h.vec", content))
    assert (found.words, found.dimension) == (words, width)


def test_the_first_of_duplicates_wins(write):
    found = read_vectors(write("d.vec", "a 1 2\nb 3 4\na 5 6\n"))
    assert (found.words, found.duplicates) == (["a", "b"], 1)
    np.testing.assert_array_equal(found.matrix, [[1, 2], [3, 4]])


@pytest.mark.parametrize("limit", [0, 1, 2, 99])
@pytest.mark.parametrize("header", ["", "3 2\n"])
def test_the_limit_counts_rows(write, limit, header):
    found = read_vectors(write("l.vec", header + rows(["a", "b", "c"], 2)), limit=limit)
    assert found.words == ["a", "b", "c"][:limit]
    assert found.matrix.shape == (min(limit, 3), 2)


def test_a_vocabulary_keeps_what_it_looks_up(write):
    path = write("v.vec", rows(["paris", "Paris", "0000", "x", "q0", "học sinh"], 2))
    found = read_vectors(path, vocabulary={"PARIS", "1987", "Q7", "học sinh"})
    assert found.words == ["paris", "0000", "q0", "học sinh"]
    np.testing.assert_array_equal(found.matrix[:, 0], [0, 2, 4, 5])
    table, whole = WordTable(found.words), WordTable(read_vectors(path).words)
    for word in ("PARIS", "1987", "Q7", "học sinh"):
        assert found.words[table.lookup(word) - 2] == whole.words[whole.lookup(word) - 2]
    assert read_vectors(path, vocabulary=[]).matrix.shape == (0, 2)


def test_many_rows_are_the_same_as_few(write):
    words = [f"w{n}" for n in range(20_000)]
    found = read_vectors(write("m.vec", rows(words, 2)))
    assert found.words == words
    np.testing.assert_array_equal(found.matrix, [[n, n + 0.125] for n in range(20_000)])


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
        ("a 1 2\nb  1\n", r"b.vec:2: found '', expected a finite number"),
    ],
)
def test_broken_files_are_named_by_line(write, content, message):
    with pytest.raises(VectorError, match=message):
        read_vectors(write("b.vec", content))


def test_other_errors(write):
    with pytest.raises(VectorError, match=r"u.vec:2: found 0xff .* expected UTF-8"):
        read_vectors(write("u.vec", b"a 1 2\n\xff 1 2\n"))
    with pytest.raises(VectorError, match="damaged or cut off"):
        read_vectors(write("z.vec.gz", gzip.compress(rows(["a", "b"] * 999, 4).encode())[:-9]))
    with pytest.raises(ValueError, match="found limit -1"):
        read_vectors(write("b.vec", "a 1\n"), limit=-1)


@pytest.mark.parametrize(("announced", "said"), [(2, False), (3, True)])
def test_a_header_that_miscounts_is_said(write, caplog, announced, said):
    path = write("c.vec", f"{announced} 2\n" + rows(["a", "b"], 2))
    assert len(read_vectors(path).words) == 2
    assert ("announces 3 rows, the file has 2" in caplog.text) == said
    caplog.clear()
    read_vectors(path, limit=1)
    assert not caplog.text


WORD = st.text(
    st.characters(blacklist_characters="\n\r", blacklist_categories=("Cs",)), min_size=1, max_size=5
)
NUMBER = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(st.dictionaries(WORD, st.tuples(NUMBER, NUMBER, NUMBER), min_size=1, max_size=6))
def test_what_is_written_with_a_header_is_read(tmp_path_factory, table):
    path = tmp_path_factory.mktemp("v") / "h.vec"
    lines = [f"{len(table)} 3", *(f"{word} {' '.join(map(repr, row))}" for word, row in table.items())]
    path.write_text("\n".join(lines), encoding="utf-8", newline="")
    found = read_vectors(path)
    assert found.words == list(table)
    np.testing.assert_array_equal(found.matrix, np.array(list(table.values()), np.float32))


def test_field_case_of_space_like_words(shared):
    found = read_vectors(shared("fieldcases", "files", "p11_space_like.vec"))
    assert found.words == ["pera", "12\u00a0000", "\u00a0", "học sinh", "\u3000", "«\u202foui"]
    assert found.matrix.shape == (6, 3)
    table = WordTable(found.words)
    words = {
        w for s in read_conllu(shared("fieldcases", "files", "p03_form_with_spaces.conllu")) for w in s.words
    }
    assert "học sinh" in words
    np.testing.assert_allclose(found.matrix[table.lookup("học sinh") - table.first_word], [-0.1, -0.2, -0.3])


def test_field_case_of_the_count_line(shared):
    with_header, without = (
        read_vectors(shared("fieldcases", "files", f"p12_{name}.vec"))
        for name in ("with_header", "no_header")
    )
    assert with_header.words == without.words == ["2024", "3", "luna", "мост"]
    np.testing.assert_array_equal(with_header.matrix, without.matrix)
    assert without.matrix[0].tolist() == [0.5, 0.25, 0.125]


@pytest.mark.real
def test_a_real_file_is_read_row_by_row(shared):
    path = shared("vectors", "me5.es.vec.gz")
    found = read_vectors(path)
    assert (found.name, found.matrix.shape) == ("me5", (30673, 128))
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        lines = stream.read().split("\n")
    for place in (0, 9_999, 30_672):
        word, *numbers = lines[place + 1].split(" ")
        assert found.words[place] == word
        np.testing.assert_array_equal(found.matrix[place], np.array(numbers, np.float32))
