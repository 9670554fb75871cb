"""Pair the sentences of two files by their words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

Named = tuple[str | None, Sequence[str]]
"""The sent_id, if any, and the words of a sentence."""


def pair_sentences(found: Sequence[Named], wanted: Sequence[Named], path: str) -> list[int]:
    """Return for each sentence the index of the sentence of a file with the same words.

    Sentences with the same words are distinguished by their sent_id, or else paired in their order if both
    sides have equally many.

    Raises:
        ValueError: a sentence is missing, or several have its words and neither sent_id nor order decides.
    """
    by_words: dict[tuple[str, ...], list[int]] = {}
    for index, (_, words) in enumerate(found):
        by_words.setdefault(tuple(words), []).append(index)
    counts = Counter(tuple(words) for _, words in wanted)
    name_counts = Counter((name, tuple(words)) for name, words in wanted)
    seen: Counter[tuple[str, ...]] = Counter()
    pairs = []
    for name, each in wanted:
        words = tuple(each)
        same = by_words.get(words)
        if same is None:
            raise ValueError(
                words_mismatch(path, {key or "?": value for key, value in found}, str(name), each)
            )
        named = [index for index in same if found[index][0] == name]
        if len(named) == name_counts[name, words] == 1:
            pairs.append(named[0])
        elif len(same) == counts[words]:
            pairs.append(same[seen[words]])
        else:
            raise ValueError(
                f"{path}: {len(same)} sentences have the words of sentence {name}, {counts[words]} expected: "
                "give them the same sent_id as there"
            )
        seen[words] += 1
    return pairs


def words_mismatch(path: str, found: Mapping[str, Sequence[str]], name: str, words: Sequence[str]) -> str:
    """Describe how a sentence differs from that of its name in a file, or else the most similar beginning.

    `found` are the words of the file's sentences, by sent_id.
    """

    def shared(other: str) -> int:
        pairs = zip(found[other], words, strict=False)
        differing = (index for index, (there, here) in enumerate(pairs) if there != here)
        return next(differing, min(len(found[other]), len(words)))

    nearest = name if name in found else max(found, key=shared, default=None)
    index = 0 if nearest is None else shared(nearest)
    if nearest is None or (nearest != name and index == 0):
        return f"{path}: sentence {name} is missing; no sentence begins with {words[0]!r}"
    there, here = len(found[nearest]), len(words)
    difference = f"it has {there} words there, {here} here"
    if index < min(there, here):
        difference = f"word {index + 1} is {found[nearest][index]!r} there, {words[index]!r} here"
    alias = "" if nearest == name else f" ({name} here)"
    return f"{path}, sentence {nearest}{alias}: {difference}; expected the same words"
