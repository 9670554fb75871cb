"""Models that read words by vectors, and whose words these are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from hf_xst.console import say
from hf_xst.data import WordVectors
from hf_xst.data.words import UNKNOWN
from hf_xst.models.modeling import StructuredModel
from hf_xst.models.words import VectorTable

# Of so many sentences; a model that knows less than this share of their words reads little but positions.
_LOOKED_AT, _KNOWN = 500, 0.5


def tell_of_own_words(models: Mapping[str, StructuredModel]) -> None:
    """Warn where models that are to read one text, by name, read words by different files of vectors."""
    tables = {name: model.encoder.words for name, model in models.items()}
    spaces = {name: table.space for name, table in tables.items() if isinstance(table, VectorTable)}
    if len({space["sha256"] for space in spaces.values() if space is not None}) > 1:
        say(
            f"the sources {', '.join(spaces)} read words by different word vectors, each by those of its own "
            "language: words that these lack are unknown; give vectors of the text's language (--vectors)",
            "yellow",
        )


def tell_of_unknown_words(model: StructuredModel, sentences: Iterable[Sequence[str]]) -> None:
    """Warn where a model that reads words by vectors knows less than half of a text's words.

    Args:
        model: the model.
        sentences: their words; the first sentences are looked at.
    """
    table = model.encoder.words
    if not isinstance(table, VectorTable):
        return
    words = {word for sentence in islice(sentences, _LOOKED_AT) for word in sentence}
    known = sum(table.table.lookup(word) != UNKNOWN for word in words)
    if known < _KNOWN * len(words):
        say(
            f"only {known} of {len(words)} words of the text are in the word vectors: are they its "
            "language's, and is the text cut into words?",
            "yellow",
        )


def same_words(model: StructuredModel, provenance: Mapping[str, Any], vectors: WordVectors | None) -> None:
    """See that a model that reads words by vectors reads those that charts were made with.

    Args:
        model: to be trained on the charts.
        provenance: of the charts.
        vectors: those that the model was told to read, if any.

    Raises:
        ValueError: none were told, and it would read the text by its own language's words.
    """
    made, words = provenance.get("vectors"), model.encoder.words
    own = words.space if isinstance(words, VectorTable) else None
    if made is None or own is None or own.get("sha256") == made["sha256"]:
        return
    if vectors is None:
        raise ValueError(
            f"the charts were made with word vectors of the text's language ({made['name']}), and the start "
            "reads words by its own: give --vectors"
        )
    say("the word vectors are not those that the charts were made with", "yellow")
