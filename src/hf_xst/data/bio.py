"""Labels that mark spans of words in the scheme BIO, which is also called IOB2.

``B-X`` begins a span of the type X, ``I-X`` goes on with it, ``O`` is outside of all spans. Labels of the
schemes IO, IOB1, IOE1, IOE2, BIOES and BILOU are read as BIO word by word: ``S`` and ``U`` begin a span and
end it, ``E`` and ``L`` go on and end it, and whatever goes on with no span of its type begins one. So do the
scorers of CoNLL. Labels in BIO stay what they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from hf_xst.data.sentence import BLANK

OUTSIDE = "O"
_SPAN = re.compile(r"(?P<place>[BIESLU])-(?P<kind>.+)")
_ANY = ""  # after a word without a label any span may be open


def span_kind(label: str | None) -> str | None:
    """Return the type of the span that a label is of, None for a label that is of none."""
    found = _SPAN.fullmatch(label or "")
    return None if found is None else found["kind"]


def to_bio(labels: Sequence[str | None]) -> list[str | None]:
    """Read the labels of a sentence as BIO; see the module.

    Args:
        labels: one for each word. Words without a label (``_``, None), and labels of another form, stay.

    Returns:
        As many labels.
    """
    made: list[str | None] = []
    opened: str | None = None
    for label in labels:
        found = _SPAN.fullmatch(label or "")
        if found is None:
            made.append(label)
            opened = _ANY if label in (None, BLANK) else None
            continue
        kind, place = found["kind"], found["place"]
        goes_on = place in "IEL" and opened in (kind, _ANY)
        made.append(f"{'I' if goes_on else 'B'}-{kind}")
        opened = kind if place in "BI" else None
    return made


def bio_alphabet(labels: Iterable[str]) -> list[str]:
    """Return the labels that sentences with some labels have in BIO, sorted.

    Args:
        labels: those that occur. Labels of another form stay.

    Returns:
        `O`, and for each type of span the label that begins one and that which goes on.
    """
    given = set(labels)
    kinds = {kind for label in given if (kind := span_kind(label)) is not None}
    others = {label for label in given if span_kind(label) is None}
    return sorted({OUTSIDE, *others, *(f"{place}-{kind}" for kind in kinds for place in "BI")})


def check_bio(labels: Sequence[str]) -> None:
    """Check that labels can stand in one alphabet of BIO.

    Raises:
        ValueError: a label is none of BIO, or goes on with spans that no other one begins.
    """
    strange = [label for label in labels if label != OUTSIDE and not re.fullmatch("[BI]-.+", label)]
    if strange:
        raise ValueError(
            f"found the labels {', '.join(strange[:5])}; the scheme bio has {OUTSIDE}, B-X and I-X for spans "
            "of the type X (hf_xst.data.bio_alphabet makes them of those of IOB1, BIOES and BILOU)"
        )
    lost = [label for label in labels if label[:2] == "I-" and f"B-{label[2:]}" not in labels]
    if lost:
        raise ValueError(
            f"found the label {lost[0]}, but not B-{lost[0][2:]}, with which spans begin in the scheme bio"
        )
