"""Alignment: orthogonal maps, what retrieval counts as right, dictionaries, matrices, rows in a stream."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import orthogonal_procrustes

from hf_xst.data import VectorError, read_vectors
from hf_xst.data.alignment import (
    Lexicon,
    apart_from_orthogonal,
    held_out,
    identical_words,
    orthogonal_map,
    pairs_within,
    precision_at_one,
    unit_length,
)
from hf_xst.data.alignment_files import (
    AlignmentError,
    read_dictionary,
    read_matrix,
    write_matrix,
    write_vectors,
)
from hf_xst.data.vectors import VectorStream, space_of

SIZES = st.tuples(st.integers(1, 6), st.integers(0, 20), st.integers(0, 2**32 - 1))


def lexicon(matrix: np.ndarray, prefix: str = "w", common: int | None = None) -> Lexicon:
    words = [f"{prefix}{place}" for place in range(len(matrix))]
    return Lexicon(
        words, matrix.astype(np.float32), len(words) if common is None else common, f"{prefix}.vec"
    )


def pairs_of(count: int) -> list[tuple[str, str]]:
    return [(f"a{place}", f"b{place}") for place in range(count)]


def rotation(source: np.random.Generator, width: int) -> np.ndarray:
    return np.linalg.qr(source.standard_normal((width, width)))[0]


# -- the map ----------------------------------------------------------------------------------------------


@given(SIZES)
def test_a_planted_rotation_is_found_whatever_the_lengths(sizes):
    width, more, seed = sizes
    source = np.random.default_rng(seed)
    planted = rotation(source, width)
    rows = source.standard_normal((width + more, width)) + 2 * np.eye(width + more, width)
    lengths = source.uniform(0.1, 10, (len(rows), 1))
    first, second = lexicon(rows, "a"), lexicon(lengths * (rows @ planted), "b")
    pairs = pairs_of(len(rows))
    found = orthogonal_map(pairs, first, second)
    assert apart_from_orthogonal(found) < 1e-9
    conditioned = np.linalg.svd(unit_length(rows), compute_uv=False)[-1]
    np.testing.assert_allclose(found, planted, atol=1e-5 / conditioned**2)


@given(SIZES)
def test_the_map_is_orthogonal_and_the_best_one(sizes):
    width, more, seed = sizes
    source = np.random.default_rng(seed)
    rows, others = source.standard_normal((2, width + more, width))
    pairs = pairs_of(len(rows))
    found = orthogonal_map(pairs, lexicon(rows, "a"), lexicon(others, "b"))
    np.testing.assert_allclose(found.T @ found, np.eye(width), atol=1e-9)
    x, y = unit_length(rows.astype(np.float32)), unit_length(others.astype(np.float32))
    best = np.sum((x @ found) * y)
    assert best == pytest.approx(np.sum((x @ orthogonal_procrustes(x, y)[0]) * y), abs=1e-9)
    assert best >= np.sum((x @ rotation(source, width)) * y) - 1e-9


@given(st.integers(1, 5), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_unit_length(width, count, seed):
    rows = np.random.default_rng(seed).standard_normal((count, width))
    rows[0] = 0
    found = unit_length(rows)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), [0, *[1] * (count - 1)], atol=1e-12)
    np.testing.assert_allclose(found * np.linalg.norm(rows, axis=1, keepdims=True), rows, atol=1e-12)


def test_how_far_from_orthogonal():
    assert apart_from_orthogonal(np.eye(3)) == 0
    assert apart_from_orthogonal(np.diag([1.0, 2.0])) == 3


def test_widths_must_agree():
    with pytest.raises(ValueError, match=r"a\.vec has 3 numbers a word, b\.vec has 2"):
        lexicon(np.ones((1, 3)), "a").check_width(lexicon(np.ones((1, 2)), "b"))


# -- pairs ------------------------------------------------------------------------------------------------


def test_words_spelt_alike_are_sought_among_the_commonest():
    one = Lexicon(["a", "b", "c", "d"], np.ones((4, 2), np.float32), 3, "one")
    two = Lexicon(["c", "d", "a", "b"], np.ones((4, 2), np.float32), 3, "two")
    assert identical_words(one, two) == [("a", "a"), ("c", "c")]


def test_pairs_that_are_in_the_files():
    one, two = lexicon(np.ones((2, 2)), "a"), lexicon(np.ones((3, 2)), "b")
    assert pairs_within([("a1", "b2"), ("a2", "b2"), ("a0", "b9")], one, two) == [("a1", "b2")]
    with pytest.raises(ValueError, match=r"none of the dictionary's 2 pairs .* 1 fit the other way round"):
        pairs_within([("b0", "a0"), ("x", "y")], one, two)
    with pytest.raises(ValueError, match=r"begin with a0 a1 and b0 b1 b2, the dictionary with x / y"):
        pairs_within([("x", "y")], one, two)


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("xyz")), min_size=1, unique=True),
       st.floats(0, 0.99), st.integers(0, 9))  # fmt: skip
def test_held_out_pairs_share_no_first_word_with_the_others(pairs, share, seed):
    learned, scored = held_out(pairs, share, seed)
    assert sorted(learned + scored) == sorted(pairs)
    words = [{first for first, _ in part} for part in (learned, scored)]
    assert learned
    assert not words[0] & words[1]
    total = len(words[0] | words[1])
    assert len(words[1]) == min(round(share * total), total - 1)
    assert held_out(pairs, share, seed) == (learned, scored)


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_a_share_that_is_none(share):
    with pytest.raises(ValueError, match="found the share"):
        held_out([("a", "b")], share, 0)


# -- retrieval --------------------------------------------------------------------------------------------


def by_definition(
    pairs: Sequence[tuple[str, str]], source: Lexicon, target: Lexicon, matrix: np.ndarray, csls: bool
) -> float:
    """Precision@1 word by word."""
    right: dict[str, set[str]] = {}
    for first, second in pairs:
        right.setdefault(first, set()).add(second)

    def cosine(one: np.ndarray, other: np.ndarray) -> float:
        return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))

    mapped = source.matrix @ matrix
    hubs = [
        np.mean(sorted((cosine(x, y) for x in mapped[: source.common]), reverse=True)[:10])
        for y in target.matrix
    ]
    hits = 0
    for word, answers in right.items():
        x = mapped[source.words.index(word)]
        values = [2 * cosine(x, y) - (hub if csls else 0) for y, hub in zip(target.matrix, hubs, strict=True)]
        hits += target.words[int(np.argmax(values))] in answers
    return hits / len(right)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_precision_is_what_its_definition_says(seed):
    source = np.random.default_rng(seed)
    matrix = source.standard_normal((3, 3))  # any map, not only an orthogonal one
    first = lexicon(source.standard_normal((25, 3)), "a", common=20)
    second = lexicon(first.matrix @ matrix + 0.5 * source.standard_normal((25, 3)), "b", common=22)
    pairs = [*pairs_of(25), ("a0", "b1"), ("a0", "b2")]
    found = precision_at_one(pairs, first, second, matrix)
    assert found.queries == 25
    assert found.candidates == 25
    assert found.cosine == pytest.approx(by_definition(pairs, first, second, matrix, False))
    assert found.csls == pytest.approx(by_definition(pairs, first, second, matrix, True))


def test_before_and_after_a_planted_rotation():
    source = np.random.default_rng(0)
    rows = source.standard_normal((300, 8))
    first, second = lexicon(rows, "a"), lexicon(rows @ rotation(source, 8), "b")
    learned, scored = held_out(pairs_of(300), 0.2, 0)
    assert precision_at_one(scored, first, second).cosine < 0.2
    after = precision_at_one(scored, first, second, orthogonal_map(learned, first, second))
    assert after == (60, 300, 1.0, 1.0)


# -- files ------------------------------------------------------------------------------------------------


def test_dictionaries(write):
    text = "eins one\n\nzwei\ttwo\neins one\nNew York\tNova York\ndrei  three\r\n"
    expected = [("eins", "one"), ("zwei", "two"), ("New York", "Nova York"), ("drei", "three")]
    assert read_dictionary(write("d.txt", text)) == expected
    assert read_dictionary(write("d.txt.gz", gzip.compress(text.encode()))) == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a b\nc\n", r"d.txt:2: found 1 words, expected two, separated by a tab or a space"),
        ("a b c\n", r"d.txt:1: found 3 words"),
        ("\n", r"d.txt: found no pairs"),
        (b"a b\n\xff c\n", r"d.txt:2: found 0xff"),
    ],
)
def test_broken_dictionaries(write, content, message):
    with pytest.raises(AlignmentError, match=message):
        read_dictionary(write("d.txt", content))


@pytest.mark.parametrize("name", ["m.txt", "m.npy"])
def test_a_matrix_comes_back_bit_by_bit(tmp_path, name):
    matrix = rotation(np.random.default_rng(1), 5)
    write_matrix(tmp_path / name, matrix)
    np.testing.assert_array_equal(read_matrix(tmp_path / name), matrix)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_matrices_as_numpy_writes_them_as_text(tmp_path):
    matrix = rotation(np.random.default_rng(2), 4)
    np.savetxt(tmp_path / "m.txt", matrix)
    np.testing.assert_array_equal(read_matrix(tmp_path / "m.txt"), matrix)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1 2\n3\n", "m.txt:2: found 1 numbers, expected 2 as on the first line"),
        ("1 2\n3 x\n", "m.txt:2: could not convert string to float: 'x'; expected numbers alone"),
        ("1 2\n", "m.txt: found 1 x 2 numbers, expected a square matrix"),
        ("", "m.txt: found 0 numbers, expected a square matrix"),
        ("1 2\n3 nan\n", "m.txt: found numbers that are not finite"),
    ],
)
def test_broken_matrices(write, content, message):
    with pytest.raises(AlignmentError, match=message):
        read_matrix(write("m.txt", content))


def test_a_matrix_is_never_unpickled(tmp_path):
    np.save(tmp_path / "m.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    with pytest.raises(AlignmentError, match="found no matrix of numbers"):
        read_matrix(tmp_path / "m.npy")
    (tmp_path / "n.npy").write_bytes(b"1 2")
    with pytest.raises(AlignmentError, match="found no matrix of numbers"):
        read_matrix(tmp_path / "n.npy")
    np.save(tmp_path / "three.npy", np.zeros((2, 2, 2)))
    with pytest.raises(AlignmentError, match="found 2 x 2 x 2 numbers"):
        read_matrix(tmp_path / "three.npy")


@pytest.mark.parametrize("name", ["v.vec", "v.vec.gz"])
def test_rows_that_are_written_are_read(tmp_path, name):
    words = ["a", "học sinh", "2 3", ""]
    write_vectors(tmp_path / name, 4, 2, ((word, f"{n} 0.5") for n, word in enumerate(words)))
    found = read_vectors(tmp_path / name)
    assert found.words == words
    np.testing.assert_array_equal(found.matrix, [[n, 0.5] for n in range(4)])
    content = (tmp_path / name).read_bytes()
    assert (gzip.decompress(content) if name.endswith("gz") else content).startswith(b"4 2\n")


def test_a_file_with_the_wrong_count_is_not_left(tmp_path):
    with pytest.raises(ValueError, match="found 1 rows to write, expected 2"):
        write_vectors(tmp_path / "v.vec", 2, 1, [("a", "1")])
    assert not list(tmp_path.iterdir())


# -- streams ----------------------------------------------------------------------------------------------


def test_a_stream_gives_blocks_each_pass_anew(write):
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


def test_a_stream_keeps_exactly_the_words_wanted(write):
    path = write("v.vec", "A 1\na 2\nb 3\n")
    assert [block.words for block in VectorStream(path, words=["a", "B"]).blocks()] == [["a"]]
    assert list(VectorStream(path, words=[]).blocks()) == []
    assert VectorStream(path, limit=2, words=["b"]).count() == 0
    with pytest.raises(VectorError, match=r"v.vec:3: found 0 numbers"):
        VectorStream(write("v.vec", "A 1\na 2\nb\n")).count()


def test_a_lexicon_holds_the_commonest_and_those_asked_for(write):
    path = write("v.vec", "5 1\na 1\nb 2\nc 3\nd 4\ne 5\n")
    found = Lexicon.read(path, common=2, words=["e", "b", "z", "C"])
    assert (found.words, found.common) == (["a", "b", "e"], 2)
    np.testing.assert_array_equal(found.matrix, [[1], [2], [5]])
    assert Lexicon.read(path, common=9, words=["e"], limit=3).words == ["a", "b", "c"]
    assert Lexicon.read(path, common=1, words=["e"], limit=3).words == ["a"]


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


def test_names_of_spaces():
    assert space_of("/some.where/me5.de.vec.gz") == "me5"
    # fastText's own files share nothing but a name, unless they were aligned.
    assert space_of("cc.de.300.vec") == "cc.de"
    assert space_of("wiki.de.vec") == "wiki.de"
    assert space_of("wiki.de.align.vec") == space_of("wiki.en.align.vec") == "wiki"
    assert space_of("wiki.multi.de.vec") == "wiki"
    assert space_of("cc.vec") == "cc"
