"""Bring the word vectors of a language into another one's space, and cut them to the words of a corpus."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hf_xst.commands.options import option, required
from hf_xst.commands.runs import package_versions
from hf_xst.console import progress, say
from hf_xst.data import iterate_unlabelled
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
    Matrix,
    Pair,
    read_dictionary,
    read_matrix,
    write_matrix,
    write_vectors,
)
from hf_xst.data.vectors import VectorStream, all_forms, example_file_name, space_of
from hf_xst.files import sha256_of, write_text

# A matrix further from orthogonal than this is told of: rounding to six digits stays far below.
_ORTHOGONAL = 1e-3


@dataclass(kw_only=True)
class AlignVectorsArguments:
    """Bring word vectors into another language's space, or cut them to the words of a corpus."""

    vectors: str = required("Word vectors (.vec, .txt, gzipped or not).")
    output: str = required(
        "File for the result, gzipped if it ends in .gz; its name up to the first dot names the space. "
        "OUTPUT.json tells what was done."
    )
    into: str | None = option("Word vectors of the space to map into; the map is learned.")
    dictionary: str | None = option(
        "Pairs to learn from: a word of --vectors and one of --into a line, a tab or space between them; "
        "without it the words that both files spell alike."
    )
    matrix: str | None = option(
        "A ready map in place of learning: D lines of D numbers, or .npy; word vectors are multiplied by "
        "it from the left. With --into and --dictionary it is scored on all pairs."
    )
    save_matrix: str | None = option("Also write the learned map to this file (.npy by its name, else text).")
    vocabulary: list[str] = option(
        "Keep only words that these files look up (as they are, lower-cased, digits as 0): CoNLL-U, "
        "tokenised lines (.txt) or JSON lines.",
        [],
    )
    vector_rows: int | None = option("Read only the first so many rows of --vectors.")
    common: int = option(
        "The first so many rows of each file are where words spelt alike are sought, and where answers are "
        "chosen from when the map is scored.",
        20_000,
    )
    held_out: float = option("Share of the pairs that the map is not learned from but scored on.", 0.1)
    unit: bool = option("Scale every vector to length 1.", False)
    seed: int = option("Seed of the choice of held-out pairs.", 42)


