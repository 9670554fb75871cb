"""Sentences on their way into the app: typed, uploaded, or chosen."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

from hf_xst.data import UPOS_TAGS, ConlluSentence, iterate_unlabelled
from hf_xst.data.segmentation import segment

MOST_UPLOADED = 200
BLANK = "_"
_TAGGED = re.compile(r"(?P<word>.+)/(?P<tag>[A-Z]+)")


def typed_sentence(text: str) -> ConlluSentence:
    """Read a sentence that a person has typed: running text, or words that all end in `/TAG`.

    Raises:
        ValueError: there is no word.
    """
    tokens = text.split()
    if not tokens:
        raise ValueError("type at least one word")
    found = [_TAGGED.fullmatch(token) for token in tokens]
    tagged = [match for match in found if match is not None and match["tag"] in UPOS_TAGS]
    if len(tagged) < len(tokens):
        words = [word for sentence in segment(text) for word in sentence]
        return ConlluSentence.from_words(words, sent_id="typed")
    words = [match["word"] for match in tagged]
    return ConlluSentence.from_words(
        words, sent_id="typed", columns={"upos": [match["tag"] for match in tagged]}
    )


def uploaded_sentences(path: str) -> list[ConlluSentence]:
    """Read the first sentences of a file: CoNLL-U, tokenised lines (.txt) or JSON lines.

    Raises:
        ValueError: the file cannot be read, or holds no sentence.
    """
    found = list(islice(iterate_unlabelled(path), MOST_UPLOADED))
    if not found:
        raise ValueError(f"{Path(path).name} holds no sentence")
    return found


def upos_of(sentence: ConlluSentence) -> list[str] | None:
    """Return the coarse tags, or None where there are none."""
    return None if set(sentence.upos) == {BLANK} else sentence.upos


def gold_of(sentence: ConlluSentence, columns: tuple[str, ...]) -> dict[str, list[str]] | None:
    """Return the annotation of a sentence in some columns, relations without subtypes, or None.

    Args:
        sentence: the sentence.
        columns: lower-case names, such as `head` and `deprel`.
    """
    found = {column: sentence.column(column) for column in columns}
    if any(BLANK in values for values in found.values()):
        return None
    if not all(head.isdecimal() for head in found.get("head", [])):
        return None
    if "deprel" in found:
        found["deprel"] = [label.partition(":")[0] for label in found["deprel"]]
    return found
