"""Map words to rows of word vectors."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from hf_xst.files import write_text
from hf_xst.records import check_format, read_json

PADDING, UNKNOWN, FIRST_WORD = 0, 1, 2
_FORMAT_VERSION = 1
_DIGIT = re.compile(r"\d")


def lookup_forms(word: str) -> tuple[str, ...]:
    """Return the forms to look up: exact, lower-cased, digits as 0, both; then all in NFC and NFD.

    Lower-cased forms with Turkish letters, in which `I` is the capital of dotless `ı`, come last among the
    lower-cased ones. Python lowers `İ` to two characters, an `i` and a dot, which vectors rarely have.
    """
    undotted = word.replace("İ", "i")
    lowered = (word.lower(), undotted.lower(), undotted.replace("I", "ı").lower())
    forms = (word, *lowered, *(_DIGIT.sub("0", form) for form in (word, *lowered)))
    if word.isascii():
        return tuple(dict.fromkeys(forms))
    normalized = (unicodedata.normalize(way, form) for way in ("NFC", "NFD") for form in forms)
    return tuple(dict.fromkeys((*forms, *normalized)))


class WordTable:
    """Words in the order of their vectors, with indices from `FIRST_WORD`; 0 is padding, 1 the unknown word.

    Raises:
        ValueError: A duplicate word.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(words)
        self._index = {word: number for number, word in enumerate(self.words, start=FIRST_WORD)}
        if len(self._index) < len(self.words):
            numbered = enumerate(self.words, start=FIRST_WORD)
            duplicate = next(word for number, word in numbered if self._index[word] != number)
            raise ValueError(f"duplicate word {duplicate!r}")

    def lookup(self, word: str) -> int:
        """Return the index of the first known form of a word (`lookup_forms`), or `UNKNOWN`."""
        index = self._index.get(word)
        if index is not None:
            return index
        for form in lookup_forms(word):
            if form in self._index:
                return self._index[form]
        return UNKNOWN

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table as JSON, atomically."""
        content = {"format_version": _FORMAT_VERSION, "specials": [], "words": self.words}
        write_text(path, json.dumps(content, ensure_ascii=False, indent=0) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> WordTable:
        """Read a table; raise ValueError if the file is not a table of this format version."""
        content = read_json(Path(path))
        check_format(content, _FORMAT_VERSION, str(path))
        words = content.get("words")
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError(f"{path}: words is not a list of strings")
        return cls(words)
