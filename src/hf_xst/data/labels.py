"""Read columns of word labels, and normalise span labels to BIO.

A data set holds labels as strings or class labels. CoNLL-U holds those it has no column for as attributes of
MISC, named like the column (``ner_tags=B-PER``); a word without the attribute has no label.

In BIO (also called IOB2), ``B-X`` begins a span of type X, ``I-X`` continues it, and ``O`` is outside. Labels
of IO, IOB1, IOE1, IOE2, BIOES and BILOU are converted word by word, as the CoNLL scorers do: ``S`` and ``U``
are a whole span, ``E`` and ``L`` end one, and a continuation without a preceding span of its type begins one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from datasets import ClassLabel, Dataset, List, Value

from hf_xst.data.sentence import BLANK, misc_attribute

OUTSIDE = "O"
_MISC = "misc"
_SPAN = re.compile(r"(?P<prefix>[BIESLU])-(?P<type>.+)")
_ANY = ""  # after a word without a label, a span of any type may be open


class LabelColumn(NamedTuple):
    """The labels called `name`, stored in `column` (itself or MISC), as strings or indices into `names`."""

    name: str
    column: str
    names: tuple[str, ...] | None = None

    def labels(self, row: Mapping[str, Any]) -> list[str]:
        """Return the labels of a row, blank where missing."""
        values = row[self.column] or []
        if self.column != self.name:
            return [misc_attribute(cell, self.name) for cell in values]
        if self.names is not None:
            return [BLANK if value is None or value < 0 else self.names[value] for value in values]
        return [BLANK if value is None else value for value in values]

    def faults(self, labels: Sequence[str], words: Sequence[str]) -> list[str]:
        """List the reasons why a sentence's labels cannot be used."""
        if len(labels) != len(words):
            return [f"{len(labels)} labels in {self.name} for {len(words)} words"]
        if set(labels) <= {BLANK}:
            return [
                f"no word has a label in {self.name} (a column of strings or class labels, or attributes "
                f"{self.name}=... in MISC)"
            ]
        return []


def label_column(dataset: Dataset, name: str) -> LabelColumn:
    """Locate the labels of a name in a split; raise ValueError if they are missing or of another type."""
    features = dataset.features
    if name not in features:
        if _MISC in features:
            return LabelColumn(name, _MISC)
        raise ValueError(f"found the columns {', '.join(features)}, expected also {name}")
    feature = features[name].feature if isinstance(features[name], List) else None
    if isinstance(feature, ClassLabel):
        return LabelColumn(name, name, tuple(feature.names))
    if feature not in (Value("string"), Value("null")):
        raise ValueError(
            f"found {features[name]} in the column {name}, expected a list of strings or class labels; "
            f"name the values of integers with dataset.cast_column({name!r}, List(ClassLabel(names=[...])))"
        )
    return LabelColumn(name, name)


def span_type(label: str | None) -> str | None:
    """Return the type of the span that a label belongs to, None if it belongs to no span."""
    match = _SPAN.fullmatch(label or "")
    return None if match is None else match["type"]


def to_bio(labels: Sequence[str | None]) -> list[str | None]:
    """Convert the labels of a sentence to BIO; missing labels (``_``, None) and other forms are unchanged."""
    converted: list[str | None] = []
    open_type: str | None = None
    for label in labels:
        match = _SPAN.fullmatch(label or "")
        if match is None:
            converted.append(label)
            open_type = _ANY if label in (None, BLANK) else None
            continue
        continues = match["prefix"] in "IEL" and open_type in (match["type"], _ANY)
        converted.append(f"{'I' if continues else 'B'}-{match['type']}")
        open_type = match["type"] if match["prefix"] in "BI" else None
    return converted


def bio_alphabet(labels: Iterable[str]) -> list[str]:
    """Return the sorted BIO label set for labels of any scheme: `O`, `B-X` and `I-X` for each type X."""
    labels = set(labels)
    types = {kind for label in labels if (kind := span_type(label)) is not None}
    others = {label for label in labels if span_type(label) is None}
    return sorted({OUTSIDE, *others, *(f"{prefix}-{kind}" for kind in types for prefix in "BI")})


def check_bio(labels: Sequence[str]) -> None:
    """Raise ValueError unless the labels form a BIO label set."""
    invalid = [label for label in labels if label != OUTSIDE and not re.fullmatch("[BI]-.+", label)]
    if invalid:
        raise ValueError(
            f"found the labels {', '.join(invalid[:5])}; the scheme bio has {OUTSIDE}, B-X and I-X for spans "
            "of type X (hf_xst.data.bio_alphabet converts labels of IOB1, BIOES and BILOU)"
        )
    orphans = [label for label in labels if label[:2] == "I-" and f"B-{label[2:]}" not in labels]
    if orphans:
        raise ValueError(
            f"found the label {orphans[0]} without B-{orphans[0][2:]}, which begins spans in the scheme bio"
        )
