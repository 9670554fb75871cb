"""Attachment scores of dependency trees: the share of words with the right head, and the right relation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hf_xst.metrics.rows import MISSING, Row, paired_rows

PUNCTUATION = frozenset({"PUNCT", "SYM"})
"""Gold UPOS tags whose words the scores without punctuation leave out."""


def attachment_scores(
    predictions: Sequence[Row], references: Sequence[Row], *, strip_subtypes: bool = True
) -> dict[str, float]:
    """Score predicted trees against gold ones, over all words of all sentences together.

    What is punctuation is read off the references alone, so that a tagger's mistakes cannot change which
    words count. A gold word without UPOS is no punctuation.

    Args:
        predictions: rows with `head` (0 is the root, words count from 1) and `deprel`.
        references: rows with `head`, `deprel` and `upos`, in the same order.
        strip_subtypes: compare relations up to the first colon (`nmod:poss` as `nmod`), on both sides.

    Returns:
        In percent `uas` and `las` without the words whose gold UPOS is PUNCT or SYM, `uas_punct` and
        `las_punct` over all words; and the counts behind them, `words_without_punct` and `words`.

    Raises:
        ValueError: sentences or words do not match, a head or a gold relation is missing, or there is no word
            to count.
    """
    everything = list(_compared_words(predictions, references, strip_subtypes))
    counted = [(head, both) for is_punctuation, head, both in everything if not is_punctuation]
    if not counted:
        raise ValueError(_nothing_to_count(len(references), len(everything)))
    return {
        "uas": _percent([head for head, _ in counted]),
        "las": _percent([both for _, both in counted]),
        "uas_punct": _percent([head for _, head, _ in everything]),
        "las_punct": _percent([both for _, _, both in everything]),
        "words": len(everything),
        "words_without_punct": len(counted),
    }


def _percent(right: Sequence[bool]) -> float:
    return 100.0 * sum(right) / len(right)


def _compared_words(
    predictions: Sequence[Row], references: Sequence[Row], strip_subtypes: bool
) -> Iterator[tuple[bool, bool, bool]]:
    """Yield for each word whether it is punctuation, its head is right, and its relation is right too."""
    sides = paired_rows(predictions, references, ("head", "deprel"), ("head", "deprel", "upos"))
    for place, prediction, reference in sides:
        predicted = _arcs(place, "predicted", prediction, strip_subtypes)
        gold = _arcs(place, "gold", reference, strip_subtypes)
        for guess, truth, tag in zip(predicted, gold, reference["upos"], strict=True):
            yield tag in PUNCTUATION, guess[0] == truth[0], guess == truth


def _arcs(place: str, side: str, row: Row, strip_subtypes: bool) -> list[tuple[int, str]]:
    """Return each word's head and relation."""
    arcs = []
    for position, (head, relation) in enumerate(zip(row["head"], row["deprel"], strict=True), start=1):
        if side == "gold" and relation in MISSING:
            raise ValueError(f"{place}: word {position} has no gold relation (found {relation!r}).")
        name = relation if relation is not None else ""
        arcs.append((_head(place, side, position, head), name.split(":")[0] if strip_subtypes else name))
    return arcs


def _head(place: str, side: str, position: int, head: Any) -> int:
    try:
        return int(head)
    except (TypeError, ValueError):
        raise ValueError(
            f"{place}: word {position} has no {side} head (found {head!r}, expected a whole number, 0 for "
            "the root). Leave sentences without a tree out of the evaluation."
        ) from None


def _nothing_to_count(sentences: int, words: int) -> str:
    found = f"{sentences} sentences" + (f" with {words} words, all PUNCT or SYM" if words else "")
    return (
        f"There is no word to score: {found}. An attachment score needs at least one gold word that is no "
        "punctuation; check the path, the split and the length limit."
    )
