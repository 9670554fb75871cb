"""The sentence of a card's picture: an invented one, or one that a person gives; never training text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hf_xst.data import read_conllu
from hf_xst.data.sentence import BLANK
from hf_xst.hub.records import Records
from hf_xst.training.annotation import annotator_beside, load_annotator
from hf_xst.training.sources import load_model


@dataclass(frozen=True)
class Example:
    """A sentence with annotation.

    Attributes:
        words: the words.
        columns: by the name of the column one value a word.
        origin: whether it is invented and only shows the form, is as its author gave it, or was predicted by
            the model.
        predicted_by: the fingerprint of the model that predicted it.
    """

    words: list[str]
    columns: Mapping[str, list[Any]] = field(default_factory=dict)
    origin: Literal["invented", "given", "predicted"] = "given"
    predicted_by: str | None = None

    @property
    def heads(self) -> list[int]:
        """The heads, empty where there are none."""
        found = [str(head) for head in self.columns.get("head", [])]
        return [int(head) for head in found] if all(head.isdigit() for head in found) else []


# A sentence in the demonstration's target language, which nobody speaks.
INVENTED = Example(
    ["hahta", "čiledive", "zy", "gatmyve", "dokasčak", "momes", "."],
    {
        "upos": ["NOUN", "NOUN", "SCONJ", "NOUN", "VERB", "VERB", "PUNCT"],
        "head": [6, 6, 5, 5, 2, 0, 6],
        "deprel": ["nsubj", "obj", "mark", "obj", "acl", "root", "punct"],
    },
    "invented",
)


def read_example(text: str) -> Example:
    """Read what a person gives as an example.

    Args:
        text: words with spaces between them, or a CoNLL-U file, of which the first sentence counts.

    Raises:
        ValueError: there is no word.
    """
    if text.endswith((".conllu", ".conllu.gz")):
        sentence = next(iter(read_conllu(Path(text))), None)
        if sentence is None:
            raise ValueError(f"{text} holds no sentence; expected one for the card's picture")
        columns = {name: sentence.column(name) for name in ("upos", "head", "deprel")}
        told = {name: values for name, values in columns.items() if BLANK not in values}
        return Example(sentence.words, told)
    if not text.split():
        raise ValueError("the example has no words; give words with spaces between them, or a CoNLL-U file")
    return Example(text.split())


def example_of(records: Records) -> Example:
    """Give the example of a folder, predicted by its model if a person gave the sentence.

    Raises:
        ValueError: the model cannot be asked; the message says why.
    """
    if not records.example:
        return INVENTED
    given = Example(**records.example)
    if records.kind == "charts" or records.fingerprint in (None, given.predicted_by):
        return given
    return _predicted(given, records)


def _predicted(given: Example, records: Records) -> Example:
    model = load_model(str(records.folder))
    row: dict[str, Any] = {"sent_id": "the example", "words": given.words, **given.columns}
    if model.annotation_column in model.input_columns and model.annotation_column not in row:
        beside = annotator_beside(str(records.folder))
        if beside is None:
            raise ValueError(
                "the model reads coarse tags (UPOS): give --example as a CoNLL-U file with tags, or put a "
                f"tagger into {records.folder / 'tagger'}"
            )
        row |= load_annotator(beside).predict([row])[0]
    columns = {key: row[key] for key in ("upos",) if key in row} | model.predict([row])[0]
    return Example(given.words, columns, "predicted", records.fingerprint)
