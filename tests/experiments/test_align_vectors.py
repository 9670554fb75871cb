"""`hf-xst align-vectors`: maps learned and given, cuts to a corpus, and what is reported and refused."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hf_xst_cli
from hf_xst.data import ConlluSentence, WordTable, WordVectors, read_vectors, write_conllu
from hf_xst.experiments import align_vectors as job
from hf_xst.experiments.align_vectors import AlignVectorsArguments, align_vectors

WIDTH, COUNT = 6, 400
Write = Callable[..., Path]


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
    given = {name: str(value) if isinstance(value, Path) else value for name, value in changes.items()}
    report = align_vectors(AlignVectorsArguments(output=str(path), **({"vectors": str(world["xx"])} | given)))
    assert json.loads(Path(f"{path}.json").read_text()) == report
    return read_vectors(path), report


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
    told = capsys.readouterr().err
    assert "precision@1 after: 1.000 by cosine, 1.000 by CSLS" in " ".join(told.split())


@pytest.mark.parametrize("name", ["map.txt", "map.npy"])
def test_a_learned_map_is_saved_and_applied(world, name):
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


def test_names_of_spaces_and_few_pairs_are_told_of(world, capsys):
    (world["folder"] / "few.txt").write_text("x1 y1\nx2 y2\n")
    aligned(world, "other.vec", into=world["yy"], dictionary=world["folder"] / "few.txt", held_out=0.0)
    told = " ".join(capsys.readouterr().err.split())
    assert "2 pairs do not settle a map of 6 dimensions" in told
    assert "called the space 'other'" in told
    assert "call the result sp.LANGUAGE.vec" in told


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "nothing to do: give --into FILE"),
        ({"dictionary": "pairs"}, "--dictionary needs --into"),
        ({"into": "yy", "matrix": "identity"}, "--matrix with --into needs a --dictionary"),
        ({"matrix": "identity", "save_matrix": "m.npy"}, "--save_matrix writes a map that is learned"),
        ({"into": "yy", "common": 0}, "--common is 0"),
        ({"into": "yy", "held_out": 1.0}, "found the share 1.0"),
        ({"into": "narrow"}, r"xx.vec has 6 numbers a word, \S*narrow.vec has 2; expected the same number"),
        ({"matrix": "small"}, r"xx.vec has 6 numbers a word, \S*small.txt has 2 lines"),
        ({"into": "apart"}, "have none in common; give a --dictionary"),
        ({"into": "apart", "dictionary": "pairs"}, "none of the dictionary's 320 pairs"),
        ({"into": "broken"}, r"broken.vec:3: found 'x', expected a finite number"),
        ({"vocabulary": "corpus"}, r"none of the 400 words of \S*xx.vec is looked up by \S*corpus.txt"),
    ],
)
def test_what_does_not_go_is_refused(world, changes, message):
    files = world | {
        "identity": world["folder"] / "identity.txt",
        "small": world["folder"] / "small.txt",
        "narrow": write_vec(world["folder"] / "narrow.vec", ["x1"], np.ones((1, 2))),
        "apart": write_vec(world["folder"] / "apart.vec", ["q"], np.ones((1, WIDTH))),
        "broken": world["folder"] / "broken.vec",
        "corpus": world["folder"] / "corpus.txt",
    }
    np.savetxt(files["identity"], np.eye(WIDTH))
    np.savetxt(files["small"], np.eye(2))
    files["broken"].write_text("a 1 1 1 1 1 1\nb 1 1 1 1 1 1\nc 1 1 1 x 1 1\n")
    files["corpus"].write_text("nobody\n")
    given = {
        name: files.get(value, value) if isinstance(value, str) else value for name, value in changes.items()
    }
    if "vocabulary" in given:
        given["vocabulary"] = [str(given["vocabulary"])]
    with pytest.raises(ValueError, match=message):
        aligned(world, **given)
    assert not (world["folder"] / "out" / "sp.xx2.vec").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"vocabulary": ["corpus"], "output": "corpus"},
        {"into": "yy", "save_matrix": "xx"},
        {"into": "yy", "save_matrix": "out.vec", "output": "out.vec"},
    ],
)
def test_no_file_is_written_over(world, changes):
    def place(name):
        return [place(each) for each in name] if isinstance(name, list) else str(world.get(name, name))

    told = {"vectors": "xx", "output": "out.vec"} | changes
    with pytest.raises(ValueError, match="is also an input or the other output"):
        align_vectors(AlignVectorsArguments(**{name: place(value) for name, value in told.items()}))


def test_an_input_is_not_written_over(world):
    with pytest.raises(ValueError, match="is also an input"):
        align_vectors(
            AlignVectorsArguments(vectors=str(world["xx"]), output=str(world["xx"]), into=str(world["yy"]))
        )


def test_a_row_broken_far_down_leaves_nothing(world):
    path = world["folder"] / "sp.zz.vec"
    path.write_text("".join(f"w{n} 1 1\n" for n in range(9000)) + "last 1 x\n")
    np.savetxt(world["folder"] / "m.txt", np.eye(2))
    with pytest.raises(ValueError, match=r"sp.zz.vec:9001: found 'x'"):
        aligned(world, vectors=path, matrix=world["folder"] / "m.txt")
    assert not list((world["folder"] / "out").iterdir())


def test_memory_does_not_grow_with_the_file(tmp_path):
    """A cut to few words, mapped: twenty times the rows take the same memory."""
    matrix = tmp_path / "m.npy"
    np.save(matrix, rotation(40))
    (tmp_path / "c.txt").write_text("w5 w77\n")
    row = " ".join(["0.12345"] * 40)
    peaks = []
    for count in (1_000, 20_000):
        path = tmp_path / f"sp.{count}.vec"
        path.write_text("".join(f"w{n} {row}\n" for n in range(count)))
        given = {"vectors": str(path), "matrix": str(matrix), "vocabulary": [str(tmp_path / "c.txt")]}
        tracemalloc.start()
        try:
            align_vectors(AlignVectorsArguments(output=str(tmp_path / "sp.out.vec"), **given))
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert path.stat().st_size > 6_000_000
    assert peaks[1] < max(peaks[0], 500_000) + 500_000


def test_the_command(world, capsys):
    output = world["folder"] / "cli" / "sp.xx.vec"
    words = ["--vectors", world["xx"], "--into", world["yy"], "--output", output, "--held-out", "0.5"]
    assert hf_xst_cli.main(["align-vectors", *map(str, words)]) == 0
    assert json.loads(Path(f"{output}.json").read_text())["pairs"]["scored"] == 40
    assert hf_xst_cli.main(["align-vectors", "--vectors", "v", "--output", "o"]) == 1
    assert "nothing to do" in capsys.readouterr().err
    assert all(one.metadata["help"] for one in fields(job.AlignVectorsArguments))


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
