"""Columns of labels beside CoNLL-U's own analysis: one label a word, in a column of its own or in MISC.

A data set holds such labels as strings or as class labels. In CoNLL-U they are attributes of MISC called like
the column (``ner_tags=B-PER``); a word without the attribute has no label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from datasets import ClassLabel, Dataset, Features, List, Value

from hf_xst.data.sentence import BLANK, attribute

_MISC = "misc"


class LabelColumn(NamedTuple):
    """Where the labels of a name are found.

    Attributes:
        name: the column that is wanted.
        place: the column that holds it: itself, or MISC.
        names: of class labels; None where labels are strings.
    """

    name: str
    place: str
    names: tuple[str, ...] | None = None

    def labels(self, row: Mapping[str, Any]) -> list[str]:
        """Return the labels of a row, blank where there is none."""
        values = row[self.place] or []
        if self.place != self.name:
            return [attribute(cell, self.name) for cell in values]
        if self.names is not None:
            return [BLANK if value is None or value < 0 else self.names[value] for value in values]
        return [BLANK if value is None else value for value in values]

    def faults(self, labels: Sequence[str], words: Sequence[str]) -> list[str]:
        """Say what keeps labels from being learned from."""
        if len(labels) != len(words):
            return [f"{len(labels)} labels in {self.name} for {len(words)} words"]
        if set(labels) <= {BLANK}:
            return [
                f"no word has a label in {self.name} (a column of strings or class labels, or attributes "
                f"{self.name}=... in MISC)"
            ]
        return []


def label_column(dataset: Dataset, name: str) -> LabelColumn:
    """Find labels in a data set.

    Args:
        dataset: one split.
        name: the column that is wanted.

    Raises:
        ValueError: there is no such column, or it holds something else.
    """
    features = dataset.features
    if name not in features:
        if _MISC in features:
            return LabelColumn(name, _MISC)
        raise ValueError(f"found the columns {', '.join(features)}, expected also {name}")
    values = features[name].feature if isinstance(features[name], List) else None
    if isinstance(values, ClassLabel):
        return LabelColumn(name, name, tuple(values.names))
    if values != Value("string"):
        raise ValueError(
            f"found {features[name]} in the column {name}, expected a list of strings or class labels; "
            f"numbers get names by dataset.cast_column({name!r}, List(ClassLabel(names=[...])))"
        )
    return LabelColumn(name, name)


def holds_words_only(features: Features) -> bool:
    """Say whether a data set has words, and whatever labels, but no columns of Universal Dependencies."""
    words = any(features.get(name) == List(Value("string")) for name in ("words", "tokens"))
    return words and not {"head", "deprel"} & set(features)
