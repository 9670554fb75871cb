"""One space for the word vectors of two languages, by an orthogonal map (Smith et al. 2017).

A map is a matrix W (D, D) by which row vectors are multiplied from the left, x W, as the published matrices
are used. Both spaces keep all their dimensions, and an orthogonal map keeps all lengths and angles.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hf_xst.data.alignment_files import Matrix, Pair
from hf_xst.data.vectors import VectorStream

Rows = NDArray[np.float32]
_QUERIES_AT_ONCE = 1024
_NEIGHBOURS = 10


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Words and vectors of one file: the commonest, and others that were asked for.

    Args:
        words: the words.
        matrix: float32, (V, D).
        common: how many of the first words are the commonest of the file.
        path: the file.
    """

    words: list[str]
    matrix: Rows
    common: int
    path: str

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        common: int,
        words: Collection[str] = (),
        limit: int | None = None,
    ) -> Lexicon:
        """Read the first `common` rows of a file, and those of `words` that come later.

        Args:
            path: the file.
            common: how many rows to read.
            words: further words.
            limit: look at no more rows than these, whatever is asked for.
        """
        first = VectorStream(path, limit=common if limit is None else min(common, limit))
        blocks = list(first.blocks())
        found = [word for block in blocks for word in block.words]
        later = set(words).difference(found)
        if later:
            blocks += VectorStream(path, limit=limit, words=later).blocks()
        return cls(
            [word for block in blocks for word in block.words],
            np.concatenate([np.empty((0, first.width), np.float32), *(block.matrix for block in blocks)]),
            len(found),
            os.fspath(path),
        )

    @property
    def places(self) -> dict[str, int]:
        """Where each word is."""
        return {word: place for place, word in enumerate(self.words)}

    def check_width(self, other: Lexicon) -> None:
        """Check that both files have vectors of the same length.

        Raises:
            ValueError: they have not.
        """
        mine, its = self.matrix.shape[1], other.matrix.shape[1]
        if mine != its:
            raise ValueError(
                f"{self.path} has {mine} numbers a word, {other.path} has {its}; expected the same number"
            )


def identical_words(source: Lexicon, target: Lexicon) -> list[Pair]:
    """Return the words that are spelt alike among the commonest of both files, each paired with itself."""
    known = set(target.words[: target.common])
    return [(word, word) for word in source.words[: source.common] if word in known]


def pairs_within(pairs: Sequence[Pair], source: Lexicon, target: Lexicon) -> list[Pair]:
    """Return the pairs of a dictionary whose words are in the two files.

    Raises:
        ValueError: there is none.
    """
    mine, other = set(source.words), set(target.words)
    found = [pair for pair in pairs if pair[0] in mine and pair[1] in other]
    if found:
        return found
    turned = sum(pair[1] in mine and pair[0] in other for pair in pairs)
    if turned:
        hint = f"{turned} fit the other way round: swap the columns"
    else:
        starts = f"{' '.join(source.words[:3])} and {' '.join(target.words[:3])}"
        hint = f"the files begin with {starts}, the dictionary with {' / '.join(pairs[0])}"
    raise ValueError(
        f"none of the dictionary's {len(pairs)} pairs has its first word in {source.path} and its second in "
        f"{target.path}; {hint}"
    )


def held_out(pairs: Sequence[Pair], share: float, seed: int) -> tuple[list[Pair], list[Pair]]:
    """Split pairs for learning and for scoring; all pairs of a first word stay together.

    Args:
        pairs: the pairs.
        share: of the first words, how many are held out; at least one is left for learning.
        seed: of the choice.

    Raises:
        ValueError: a share outside of [0, 1).
    """
    if not 0 <= share < 1:
        raise ValueError(f"found the share {share} of held-out words, expected at least 0 and less than 1")
    words = sorted({first for first, _ in pairs})
    count = min(round(share * len(words)), len(words) - 1)
    chosen = {words[place] for place in np.random.default_rng(seed).permutation(len(words))[:count]}
    learned = [pair for pair in pairs if pair[0] not in chosen]
    return learned, [pair for pair in pairs if pair[0] in chosen]