def align_vectors(arguments: AlignVectorsArguments) -> dict[str, Any]:
    """Map word vectors, cut them to a vocabulary, and report how well translations are found.

    Args:
        arguments: see the class.

    Returns:
        What was done, which is also in OUTPUT.json.

    Raises:
        ValueError: the arguments do not go together, the files' vectors differ in length, or no pair of the
            dictionary is in the files.
    """
    _check(arguments)
    matrix, report = _map(arguments)
    words = _vocabulary(arguments.vocabulary) if arguments.vocabulary else None
    stream = VectorStream(arguments.vectors, limit=arguments.vector_rows, words=words)
    kept = stream.count()
    if not kept:
        raise ValueError(
            f"none of the {stream.rows} words of {arguments.vectors} is looked up by "
            f"{', '.join(arguments.vocabulary) or 'anything'}; is it their language?"
        )
    rows = _rows(stream, kept, matrix, arguments.unit)
    write_vectors(arguments.output, kept, stream.width, rows)
    if words is not None:
        say(
            "which words were kept tells which words the corpus has: where it is private, publish only "
            "models over the whole file",
            "yellow",
        )
    say(f"{arguments.output}: {kept} of {stream.rows} words, {stream.width} numbers each", "bold")
    report |= {
        "rows": {"read": stream.rows, "kept": kept, "duplicates": stream.duplicates},
        "dimension": stream.width,
        "sha256": {"vectors": sha256_of(arguments.vectors), "output": sha256_of(arguments.output)},
        "space": space_of(arguments.output),
        "arguments": asdict(arguments),
        "versions": package_versions(),
    }
    write_text(f"{arguments.output}.json", json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    return report


def _check(arguments: AlignVectorsArguments) -> None:
    if arguments.dictionary is not None and arguments.into is None:
        raise ValueError("--dictionary needs --into, the vectors of its second words")
    if arguments.into is None and arguments.matrix is None and not (arguments.vocabulary or arguments.unit):
        raise ValueError("nothing to do: give --into FILE, --matrix FILE, --vocabulary FILES, or --unit")
    if arguments.matrix is not None and arguments.into is not None and arguments.dictionary is None:
        raise ValueError("--matrix with --into needs a --dictionary to be scored on; leave --into out")
    if arguments.save_matrix is not None and (arguments.into is None or arguments.matrix is not None):
        raise ValueError("--save_matrix writes a map that is learned: it needs --into, and no --matrix")
    if arguments.common < 1:
        raise ValueError(f"--common is {arguments.common}; expected at least 1")
    given = [arguments.vectors, arguments.into, arguments.dictionary, arguments.matrix, *arguments.vocabulary]
    taken = {Path(path).resolve() for path in given if path is not None}
    for flag, output in (("output", arguments.output), ("save_matrix", arguments.save_matrix)):
        if output is not None and Path(output).resolve() in taken:
            raise ValueError(f"--{flag} {output} is also an input or the other output; choose another name")
        taken |= set() if output is None else {Path(output).resolve()}


def _map(arguments: AlignVectorsArguments) -> tuple[Matrix | None, dict[str, Any]]:
    """Return the map, if any, and what there is to tell about it."""
    matrix: Matrix | None = None
    report: dict[str, Any] = {}
    if arguments.matrix is not None:
        matrix, report = _ready_map(arguments.matrix, arguments.vectors)
    if arguments.into is None:
        return matrix, report
    source, target, pairs = _lexicons(arguments)
    learned, scored = (
        ([], pairs) if matrix is not None else held_out(pairs, arguments.held_out, arguments.seed)
    )
    if matrix is None:
        matrix = orthogonal_map(learned, source, target)
        if arguments.save_matrix is not None:
            write_matrix(arguments.save_matrix, matrix)
    report["pairs"] = {"found": len(pairs), "learned": len(learned), "scored": len(scored)}
    _warn(arguments, len(learned), len(matrix))
    if scored:
        report |= _scores(scored, source, target, matrix)
    return matrix, report


def _ready_map(path: str, vectors: str) -> tuple[Matrix, dict[str, Any]]:
    matrix = read_matrix(path)
    first = VectorStream(vectors, limit=1)
    first.count()
    if first.width != len(matrix):
        raise ValueError(
            f"{vectors} has {first.width} numbers a word, {path} has {len(matrix)} lines; expected the same "
            "number"
        )
    apart = apart_from_orthogonal(matrix)
    if apart > _ORTHOGONAL:
        say(
            f"{path} is not orthogonal (W^T W differs from 1 by up to {apart:.2g}): lengths and angles will "
            "change",
            "yellow",
        )
    return matrix, {"apart_from_orthogonal": apart}


def _lexicons(arguments: AlignVectorsArguments) -> tuple[Lexicon, Lexicon, list[Pair]]:
    assert arguments.into is not None
    given = [] if arguments.dictionary is None else read_dictionary(arguments.dictionary)
    source = Lexicon.read(
        arguments.vectors,
        common=arguments.common,
        words=[first for first, _ in given],
        limit=arguments.vector_rows,
    )
    target = Lexicon.read(arguments.into, common=arguments.common, words=[second for _, second in given])
    source.check_width(target)
    if given:
        return source, target, pairs_within(given, source, target)
    pairs = identical_words(source, target)
    if not pairs:
        raise ValueError(
            f"the first {arguments.common} words of {arguments.vectors} and {arguments.into} have none in "
            "common; give a --dictionary, or a larger --common"
        )
    return source, target, pairs


def _warn(arguments: AlignVectorsArguments, learned: int, width: int) -> None:
    if arguments.matrix is None and learned < width:
        say(
            f"{learned} pairs do not settle a map of {width} dimensions; expected some thousand pairs",
            "yellow",
        )
    assert arguments.into is not None
    expected, found = space_of(arguments.into), space_of(arguments.output)
    if expected != found:
        say(
            f"the result is called the space {found!r}, {arguments.into} is {expected!r}: models of one "
            f"refuse vectors of the other; call the result {example_file_name(expected)} for those models",
            "yellow",
        )


def _scores(
    pairs: Sequence[Pair], source: Lexicon, target: Lexicon, matrix: Matrix
) -> dict[str, dict[str, float]]:
    found = {
        "before": precision_at_one(pairs, source, target),
        "after": precision_at_one(pairs, source, target, matrix),
    }
    for when, precision in found.items():
        say(
            f"precision@1 {when}: {precision.cosine:.3f} by cosine, {precision.csls:.3f} by CSLS "
            f"({precision.queries} held-out words, {precision.candidates} candidates)"
        )
    return {when: precision._asdict() for when, precision in found.items()}


def _vocabulary(paths: Sequence[str]) -> set[str]:
    words = {word for path in paths for sentence in iterate_unlabelled(path) for word in sentence.words}
    return all_forms(words)


def _rows(stream: VectorStream, total: int, matrix: Matrix | None, unit: bool) -> Iterator[tuple[str, str]]:
    """Give the result's rows; those of vectors that stay as they are keep their spelling."""
    changed = matrix is not None or unit
    line = " ".join(["%.6g"] * stream.width)
    with progress("writing", total, "words") as advance:
        for block in stream.blocks():
            numbers = block.numbers
            if changed:
                vectors = block.matrix if matrix is None else block.matrix @ matrix
                vectors = unit_length(vectors) if unit else vectors
                numbers = [line % tuple(row.tolist()) for row in vectors]
            yield from zip(block.words, numbers, strict=True)
            advance(len(numbers))
