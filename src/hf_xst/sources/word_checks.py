"""Check that word vectors and UPOS tags fit the text that models read by them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from hf_xst.charts.dataset import ChartInfo
from hf_xst.console import say
from hf_xst.data import UPOS_TAGS, WordVectors
from hf_xst.data.sentence import BLANK
from hf_xst.models.modeling import StructuredModel
from hf_xst.models.words import UNKNOWN, VectorTable

SAMPLED_SENTENCES = 500
LEAST_KNOWN = 0.5
MOST_UNKNOWN_TAGS = 0.1


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
    """Warn if a model that reads words by vectors knows less than half of the words of the first sentences.

    Sources other than models are not checked.
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


def check_text(models: Mapping[str, object], rows: Any) -> None:
    """Check the words of prepared rows for the first model, and their UPOS tags for all, by name."""
    warn_of_unknown_words(next(iter(models.values())), rows["words"])
    for name, model in models.items():
        check_tags(model, rows["upos"], name)


def check_tags(
    model: object, sentences: Iterable[Sequence[str] | None], name: str = "the model", *, warns: bool = True
) -> None:
    """Check that a model which reads UPOS tags knows those of a text; if `warns`, warn if it knows few.

    Sources other than models, and sentences without tags, are ignored; `name` is for messages.

    Raises:
        ValueError: the model knows none of the tags. (A single sentence may have only rare UPOS tags.)
    """
    embeddings = model.coarse_tags if isinstance(model, StructuredModel) else None
    if embeddings is None:
        return
    tagged, counts = 0, Counter[str]()
    for tags in sentences:
        if tags is not None and set(tags) != {BLANK}:
            tagged += 1
            counts.update(tag for tag in tags if tag != BLANK or embeddings.dropout == 0)
    unknown = Counter({tag: count for tag, count in counts.items() if tag not in embeddings.index_of})
    if unknown.total() <= MOST_UNKNOWN_TAGS * counts.total():
        return
    message = (
        f"{name} does not know the UPOS tags of {unknown.total()} of {counts.total()} words: "
        f"{', '.join(f'{tag} ({count})' for tag, count in unknown.most_common(5))}; it knows "
        f"{', '.join(embeddings.index_of)}; convert the tags, or tag the text by --tagger"
    )
    is_rare = tagged == 1 and set(counts) <= {*UPOS_TAGS}
    if unknown.total() == counts.total() and not is_rare:
        raise ValueError(message)
    if warns:
        say(message, "yellow")


def check_vectors(model: StructuredModel, info: ChartInfo, vectors: WordVectors | None) -> None:
    """Check that a model that reads words by vectors reads those that charts were made with.

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