def unit_length(matrix: NDArray[np.floating]) -> Matrix:
    """Scale rows to length 1; rows of zeros stay."""
    lengths = np.linalg.norm(matrix.astype(np.float64), axis=1, keepdims=True)
    return matrix / np.where(lengths > 0, lengths, 1.0)


def orthogonal_map(pairs: Sequence[Pair], source: Lexicon, target: Lexicon) -> Matrix:
    """Return the orthogonal W (D, D) that brings x W nearest to y in the mean over pairs, at unit length.

    With X and Y the unit rows of the pairs' words, W = U V^T from the singular value decomposition
    X^T Y = U S V^T (Smith et al. 2017).
    """
    left, _, right = np.linalg.svd(_of(source, pairs, 0).T @ _of(target, pairs, 1))
    found: Matrix = left @ right
    return found


def apart_from_orthogonal(matrix: Matrix) -> float:
    """Return the largest entry of |W^T W - 1|: 0 for an orthogonal matrix."""
    return float(np.abs(matrix.T @ matrix - np.eye(len(matrix))).max())


class Precision(NamedTuple):
    """Share of query words whose nearest word of the other file is a right answer.

    Attributes:
        queries: number of query words.
        candidates: number of words that answers are chosen from.
        cosine: the share, nearest by cosine.
        csls: the share, nearest by cosine less the candidate's mean cosine with its ten nearest words of the
            first file (cross-domain similarity local scaling, Conneau et al. 2018).
    """

    queries: int
    candidates: int
    cosine: float
    csls: float


def precision_at_one(
    pairs: Sequence[Pair], source: Lexicon, target: Lexicon, matrix: Matrix | None = None
) -> Precision:
    """Score the retrieval of each pair's second word from its first; any of several right ones counts.

    Args:
        pairs: pairs within both files.
        source: the first words, and the commonest words of their file.
        target: the second words, and the commonest words of their file: the candidates.
        matrix: the map applied to the first file's vectors; none by default.
    """
    places = target.places
    right: dict[str, set[int]] = {}
    for first, second in pairs:
        right.setdefault(first, set()).add(places[second])
    candidates = _float32(unit_length(target.matrix))
    common = unit_length(source.matrix[: source.common])
    queries = _of(source, [(first, "") for first in right], 0)
    if matrix is not None:  # the map may be none that keeps lengths
        common, queries = unit_length(common @ matrix), unit_length(queries @ matrix)
    hubs = _mean_of_nearest(candidates, _float32(common))
    hits = np.zeros(2)
    answers = iter(right.values())
    for block in _in_blocks(_float32(queries)):
        cosine = block @ candidates.T
        for choice in zip(cosine.argmax(1), (2 * cosine - hubs).argmax(1), strict=True):
            expected = next(answers)
            hits += [int(place) in expected for place in choice]
    by_cosine, by_csls = (hits / len(right)).tolist()
    return Precision(len(right), len(target.words), by_cosine, by_csls)


def _of(lexicon: Lexicon, pairs: Sequence[Pair], side: int) -> Matrix:
    places = lexicon.places
    return unit_length(lexicon.matrix[[places[pair[side]] for pair in pairs]])


def _float32(matrix: Matrix) -> Rows:
    return matrix.astype(np.float32)


def _mean_of_nearest(rows: Rows, others: Rows) -> Rows:
    """Return the mean cosine of each row with its nearest among the others: (n,)."""
    count = min(_NEIGHBOURS, len(others))
    means = [np.partition(block @ others.T, -count, axis=1)[:, -count:].mean(1) for block in _in_blocks(rows)]
    return np.concatenate(means)


def _in_blocks(rows: Rows) -> Iterator[Rows]:
    for start in range(0, len(rows), _QUERIES_AT_ONCE):
        yield rows[start : start + _QUERIES_AT_ONCE]
