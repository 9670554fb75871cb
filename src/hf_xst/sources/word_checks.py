"""Check that word vectors fit the text that models read by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from hf_xst.charts.dataset import ChartInfo
from hf_xst.console import say
from hf_xst.data import WordVectors
from hf_xst.data.words import UNKNOWN
from hf_xst.models.modeling import StructuredModel
from hf_xst.models.words import VectorTable

SAMPLED_SENTENCES = 500
LEAST_KNOWN = 0.5


def warn_of_different_vectors(models: Mapping[str, StructuredModel]) -> None:
    """Warn if models that are to read one text, by name, use different word vectors."""
    tables = {name: model.encoder.words for name, model in models.items()}
    spaces = {name: table.space for name, table in tables.items() if isinstance(table, VectorTable)}
    if len({space["sha256"] for space in spaces.values() if space is not None}) > 1:
        say(
            f"the sources {', '.join(spaces)} read words by different word vectors, each by those of its own "
            "language; words missing there are unknown: give vectors of the text's language (--vectors)",
            "yellow",
        )


def warn_of_unknown_words(model: object, sentences: Iterable[Sequence[str]]) -> None:
    """Warn if a model that reads words by vectors knows less than half of the words of a text.

    Args:
        model: a model, or any other source, which is not checked.
        sentences: their words; the first sentences are sampled.
    """
    table = model.encoder.words if isinstance(model, StructuredModel) else None
    if not isinstance(table, VectorTable):
        return
    words = {word for sentence in islice(sentences, SAMPLED_SENTENCES) for word in sentence}
    known = sum(table.table.lookup(word) != UNKNOWN for word in words)
    if known < LEAST_KNOWN * len(words):
        say(
            f"only {known} of {len(words)} words of the text are in the word vectors; check that they are of "
            "the same language and that the text is tokenised",
            "yellow",
        )


def check_vectors(model: StructuredModel, info: ChartInfo, vectors: WordVectors | None) -> None:
    """Check that a model that reads words by vectors reads those that charts were made with.

    Args:
        model: the model to train on the charts.
        info: the record of the charts.
        vectors: the word vectors given for the model.

    Raises:
        ValueError: none were given, so that it would read the text by vectors of its own language.
    """
    words = model.encoder.words
    own = words.space if isinstance(words, VectorTable) else None
    if info.vectors is None or own is None or own.get("sha256") == info.vectors["sha256"]:
        return
    if vectors is None:
        raise ValueError(
            f"the charts were made with word vectors of the text's language ({info.vectors['name']}), but "
            "the initial model reads words by its own: give --vectors"
        )
    say("the word vectors are not those that the charts were made with", "yellow")
