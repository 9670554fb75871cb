"""Map word vectors into the space of another language, or cut them to the words of a corpus.

The map is orthogonal (Smith et al. 2017) and learned from pairs of words: vectors x become x W, so lengths
and angles stay. OUTPUT.json records the pairs, the precision of retrieval before and after, and file hashes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import orthogonal_procrustes

from hf_xst.console import progress, say
from hf_xst.data import iterate_unlabelled
from hf_xst.data.streams import InputError, numbered_lines, open_atomic
from hf_xst.data.vectors import VectorStream, all_forms, example_file_name, space_of
from hf_xst.files import sha256_of, write_text

Pair = tuple[str, str]
Matrix = NDArray[np.floating[Any]]
BLOCK, NEIGHBOURS = 1024, 10
ORTHOGONAL = 1e-3  # rounding to six digits stays far below


@dataclass(frozen=True, eq=False)
class Lexicon:
    """The `common` first words of a file and further requested ones, with their vectors at unit length."""

    words: dict[str, int]
    matrix: Matrix
    common: int
    path: str

    @classmethod
    def read(cls, path: str, common: int, words: Collection[str], limit: int | None = None) -> Lexicon:
        """Read the first `common` rows of a file, and those of `words`, within the first `limit` rows."""
        stream = VectorStream(path, limit=common if limit is None else min(common, limit))
        blocks = list(stream.blocks())
        first = [word for block in blocks for word in block.words]
        more = set(words).difference(first)
        blocks += VectorStream(path, limit=limit, words=more).blocks() if more else []
        index = {word: i for i, word in enumerate(word for block in blocks for word in block.words)}
        return cls(index, unit_length(np.concatenate([block.matrix for block in blocks])), len(first), path)

    def rows(self, words: Sequence[str]) -> Matrix:
        """Return the vectors of words."""
        return self.matrix[[self.words[word] for word in words]]


def align_vectors(options: argparse.Namespace) -> dict[str, Any]:
    """Map and cut word vectors, write them, and return the report that is also written to OUTPUT.json.

    Raises:
        ValueError: the options contradict each other, widths differ, or no pair or word is in the files.
    """
    check_options(options)
    matrix, report = load_map(options)
    corpus = {w for path in options.vocabulary for s in iterate_unlabelled(path) for w in s.words}
    words = all_forms(corpus) if options.vocabulary else None
    stream = VectorStream(options.vectors, limit=options.vector_rows, words=words)
    kept = stream.count()
    if not kept:
        raise ValueError(f"no word of {options.vectors} occurs in {', '.join(options.vocabulary)}")
    if words is not None:
        say("the words kept reveal the words of the corpus; if it is private, do not publish them", "yellow")
    with open_atomic(options.output) as sink:
        sink.write(f"{kept} {stream.width}\n".encode())
        for word, numbers in mapped_rows(stream, kept, matrix, options.unit):
            sink.write(f"{word} {numbers}\n".encode())
    say(f"{options.output}: {kept} of {stream.rows} words, {stream.width} dimensions", "bold")
    report |= {
        "rows": {"read": stream.rows, "kept": kept, "duplicates": stream.duplicates},
        "dimension": stream.width,
        "sha256": {"vectors": sha256_of(options.vectors), "output": sha256_of(options.output)},
        "space": space_of(options.output),
        "options": vars(options),
    }
    write_text(f"{options.output}.json", json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    return report


def check_options(options: argparse.Namespace) -> None:
    """Reject options that contradict each other, and outputs that would overwrite an input."""
    learns = options.into is not None and options.matrix is None
    if options.dictionary and not options.into:
        raise ValueError("--dictionary requires --into, the vectors of its second words")
    if options.matrix and options.into and not options.dictionary:
        raise ValueError("--matrix with --into requires a --dictionary to score the map on")
    if options.save_matrix and not learns:
        raise ValueError("--save-matrix requires a learned map: give --into and no --matrix")
    if options.common < 1 or not 0 <= options.held_out < 1:
        raise ValueError("expected --common of at least 1 and --held-out in [0, 1)")
    if not (options.into or options.matrix or options.vocabulary or options.unit):
        raise ValueError("nothing to do: give --into, --matrix, --vocabulary or --unit")
    inputs = [options.vectors, options.into, options.dictionary, options.matrix, *options.vocabulary]
    files = {Path(path).resolve() for path in inputs if path is not None}
    for output in filter(None, (options.output, options.save_matrix)):
        if Path(output).resolve() in files:
            raise ValueError(f"{output} is also an input or the other output; choose another name")
        files.add(Path(output).resolve())


def load_map(options: argparse.Namespace) -> tuple[Matrix | None, dict[str, Any]]:
    """Return the map, if any, learned or read, and the report on it."""
    matrix: Matrix | None = None
    report: dict[str, Any] = {}
    if options.matrix is not None:
        matrix = read_matrix(options.matrix)
        apart = float(np.abs(matrix.T @ matrix - np.eye(len(matrix))).max())
        report["apart_from_orthogonal"] = apart
        if apart > ORTHOGONAL:
            say(f"{options.matrix} is not orthogonal (W'W differs from 1 by up to {apart:.2g})", "yellow")
        check_width(options.vectors, VectorStream(options.vectors, limit=1), options.matrix, len(matrix))
    if options.into is None:
        return matrix, report
    dictionary = read_dictionary(options.dictionary) if options.dictionary else []
    source = Lexicon.read(options.vectors, options.common, [a for a, _ in dictionary], options.vector_rows)
    target = Lexicon.read(options.into, options.common, [b for _, b in dictionary])
    check_width(options.vectors, VectorStream(options.vectors, limit=1), options.into, target.matrix.shape[1])
    pairs = usable_pairs(dictionary, source, target)
    learned: list[Pair] = []
    scored = pairs
    if matrix is None:
        learned, scored = split_pairs(pairs, options.held_out, options.seed)
        first, second = source.rows([a for a, _ in learned]), target.rows([b for _, b in learned])
        matrix, _ = orthogonal_procrustes(first, second)
        if len(learned) < len(matrix):
            say(f"{len(learned)} pairs do not determine a map of {len(matrix)} dimensions", "yellow")
        if options.save_matrix:
            np.save(options.save_matrix, matrix, allow_pickle=False)
    report["pairs"] = {"found": len(pairs), "learned": len(learned), "scored": len(scored)}
    expected, found = space_of(options.into), space_of(options.output)
    if expected != found:
        say(
            f"the output is called the space {found!r}, {options.into} is {expected!r}: models of one reject "
            f"vectors of the other; call the output {example_file_name(expected)} for those models",
            "yellow",
        )
    for when, applied in (("before", None), ("after", matrix)) if scored else ():
        report[when] = precision_at_one(scored, source, target, applied)
        say(f"precision@1 {when}: {report[when]['cosine']:.3f} by cosine, {report[when]['csls']:.3f} by CSLS")
    return matrix, report


def check_width(path: str, stream: VectorStream, other: str, width: int) -> None:
    """Raise a ValueError unless vectors have the expected number of dimensions."""
    stream.count()
    if stream.width != width:
        raise ValueError(f"{path} has {stream.width} dimensions, {other} has {width}")


def read_dictionary(path: str) -> list[Pair]:
    """Read one pair of words a line, separated by a tab or a space; duplicates count once."""
    pairs: dict[Pair, None] = {}
    for number, line in numbered_lines(path, InputError):
        body = line.rstrip("\r\n")
        words = [word for word in body.split("\t" if "\t" in body else " ") if word]
        if words and len(words) != 2:
            raise InputError(f"found {len(words)} words, expected two", path=path, line=number)
        if words:
            pairs[words[0], words[1]] = None
    return list(pairs)


def read_matrix(path: str) -> Matrix:
    """Read a square matrix: `.npy`, or D lines of D numbers."""
    matrix = np.load(path, allow_pickle=False) if path.endswith(".npy") else np.loadtxt(path, ndmin=2)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise ValueError(f"{path}: expected a square matrix of finite numbers, found shape {matrix.shape}")
    return np.asarray(matrix, dtype=np.float64)


def usable_pairs(dictionary: Sequence[Pair], source: Lexicon, target: Lexicon) -> list[Pair]:
    """Return the pairs of a dictionary that are in both files, without one the common words spelled alike."""
    if dictionary:
        pairs = [(a, b) for a, b in dictionary if a in source.words and b in target.words]
    else:
        common = set(list(target.words)[: target.common])
        pairs = [(word, word) for word in list(source.words)[: source.common] if word in common]
    if not pairs:
        origin = f"{len(dictionary)} pairs of the dictionary" if dictionary else "common words"
        raise ValueError(f"none of the {origin} is in both {source.path} and {target.path}")
    return pairs


def split_pairs(pairs: Sequence[Pair], share: float, seed: int) -> tuple[list[Pair], list[Pair]]:
    """Split pairs into those to learn from and those to score on; pairs of one first word stay together."""
    words = sorted({first for first, _ in pairs})
    count = min(round(share * len(words)), len(words) - 1)
    scored = {words[index] for index in np.random.default_rng(seed).permutation(len(words))[:count]}
    return [p for p in pairs if p[0] not in scored], [p for p in pairs if p[0] in scored]


def unit_length(matrix: Matrix) -> Matrix:
    """Scale rows to length 1; rows of zeros stay."""
    lengths = np.linalg.norm(matrix.astype(np.float64), axis=1, keepdims=True)
    return matrix / np.where(lengths > 0, lengths, 1.0)


def precision_at_one(
    pairs: Sequence[Pair], source: Lexicon, target: Lexicon, matrix: Matrix | None = None
) -> dict[str, float]:
    """Return how often the nearest target word of a pair's first word is right, by cosine and by CSLS.

    CSLS (Conneau et al. 2018) subtracts the candidate's mean cosine with its ten nearest source words.
    """
    right: dict[str, set[int]] = {}
    for first, second in pairs:
        right.setdefault(first, set()).add(target.words[second])
    common, queries = source.matrix[: source.common], source.rows(list(right))
    if matrix is not None:
        common, queries = unit_length(common @ matrix), unit_length(queries @ matrix)
    nearest = min(NEIGHBOURS, len(common))
    hubs = np.concatenate(
        [
            np.partition(block @ common.T, -nearest, axis=1)[:, -nearest:].mean(1)
            for block in _blocks(target.matrix)
        ]
    )
    hits, answers = np.zeros(2), iter(right.values())
    for block in _blocks(queries):
        cosine = block @ target.matrix.T
        for choices in zip(cosine.argmax(1), (2 * cosine - hubs).argmax(1), strict=True):
            expected = next(answers)
            hits += [int(choice) in expected for choice in choices]
    by_cosine, by_csls = (hits / len(right)).tolist()
    return {"queries": len(right), "candidates": len(target.words), "cosine": by_cosine, "csls": by_csls}


def _blocks(matrix: Matrix) -> Iterator[Matrix]:
    return (matrix[start : start + BLOCK] for start in range(0, len(matrix), BLOCK))


def mapped_rows(
    stream: VectorStream, total: int, matrix: Matrix | None, unit: bool
) -> Iterator[tuple[str, str]]:
    """Yield words and numbers; numbers that do not change keep their spelling."""
    line = " ".join(["%.6g"] * stream.width)
    with progress("writing", total, "words") as advance:
        for block in stream.blocks():
            numbers = block.numbers
            if matrix is not None or unit:
                vectors = block.matrix if matrix is None else block.matrix @ matrix
                vectors = unit_length(vectors) if unit else vectors
                numbers = [line % tuple(row.tolist()) for row in vectors]
            yield from zip(block.words, numbers, strict=True)
            advance(len(numbers))


def parse_options(words: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--vectors", required=True, help="word vectors (.vec, .txt, plain or gzipped)")
    add("--output", required=True, help="output file; its name up to the first dot names the space")
    add("--into", help="word vectors of the space to map into; the map is learned")
    add("--dictionary", help="pairs to learn from, one a line; defaults to words spelled alike in both files")
    add("--matrix", help="use this map: D lines of D numbers, or .npy; vectors are multiplied from the left")
    add("--save-matrix", help="also write the learned map to this .npy file")
    add("--vocabulary", nargs="+", default=[], help="keep only the words that lookups of these texts return")
    add("--vector-rows", type=int, help="read only the first N rows of --vectors")
    add("--common", type=int, default=20_000, help="search words spelled alike, and answers, in the first N")
    add("--held-out", type=float, default=0.1, help="share of the pairs to score on (default: 0.1)")
    add("--unit", action="store_true", help="scale every vector to length 1")
    add("--seed", type=int, default=42, help="seed of the choice of held-out pairs")
    return parser.parse_args(words)


if __name__ == "__main__":
    try:
        align_vectors(parse_options(sys.argv[1:]))
    except (ValueError, OSError) as error:
        sys.exit(f"align_vectors.py: {error}")
