"""scripts/align_vectors.py: learned and given maps, cuts to a corpus, reports and errors."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import align_vectors as script
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_xst.data import ConlluSentence, WordVectors, read_vectors, write_conllu
from hf_xst.models.words import WordTable

WIDTH, COUNT = 6, 400


def rotation(width: int = WIDTH, seed: int = 0) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((width, width)))[0]


def write_vec(path: Path, words: list[str], matrix: np.ndarray) -> Path:
    lines = [
        f"{word} {' '.join(f'{value:.7g}' for value in row)}" for word, row in zip(words, matrix, strict=True)
    ]
    path.write_text("\n".join([f"{len(words)} {matrix.shape[1]}", *lines]) + "\n")
    return path


@pytest.fixture
def world(tmp_path: Path) -> dict[str, Any]:
    """Two languages, the second's space being the first's turned; a fifth of the words are spelt alike."""
    source = np.random.default_rng(3)
    rows = source.standard_normal((COUNT, WIDTH))
    words = {
        "xx": [f"same{n}" if n % 5 == 0 else f"x{n}" for n in range(COUNT)],
        "yy": [f"same{n}" if n % 5 == 0 else f"y{n}" for n in range(COUNT)],
    }
    order = source.permutation(COUNT)
    (tmp_path / "pairs.txt").write_text(
        "".join(f"{words['xx'][n]}\t{words['yy'][n]}\n" for n in range(COUNT) if n % 5)
    )
    return {
        "folder": tmp_path,
        "rows": rows,
        "xx": write_vec(tmp_path / "sp.xx.vec", words["xx"], rows),
        "yy": write_vec(tmp_path / "sp.yy.vec", [words["yy"][n] for n in order], (rows @ rotation())[order]),
        "pairs": tmp_path / "pairs.txt",
    }


def aligned(world: dict[str, Any], output: str = "sp.xx2.vec", **changes: Any) -> tuple[WordVectors, Any]:
    path = world["folder"] / "out" / output
    report = run({"vectors": world["xx"], "output": path} | changes)
    assert json.loads(Path(f"{path}.json").read_text()) == report
    return read_vectors(path), report


def run(options: dict[str, Any]) -> dict[str, Any]:
    words = []
    for name, value in options.items():
        values = [] if value is True else value if isinstance(value, list) else [value]
        words += [f"--{name.replace('_', '-')}", *map(str, values)]
    return script.align_vectors(script.parse_options(words))


@pytest.mark.parametrize("output", ["sp.xx2.vec", "sp.xx2.vec.gz"])
@pytest.mark.parametrize("by", ["dictionary", "spelling"])
def test_a_turned_space_is_turned_back(world, by, output, capsys):
    dictionary = {"dictionary": world["pairs"]} if by == "dictionary" else {}
    found, report = aligned(world, output, into=world["yy"], **dictionary)
    assert found.words == read_vectors(world["xx"]).words
    np.testing.assert_allclose(found.matrix, world["rows"] @ rotation(), atol=1e-4)
    pairs = 320 if by == "dictionary" else 80
    assert report["pairs"] == {"found": pairs, "learned": pairs * 9 // 10, "scored": pairs // 10}
    assert report["before"]["cosine"] < 0.2
    assert report["after"] == {"queries": pairs // 10, "candidates": COUNT, "cosine": 1.0, "csls": 1.0}
    assert report["rows"] == {"read": COUNT, "kept": COUNT, "duplicates": 0}
    content = (world["folder"] / "out" / output).read_bytes()
    content = gzip.decompress(content) if output.endswith(".gz") else content
    assert content.startswith(f"{COUNT} {WIDTH}\n".encode())
    assert {path.name for path in (world["folder"] / "out").iterdir()} == {output, f"{output}.json"}
    messages = " ".join(capsys.readouterr().err.split())
    assert "precision@1 after: 1.000 by cosine, 1.000 by CSLS" in messages


def test_a_learned_map_is_saved_and_applied(world):
    name = "map.npy"
    learned, _ = aligned(world, into=world["yy"], save_matrix=world["folder"] / name)
    applied, report = aligned(world, "sp.again.vec", matrix=world["folder"] / name)
    np.testing.assert_array_equal(learned.matrix, applied.matrix)
    assert report["apart_from_orthogonal"] < 1e-9
    scored, report = aligned(
        world, matrix=world["folder"] / name, into=world["yy"], dictionary=world["pairs"]
    )
    np.testing.assert_array_equal(learned.matrix, scored.matrix)
    assert report["pairs"] == {"found": 320, "learned": 0, "scored": 320}
    assert report["after"]["cosine"] == 1.0


def test_published_matrices_turn_rows_from_the_left(world, capsys):
    matrix = np.zeros((WIDTH, WIDTH))
    matrix[0, 1] = 2
    np.savetxt(world["folder"] / "m.txt", matrix)
    found, report = aligned(world, matrix=world["folder"] / "m.txt")
    np.testing.assert_allclose(found.matrix[:, 1], 2 * world["rows"][:, 0], rtol=1e-5)
    assert not found.matrix[:, [0, 2, 3, 4, 5]].any()
    assert report["apart_from_orthogonal"] == 3
    assert "is not orthogonal" in capsys.readouterr().err


def test_a_cut_keeps_what_a_corpus_looks_up_and_how_it_is_spelt(tmp_path):
    vectors = tmp_path / "sp.xx.vec"
    vectors.write_text("6 2\nOslo 0.10 1e-3\noslo 3 4\n0000 5 6\nx 7 8\nx 9 9\nla mar 1 1\n")
    corpus = [tmp_path / "a.conllu", tmp_path / "b.txt"]
    write_conllu([ConlluSentence.from_words(["OSLO", "la mar"], sent_id="1")], corpus[0])
    corpus[1].write_text("1987 unseen\n")
    found, report = aligned({"folder": tmp_path, "xx": vectors}, vocabulary=[str(path) for path in corpus])
    text = (tmp_path / "out" / "sp.xx2.vec").read_text()
    assert text == "3 2\noslo 3 4\n0000 5 6\nla mar 1 1\n"
    assert report["rows"] == {"read": 6, "kept": 3, "duplicates": 0}
    whole, cut = (WordTable(read.words) for read in (read_vectors(vectors), found))
    for word in ("OSLO", "la mar", "1987", "unseen"):
        places = [table.lookup(word) for table in (whole, cut)]
        assert (places[0] > 1) == (places[1] > 1)
        assert places[0] < 2 or whole.words[places[0] - 2] == cut.words[places[1] - 2]


def test_map_and_cut_and_unit_length_at_once(world):
    (world["folder"] / "c.txt").write_text("x1 x2 same5\n")
    found, report = aligned(
        world, into=world["yy"], vocabulary=[str(world["folder"] / "c.txt")], unit=True, vector_rows=200
    )
    assert found.words == ["same0", "x1", "x2", "same5"]  # same0: digits as 0
    expected = (world["rows"] @ rotation())[[0, 1, 2, 5]]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(found.matrix, expected, atol=1e-4)
    assert report["rows"]["read"] == 200


def test_spaces_with_other_names_and_few_pairs_cause_warnings(world, capsys):
    (world["folder"] / "few.txt").write_text("x1 y1\nx2 y2\n")
    aligned(world, "other.vec", into=world["yy"], dictionary=world["folder"] / "few.txt", held_out=0.0)
    messages = " ".join(capsys.readouterr().err.split())
    assert "2 pairs do not determine a map of 6 dimensions" in messages
    assert "called the space 'other'" in messages
    assert "call the output sp.LANGUAGE.vec" in messages


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "nothing to do: give --into"),
        ({"dictionary": "pairs"}, "--dictionary requires --into"),
        ({"into": "yy", "matrix": "identity"}, "--matrix with --into requires a --dictionary"),
        ({"matrix": "identity", "save_matrix": "m.npy"}, "--save-matrix requires a learned map"),
        ({"into": "yy", "common": 0}, "expected --common of at least 1"),
        ({"into": "yy", "held_out": 1.0}, "--held-out in"),
        ({"into": "narrow"}, r"xx.vec has 6 dimensions, \S*narrow.vec has 2"),
        ({"matrix": "small"}, r"xx.vec has 6 dimensions, \S*small.txt has 2"),
        ({"matrix": "oblong"}, r"expected a square matrix of finite numbers, found shape \(2, 3\)"),
        ({"into": "apart"}, "none of the common words is in both"),
        ({"into": "apart", "dictionary": "pairs"}, "none of the 320 pairs of the dictionary"),
        ({"into": "yy", "dictionary": "triple"}, r"triple.txt:2: found 3 words, expected two"),
        ({"into": "broken"}, r"broken.vec:3: found 'x', expected a finite number"),
        ({"vocabulary": "corpus"}, r"no word of \S*xx.vec occurs in \S*corpus.txt"),
        ({"into": "yy", "save_matrix": "xx"}, "is also an input or the other output"),
        ({"vocabulary": "corpus", "output": "corpus"}, "is also an input or the other output"),
    ],
)
def test_invalid_options_and_files_are_rejected(world, changes, message):
    def write(name: str, text: str) -> Path:
        (world["folder"] / name).write_text(text)
        return world["folder"] / name

    files = world | {
        "narrow": write_vec(world["folder"] / "narrow.vec", ["x1"], np.ones((1, 2))),
        "apart": write_vec(world["folder"] / "apart.vec", ["q"], np.ones((1, WIDTH))),
        "broken": write("broken.vec", "a 1 1 1 1 1 1\nb 1 1 1 1 1 1\nc 1 1 1 x 1 1\n"),
        "corpus": write("corpus.txt", "nobody\n"),
        "triple": write("triple.txt", "a b\na b c\n"),
        "oblong": write("oblong.txt", "1 0 0\n0 1 0\n"),
        "small": write("small.txt", "1 0\n0 1\n"),
        "identity": world["folder"] / "identity.txt",
    }
    np.savetxt(files["identity"], np.eye(WIDTH))
    options = {
        name: files.get(value, value) if isinstance(value, str) else value for name, value in changes.items()
    }
    with pytest.raises(ValueError, match=message):
        run({"vectors": world["xx"], "output": world["folder"] / "out" / "sp.xx2.vec"} | options)
    assert not (world["folder"] / "out" / "sp.xx2.vec").exists()


def test_a_row_broken_far_down_leaves_nothing(world):
    path = world["folder"] / "sp.zz.vec"
    path.write_text("".join(f"w{n} 1 1\n" for n in range(9000)) + "last 1 x\n")
    np.savetxt(world["folder"] / "m.txt", np.eye(2))
    with pytest.raises(ValueError, match=r"sp.zz.vec:9001: found 'x'"):
        aligned(world, vectors=path, matrix=world["folder"] / "m.txt")
    assert not list((world["folder"] / "out").iterdir())


@pytest.mark.slow
def test_the_script_reports_errors_in_one_line():
    words = [sys.executable, script.__file__, "--vectors", "v", "--output", "o"]
    finished = subprocess.run(words, capture_output=True, text=True, check=False)
    assert finished.returncode == 1
    assert (
        finished.stderr == "align_vectors.py: nothing to do: give --into, --matrix, --vocabulary or --unit\n"
    )


@given(st.integers(0, 1000), st.floats(0, 0.99))
def test_pairs_of_a_word_are_never_on_both_sides(seed, share):
    draw = np.random.default_rng(seed)
    pairs = [(f"a{draw.integers(8)}", f"b{n}") for n in range(20)]
    learned, scored = script.split_pairs(pairs, share, seed)
    assert sorted(learned + scored) == sorted(pairs)
    assert learned
    assert not {a for a, _ in learned} & {a for a, _ in scored}


def lexicon(matrix: np.ndarray, prefix: str, common: int | None = None) -> Any:
    words = {f"{prefix}{index}": index for index in range(len(matrix))}
    return script.Lexicon(words, script.unit_length(matrix), common or len(words), f"{prefix}.vec")


def precision_by_definition(
    right: dict[str, set[str]], source: Any, target: Any, matrix: np.ndarray, csls: bool
) -> float:
    """Compute precision@1 word by word."""

    def cosine(one: np.ndarray, other: np.ndarray) -> float:
        return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))

    mapped, words = source.matrix @ matrix, list(target.words)
    hubs = [
        np.mean(sorted((cosine(x, y) for x in mapped[: source.common]), reverse=True)[:10])
        for y in target.matrix
    ]
    hits = 0
    for word, answers in right.items():
        x = mapped[source.words[word]]
        values = [2 * cosine(x, y) - (hub if csls else 0) for y, hub in zip(target.matrix, hubs, strict=True)]
        hits += words[int(np.argmax(values))] in answers
    return hits / len(right)


@given(st.integers(0, 2**32 - 1))
def test_precision_at_one_follows_its_definition(seed):
    draw = np.random.default_rng(seed)
    matrix = draw.standard_normal((3, 3))  # any map, not only an orthogonal one
    first = lexicon(draw.standard_normal((25, 3)), "a", common=20)
    second = lexicon(first.matrix @ matrix + 0.5 * draw.standard_normal((25, 3)), "b", common=22)
    right = {f"a{n}": {f"b{n}"} for n in range(25)}
    right["a0"] |= {"b1", "b2"}
    pairs = [(word, answer) for word, answers in right.items() for answer in sorted(answers)]
    found = script.precision_at_one(pairs, first, second, matrix)
    assert (found["queries"], found["candidates"]) == (25, 25)
    for name in ("cosine", "csls"):
        expected = precision_by_definition(right, first, second, matrix, name == "csls")
        assert found[name] == pytest.approx(expected)


def test_a_lexicon_holds_the_first_words_and_the_requested_ones(tmp_path):
    path = write_vec(tmp_path / "v.vec", list("abcde"), np.eye(5))
    found = script.Lexicon.read(str(path), 2, ["e", "b", "z", "C"])
    assert (found.words, found.common) == ({"a": 0, "b": 1, "e": 2}, 2)
    np.testing.assert_array_equal(found.rows(["e"]), np.eye(5)[[4]])
    assert list(script.Lexicon.read(str(path), 9, ["e"], 3).words) == ["a", "b", "c"]


@pytest.mark.real
def test_real_vectors_that_were_turned_are_turned_back(shared, tmp_path):
    """German against English: the random rotation goes, the precision of the shared space comes back."""
    german = read_vectors(shared("vectors", "me5.de.vec.gz"), limit=6000)
    turned = write_vec(tmp_path / "me5.de.vec", german.words, german.matrix @ rotation(german.dimension))
    world = {"folder": tmp_path, "xx": turned}
    into = shared("vectors", "me5.en.vec.gz")
    found, report = aligned(world, "me5.xx.vec", into=into, common=5000)
    assert report["before"]["cosine"] < 0.02
    assert report["after"]["cosine"] > 0.95
    cosine = (found.matrix * german.matrix).sum(1)
    cosine /= np.linalg.norm(found.matrix, axis=1) * np.linalg.norm(german.matrix, axis=1)
    assert cosine.mean() > 0.95
    pairs = tmp_path / "pairs.txt"
    pairs.write_text(
        "Jahr year\nWasser water\nStadt city\nneu new\ngroß large\ngroß big\nund and\nZeit time\n"
    )
    translated = {}
    for name, vectors in (
        ("original", shared("vectors", "me5.de.vec.gz")),
        ("back", tmp_path / "out" / "me5.xx.vec"),
    ):
        np.save(tmp_path / "one.npy", np.eye(german.dimension))
        _, report = aligned(
            world, vectors=vectors, into=into, dictionary=pairs, matrix=tmp_path / "one.npy", common=5000
        )
        translated[name] = report["after"]["cosine"]
    assert translated["back"] >= translated["original"] - 0.15
