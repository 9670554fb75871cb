"""Compute attachment scores of dependency trees: the percentage of words with correct heads and relations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hf_xst.data.sentence import BLANK
from hf_xst.metrics.rows import MISSING, Row, paired_rows

PUNCTUATION = frozenset({"PUNCT", "SYM"})
"""Gold UPOS tags of words that the scores without punctuation ignore."""


def attachment_scores(
    predictions: Sequence[Row], references: Sequence[Row], *, strip_subtypes: bool = True
) -> dict[str, float]:
    """Score predicted trees against gold trees, over all words of all sentences together.

    Punctuation is defined by the gold UPOS tags alone, so a tagger's errors cannot change which words count;
    a gold word without a UPOS tag is not punctuation.

    Args:
        predictions: rows with `head` (0 is the root, words count from 1) and `deprel`.
        references: rows with `head`, `deprel` and `upos`, in the same order.
        strip_subtypes: compare relations up to the first colon (`nmod:poss` as `nmod`), on both sides.

    Returns:
        In percent `uas` and `las` without words whose gold UPOS tag is PUNCT or SYM, `uas_punct` and
        `las_punct` over all words, and the counts `words_without_punct` and `words`.

    Raises:
        ValueError: sentences or words do not match, a head or a gold relation is missing, or no word counts.
    """
    words = list(_compared_words(predictions, references, strip_subtypes))
    counted = [(head, both) for is_punctuation, head, both in words if not is_punctuation]
    if not counted:
        found = f"{len(references)} sentences"
        found += f" with {len(words)} words, all PUNCT or SYM" if words else ""
        raise ValueError(
            f"No word to score: {found}. Attachment scores require at least one gold word that is not "
            "punctuation; check the path, the split and the length limit."
        )
    return {
        "uas": 100.0 * sum(head for head, _ in counted) / len(counted),
        "las": 100.0 * sum(both for _, both in counted) / len(counted),
        "uas_punct": 100.0 * sum(head for _, head, _ in words) / len(words),
        "las_punct": 100.0 * sum(both for _, _, both in words) / len(words),
        "words": len(words),
        "words_without_punct": len(counted),
    }


def _compared_words(
    predictions: Sequence[Row], references: Sequence[Row], strip_subtypes: bool
) -> Iterator[tuple[bool, bool, bool]]:
    """Yield for each word whether it is punctuation, its head correct, and both head and relation correct."""
    sides = paired_rows(predictions, references, ("head", "deprel"), ("head", "deprel", "upos"))
    for label, prediction, reference in sides:
        predicted = _arcs(label, "predicted", prediction, strip_subtypes)
        gold = _arcs(label, "gold", reference, strip_subtypes)
        for guess, truth, tag in zip(predicted, gold, reference["upos"], strict=True):
            yield tag in PUNCTUATION, guess[0] == truth[0], guess == truth


def _arcs(label: str, side: str, row: Row, strip_subtypes: bool) -> list[tuple[int, str]]:
    """Return each word's head and relation."""
    arcs = []
    for position, (head, relation) in enumerate(zip(row["head"], row["deprel"], strict=True), start=1):
        if side == "gold" and relation in MISSING:
            raise ValueError(f"{label}: word {position} has no gold relation (found {relation!r}).")
        name = relation if relation is not None else BLANK
        try:
            if int(head) != float(head):
                raise ValueError
            arcs.append((int(head), name.split(":")[0] if strip_subtypes else name))
        except (TypeError, ValueError, OverflowError):
            raise ValueError(
                f"{label}: word {position} has no {side} head (found {head!r}, expected an integer, 0 for "
                "the root). Exclude sentences without a tree from the evaluation."
            ) from None
    return arcs
